"""Whole runs: launched, killed or ended, collected, graded, recorded, graded again."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.results import read_records
from orchestrator.engine import Engine
from orchestrator.execute import execute
from orchestrator.plan import expand, join
from orchestrator.project import Project
from orchestrator.prove import AGENT, judge
from orchestrator.records import Finished
from schema.record import Record
from schema.task import Outcome

ROOT = Path(__file__).parents[2]
COPPERBENCH = [sys.executable, "-m", "orchestrator"]


def play(project: Project, engine: Engine, task: str, *solutions: str, jobs: int = 2) -> list[Finished]:
    """Play solutions of a task and record them."""
    models = [f"solution:{name}" for name in solutions]
    plan = join([expand([project.task(task)], models, AGENT, 1, "test")])
    return execute(project, engine, plan, jobs=jobs, report=lambda _: None)


def copperbench(project: Project, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line, in a checkout."""
    return subprocess.run(
        [*COPPERBENCH, *arguments],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.mark.parametrize("task", ["rename-data-net", "flag-supply-release"])
def test_every_shipped_solution_is_graded_as_declared(checkout: Project, engine: Engine, task: str) -> None:
    loaded = checkout.task(task)
    finished = play(checkout, engine, task, *loaded.solutions())
    proof = judge([loaded], finished)
    assert [f"{row.solution}: {row.got}, {row.reason}" for row in proof.rows if not row.as_declared] == []
    assert proof.gaps == []


VALUE = re.compile(r"\b3k\b")
RIGHT_WAYS: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "a value in other words": ("fit-led-resistor", lambda gold: _reword(gold, VALUE, "3.0 kΩ")),
    "no figure on the sheet": ("fit-led-resistor", lambda gold: _reword(gold, r"/ 3 kΩ = 0.47 mA", "/ R1")),
    "no books kept": ("fit-led-resistor", lambda gold: gold.update(bookkeeping=False)),
    "a refusal for a flag": ("flag-supply-release", lambda gold: gold.update(exitPath="refused")),
    "a flag in a few words": (
        "flag-supply-release",
        lambda gold: gold.update(
            summary="140 mA at J3 against ldo_dissipation_mW = 250: 2.2 V x 145 mA = 0.319 W. Undecided."
        ),
    ),
    "a refusal by the budget alone": (
        "refuse-fast-cable",
        lambda gold: gold.update(summary="Refused: R below 967 ohm breaks `i2c_sink_current_uA`."),
    ),
}


def _reword(gold: dict[str, Any], old: str | re.Pattern[str], new: str) -> None:
    for edit in gold["edits"]:
        edit["replace"] = re.sub(old, new, edit["replace"])


@pytest.mark.parametrize("way", RIGHT_WAYS)
def test_another_right_way_passes_too(checkout: Project, engine: Engine, way: str) -> None:
    """A task must not be graded by the words of its gold solution."""
    task, change = RIGHT_WAYS[way]
    path = checkout.root / "tasks" / task / "solutions" / "gold" / "solution.json"
    before = path.read_text("utf-8")
    gold = json.loads(before)
    change(gold)
    path.write_text(json.dumps(gold), "utf-8")
    assert gold != json.loads(before)
    (finished,) = play(checkout, engine, task, "gold")
    failed = [item.reason for item in finished.record.verdict.assertions if item.required and not item.passed]
    assert failed == []


def test_the_starter_suite_needs_no_board_from_elsewhere(checkout: Project, engine: Engine) -> None:
    for name in checkout.fixture_ids():
        if not checkout.fixture(name).vendored:
            shutil.rmtree(checkout.fixture_tree(name), ignore_errors=True)
    shutil.rmtree(checkout.cache, ignore_errors=True)
    plan = join(
        [
            expand([checkout.task(name)], ["solution:gold"], AGENT, 1, "test")
            for name in checkout.suite("starter").tasks
        ]
    )
    finished = execute(checkout, engine, plan, jobs=2, report=lambda _: None)
    assert [item.record.verdict.verdict for item in finished] == ["pass", "pass", "pass"]
    outcomes = {checkout.task(name).task.expected_outcome for name in checkout.suite("starter").tasks}
    assert outcomes == set(Outcome)


def test_a_run_leaves_one_whole_record_and_its_evidence(checkout: Project, engine: Engine) -> None:
    (finished,) = play(checkout, engine, "rename-data-net", "gold")
    ((path, record),) = read_records(checkout.results)
    assert path == finished.path and record == finished.record
    assert record.verdict.verdict == "pass" and record.verdict.category is None
    assert record.facts.exit_code == 0 and record.facts.killed_by is None
    assert len(record.facts.history.commits) == 1
    assert record.facts.isolation is not None and record.facts.isolation.network == "none"
    assert record.stamp.kicad_version.startswith("9.") and record.stamp.agent_image.startswith("sha256:")
    assert record.cost.usd is None and record.cost.segment == "provider-free"
    assert record.evidence is not None


def test_the_same_command_again_runs_nothing(checkout: Project, engine: Engine) -> None:
    play(checkout, engine, "refuse-clock-pullup", "gold", "noop")
    again = play(checkout, engine, "refuse-clock-pullup", "gold", "noop", "wrong-vague-refusal")
    assert [item.path is None for item in again] == [True, True, False]
    assert len(list(read_records(checkout.results))) == 3


def test_a_leaked_credential_leaves_only_the_record(checkout: Project, engine: Engine) -> None:
    (finished,) = play(checkout, engine, "refuse-clock-pullup", "wrong-secret")
    record = finished.record
    assert record.verdict.category == "secret-leak" and record.evidence is None
    assert record.facts.secret is not None and record.facts.secret.pattern == "sk"
    secret = b"sk-this-is-an-example-and-no-key"
    for path in checkout.results.rglob("*"):
        assert not path.is_file() or secret not in path.read_bytes()


def test_the_baseline_commit_is_the_same_when_it_is_prepared_again(checkout: Project, engine: Engine) -> None:
    (one,) = play(checkout, engine, "refuse-clock-pullup", "noop")
    shutil.rmtree(checkout.cache, ignore_errors=True)
    shutil.rmtree(checkout.results)
    (other,) = play(checkout, engine, "refuse-clock-pullup", "noop")
    assert one.record.facts.baseline_commit == other.record.facts.baseline_commit
    assert one.record.facts.baseline_sha256 == other.record.facts.baseline_sha256


def mounted_rescore(project: Project, *extra: str) -> subprocess.CompletedProcess[str]:
    """What a stranger types: the grader image, no network, the checkout mounted read-only."""
    return subprocess.run(
        [
            "docker",
            "run",
            "--rm",
            "--network",
            "none",
            "-v",
            f"{project.root}:/bench:ro",
            "copperbench-grader",
            "--rescore",
            *extra,
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def test_stored_evidence_grades_the_same_from_the_host_and_in_the_image(
    checkout: Project, engine: Engine
) -> None:
    play(checkout, engine, "rename-data-net", "gold", "wrong-one-label", "wrong-secret")
    assert copperbench(checkout, "leaderboard").returncode == 0
    host = copperbench(checkout, "rescore", "results", "--jobs", "2", "--json")
    image = mounted_rescore(checkout, "--json")
    assert host.returncode == 0, host.stdout + host.stderr
    assert image.returncode == 0, image.stdout + image.stderr
    assert json.loads(host.stdout) == json.loads(image.stdout)
    answer = json.loads(host.stdout)
    assert (answer["matched"], answer["differing"], answer["leaderboardMatches"]) == (3, 0, True)


def test_a_record_that_was_edited_differs_precisely(checkout: Project, engine: Engine) -> None:
    (finished,) = play(checkout, engine, "rename-data-net", "wrong-one-label")
    path = finished.path
    assert path is not None
    value = json.loads(path.read_text())
    value["verdict"] |= {"verdict": "pass", "category": None, "firstFailure": None, "credit": 1.0}
    path.write_text(json.dumps(value))
    done = copperbench(checkout, "rescore", "results")
    assert done.returncode == 1
    assert "verdict: recorded pass, now fail" in done.stdout
    assert (
        "firstFailure" not in done.stdout and "first_failure: recorded None, now old-net-gone" in done.stdout
    )


def test_evidence_that_was_edited_is_refused(checkout: Project, engine: Engine) -> None:
    (finished,) = play(checkout, engine, "refuse-clock-pullup", "noop")
    record = finished.record
    assert record.evidence is not None
    git = ["git", "--git-dir", str(checkout.results / "evidence.git")]
    other = subprocess.run(
        [*git, "for-each-ref", "--format=%(objectname)", "refs/trees"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[0]
    subprocess.run([*git, "update-ref", record.evidence.ref, other], check=True)
    done = copperbench(checkout, "rescore", "results")
    assert done.returncode == 1 and "cannot be graded again" in done.stdout


def left(engine: Engine, process: subprocess.Popen[str]) -> list[str]:
    """Containers and volumes of a process that are in the engine now."""
    return [name for _, name, owner in engine.ours() if owner is not None and owner.pid == process.pid]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_suite_within_seconds_and_the_same_command_completes_it(
    checkout: Project, engine: Engine, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [*COPPERBENCH, "prove", "refuse-clock-pullup", "--jobs", "2"],
        cwd=checkout.root,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(read_records(checkout.results)):
        time.sleep(0.05)
    process.send_signal(number)
    sent = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert time.monotonic() - sent < 30
    assert left(engine, process) == []
    partial = len(list(read_records(checkout.results)))
    assert 1 <= partial < 8
    done = copperbench(checkout, "prove", "refuse-clock-pullup", "--jobs", "2", "--json")
    assert done.returncode == 0, done.stderr
    assert len(list(read_records(checkout.results))) == 8


def test_an_agent_at_its_wall_clock_cap_is_killed_and_recorded(checkout: Project, engine: Engine) -> None:
    manifest = checkout.root / "images" / "agents" / "solution" / "agent.json"
    agent = json.loads(manifest.read_text())
    agent["commands"]["do"] = [
        "sh",
        "-c",
        "trap '' TERM; (setsid sleep 600 &); echo x > notes.txt; sleep 600",
    ]
    manifest.write_text(json.dumps(agent))
    task = checkout.root / "tasks" / "refuse-clock-pullup" / "task.json"
    value = json.loads(task.read_text())
    value["caps"]["wallClockSec"] = 2
    task.write_text(json.dumps(value))
    (finished,) = play(checkout, engine, "refuse-clock-pullup", "noop")
    record: Record = finished.record
    assert record.facts.killed_by == "wall-clock" and record.facts.exit_code == 137
    assert record.verdict.verdict == "fail" and record.verdict.category == "wall-clock"
    assert record.verdict.exit_path == "killed"
    assert record.evidence is not None
