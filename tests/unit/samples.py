"""Whole, valid values to vary in tests."""

from pathlib import Path
from typing import Any

from grader.evidence import Bundle, Entry
from orchestrator.ledger import Ledger
from orchestrator.records import Records
from schema.agent import Agent
from schema.assertions import ASSERTION_LIST
from schema.fixture import BaselineReport, Fixture
from schema.record import Cost, Record, Stamp
from schema.run import History, RunFacts, RunId, RunSpec, Timings
from schema.task import Task
from schema.verdict import AssertionOutcome, Category, Verdict

ZERO = "0" * 64


def run_id(**changes: Any) -> RunId:
    """The id of a run."""
    base = {
        "suite_version": "1.0.0",
        "task": "some-task",
        "model": "solution:gold",
        "agent": "solution",
        "repeat": 1,
    }
    return RunId(**{**base, **changes})


def facts(run: RunId, **changes: Any) -> RunFacts:
    """What the harness saw of a run that ended by itself."""
    base = {
        "run": run,
        "claim": 1,
        "attempt": 1,
        "baseline_commit": "0" * 40,
        "baseline_sha256": ZERO,
        "started_at": "2026-01-01T00:00:00.000Z",
        "ended_at": "2026-01-01T00:00:01.000Z",
        "exit_code": 0,
        "evidence": "kept",
        "history": History(status="ok"),
    }
    return RunFacts(**{**base, **changes})


def spec(run: RunId, **changes: Any) -> RunSpec:
    """A planned run of the sample task."""
    base = {
        "run": run,
        "tier": "simple",
        "outcome": "edit",
        "caps": {"turns": 5, "wall_clock_sec": 60},
        "manifest_sha256": ZERO,
        "fixture_sha256": ZERO,
    }
    return RunSpec(**{**base, **changes})


def stamp(**changes: Any) -> Stamp:
    """A comparability stamp."""
    base = {
        "schema_version": "1.0.0",
        "suite_version": "1.0.0",
        "manifest_sha256": ZERO,
        "fixture_sha256": ZERO,
        "agent": "solution",
        "agent_version": "1",
        "agent_image": "sha256:a",
        "kicad_version": "9.0.2",
        "reference_image": "sha256:k",
        "scaffolder_version": "1",
        "grader_version": "0.1.0",
        "grader_image": "sha256:g",
        "compass_version": "0.1.0",
        "git_version": "2.47.2",
        "python_version": "3.13.5",
        "platform": "linux/amd64",
        "resources": {"pids": 256},
    }
    return Stamp(**{**base, **changes})


def verdict(passed: bool = True, **changes: Any) -> Verdict:
    """A pass, or a failure of one assertion."""
    outcome = AssertionOutcome(
        id="net",
        type="net_present",
        required=True,
        weight=1,
        passed=passed,
        reason="found" if passed else "none",
    )
    base = {
        "verdict": "pass" if passed else "fail",
        "category": None if passed else Category.WRONG_TARGET,
        "first_failure": None if passed else "net",
        "credit": float(passed),
        "exit_path": "done",
        "assertions": [outcome],
    }
    return Verdict(**{**base, **changes})


def record(
    *, run: RunId | None = None, passed: bool = True, at: str = "2026-01-01T00:00:02.000Z", **changes: Any
) -> Record:
    """A record of a provider-free run."""
    run = run or run_id()
    base = {
        "schema_version": "1.0.0",
        "run": run,
        "recorded_at": at,
        "tier": "simple",
        "expected_outcome": "edit",
        "stamp": stamp(),
        "facts": facts(run),
        "verdict": verdict(passed),
        "evidence": None,
        "cost": Cost(usd=None, segment="provider-free"),
        "timings": Timings(),
    }
    return Record(**{**base, **changes})


def task(**changes: Any) -> Task:
    """An edit task."""
    base = {
        "id": "some-task",
        "tier": "simple",
        "mode": "do",
        "request": "do it",
        "fixture": {"path": "fixtures/some-board", "sha256": ZERO},
        "expectedOutcome": "edit",
        "caps": {"turns": 5, "wallClockSec": 60},
    }
    return Task.model_validate({**base, **changes})


def fixture(**changes: Any) -> Fixture:
    """A one-file fixture."""
    base = {
        "id": "some-board",
        "sha256": ZERO,
        "complexity": "small",
        "upstream": {
            "name": "n",
            "url": "https://example.invalid/x",
            "commit": "0" * 40,
            "retrieved": "2026-01-01",
            "license": "MIT",
            "copyright": "c",
            "modifications": "none",
            "paths": {"b.kicad_sch": "b.kicad_sch"},
        },
        "files": {"b.kicad_sch": ZERO},
        "kicad": {
            "authoredVersion": "9.0",
            "fileFormatVersion": {"schematic": 1},
            "verifiedWithKicadCli": ["9.0.2"],
        },
        "artifacts": {"schematic": "b.kicad_sch"},
        "scale": {"schematicLines": 1, "symbols": 0, "sheets": 1, "signalNets": 0, "powerNets": 0},
        "baseline": {},
    }
    return Fixture.model_validate({**base, **changes})


def agent(**changes: Any) -> Agent:
    """The solution agent's manifest, shortened."""
    base = {
        "name": "solution",
        "version": "1",
        "image": "copperbench/agent-solution",
        "commands": {"do": ["agent", "{request}"]},
        "bookkeeping": {"always": [".copperhead/runs/**"], "committed": ["docs/CHANGELOG.md"]},
        "protocol": "none",
    }
    return Agent.model_validate({**base, **changes})


def bundle(**changes: Any) -> Bundle:
    """All that a grade reads, small."""
    base: dict[str, Any] = {
        "task": task(),
        "assertions": tuple(
            ASSERTION_LIST.validate_python(
                [{"id": "no-secret", "type": "no_secret", "weight": 1, "required": True}]
            )
        ),
        "agent": agent(),
        "fixture": fixture(),
        "erc_baseline": BaselineReport(kicad={"9": []}),
        "drc_baseline": BaselineReport(kicad={"9": []}),
        "facts": facts(run_id()),
        "pristine": {"b.kicad_sch": Entry(b"(kicad_sch)")},
        "baseline": {"b.kicad_sch": Entry(b"(kicad_sch)"), "docs/A.md": Entry(b"a")},
        "end": {"b.kicad_sch": Entry(b"(kicad_sch )"), "odd \udcff": Entry(b"x", 0o755, "symlink")},
    }
    return Bundle(**{**base, **changes})


def records(results: Path) -> Records:
    """The records of a results folder, with a ledger."""
    return Records(results, Ledger(results))
