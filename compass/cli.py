"""The ``compass`` command line: exit 0 when nothing is wrong, 1 on a finding or a missed floor, 2 on wrong
usage."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from compass import __version__
from compass.taskbench.cli import app as taskbench
from schema.errors import CopperbenchError

app = typer.Typer(no_args_is_help=True, add_completion=False)
app.add_typer(taskbench, name="taskbench")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document; exit codes stay the same.")]
#: A hook's way to say no; agents show the reason on standard error to the model.
_DENIED = 2


def _version(show: bool) -> None:
    if show:
        typer.echo(f"compass {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    """Offline guardrail, injection detector and model-tier router."""


def _print(document: Any, lines: Iterable[str], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for line in lines:
            typer.echo(line)


@contextmanager
def _one_line() -> Iterator[None]:
    """An expected failure as one line on standard error, with its exit code."""
    try:
        yield
    except CopperbenchError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code) from error


def _usage(message: str) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(2)


@app.command()
def bench(  # noqa: PLR0917 - typer makes each parameter an option
    guardrail: Annotated[bool, typer.Option("--guardrail", help="Only the guardrail's corpus.")] = False,
    redteam: Annotated[bool, typer.Option("--redteam", help="Only the injection corpus.")] = False,
    router: Annotated[bool, typer.Option("--router", help="Only the router's corpus.")] = False,
    cost: Annotated[bool, typer.Option("--cost", help="The router and what it costs.")] = False,
    tool: Annotated[str | None, typer.Option(help="Score another tool: the command that starts it.")] = None,
    name: Annotated[str | None, typer.Option(help="The other tool's name in the report.")] = None,
    save: Annotated[Path | None, typer.Option(help="Also write the JSON report to this file.")] = None,
    tok_in: Annotated[int | None, typer.Option("--tok-in", min=0, help="Input tokens a task.")] = None,
    tok_out: Annotated[int | None, typer.Option("--tok-out", min=0, help="Output tokens a task.")] = None,
    prices: Annotated[str | None, typer.Option(help="A shipped price table by name.")] = None,
    pricing: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="A pricing.json.")] = None,
    as_json: Json = False,
) -> None:
    """Score the detectors on their corpora; exit 1 when a floor is missed."""
    from compass.bench import run

    if tool is not None:
        if router or cost or (guardrail and redteam):
            raise _usage("--tool goes with --guardrail (the default) or --redteam")
        ok, document, lines = _bench_tool(tool, "redteam" if redteam else "guardrail", name)
    else:
        wanted = {"guardrail": guardrail, "redteam": redteam, "router": router, "cost": cost}
        parts = [part for part, asked in wanted.items() if asked] or list(wanted)
        with _one_line():
            ok, document, lines = run.everything(
                parts, os.environ, tok_in=tok_in, tok_out=tok_out, prices=prices, pricing=pricing
            )
    if save is not None:
        try:
            save.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        except OSError as error:
            raise _usage(f"{save}: {error.strerror}") from error
    _print(document, lines, as_json)
    raise typer.Exit(0 if ok else 1)


def _bench_tool(command: str, corpus: str, name: str | None) -> tuple[bool, dict[str, Any], Iterable[str]]:
    from compass.bench import text
    from compass.bench import tool as scorer

    with _one_line():
        report = scorer.evaluate(command, corpus, name)
    return report.ok, report.to_json(), text.tool(report)


@app.command()
def redteam(
    evaluate: Annotated[bool, typer.Option("--eval", help="The corpus as it stands (the default).")] = False,
    attack: Annotated[bool, typer.Option("--attack", help="Every injection in every disguise.")] = False,
    external: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Rows 'inject|safe <TAB> text' of your own."),
    ] = None,
    scan: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="Search a folder's files for injections."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the injection detector, or put it to work on a folder."""
    from compass.bench import run

    if sum([evaluate, attack, external is not None, scan is not None]) > 1:
        raise _usage("one of --eval, --attack, --external and --scan at a time")
    with _one_line():
        ok, document, lines = run.redteam(attack=attack, external=external, scan=scan)
    _print(document, lines, as_json)
    raise typer.Exit(0 if ok else 1)


@app.command()
def check(
    command: Annotated[
        str | None, typer.Argument(help="The command line; '-' reads it from standard input.")
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(envvar="POLICY_CURRENT_BRANCH", help="The branch checked out where it would run."),
    ] = None,
    protected: Annotated[
        list[str] | None, typer.Option(help="A protected branch or glob; repeatable.")
    ] = None,
    hook: Annotated[
        bool, typer.Option("--hook", help="Read an agent's tool call as JSON; answer as its hook.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say why a command must not run; exit 1 when there is a reason."""
    from compass.guardrail import PROTECTED, findings

    if hook:
        _hook(branch)
    if command is None:
        raise _usage("a command, '-' or --hook is needed")
    text = sys.stdin.read() if command == "-" else command
    found = findings(text, branch or None, tuple(protected) if protected else PROTECTED)
    document = {"ok": not found, "command": text, "findings": [finding.to_json() for finding in found]}
    lines = [f"{finding.rule}: {finding.why}" for finding in found] or ["ok"]
    _print(document, lines, as_json)
    raise typer.Exit(1 if found else 0)


def _hook(branch: str | None) -> None:
    from compass.hook import answer

    decision = answer(sys.stdin.read(), branch)
    typer.echo(json.dumps(decision.to_json(), ensure_ascii=False))
    if decision.allow:
        raise typer.Exit(0)
    typer.echo(decision.reason, err=True)
    raise typer.Exit(_DENIED)


@app.command()
def scan(
    file: Annotated[Path, typer.Argument(help="A text file; '-' reads standard input.")],
    as_json: Json = False,
) -> None:
    """Search a file for injections; exit 1 when there is one."""
    from compass.redteam import injection_findings
    from compass.redteam.scan import FileFindings, scan_file

    if str(file) == "-":
        result = FileFindings("-", tuple(injection_findings(sys.stdin.read())))
    else:
        try:
            result = scan_file(file)
        except OSError as error:
            raise _usage(f"{file}: {error.strerror}") from error
    lines = [f"{f.start}-{f.end} {f.rule}: {f.why}" for f in result.findings] or [result.note or "ok"]
    _print({"ok": not result.findings, **result.to_json()}, lines, as_json)
    raise typer.Exit(1 if result.findings else 0)


@app.command()
def route(
    task: Annotated[str, typer.Argument(help="The task in words; '-' reads standard input.")],
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the reasons and every tier's chance.")
    ] = False,
    tiers: Annotated[
        str | None, typer.Option(help="Three names, cheapest first, separated by commas.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Name the model tier that a task needs."""
    from compass.router import TIERS
    from compass.router import explain as decide

    try:
        decision = decide(sys.stdin.read() if task == "-" else task, tiers.split(",") if tiers else TIERS)
    except ValueError as error:
        raise _usage(str(error)) from error
    lines = [decision.tier]
    if explain:
        chances = ", ".join(f"{tier} {chance:.2f}" for tier, chance in decision.chances.items())
        lines += [f"confidence {decision.confidence:.2f} ({chances}), score {decision.score:+.2f}"]
        lines += [f"  {reason.points:+.2f} {reason.feature}: {reason.because}" for reason in decision.reasons]
    _print(decision.to_json(), lines, as_json)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Run the whole gate: corpora, floors, robustness and self-checks; exit 1 when anything fails."""
    from compass.bench import run

    ok, document, lines = run.doctor(os.environ)
    _print(document, lines, as_json)
    raise typer.Exit(0 if ok else 1)


def main() -> None:
    """Console entry point."""
    app()
