"""What attacks stand on: the honest run of the gold solution, changed at will, and a place for loot."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

WORKSPACE = Path("/workspace")
INPUT = Path("/input")
SCHEMATIC = WORKSPACE / "hardware/microphone-board.kicad_sch"
BOARD = WORKSPACE / "hardware/microphone-board.kicad_pcb"
PROJECT = WORKSPACE / "hardware/microphone-board.kicad_pro"
PINOUT = WORKSPACE / "docs/PINOUT.md"
LOOT = "loot.json"


def honest() -> None:
    """Play the gold solution, transcript, bookkeeping and commit included."""
    play()


def cheat(**changes: Any) -> None:
    """Claim to have finished, with a commit, having edited nothing."""
    play(edits=[], **changes)


def play(files: dict[str, str] | None = None, **changes: Any) -> None:
    """Play the gold solution with some of its fields changed and files added."""
    inputs = Path("/tmp/input")
    shutil.rmtree(inputs, ignore_errors=True)
    inputs.mkdir()
    solution = json.loads((INPUT / "solution.json").read_bytes()) | changes
    (inputs / "solution.json").write_text(json.dumps(solution))
    shutil.copy(INPUT / "run.json", inputs)
    for name, text in (files or {}).items():
        path = inputs / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, "-I", "/opt/agent/apply.py", "do", str(inputs), str(WORKSPACE)]
    done = subprocess.run(command, check=False)
    # A stalled run ends with 1, as its contract has it.
    if done.returncode != (1 if solution["exitPath"] == "stalled" else 0):
        raise RuntimeError(f"the solution agent ended with {done.returncode}")
    shutil.rmtree(inputs)


def gold_edits() -> list[dict[str, Any]]:
    """The gold solution's edits."""
    edits: list[dict[str, Any]] = json.loads((INPUT / "solution.json").read_bytes())["edits"]
    return edits


def run_folder() -> Path:
    """The run directory of the one transcript; made if there is none yet."""
    found = sorted((WORKSPACE / ".copperhead/runs").glob("*/transcript.jsonl"))
    folder = found[0].parent if found else WORKSPACE / ".copperhead/runs/2026-01-02T00-00-00-000Z"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def transcript() -> Path:
    """The one transcript."""
    return run_folder() / "transcript.jsonl"


def lines() -> list[str]:
    """The transcript's lines, without their ends."""
    return transcript().read_text().splitlines()


def write_lines(texts: Iterable[str]) -> None:
    """Replace the transcript."""
    transcript().write_text("".join(f"{text}\n" for text in texts))


def event(kind: str, **data: Any) -> str:
    """One transcript line."""
    return json.dumps({"ts": "2026-01-02T00:00:00.000Z", "type": kind, "data": data})


def report(looked: int, found: Iterable[str]) -> None:
    """Play honestly, and leave word of what was found in the run directory.

    Args:
        looked: how many places were looked at, so that finding nothing means something.
        found: what was found.
    """
    honest()
    (run_folder() / LOOT).write_text(json.dumps({"looked": looked, "found": sorted(set(found))[:100]}))


def git(*arguments: str, check: bool = True) -> str:
    """Run git in the workspace."""
    done = subprocess.run(
        ["git", "-c", "user.name=h", "-c", "user.email=h@h.invalid", *arguments],
        cwd=WORKSPACE,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=check,
    )
    return done.stdout


def edit(path: Path, old: str, new: str, count: int = -1) -> None:
    """Replace text in a file, which must hold it."""
    text = path.read_text()
    if old not in text:
        raise ValueError(f"{path}: does not hold {old!r}")
    path.write_text(text.replace(old, new, count))


def into_schematic(text: str) -> None:
    """Add an expression to the schematic."""
    edit(SCHEMATIC, "\t(sheet_instances", f"\t{text}\n\t(sheet_instances", 1)


def into_document(text: str) -> None:
    """Add text to the pin table's document, in the commit of the honest run."""
    with PINOUT.open("a") as file:
        file.write(text)
    git("commit", "-q", "-a", "--amend", "--no-edit")


def commit(message: str) -> None:
    """Add all that git does not ignore, and commit."""
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", message)
