"""A run's account: sums of what the gateway told, unknown where it did not tell all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.gateway import Account, same_model
from schema.gateway import Body, Breach, Closed, Exchange, Listening, ProviderLost, Retry
from schema.pricing import TokenUsage


def exchange(**changes: Any) -> Exchange:
    """A reply."""
    base: dict[str, Any] = {
        "at": 1,
        "seq": 1,
        "protocol": "openai-chat",
        "stream": False,
        "outcome": "replied",
        "status": 200,
        "answered": "m",
        "usage": TokenUsage(input=10, output=5, cache_read=2),
        "pico_usd": 1_500_000,
        "attempts": 1,
        "began": 0,
        "first_byte": 0.1,
        "fault_seconds": 0,
        "request_bytes": 1,
        "reply_bytes": 1,
    }
    return Exchange.model_validate({**base, **changes})


def closed(unfinished: int = 0) -> Closed:
    """The last event."""
    return Closed(at=2, refused=0, unfinished=unfinished, excluded_seconds=0)


def account(*events: Any) -> Account:
    """An account of these events."""
    made = Account("m")
    for event in events:
        made.add(event)
    return made


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**9)), min_size=1))
def test_usage_is_the_sum_over_replies(parts: list[tuple[int, int, int]]) -> None:
    events = [exchange(usage=TokenUsage(input=i, output=o), pico_usd=p) for i, o, p in parts]
    usage = account(*events, exchange(outcome="rejected", usage=None, pico_usd=None), closed()).usage("t")
    assert (usage.replies, usage.input_tokens) == (len(parts), sum(i for i, _, _ in parts))
    assert usage.output_tokens == sum(o for _, o, _ in parts)
    # Rounded once, up, to a whole micro-USD.
    assert usage.usd == -(-sum(p for _, _, p in parts) // 10**6) / 10**6


@pytest.mark.parametrize(
    ("events", "note"),
    [
        ([exchange(), exchange(usage=None, pico_usd=None, cost_note="no count"), closed()], "no count"),
        ([exchange()], "the gateway was lost"),
        ([exchange(), closed(1)], "still in flight"),
        ([closed()], "no model reply"),
        ([exchange(uncounted=1, pico_usd=None, cost_note="may be billed"), closed()], "may be billed"),
        (
            [
                exchange(),
                exchange(outcome="failed", usage=None, pico_usd=None, uncounted=2, cost_note="may be billed"),
                closed(),
            ],
            "may be billed",
        ),
    ],
)
def test_what_is_not_wholly_known_is_null_and_says_why(events: list[Any], note: str) -> None:
    """Naive: the known part is summed, and a run that lost its gateway looks cheap."""
    made = account(*events)
    assert made.usage("t").usd is None and note in made.cost_note()


def test_a_run_whose_only_attempt_broke_was_not_for_nothing() -> None:
    """Naive: no reply, so it cost 0."""
    failed = exchange(outcome="failed", usage=None, pico_usd=None, uncounted=1, cost_note="x", answered=None)
    assert not account(failed, closed()).is_unused
    assert account(failed.model_copy(update={"uncounted": 0}), closed()).is_unused


def test_a_probe_is_paid_for_and_is_no_reply() -> None:
    probe = exchange(probe=True, answered="other")
    made = account(probe, closed())
    assert not made.is_unused and made.is_comparable and made.answered == []
    usage = made.usage("t")
    assert (usage.replies, usage.input_tokens, usage.usd) == (0, 10, 0.000002)


def test_tokens_without_a_price_are_still_counted() -> None:
    usage = account(exchange(pico_usd=None, cost_note="no price"), closed()).usage(None)
    assert (usage.input_tokens, usage.cache_read_tokens, usage.usd) == (10, 2, None)


@pytest.mark.parametrize(
    ("answered", "same"),
    [
        ("gpt-5", True),
        ("gpt-5-2025-08-07", True),
        ("gpt-5-20250807", True),
        ("gpt-5-mini", False),
        ("gpt-5-mini-2025-08-07", False),
        ("gpt-5-2025-08-07-x", False),
        ("GPT-5", False),
        ("gpt", False),
        ("", False),
    ],
)
def test_a_dated_version_is_the_same_model(answered: str, same: bool) -> None:
    assert same_model("gpt-5", answered) is same


def test_another_model_or_two_versions_are_not_comparable() -> None:
    assert account(exchange(), exchange(answered=None)).is_comparable
    # Naive: nobody is named, so nobody else is.
    assert not account(exchange(answered=None)).is_comparable
    assert account().is_comparable
    assert not account(exchange(), exchange(answered="other")).is_comparable
    assert not account(exchange(answered="m-20250101"), exchange(answered="m-20250202")).is_comparable
    # What a provider says when it refuses is no answer of a model.
    assert account(exchange(outcome="rejected", answered="other")).is_comparable


def test_everything_is_kept_in_the_order_in_which_it_was_told() -> None:
    """Naive: exchanges first, and what ended the run is not in its evidence."""
    events = [
        Retry(at=1, seq=1, attempt=1, kind="reset", status=None, wait=1, excluded_seconds=3),
        exchange(),
        ProviderLost(at=2, seq=1, kind="stalled", status=None, excluded_seconds=5),
        Breach(at=2, cap="turns", reason="a"),
        exchange(),
        closed(),
    ]
    body = Body(at=1, seq=1, side="reply", text="x")
    assert account(Listening(at=0), *events[:2], body, *events[2:]).told == events


def test_the_first_breach_and_the_first_loss_count_and_of_exclusion_the_latest_word() -> None:
    """Naive: the largest, and a request that was itself at fault keeps the time that it cost."""
    made = account(
        Retry(at=1, seq=1, attempt=1, kind="reset", status=None, wait=1, excluded_seconds=3),
        Retry(at=1, seq=2, attempt=1, kind="reset", status=None, wait=1, excluded_seconds=7),
        exchange(outcome="rejected", excluded_seconds=2),
        exchange(excluded_seconds=None),
        Breach(at=1, cap="turns", reason="a"),
        Breach(at=2, cap="usd", reason="b"),
    )
    assert (made.retries, made.excluded_seconds) == (2, 2)
    made.add(ProviderLost(at=2, seq=1, kind="stalled", status=None, excluded_seconds=5))
    made.add(ProviderLost(at=3, seq=2, kind="reset", status=None, excluded_seconds=4))
    assert made.excluded_seconds == 4
    assert made.breach and made.breach.cap == "turns" and made.lost and made.lost.kind == "stalled"
