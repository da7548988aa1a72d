"""Records as rows, and one record told to a person."""

import csv
import io
from pathlib import Path

import pytest

from orchestrator.listing import COLUMNS, as_csv, row
from orchestrator.show import find, lines
from schema.errors import UsageError
from schema.run import RunId
from tests.unit.samples import facts, record, records, run_id, verdict


def test_csv_reads_back_and_has_a_row_a_record() -> None:
    two = [record(run=run_id(repeat=n), passed=n == 1) for n in (1, 2)]
    head, *found = csv.reader(io.StringIO(as_csv(two)))
    assert head[: len(COLUMNS)] == COLUMNS
    assert [dict(zip(head, one, strict=True))["verdict"] for one in found] == ["pass", "fail"]


@pytest.mark.parametrize("name", ["=1+1", "+x", "-x", "@SUM(A1)", "\tx"])
def test_no_cell_is_a_formula(name: str) -> None:
    """Naive: a model's name, or what an agent wrote, runs in the reader's spreadsheet."""
    (_, found) = csv.reader(io.StringIO(as_csv([record(run=run_id(model=name))])))
    assert found[1] == f"'{name}"


def test_an_unknown_cost_is_an_empty_cell() -> None:
    (head, found) = csv.reader(io.StringIO(as_csv([record()])))
    assert dict(zip(head, found, strict=True))["usd"] == ""


def test_a_row_has_a_cell_a_column() -> None:
    assert len(row(record())) == len(COLUMNS)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    book = records(tmp_path)
    for run in (run_id(), run_id(repeat=2), run_id(task="other-task")):
        book.write(record(run=run))
    book.write(record(passed=False, at="2026-02-01T00:00:00.000Z"))
    return tmp_path


def test_a_run_is_found_by_a_part_of_its_id_or_its_path(results: Path) -> None:
    _, found = find(results, "other-task")
    assert found.run.task == "other-task"
    path, again = find(results, "2026-01-01/solution%3Agold/some-task/run-2.json")
    assert again.run.repeat == 2 and find(results, str(path))[1] == again


def test_of_one_run_the_newest_record_is_shown(results: Path) -> None:
    assert find(results, str(run_id()))[1].verdict.verdict == "fail"


@pytest.mark.parametrize(("wanted", "says"), [("nothing", "no record"), ("some-task", "2 runs")])
def test_none_or_several_runs_are_one_clear_line(results: Path, wanted: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        find(results, wanted)


def test_what_went_wrong_is_told() -> None:
    run: RunId = run_id()
    told = "\n".join(
        lines(
            record(
                run=run,
                verdict=verdict(False, diagnostics=["a note"]),
                facts=facts(
                    run,
                    claim=2,
                    attempt=2,
                    earlier_faults=["the engine was lost"],
                    killed_by="wall-clock",
                    exit_code=137,
                    oom_killed=True,
                ),
            )
        )
    )
    for part in ("fail (wrong-target)", "killed at the wall-clock cap, out of memory", "claim 2"):
        assert part in told
    assert "lost      the engine was lost" in told and "note      a note" in told
