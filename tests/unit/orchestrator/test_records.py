"""Records on disk: whole or not at all, never overwritten, never with a credential."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from schema.errors import CheckFailed, InvalidFile
from tests.unit.samples import record, records, run_id, stamp, verdict


def test_a_record_lies_where_the_standard_says_and_reads_back(tmp_path: Path) -> None:
    one = record(run=run_id(model="solution:gold"))
    path = records(tmp_path).write(one)
    assert path == tmp_path / "2026-01-01" / "solution%3Agold" / "some-task" / "run-1.json"
    assert [found for _, found in records(tmp_path).all()] == [one]


def test_a_second_record_gets_the_next_number_and_the_first_stays(tmp_path: Path) -> None:
    book = records(tmp_path)
    first = book.write(record())
    before = first.read_bytes()
    assert book.write(record()).name == "run-2.json"
    assert first.read_bytes() == before


def test_many_writers_never_share_a_number(tmp_path: Path) -> None:
    book = records(tmp_path)
    runs = [record(run=run_id(repeat=n)) for n in range(1, 21)]
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(book.write, runs))
    assert len(set(paths)) == 20
    assert sorted(found.run.repeat for _, found in book.all()) == list(range(1, 21))
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_record_that_holds_a_credential_is_not_written(tmp_path: Path) -> None:
    leaky = record(verdict=verdict(diagnostics=["key " + "sk-" + "z" * 24]))
    with pytest.raises(CheckFailed, match="credential"):
        records(tmp_path).write(leaky)
    assert not list(tmp_path.rglob("*.json*")) and not list(tmp_path.rglob("*.tmp"))


def test_a_run_is_found_only_under_its_own_stamp(tmp_path: Path) -> None:
    book = records(tmp_path)
    book.write(record())
    assert book.find(run_id(), stamp()) == record()
    assert book.find(run_id(repeat=2), stamp()) is None
    assert book.find(run_id(), stamp(grader_image="sha256:other")) is None


def test_a_damaged_record_is_named_not_skipped(tmp_path: Path) -> None:
    book = records(tmp_path)
    path = book.write(record())
    value = json.loads(path.read_text())
    value["verdict"]["verdict"] = "perhaps"
    path.write_text(json.dumps(value))
    with pytest.raises(InvalidFile, match=r"run-1\.json"):
        list(book.all())
