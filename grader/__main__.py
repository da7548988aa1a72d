"""The grader image's entry point: rescore what is baked in or mounted, or serve an orchestrator."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grader
from grader.local import local_graders
from grader.report.leaderboard import render_results, splice
from grader.rescore import Rescored, locate, rescore
from grader.results import read_records
from grader.serve import serve
from schema.errors import CopperbenchError, UsageError
from schema.text import plain

MOUNTED = Path("/bench")
BAKED = Path(__file__).parent.parent / "bench"


def main() -> int:
    """Parse the command line and run; every expected failure is one line on standard error."""
    parser = argparse.ArgumentParser(
        prog="copperbench-grader", description="Grade stored evidence again, offline."
    )
    parser.add_argument("--version", action="version", version=f"copperbench-grader {grader.__version__}")
    parser.add_argument(
        "--rescore",
        nargs="?",
        const="",
        metavar="PATH",
        help=f"a checkout or its results; default: {MOUNTED} if mounted, else the results in the image",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="records at a time")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help="folder of kicad-cli's results; default: a new one")
    arguments = parser.parse_args()
    try:
        if arguments.serve:
            return _serve(arguments)
        if arguments.rescore is None:
            parser.print_help()
            return 2
        return _rescore(Path(arguments.rescore) if arguments.rescore else _default(), arguments)
    except CopperbenchError as error:
        print(f"copperbench-grader: {error}", file=sys.stderr)
        return error.exit_code


def _default() -> Path:
    for folder in (MOUNTED, BAKED):
        if (folder / "results").is_dir() and any(read_records(folder / "results")):
            return folder
    raise UsageError("no results in this image and none mounted", fix='mount a checkout: -v "$PWD":/bench:ro')


@contextmanager
def _cache(arguments: argparse.Namespace) -> Iterator[Path]:
    if arguments.cache:
        yield arguments.cache
        return
    with tempfile.TemporaryDirectory(prefix="kicad-cache-") as folder:
        yield Path(folder)


def _serve(arguments: argparse.Namespace) -> int:
    # Frames own the real standard output: nothing a library prints may get between them.
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with _cache(arguments) as cache:
        serve(sys.stdin.buffer, sink, cache)
    return 0


def _rescore(path: Path, arguments: argparse.Namespace) -> int:
    outcomes = []
    with _cache(arguments) as cache, local_graders(arguments.jobs, cache) as graders:
        for outcome in rescore(
            path, lambda bundle, _: graders.grade(bundle), jobs=arguments.jobs, kicad=graders.kicad_major
        ):
            outcomes.append(outcome)
            if not arguments.json:
                print(line(outcome), flush=True)
    return conclude(outcomes, leaderboard_matches(path), as_json=arguments.json)


def line(outcome: Rescored) -> str:
    """One record's line, differences indented below it."""
    record, verdict = outcome.record, outcome.verdict
    head, prefix = f"{'MATCH' if outcome.matches else 'DIFFERS'}  {record.run}", ""
    if outcome.elsewhere and verdict:
        recorded = f"KiCad {record.stamp.kicad_major} recorded {record.verdict.verdict}"
        head, prefix = (
            f"KiCad {outcome.kicad} {verdict.verdict}  {record.run}; {recorded}",
            "other environment: ",
        )
    # A recorded or a new reason may quote what an agent wrote, and a record may be anybody's.
    return "\n".join([plain(head), *(f"    {prefix}{plain(text)}" for text in outcome.differences)])


def leaderboard_matches(path: Path) -> bool | None:
    """Whether LEADERBOARD.md is what its records give; None when there is none."""
    root, results = locate(path)
    document = root / "LEADERBOARD.md"
    if not document.is_file():
        return None
    text = document.read_text("utf-8")
    return splice(text, render_results(results)) == text


def conclude(outcomes: list[Rescored], board: bool | None, *, as_json: bool) -> int:
    """Print the summary; the exit code is 0 only when all that was graded in its own environment matched."""
    own = [outcome for outcome in outcomes if not outcome.elsewhere]
    wrong = sum(not outcome.matches for outcome in own)
    if as_json:
        report = {
            "records": [
                {
                    "run": str(outcome.record.run),
                    "match": outcome.matches,
                    "differences": list(outcome.differences),
                    "kicad": outcome.kicad,
                    "verdict": outcome.verdict.verdict if outcome.verdict else None,
                }
                for outcome in outcomes
            ],
            "matched": len(own) - wrong,
            "differing": wrong,
            "inAnotherEnvironment": len(outcomes) - len(own),
            "leaderboardMatches": board,
        }
        print(json.dumps(report, indent=2))
    else:
        said = {True: "LEADERBOARD.md MATCH", False: "LEADERBOARD.md DIFFERS", None: "no LEADERBOARD.md"}
        print("; ".join([*_tally(outcomes, own, wrong), said[board]]))
    return 1 if wrong or board is False or not outcomes else 0


def _tally(outcomes: list[Rescored], own: list[Rescored], wrong: int) -> Iterator[str]:
    if own or not outcomes:
        yield f"{len(own) - wrong} of {len(own)} records MATCH"
    if elsewhere := [outcome for outcome in outcomes if outcome.elsewhere]:
        alike = sum(
            outcome.verdict is not None and outcome.verdict.verdict == outcome.record.verdict.verdict
            for outcome in elsewhere
        )
        majors = ", ".join(sorted({outcome.kicad for outcome in elsewhere}, key=int))
        yield f"{alike} of {len(elsewhere)} verdicts the same in another environment (KiCad {majors})"


if __name__ == "__main__":
    raise SystemExit(main())
