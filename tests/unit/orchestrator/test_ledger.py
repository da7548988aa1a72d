"""The ledger: a chain that shows every later change, and lines that survive any death of their writer."""

import json
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.ledger import LEDGER, audit, planned, read_chain
from orchestrator.ledger import Ledger
from orchestrator.plan import write
from orchestrator.records import Records
from schema.errors import CheckFailed, Interrupted
from schema.hashing import sha256
from schema.ledger import GENESIS, ClaimLine
from schema.run import Plan, RunId
from tests.unit.samples import ZERO, facts, record, run_id, spec, stamp, verdict

STAMP = stamp().digest


def plan(*runs: RunId, **changes: str) -> Plan:
    specs = [spec(run, **changes) for run in runs]
    text = "".join(str(run) for run in runs) + str(changes)
    return Plan(
        schema_version="1.0.0",
        id=sha256(text.encode()),
        created_at="2026-01-01T00:00:00.000Z",
        suite="s",
        specs=specs,
    )


def recorded(results: Path, *runs: RunId) -> Ledger:
    """A results folder in which these runs were planned, claimed and recorded."""
    ledger = Ledger(results)
    ledger.plan(write(plan(*runs), results))
    for run in runs:
        claim = ledger.claim(run, STAMP, 1)
        Records(results, ledger).write(record(run=run, facts=facts(run, claim=claim)))
    return ledger


RUNS = [run_id(repeat=n) for n in (1, 2, 3)]


def faults(results: Path, **heads: str) -> list[str]:
    return list(audit(results, heads))


def test_what_was_done_in_order_adds_up(tmp_path: Path) -> None:
    ledger = recorded(tmp_path, *RUNS)
    assert faults(tmp_path, published=ledger.chain().head) == []
    assert len(read_chain(tmp_path).lines) == 7


def test_an_empty_folder_adds_up(tmp_path: Path) -> None:
    assert read_chain(tmp_path).head == GENESIS and faults(tmp_path) == []


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("how", ["edit", "drop", "swap", "double"])
def test_any_change_of_any_line_breaks_the_chain(tmp_path: Path, number: int, how: str) -> None:
    head = recorded(tmp_path, *RUNS).chain().head
    path = tmp_path / LEDGER
    lines = path.read_bytes().splitlines(keepends=True)
    if how == "edit":
        lines[number] = lines[number].replace(b'"at":"20', b'"at":"19')
    elif how == "drop":
        del lines[number]
    elif how == "double":
        lines.insert(number, lines[number])
    else:
        other = (number + 1) % len(lines)
        lines[number], lines[other] = lines[other], lines[number]
    path.write_bytes(b"".join(lines))
    assert faults(tmp_path, published=head)


def test_another_spelling_of_a_line_is_another_line(tmp_path: Path) -> None:
    """Naive: lines are compared as parsed JSON, and a digest of the file no longer means anything."""
    recorded(tmp_path, *RUNS)
    path = tmp_path / LEDGER
    lines = path.read_bytes().splitlines()
    lines[-1] = json.dumps(json.loads(lines[-1]), indent=None).encode()
    path.write_bytes(b"\n".join(lines) + b"\n")
    assert "continue the chain" in faults(tmp_path)[0]


def test_a_chain_that_was_rewritten_whole_shows_against_a_published_head(tmp_path: Path) -> None:
    head = recorded(tmp_path / "a", *RUNS).chain().head
    recorded(tmp_path / "b", *RUNS[:2])
    assert faults(tmp_path / "b") == []
    assert "not what was published" in faults(tmp_path / "b", paper=head)[0]


def test_a_head_of_earlier_stays_good_as_the_ledger_grows(tmp_path: Path) -> None:
    ledger = recorded(tmp_path, *RUNS)
    early = ledger.chain().digests[2]
    assert faults(tmp_path, published=early) == []


def test_a_dropped_failure_shows(tmp_path: Path) -> None:
    recorded(tmp_path, *RUNS)
    next(tmp_path.glob("2026-*/*/*/run-2.json")).unlink()
    told = faults(tmp_path)
    assert any("run-2.json: in the ledger and not here" in line for line in told)
    assert any("planned and not recorded" in line for line in told)


def test_an_edited_record_shows(tmp_path: Path) -> None:
    recorded(tmp_path, *RUNS)
    path = next(tmp_path.glob("2026-*/*/*/run-2.json"))
    path.write_text(path.read_text().replace('"credit": 1.0', '"credit": 0.5'))
    assert any("it was changed" in line for line in faults(tmp_path))


def test_a_record_that_nobody_told_of_shows(tmp_path: Path) -> None:
    recorded(tmp_path, *RUNS)
    path = next(tmp_path.glob("2026-*/*/*/run-2.json"))
    path.with_name("run-9.json").write_bytes(path.read_bytes())
    assert any("run-9.json: a record that is not in the ledger" in line for line in faults(tmp_path))


def test_a_missing_repeat_shows(tmp_path: Path) -> None:
    ledger = recorded(tmp_path, *RUNS)
    ledger.plan(write(plan(*RUNS, run_id(repeat=4)), tmp_path))
    assert faults(tmp_path) == [
        f"{run_id(repeat=4)}: planned and not recorded; " + faults(tmp_path)[0].partition("; ")[2]
    ]


def test_a_plan_that_was_edited_shows(tmp_path: Path) -> None:
    """Naive: shrink the plan and the denominator shrinks with it."""
    recorded(tmp_path, *RUNS)
    path = next((tmp_path / "plans").glob("*.json"))
    value = json.loads(path.read_text())
    value["specs"] = value["specs"][:1]
    path.write_text(json.dumps(value))
    assert any("it was changed" in line for line in faults(tmp_path))


def test_a_run_recorded_twice_shows(tmp_path: Path) -> None:
    """Naive: run the same thing until it passes and keep the best."""
    ledger = recorded(tmp_path, *RUNS)
    claim = ledger.claim(RUNS[0], STAMP, 1)
    Records(tmp_path, ledger).write(record(run=RUNS[0], facts=facts(RUNS[0], claim=claim)))
    assert any("recorded 2 times" in line for line in faults(tmp_path))


def test_a_run_graded_again_under_another_stamp_is_no_second_run(tmp_path: Path) -> None:
    ledger = recorded(tmp_path, *RUNS)
    again = record(run=RUNS[0], stamp=stamp(grader_image="sha256:other"))
    Records(tmp_path, ledger).write(again)
    assert faults(tmp_path) == []


def test_a_record_without_a_claim_shows(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    Records(tmp_path, ledger).write(record())
    assert any("was never claimed" in line for line in faults(tmp_path))


def test_the_newest_plan_that_names_a_run_decides_what_is_missing(tmp_path: Path) -> None:
    ledger = recorded(tmp_path, *RUNS)
    newer = plan(RUNS[0], manifest_sha256="1" * 64)
    ledger.plan(write(newer, tmp_path))
    specs = planned(ledger.chain(), tmp_path)
    assert specs[str(RUNS[0])].manifest_sha256 == "1" * 64 and specs[str(RUNS[1])].manifest_sha256 == ZERO
    ledger.plan(write(plan(*RUNS), tmp_path))
    assert planned(ledger.chain(), tmp_path)[str(RUNS[0])].manifest_sha256 == ZERO


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(1, 10_000))
def test_a_line_torn_anywhere_is_dropped_by_the_next_writer(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    """A writer that died in the middle of a line had not acted on it yet."""
    folder = tmp_path_factory.mktemp("torn")
    recorded(folder, *RUNS)
    path = folder / LEDGER
    whole = path.read_bytes()
    last = len(whole) - whole.rstrip(b"\n").rfind(b"\n") - 1
    path.write_bytes(whole[: len(whole) - min(cut, last - 1)])
    assert "torn" in faults(folder)[0]
    ledger = Ledger(folder)
    Records(folder, ledger).settle(RUNS[2])
    assert faults(folder) == []
    assert len(ledger.chain().lines) == 7


def test_a_record_that_was_written_and_not_told_is_told_once(tmp_path: Path) -> None:
    ledger = recorded(tmp_path, *RUNS)
    path = tmp_path / LEDGER
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    for _ in range(2):
        Records(tmp_path, Ledger(tmp_path)).settle(RUNS[2])
    assert faults(tmp_path) == []
    assert Records(tmp_path, ledger).find(RUNS[2], stamp()) is not None


def test_a_record_that_no_claim_explains_is_not_adopted(tmp_path: Path) -> None:
    """Naive: whatever lies in the folder is taken for ours."""
    ledger = recorded(tmp_path, *RUNS)
    path = next(tmp_path.glob("2026-*/*/*/run-1.json"))
    forged = record(run=RUNS[0], facts=facts(RUNS[0], claim=7), verdict=verdict(True))
    path.with_name("run-9.json").write_text(json.dumps(forged.to_json()))
    Records(tmp_path, ledger).settle(RUNS[0])
    assert any("run-9.json: a record that is not in the ledger" in line for line in faults(tmp_path))


def test_half_written_records_of_a_dead_process_are_removed(tmp_path: Path) -> None:
    ledger = recorded(tmp_path, *RUNS)
    part = next(tmp_path.glob("2026-*/*/*/run-1.json")).with_name(f".{RUNS[0].short}.123.tmp")
    part.write_text("{")
    Records(tmp_path, ledger).settle(RUNS[1])
    assert part.exists()
    Records(tmp_path, ledger).settle(RUNS[0])
    assert not part.exists()


def test_threads_and_instances_make_one_chain(tmp_path: Path) -> None:
    ledgers = [Ledger(tmp_path) for _ in range(4)]

    def claim(number: int) -> int:
        return ledgers[number % 4].claim(run_id(repeat=number), ZERO, 1)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(claim, range(1, 41))) == {1}
    chain = read_chain(tmp_path)
    assert sorted(line.run for line in chain.lines if isinstance(line, ClaimLine)) == sorted(
        str(run_id(repeat=n)) for n in range(1, 41)
    )


def _claim_many(results: Path, first: int) -> None:
    ledger = Ledger(results)
    for number in range(first, first + 25):
        ledger.claim(run_id(repeat=number), ZERO, 1)


def test_processes_make_one_chain(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_claim_many, args=(tmp_path, first)) for first in (1, 101, 201)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len(read_chain(tmp_path).lines) == 75


def _hold(results: Path, held: "multiprocessing.synchronize.Event") -> None:
    with Ledger(results).holding(run_id(), threading.Event()):
        held.set()
        threading.Event().wait(600)


def test_a_run_is_held_until_its_process_dies_however_it_dies(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    other = context.Process(target=_hold, args=(tmp_path, held))
    other.start()
    assert held.wait(60)
    ledger, stop = Ledger(tmp_path), threading.Event()
    with ledger.holding(run_id(repeat=2), stop):
        pass
    threading.Timer(0.3, stop.set).start()
    with pytest.raises(Interrupted), ledger.holding(run_id(), stop):
        pytest.fail("two processes hold one run")
    other.kill()
    other.join(60)
    with ledger.holding(run_id(), threading.Event()):
        pass


def test_faults_are_kept_with_their_claims(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    claim = ledger.claim(run_id(), ZERO, 1)
    ledger.fault(run_id(), claim, "the engine was lost")
    assert ledger.claim(run_id(), ZERO, 2) == 2
    assert [line.kind for line in ledger.of(run_id())] == ["claim", "fault", "claim"]


def test_a_broken_chain_stops_writers_too(tmp_path: Path) -> None:
    """Naive: append to whatever is there, and a tampered ledger becomes the base of new results."""
    recorded(tmp_path, *RUNS)
    path = tmp_path / LEDGER
    path.write_bytes(path.read_bytes().replace(b'"claim":1', b'"claim":2', 1))
    with pytest.raises(CheckFailed, match="chain"):
        Ledger(tmp_path).claim(run_id(repeat=9), ZERO, 1)
