"""Which faults are borne, how long, and that lost time is counted once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.images.sources import gateway

faults = gateway("faults")
NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10.0),
        ({"retry-after": "Tue, 14 Nov 2000 22:13:30 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e99"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_provider_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert faults.retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("status", "code", "kind", "final"),
    [
        (429, None, "rate-limited", False),
        (429, "insufficient_quota", "quota", True),
        (529, "overloaded_error", "rate-limited", False),
        (500, None, "server-error", False),
        (503, None, "server-error", False),
    ],
)
def test_kinds(status: int, code: str | None, kind: str, final: bool) -> None:
    fault = faults.of_status(status, {}, b"{}", code, NOW)
    assert (fault.kind, fault.final) == (kind, final)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_the_agents_own_mistakes_are_no_faults(status: int) -> None:
    assert faults.of_status(status, {}, b"", None, NOW) is None


def test_a_provider_may_say_that_trying_is_no_use() -> None:
    assert faults.of_status(500, {"x-should-retry": "false"}, b"", None, NOW).final


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), max_size=30), st.integers(0, 80))
def test_overlapping_faults_count_each_instant_once(spans: list[tuple[int, int]], budget: int) -> None:
    """Naive: summed over requests, ten parallel ones stop the agent's clock ten times over."""
    clock: Any = faults.FaultClock(float(budget))
    for start, end in spans:
        clock.add(float(start), float(end))
    instants = {tick for start, end in spans for tick in range(start, end)}
    assert clock.seconds == min(len(instants), budget)
    assert clock.left == budget - clock.seconds
