"""Which faults are borne, how long, and that lost time is counted once."""

import json
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


def error(**said: Any) -> bytes:
    """An error body."""
    return json.dumps({"error": said}).encode()


@pytest.mark.parametrize(
    ("status", "said", "kind", "final"),
    [
        (429, {}, "rate-limited", False),
        (429, {"code": "insufficient_quota"}, "quota", True),
        (429, {"type": "insufficient_quota", "code": None}, "quota", True),
        (529, {"type": "overloaded_error"}, "rate-limited", False),
        (400, {"message": "Your credit balance is too low to access the API."}, "quota", True),
        *((status, {}, "rate-limited", False) for status in (408, 409, 425)),
        *(
            (status, {}, "server-error", False)
            for status in (500, 501, 502, 503, 504, 520, 521, 523, 530, 599)
        ),
    ],
)
def test_kinds(status: int, said: dict[str, Any], kind: str, final: bool) -> None:
    fault = faults.of_status(status, {}, error(**said), NOW)
    assert (fault.kind, fault.final) == (kind, final)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
@pytest.mark.parametrize("body", [b"", b"[]", b'{"error": "text"}', error(message=7), error(code=5)])
def test_the_agents_own_mistakes_are_no_faults(status: int, body: bytes) -> None:
    assert faults.of_status(status, {}, body, NOW) is None


def test_a_request_that_is_too_large_is_the_agents_mistake() -> None:
    """Naive: it is a rate limit, borne until the run's patience is used up."""
    told = error(message="Request too large for m: Limit 30000, Requested 60000.", code="rate_limit_exceeded")
    assert faults.of_status(429, {}, told, NOW) is None


def test_a_provider_may_say_that_trying_is_no_use() -> None:
    assert faults.of_status(500, {"x-should-retry": "false"}, b"", NOW).final


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"error": {"code": 502, "message": "x"}}, 502),
        ({"error": {"code": 429}, "user_id": "u"}, 429),
        ({"error": {"code": 7}}, 502),
        ({"error": {"code": None, "type": "insufficient_quota"}}, 429),
        ({"error": "text"}, 502),
        ({"error": {"code": 500}, "choices": None}, 500),
        ({"type": "error", "error": {"type": "overloaded_error"}}, 529),
        ({"type": "error", "error": {"type": "rate_limit_error"}}, 429),
        ({"type": "error", "error": {"type": "api_error"}}, 500),
        ({"type": "error", "error": {"type": "invalid_request_error"}}, 400),
        ({"type": "error", "error": {"type": "authentication_error"}}, 401),
        ({"type": "error", "error": {"type": "unheard-of"}}, 502),
        ({"error": {"code": 502}, "choices": []}, None),
        ({"error": None, "output": []}, None),
        ({"error": {"code": "server_error"}, "output": []}, None),
        ({"id": "x"}, None),
        ([], None),
    ],
)
def test_an_error_inside_a_200_is_what_its_code_says(body: Any, status: int | None) -> None:
    assert faults.inside(json.dumps(body).encode()) == status


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b'{"type":"error","code":"rate_limit_exceeded","message":"x"}', 429),
        (b'{"type":"error","code":"server_error"}', 500),
        (b'{"error":{"code":502},"choices":[{"delta":{},"finish_reason":"error"}]}', 502),
        (b'{"type":"response.created","response":{"error":null}}', None),
        (b'{"choices":[]}', None),
        (b"[DONE]", None),
    ],
)
def test_an_error_as_a_streams_first_event(data: bytes, status: int | None) -> None:
    assert faults.inside(data, first=True) == status


LOST = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "keep", "take back"]),
        st.integers(0, 4),
        st.integers(0, 100),
        st.integers(0, 100),
    ),
    max_size=40,
)


@given(LOST, st.integers(0, 80))
def test_overlapping_faults_count_each_instant_once_and_can_be_taken_back(
    steps: list[tuple[str, int, int, int]], budget: int
) -> None:
    """Naive: summed over requests, ten parallel ones stop the agent's clock ten times over."""
    clock: Any = faults.FaultClock(float(budget))
    kept: set[int] = set()
    lost: dict[int, set[int]] = {}
    for step, seq, start, end in steps:
        if step == "add":
            clock.add(float(start), float(end), seq)
            lost.setdefault(seq, set()).update(range(start, end))
        elif step == "keep":
            clock.keep(seq)
            kept |= lost.pop(seq, set())
        else:
            clock.take_back(seq)
            lost.pop(seq, None)
        assert clock.seconds == min(len(kept.union(*lost.values())), budget)
        assert clock.left == budget - clock.seconds
