"""Killed at any moment, the same command completes the suite: a sample of ``make crash``, single cases."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grader.ledger import audit, read_chain
from grader.results import read_records
from grader.store import refs
from orchestrator.engine import Engine
from orchestrator.ledger import Ledger
from orchestrator.plan import expand, join, write
from orchestrator.project import Project
from orchestrator.prove import AGENT
from orchestrator.workspace import Baselines, load_pristine
from schema.ledger import ClaimLine, RecordLine
from tests.crash.chaos import STEPS, unleash
from tests.integration.test_runs import COPPERBENCH, ROOT, copperbench, play

pytestmark = pytest.mark.alone

SAMPLE = [
    (step, when)
    for step in STEPS
    for when in ("before", "after")
    if (step.target.partition(":")[2], when)
    in {
        ("Ledger.claim", "after"),
        ("EvidenceWriter.put_run", "before"),
        ("Records.write", "after"),
        ("_link", "after"),
    }
]


@pytest.mark.timeout(900)
def test_a_sample_of_interruptions_is_survived(tmp_path: Path) -> None:
    assert len(SAMPLE) == 4
    tally = unleash(tmp_path, steps=SAMPLE, kills=2, signals=(2,))
    assert tally.faults == []
    assert str(tally) == "9 interruptions survived, 0 lost, 0 duplicated, 0 left behind"


def die(project: Project, target: str, when: str, *command: str) -> None:
    """Run a command and kill it at a step."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.die", target, when, "1", *command],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def one_run(project: Project) -> list[str]:
    """A command that runs one solution."""
    suite = {"id": "one", "title": "One", "tasks": ["refuse-clock-pullup"], "repeats": 1}
    (project.root / "suites" / "one.json").write_text(json.dumps(suite))
    return ["run", "--suite", "one", "--model", "solution:gold"]


def test_a_run_whose_evidence_was_kept_is_judged_and_not_run_again(checkout: Project) -> None:
    """Naive: every start pays again, and an unwelcome run can be thrown away by killing the harness."""
    command = one_run(checkout)
    die(checkout, "orchestrator.grading:GraderPool.grade", "before", *command)
    kept = refs(checkout.results / "evidence.git")
    done = copperbench(checkout, *command, "--json")
    assert done.returncode == 0, done.stderr
    ((_, record),) = read_records(checkout.results)
    assert record.verdict.verdict == "pass" and record.facts.claim == 1
    assert refs(checkout.results / "evidence.git") == kept
    assert sum(isinstance(line, ClaimLine) for line in read_chain(checkout.results).lines) == 1
    assert copperbench(checkout, "rescore", "results").returncode == 0


def test_a_start_that_came_to_nothing_stays_in_sight(checkout: Project) -> None:
    command = one_run(checkout)
    die(checkout, "orchestrator.attempt:Attempt._collect", "before", *command)
    assert copperbench(checkout, *command).returncode == 0
    ((_, record),) = read_records(checkout.results)
    assert (record.facts.claim, record.facts.attempt) == (2, 1)
    board = (checkout.root / "LEADERBOARD.md").read_text()
    assert "| solution:gold | 1 | 1 | 0 | 1 |" in board
    assert list(audit(checkout.results, {})) == []


def test_lost_attempts_are_counted_over_restarts(checkout: Project, engine: Engine) -> None:
    """Naive: each process starts counting at one, and restarting buys new attempts for ever."""
    (first,) = play(checkout, engine, "refuse-clock-pullup", "noop")
    plan = join([expand([checkout.task("refuse-clock-pullup")], ["solution:gold"], AGENT, 1, "test")])
    ledger = Ledger(checkout.results)
    ledger.plan(write(plan, checkout.results))
    run = plan.specs[0].run
    stamp = first.record.stamp.digest
    for attempt in (1, 2, 3):
        ledger.fault(run, ledger.claim(run, stamp, attempt), f"fault {attempt}")
    (lost,) = play(checkout, engine, "refuse-clock-pullup", "gold")
    assert lost.record.verdict.category == "infrastructure"
    assert lost.record.facts.infrastructure == "fault 3"
    assert lost.record.facts.earlier_faults == ["fault 1", "fault 2"]
    assert list(audit(checkout.results, {})) == []


@pytest.mark.parametrize("prepared", [True, False])
def test_two_processes_with_one_command_share_the_work(
    checkout: Project, engine: Engine, prepared: bool
) -> None:
    """Naive: both prepare the baseline under one name, and the second one is refused."""
    loaded = checkout.task("refuse-clock-pullup")
    shutil.rmtree(checkout.cache, ignore_errors=True)
    if prepared:
        Baselines(checkout, engine).get(loaded, load_pristine(checkout, loaded))
    processes = [
        subprocess.Popen(
            [*COPPERBENCH, "prove", "refuse-clock-pullup", "--jobs", "1"],
            cwd=checkout.root,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    lines = read_chain(checkout.results).lines
    solutions = len(checkout.task("refuse-clock-pullup").solutions())
    assert sum(isinstance(line, ClaimLine) for line in lines) == solutions
    assert sum(isinstance(line, RecordLine) for line in lines) == solutions
    assert list(audit(checkout.results, {})) == []


def test_verify_names_what_was_changed_and_ends_with_1(checkout: Project, engine: Engine) -> None:
    (finished,) = play(checkout, engine, "refuse-clock-pullup", "wrong-vague-refusal")
    fine = copperbench(checkout, "verify", "--json")
    assert fine.returncode == 0, fine.stdout
    head = json.loads(fine.stdout)["head"]
    assert copperbench(checkout, "verify", "--head", head).returncode == 0
    assert copperbench(checkout, "verify", "--head", "1" * 64).returncode == 1
    assert finished.path is not None and finished.record.evidence is not None
    git = ["git", "--git-dir", str(checkout.results / "evidence.git")]
    subprocess.run([*git, "update-ref", "-d", finished.record.evidence.ref], check=True)
    gone = copperbench(checkout, "verify")
    assert gone.returncode == 1 and "is not in the store" in gone.stdout
    finished.path.write_text(finished.path.read_text().replace('"fail"', '"pass"'))
    changed = copperbench(checkout, "verify")
    assert changed.returncode == 1 and "it was changed" in changed.stdout


def test_results_and_one_run_are_told(checkout: Project, engine: Engine) -> None:
    play(checkout, engine, "refuse-clock-pullup", "gold", "noop")
    table = copperbench(checkout, "results")
    assert table.returncode == 0 and "2 records" in table.stdout
    assert (
        copperbench(checkout, "results", "--format", "csv", "--model", "solution:gold").stdout.count("\n")
        == 2
    )
    assert len(json.loads(copperbench(checkout, "results", "--json").stdout)["records"]) == 2
    shown = copperbench(checkout, "show", "solution:noop")
    assert shown.returncode == 0 and "FAIL" in shown.stdout and "evidence  " in shown.stdout
    assert json.loads(copperbench(checkout, "show", "solution:noop", "--json").stdout)["record"]


def test_a_credential_that_only_decoding_shows_is_recorded_without_evidence(
    checkout: Project, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive: the scan of raw bytes sees JSON escapes, and the verdict quotes the decoded words."""
    manifest = checkout.root / "images" / "agents" / "solution" / "agent.json"
    agent = json.loads(manifest.read_text())
    call = r'{"ts":"t","type":"tool","data":{"name":"\\u0073k-thisisanexampleandnokey00",'
    call += '"args":{"command":"rm -rf /"},"result":""}}'
    plant = f"sed -i '2i {call}' .copperhead/runs/*/transcript.jsonl"
    agent["commands"]["do"] = ["sh", "-c", f"{' '.join(agent['commands']['do'])}; {plant}"]
    manifest.write_text(json.dumps(agent))
    monkeypatch.setattr("orchestrator.run.vet_agent", lambda _: None)
    (finished,) = play(checkout, engine, "refuse-clock-pullup", "wrong-vague-refusal")
    record = finished.record
    assert record.verdict.category == "secret-leak" and record.evidence is None
    assert record.facts.secret is not None and record.facts.secret.path_sha256 is None
    assert not any("refs/runs" in ref for ref in refs(checkout.results / "evidence.git"))
    assert copperbench(checkout, "rescore", "results").returncode == 0
    assert copperbench(checkout, "verify").returncode == 0
