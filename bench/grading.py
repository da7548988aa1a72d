"""How long grading a board takes, split into kicad-cli and ours, for every board of a mirror folder.

``COPPERBENCH_FIXTURE_MIRROR=DIR python bench/grading.py [BOARD …]`` from the checkout, with images in place.
Each board is graded three times in a fresh grader container: cold; after an edit of the board that leaves the
schematic as it was; and again with everything in the cache. Asked are the nine assertions that read a design.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.evidence import Bundle, Entry, Tree
from orchestrator.engine import Engine
from orchestrator.grading import GraderPool
from orchestrator.project import read_tree
from schema.agent import Agent
from schema.assertions import ASSERTION_LIST
from schema.fixture import Artifacts, BaselineReport, Fixture
from schema.hashing import tree_hash
from schema.run import History, RunFacts, RunId
from schema.task import Task

RUN = ".copperhead/runs/2026-01-01T00-00-00-000Z/transcript.jsonl"
EVENTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("run-start", {"request": "r", "runId": "2026-01-01T00-00-00-000Z", "command": "do", "config": {}}),
    ("run-end", {"exitPath": "done", "turnsUsed": 1}),
)
TRANSCRIPT = b"".join(
    json.dumps({"ts": "2026-01-01T00:00:00.000Z", "type": kind, "data": data}).encode() + b"\n"
    for kind, data in EVENTS
)


def questions(board: str) -> list[dict[str, Any]]:
    """Every assertion that reads a design, and two that read all bytes."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("erc_no_new_violations", {}),
        ("drc_no_new_violations", {}),
        ("erc_clean", {}),
        ("drc_clean", {}),
        ("net_absent", {"net": "NO_SUCH_NET"}),
        ("symbol_absent", {"refdes": "X999"}),
        ("files_touched_subset", {"allowed": ["**"]}),
        ("diff_ratio_max", {"path": board, "ratio": 0.5}),
        ("no_secret", {}),
    ]
    return [
        {"id": f"a{number}", "type": kind, "args": args, "weight": 1, "required": True}
        for number, (kind, args) in enumerate(asked)
    ]


def bundle(tree: Tree, artifacts: Mapping[str, str], changes: Tree) -> Bundle:
    """A made-up run on a board."""
    digest = tree_hash((path.encode("utf-8", "surrogateescape"), entry.data) for path, entry in tree.items())
    caps = {"turns": 1, "wallClockSec": 1}
    upstream = {
        "name": "b",
        "url": "https://example.invalid",
        "commit": "0" * 40,
        "retrieved": "2026-01-01",
        "license": "MIT",
        "copyright": "",
        "modifications": "",
        "paths": {},
    }
    return Bundle(
        task=Task.model_validate(
            {
                "id": "b",
                "tier": "simple",
                "mode": "do",
                "request": "r",
                "fixture": {"path": "fixtures/b", "sha256": digest},
                "expectedOutcome": "edit",
                "caps": caps,
            }
        ),
        assertions=tuple(ASSERTION_LIST.validate_python(questions(artifacts["board"]))),
        agent=Agent.model_validate(
            {
                "name": "b",
                "version": "0",
                "image": "b",
                "commands": {},
                "bookkeeping": {"always": [".copperhead/runs/**"]},
                "protocol": "none",
            }
        ),
        fixture=Fixture.model_validate(
            {
                "id": "b",
                "sha256": digest,
                "complexity": "large",
                "vendored": True,
                "upstream": upstream,
                "files": {},
                "kicad": {"authoredVersion": "9", "fileFormatVersion": {}, "verifiedWithKicadCli": []},
                "artifacts": Artifacts.model_validate(dict(artifacts)).to_json(),
                "scale": {"schematicLines": 1, "symbols": 1, "sheets": 1, "signalNets": 1, "powerNets": 0},
                "baseline": {},
            }
        ),
        erc_baseline=BaselineReport(kicad={"9": []}),
        drc_baseline=BaselineReport(kicad={"9": []}),
        facts=RunFacts(
            run=RunId(suite_version="0", task="b", model="b:b", agent="b", repeat=1),
            attempt=1,
            baseline_commit="0" * 40,
            baseline_sha256=digest,
            started_at="",
            ended_at="",
            exit_code=0,
            evidence="kept",
            history=History(status="ok"),
        ),
        pristine=tree,
        baseline=tree,
        end={**tree, **changes, RUN: Entry(TRANSCRIPT)},
    )


def timed(pool: GraderPool, given: Bundle) -> tuple[float, float]:
    """Seconds inside kicad-cli, and all others until the verdict is here."""
    began = time.monotonic()
    graded = pool.grade(given)
    wall = time.monotonic() - began
    for outcome in graded.verdict.assertions:
        if "cannot be judged" in outcome.reason or "not judged" in outcome.reason:
            print(f"  {outcome.type}: {outcome.reason}", file=sys.stderr)
    return graded.kicad_seconds, wall - graded.kicad_seconds


def measure(engine: Engine, folder: Path) -> None:
    """Print one board's line."""
    source = json.loads((folder / "SOURCE.json").read_text())
    artifacts = {kind: source[kind] for kind in ("schematic", "board", "project")}
    tree = dict(read_tree(folder / "tree"))
    board = artifacts["board"]
    edited = {board: Entry(tree[board].data.replace(b"(kicad_pcb", b"(kicad_pcb ", 1))}
    pool = GraderPool(engine, 1, f"bench {folder.name}")
    try:
        pool.facts()
        runs = [timed(pool, bundle(tree, artifacts, changes)) for changes in ({}, edited, edited)]
    finally:
        pool.close()
    size = sum(len(entry.data) for entry in tree.values()) / 1e6
    cells = "   ".join(f"{kicad:5.2f} + {ours:5.2f}" for kicad, ours in runs)
    print(f"{folder.name:24} {size:6.1f} MB   {cells}", flush=True)


def main() -> None:
    """Measure every board, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("boards", nargs="*")
    parser.add_argument("--mirror", type=Path, default=os.environ.get("COPPERBENCH_FIXTURE_MIRROR"))
    options = parser.parse_args()
    if not options.mirror:
        parser.error("give --mirror or COPPERBENCH_FIXTURE_MIRROR")
    engine = Engine.connect()
    print("seconds, kicad-cli + ours:            cold          board edited   from the cache")
    for folder in sorted(path.parent for path in Path(options.mirror).glob("*/SOURCE.json")):
        if not options.boards or folder.name in options.boards:
            measure(engine, folder)


if __name__ == "__main__":
    main()
