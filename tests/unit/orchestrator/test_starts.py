"""What earlier starts of a run came to: attempts and costs survive restarts, and being ended takes none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.starts import ATTEMPTS, Fault, Starts, fit_for_ledger
from schema.ledger import GENESIS, ClaimLine, FaultLine, FaultSource, RecordLine

OURS, OTHER = "a" * 64, "b" * 64
RUN = "1/t/m/a/default/1"
Line = ClaimLine | FaultLine | RecordLine


def claim(number: int, stamp: str = OURS, attempt: int = 1) -> ClaimLine:
    return ClaimLine(prev=GENESIS, at="t", run=RUN, claim=number, attempt=attempt, stamp=stamp, host="h")


def fault(number: int, source: FaultSource = "infrastructure", usd: float | None = 0) -> FaultLine:
    return FaultLine(prev=GENESIS, at="t", run=RUN, claim=number, source=source, what=f"w{number}", usd=usd)


def test_a_run_that_was_never_started_has_its_first_attempt_before_it() -> None:
    starts = Starts([], OURS)
    assert (starts.last, starts.attempt, starts.faults, starts.usd) == (0, 1, [], 0)


def test_faults_of_engine_and_provider_take_an_attempt_each_and_cost_what_they_cost() -> None:
    starts = Starts([claim(1), fault(1, usd=0.25), claim(2), fault(2, "provider", 0.5)], OURS)
    assert (starts.last, starts.attempt, starts.faults, starts.usd) == (2, 3, ["w1", "w2"], 0.75)
    starts.lose(Fault("provider", "w3", 0.125))
    assert (starts.attempt, starts.newest.what, starts.usd) == (ATTEMPTS + 1, "w3", 0.875)


def test_what_we_ended_ourselves_takes_no_attempt_and_is_paid_all_the_same() -> None:
    starts = Starts([claim(1), fault(1, "harness", 0.25), claim(2), fault(2)], OURS)
    assert (starts.attempt, starts.faults, starts.usd) == (2, ["w2"], 0.25)


@pytest.mark.parametrize(
    "lines",
    [
        [claim(1)],
        [claim(1), fault(1, usd=None)],
        [claim(1), fault(1), claim(2)],
        [claim(1), fault(1, "harness", None)],
    ],
    ids=["died", "unknown", "died later", "ended, unknown"],
)
def test_one_unknown_cost_makes_the_sum_unknown(lines: list[Line]) -> None:
    assert Starts(lines, OURS).usd is None


def test_starts_under_another_stamp_are_another_runs_but_their_numbers_are_taken() -> None:
    starts = Starts([claim(1, OTHER), fault(1, usd=None), claim(2, OTHER)], OURS)
    assert (starts.last, starts.attempt, starts.usd) == (2, 1, 0)


@given(st.text(), st.text())
def test_words_for_the_ledger_are_one_bounded_line(before: str, after: str) -> None:
    line = fit_for_ledger(f"{before}\ud800\n{after}" * 30)
    assert len(line) <= 1000 and len(line.splitlines()) <= 1
    line.encode()


def test_a_credential_never_enters_the_ledger() -> None:
    assert "sk-" not in fit_for_ledger("401 for sk-this-is-an-example-and-no-key")
