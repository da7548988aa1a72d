"""``compass taskbench``: validate the tasks (no tokens), or run an agent on them (spends tokens)."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Never

import typer

from schema.errors import CopperbenchError, EnvironmentFault, UsageError

app = typer.Typer(no_args_is_help=True, help="Five seeded bugs: prove the tasks, or let an agent mend them.")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document; exit codes stay the same.")]
Names = Annotated[list[str] | None, typer.Argument(help="Tasks by folder name; all when none is given.")]
Root = Annotated[
    Path | None,
    typer.Option(exists=True, file_okay=False, help="Another folder with tasks/ and fixes/ in it."),
]


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except CopperbenchError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code) from error
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(130) from None


def _stop(_number: int, _frame: object) -> Never:
    raise KeyboardInterrupt


@contextmanager
def _stoppable() -> Iterator[None]:
    """TERM and HUP end us as Ctrl-C does: an agent must not go on spending when nobody watches it."""
    before = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _root(given: Path | None) -> Traversable:
    from compass.taskbench.tasks import shipped

    return given or shipped()


@app.command()
def validate(
    names: Names = None,
    root: Root = None,
    need_shellcheck: Annotated[
        bool, typer.Option("--need-shellcheck", help="Exit 3 when shellcheck is not installed (for CI).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Prove the tasks without an agent: no tokens, no network, nothing outside temporary folders."""
    from compass.taskbench import confine, lint, sandbox, tasks
    from compass.taskbench.validate import validate as checks

    with _one_line_errors():
        folder = _root(root)
        wanted = tasks.select(folder, names or [])
        sandbox.need_tools()
        if not lint.installed():
            if need_shellcheck:
                raise EnvironmentFault(lint.MISSING)
            typer.echo(lint.MISSING, err=True)
        found = list(checks(folder, wanted))
    failed = [check for check in found if not check.ok]
    document = {
        "ok": not failed,
        "tasks": wanted,
        "shellcheck": lint.installed(),
        "confined": confine.version() > 0,
        "checks": [check.to_json() for check in found],
    }
    lines = []
    for name in wanted:
        own = [check for check in found if check.task == name]
        bad = sum(not check.ok for check in own)
        lines.append(f"{name}: {f'{bad} of {len(own)} checks failed' if bad else f'{len(own)} checks ok'}")
        lines += [f"  {check.name}: {check.detail}" for check in own if not check.ok]
    if not confine.version():
        lines.append(
            "note: this kernel has no Landlock; scripts were watched, not held, outside their folder"
        )
    _print(document, lines, as_json)
    raise typer.Exit(1 if failed else 0)


@app.command()
def run(  # noqa: PLR0917 - typer makes each parameter an option
    names: Names = None,
    agent: Annotated[
        str,
        typer.Option(
            help="The agent's command. It reads the prompt from standard input, or as the word {prompt}."
        ),
    ] = ...,  # type: ignore[assignment]  # typer's way to say that an option is required
    budget: Annotated[
        float,
        typer.Option(min=0, envvar="SDLC_BUDGET", help="USD a task, handed to the agent as SDLC_BUDGET."),
    ] = 4.0,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that the agent has for a task.")] = 1800.0,
    results: Annotated[
        Path, typer.Option(dir_okay=False, help="The results file; rows are added to it.")
    ] = Path("results.tsv"),
    runs: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="Where run folders go (a temporary place)."),
    ] = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Let an agent work on the tasks. THIS SPENDS TOKENS: run it by hand, never in CI."""
    from compass.taskbench import agent as agents
    from compass.taskbench import run as live
    from compass.taskbench import sandbox, tasks

    done = []
    with _one_line_errors(), _stoppable():
        if os.environ.get("CI", "").lower() not in {"", "0", "false"}:
            raise UsageError(
                "taskbench run spends tokens and does not run in CI (CI is set); CI runs validate"
            )
        folder = _root(root)
        wanted = tasks.select(folder, names or [])
        words = agents.locate(agents.parse(agent))
        sandbox.need_tools()
        typer.echo(
            f"warning: this spends tokens, up to ${budget:g} for each of {len(wanted)} if the agent keeps to "
            f"{agents.BUDGET}; the agent works with your rights and your environment",
            err=True,
        )
        for result in live.run(folder, wanted, words, budget=budget, limit=timeout, runs=runs):
            try:
                live.append(results, result)
            except OSError as error:
                raise EnvironmentFault(
                    f"{results}: {error.strerror}; the run is in {result.run_dir}"
                ) from error
            done.append(result)
            if not as_json:
                typer.echo("\t".join(result.row()))
            if result.over_budget:
                typer.echo(f"{result.task}: the agent spent more than its {budget:g} USD", err=True)
            if result.note:
                typer.echo(f"{result.task}: {result.note}", err=True)
    passed = sum(result.passed for result in done)
    known = [result.cost_usd for result in done if result.cost_usd is not None]
    document = {
        "ok": passed == len(done),
        "passed": passed,
        "total": len(done),
        "cost_usd": round(sum(known), 6) if len(known) == len(done) else "unknown",
        "budget_usd": budget,
        "results": [result.to_json() for result in done],
    }
    _print(document, [f"{passed} of {len(done)} mended, in one sample; see {results}"], as_json)
    raise typer.Exit(0 if passed == len(done) else 1)


def _print(document: Any, lines: list[str], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for line in lines:
            typer.echo(line)
