"""Proofs: solutions held against their declarations, tasks against Standard §9."""

import json
from pathlib import Path

import pytest

from orchestrator.project import LoadedTask
from orchestrator.prove import judge, models
from orchestrator.records import Finished
from tests.unit.samples import ZERO, bundle, record, run_id, spec, task, verdict


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedTask:
    declared = {
        "gold": {"verdict": "pass"},
        "noop": {"verdict": "fail", "firstFailure": "net", "category": "wrong-target"},
        "wrong-a": {"verdict": "fail", "firstFailure": "no-secret"},
    }
    for name, expect in declared.items():
        path = tmp_path / "solutions" / name / "solution.json"
        path.parent.mkdir(parents=True)
        value = {"note": "n", "expect": expect, "exitPath": "done", "summary": "s", "commits": 0}
        path.write_text(json.dumps(value))
    parts = bundle()
    return LoadedTask(
        task=task(),
        assertions=parts.assertions,
        fixture=parts.fixture,
        erc_baseline=parts.erc_baseline,
        drc_baseline=parts.drc_baseline,
        folder=tmp_path,
        manifest_sha256=ZERO,
    )


def finished(name: str, passed: bool, first: str = "net") -> Finished:
    run = run_id(model=f"solution:{name}")
    graded = verdict(passed) if passed else verdict(False, first_failure=first)
    return Finished(spec(run), record(run=run, verdict=graded), None)


ALL = [("gold", True, ""), ("noop", False, "net"), ("wrong-a", False, "no-secret")]


def test_gold_comes_first_then_noop_then_the_wrong_ones(loaded: LoadedTask) -> None:
    assert models(loaded) == ["solution:gold", "solution:noop", "solution:wrong-a"]


def test_a_proof_holds_when_everything_is_as_declared_and_every_requirement_catches_something(
    loaded: LoadedTask,
) -> None:
    assert judge([loaded], [finished(*one) for one in ALL]).holds


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("gold", False, "net"), "gold failed"),
        (("noop", True, ""), "noop passed"),
        (("wrong-a", False, "net"), "caught by another assertion than declared"),
    ],
)
def test_any_deviation_from_the_declaration_breaks_the_proof(
    loaded: LoadedTask, change: tuple[str, bool, str], what: str
) -> None:
    runs = [finished(*(change if one[0] == change[0] else one)) for one in ALL]
    proof = judge([loaded], runs)
    assert not proof.holds, what
    assert [row.solution for row in proof.rows if not row.as_declared] == [change[0]]


def test_a_requirement_that_catches_nothing_is_a_gap(loaded: LoadedTask) -> None:
    proof = judge([loaded], [finished(*one) for one in ALL[:2]])
    assert any("'no-secret' is the first failure of no shipped solution" in gap for gap in proof.gaps)


def test_a_task_without_gold_or_noop_is_not_proven(loaded: LoadedTask) -> None:
    (loaded.folder / "solutions" / "noop" / "solution.json").unlink()
    proof = judge([loaded], [finished(*ALL[0]), finished(*ALL[2])])
    assert any("ships no solution 'noop'" in gap for gap in proof.gaps)
