"""Grading again: a record must match in its own environment; elsewhere a difference is news, no fault."""

import json
from pathlib import Path

import pytest

from grader.__main__ import conclude, line
from grader.rescore import Rescored, differences, rescore
from grader.results import read_records
from tests.unit.samples import facts, record, records, run_id, stamp, verdict


def rescored(*, passed: bool, kicad: str) -> Rescored:
    """A passing record of KiCad 9, graded again."""
    again = verdict(passed)
    old = record()
    return Rescored(Path("run-1.json"), old, again, tuple(differences(old.verdict, again)), kicad)


def test_in_its_own_environment_a_difference_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert conclude([rescored(passed=True, kicad="9")], True, as_json=False) == 0
    assert conclude([rescored(passed=False, kicad="9")], True, as_json=False) == 1
    assert "0 of 1 records MATCH" in capsys.readouterr().out
    assert line(rescored(passed=False, kicad="9")).startswith("DIFFERS  ")


def test_in_another_environment_a_difference_is_reported_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    """A naive rescore calls the record irreproducible."""
    other = rescored(passed=False, kicad="10")
    assert conclude([rescored(passed=True, kicad="9"), other], True, as_json=False) == 0
    said = capsys.readouterr().out
    assert "1 of 1 records MATCH; 0 of 1 verdicts the same in another environment (KiCad 10)" in said
    head, *rest = line(other).splitlines()
    assert head == f"KiCad 10 fail  {run_id()}; KiCad 9 recorded pass"
    assert rest and all(text.startswith("    other environment: ") for text in rest)


def test_what_cannot_be_graded_fails_in_any_environment() -> None:
    lost = Rescored(Path("run-1.json"), record(), None, ("cannot be graded again: x",), "10")
    assert conclude([lost], True, as_json=False) == 1
    assert line(lost).startswith("DIFFERS  ")


def test_json_tells_environment_and_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    conclude([rescored(passed=False, kicad="10")], None, as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert (answer["matched"], answer["differing"], answer["inAnotherEnvironment"]) == (0, 0, 1)
    assert answer["records"][0]["kicad"] == "10" and answer["records"][0]["verdict"] == "fail"


def test_each_record_is_graded_in_its_own_environment_unless_told(tmp_path: Path) -> None:
    """Records without evidence need no grader, so that none is asked here."""
    (tmp_path / "tasks").mkdir()
    lost = facts(run_id(), evidence="none")
    for version in ("9.0.2", "10.0.6"):
        records(tmp_path / "results").write(record(facts=lost, stamp=stamp(kicad_version=version)))

    def graded(kicad: str | None) -> list[tuple[str, bool]]:
        found = rescore(tmp_path, lambda *_: verdict(), jobs=1, kicad=kicad)
        return [(outcome.kicad, outcome.elsewhere) for outcome in found]

    assert graded(None) == [("9", False), ("10", False)]
    assert graded("10") == [("10", True), ("10", False)]


def test_the_tenth_record_of_a_run_comes_after_the_second(tmp_path: Path) -> None:
    """Sorted as text, run-10 is older than run-2, and its copy in another environment would be too."""
    for number in range(1, 12):
        records(tmp_path).write(record(run=run_id(repeat=number)))
    assert [found.run.repeat for _, found in read_records(tmp_path)] == list(range(1, 12))
