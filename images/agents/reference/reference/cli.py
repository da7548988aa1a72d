"""The command line: do, create and sync ask a model where they must; init and check never do.

Exit codes: 0 done, clean or refused; 1 failed; 2 something a person has to decide (flagged, or findings of
check); 64 a wrong command line.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from scaffold.errors import Off

from reference import VERSION
from reference.checks import CONFIG, Checks, Settings
from reference.conversation import Conversation
from reference.errors import CommitFailed, ToolError, Unusable
from reference.model import Client
from reference.run import Limits, Run
from reference.tools import SUBSETS, Toolbox
from reference.transcript import Transcript, clock
from reference.workspace import Workspace

PROMPTS = Path(__file__).resolve().parents[1] / "prompts"
BASE_URL = "http://127.0.0.1:8080/v1"
DECIDE = 2
_USAGE = 64
_TABLES = {
    "sym-lib-table": "(sym_lib_table\n  (version 7)\n)\n",
    "fp-lib-table": "(fp_lib_table\n  (version 7)\n)\n",
}
"""Global library tables, there and empty: without them KiCad's findings depend on what ran before."""


def main(arguments: list[str]) -> int:
    """Carry one command out; returns the exit code. What is off is one line on standard error."""
    options = _parser().parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="kicad-") as home:
            _settle(Path(home))
            code: int = options.act(options)
            return code
    except (Unusable, Off, ToolError, CommitFailed, OSError) as error:
        sys.stderr.write(f"reference: {' '.join(str(error).split())}\n")
        return 1


class _Parser(argparse.ArgumentParser):
    """2 is taken: it says that a person has to decide."""

    def error(self, message: str) -> NoReturn:
        self.exit(_USAGE, f"reference: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="reference", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, act, text in (
        ("do", _do, "carry a request out"),
        ("create", _create, "carry a brief out; the request is the brief's path"),
        ("sync", _sync, "bring the documents in line; asks a model only when something drifts"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("request")
        command.add_argument("--model", required=True)
        command.add_argument("--base-url", default=BASE_URL)
        command.add_argument("--max-turns", type=_whole, help="model replies; else as the project says")
        command.add_argument(
            "--max-repair-cycles", type=_whole, help="failed checks; else as the project says"
        )
        command.add_argument(
            "--prompt", choices=sorted(path.stem for path in PROMPTS.glob("*.md")), default="default"
        )
        command.add_argument("--tools", choices=sorted(SUBSETS), default="all")
        command.set_defaults(act=act, command=name)
    check = commands.add_parser("check", help="ERC, DRC, drift and constraints; no model")
    check.set_defaults(act=_check)
    init = commands.add_parser(
        "init", help="write documents and settings for a project that has none; no model"
    )
    init.add_argument("schematic")
    init.add_argument("--board")
    init.set_defaults(act=_init)
    return parser


def _whole(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def _settle(home: Path) -> None:
    """Give KiCad a writable configuration of its own."""
    for name, text in _TABLES.items():
        folder = home / "9.0"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    os.environ["KICAD_CONFIG_HOME"] = str(home)


def _open() -> tuple[Workspace, Checks]:
    workspace = Workspace(Path.cwd())
    try:
        settings = Settings.read(workspace)
    except (ToolError, ValueError, TypeError) as error:
        raise Unusable(f"{CONFIG}: {error}; run init first") from None
    return workspace, Checks(workspace, settings)


def _do(options: argparse.Namespace) -> int:
    workspace, checks = _open()
    return _perform(options, workspace, checks, options.request)


def _create(options: argparse.Namespace) -> int:
    workspace, checks = _open()
    brief = workspace.read(options.request)
    options.brief = {"path": options.request, "sha256": hashlib.sha256(brief).hexdigest()}
    return _perform(options, workspace, checks, brief.decode("utf-8", "replace"))


def _sync(options: argparse.Namespace) -> int:
    workspace, checks = _open()
    if decide := checks.contradictions():
        return _say(*decide, code=DECIDE)
    drift, _ = checks.drift()
    if not drift:
        return _say("in line", code=0)
    found = "\n".join(f"- {item}" for item in drift[:100])
    return _perform(options, workspace, checks, f"{options.request}\n\nWhat drifts:\n{found}")


def _check(_options: argparse.Namespace) -> int:
    _, checks = _open()
    erc, drc, (drift, _) = checks.erc(), checks.drc(), checks.drift()
    found = [item for item in (*erc.now, *drc.now) if item.severity != "excluded"]
    lines = [*map(str, found), *map(str, drift), *checks.contradictions()]
    return _say(*(lines or ["clean"]), code=DECIDE if lines else 0)


def _init(options: argparse.Namespace) -> int:
    # Only here: the scaffolder's whole preparation is of no use to a run.
    from scaffold.prepare import Preparation, lay_out

    fixture = {"artifacts": {"schematic": options.schematic, "board": options.board}}
    task = {"caps": {"wallClockSec": 3600}}
    root = Path.cwd()
    for name in filter(None, (options.schematic, options.board)):
        if not (root / name).is_file():
            raise Unusable(f"{name}: no such file")
    preparation = Preparation(task, fixture, [], root, root / ".copperhead/overlay")
    lay_out(preparation)
    return _say(*(preparation.notes or ["documents and settings written"]), code=0)


def _say(*lines: str, code: int) -> int:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return code


def _perform(options: argparse.Namespace, workspace: Workspace, checks: Checks, request: str) -> int:
    settings = checks.settings
    limits = Limits(
        turns=settings.max_turns if options.max_turns is None else options.max_turns,
        repair_cycles=(
            settings.max_repair_cycles if options.max_repair_cycles is None else options.max_repair_cycles
        ),
    )
    prompt = (PROMPTS / f"{options.prompt}.md").read_bytes()
    commit = workspace.git("rev-parse", "HEAD")
    client = Client(options.base_url, options.model)
    transcript = Transcript(workspace.root)
    transcript.add(
        "run-start",
        request=options.request,
        model=options.model,
        provider="openai-chat",
        modelSource="argument",
        runId=transcript.id,
        startedAt=clock(transcript.started),
        command=options.command,
        interactive=False,
        stage=None,
        brief=getattr(options, "brief", None),
        versions={
            "reference": VERSION,
            "python": platform.python_version(),
            "platform": f"{sys.platform}-{platform.machine()}",
        },
        config={
            "schematic": settings.schematic,
            "board": settings.board,
            "docs": settings.docs,
            "maxTurns": limits.turns,
            "maxRepairCycles": limits.repair_cycles,
            "budgets": settings.budgets,
        },
        prompt={"variant": options.prompt, "sha256": hashlib.sha256(prompt).hexdigest()},
        tools=options.tools,
        git={"commit": commit, "branch": "main", "dirty": False},
        openConstraints=len(checks.registry()),
        priorRuns=0,
    )
    run = Run(
        client,
        Conversation(prompt.decode(), _opening(request, settings, checks.registry())),
        Toolbox(workspace, checks, subset=options.tools, create=options.command == "create"),
        transcript,
        limits,
    )
    return run.close(run.converse(), workspace, settings, request)


def _opening(request: str, settings: Settings, registry: dict[str, Any]) -> str:
    """The request and what is known before anything is read."""
    constraints = "".join(f"\n- {key}: {entry}" for key, entry in sorted(registry.items())) or " none"
    return (
        f"{request}\n\nRoot schematic: {settings.schematic}\nBoard: {settings.board or 'none'}\n"
        f"Documents: {settings.docs}/\nRecorded requirements:{constraints}"
    )
