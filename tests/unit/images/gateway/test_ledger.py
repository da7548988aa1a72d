"""Caps hold whatever the order in which requests come and end; counts are the provider's."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schema.gateway import GatewayCaps
from schema.pricing import Cost, Price, TokenUsage, cost
from tests.unit.images.sources import gateway

ledger = gateway("ledger")
PRICE = Price(input=Decimal(2), output=Decimal(10), segment="api", pinning="strong")


def account(**caps: int) -> Any:
    """A ledger with these caps."""
    return ledger.Ledger(GatewayCaps.model_validate(caps), PRICE, 100)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 300), st.one_of(st.none(), st.integers(1, 400))),
        st.tuples(st.just("probe"), st.integers(0, 300), st.integers(1, 20)),
        st.tuples(
            st.just("end"),
            st.integers(0, 9),
            st.sampled_from(["full", "part", "unknown", "none", "nil", "lost"]),
        ),
    ),
    max_size=60,
)


@settings(max_examples=400)
@given(
    STEPS,
    st.one_of(st.none(), st.integers(0, 12)),
    st.one_of(st.none(), st.integers(0, 3000)),
    st.one_of(st.none(), st.integers(0, 6000)),
    st.one_of(st.none(), st.integers(0, 6000)),
)
def test_no_interleaving_passes_a_cap_and_the_count_is_the_sum_of_usage(
    steps: list[Any], turns: int | None, tokens: int | None, micro: int | None, suite: int | None
) -> None:
    caps = {"turns": turns, "tokens": tokens, "micro_usd": micro, "suite_micro_usd": suite}
    book = account(**{name: value for name, value in caps.items() if value is not None})
    flying: list[tuple[Any, int]] = []
    replies = used = pico = 0
    for step in steps:
        if step[0] == "ask":
            bound = step[1]
            asked = book.admit(bound, step[2])
            assert flying or not isinstance(asked, ledger.Full), "nothing to wait for"
            flying += [(asked, bound)] if isinstance(asked, ledger.Ticket) else []
        elif step[0] == "probe":
            before = book.passed
            ticket = book.admit_probe(step[1], step[2])
            flying += [(ticket, step[1])] if ticket else []
            assert book.passed is before
        elif flying:
            ticket, bound = flying.pop(step[1] % len(flying))
            if step[2] == "lost":
                # An attempt that may have been billed: another one only where its worst case fits once more.
                used, pico = used + ticket.tokens, pico + ticket.pico
                if book.attempt_lost(ticket):
                    flying.append((ticket, bound))
                else:
                    book.released(ticket)
            elif step[2] == "nil":
                book.released(ticket)
            if step[2] in {"lost", "nil"}:
                continue
            output = ticket.tokens - bound
            usage = {
                "full": TokenUsage(input=bound, output=output),
                "part": TokenUsage(input=bound // 2, output=output // 2),
                "none": TokenUsage(input=0, output=0),
                "unknown": None,
            }[step[2]]
            priced = cost(usage, PRICE)
            book.replied(ticket, usage, priced, whole=False)
            replies += ticket.turn
            used += usage.total if usage else ticket.tokens
            pico += priced.pico_usd if priced.pico_usd is not None else ticket.pico
        assert (book.replies, book.tokens, book.pico) == (replies, used, pico)
        assert turns is None or replies + sum(ticket.turn for ticket, _ in flying) <= turns
        assert tokens is None or used + sum(ticket.tokens for ticket, _ in flying) <= tokens
        for limit in (micro, suite):
            assert limit is None or pico + sum(ticket.pico for ticket, _ in flying) <= limit * 10**6


def test_the_turn_after_the_last_is_the_breach() -> None:
    book = account(turns=1)
    ticket = book.admit(10, None)
    assert isinstance(book.admit(10, None), ledger.Full)
    book.replied(ticket, TokenUsage(input=1, output=1), Cost(pico_usd=1), whole=True)
    assert book.admit(10, None).cap == "turns"


@settings(max_examples=200)
@given(
    st.integers(0, 5000), st.integers(0, 5000), st.sampled_from(["tokens", "micro_usd", "suite_micro_usd"])
)
def test_a_reply_longer_than_was_asked_for_is_a_breach_at_once(prompt: int, output: int, name: str) -> None:
    """Naive: the next request finds out, and the last one of a run never does."""
    book = account(**{name: 3000})
    usage = TokenUsage(input=prompt, output=output)
    book.replied(book.admit(100, 100), usage, cost(usage, PRICE), whole=True)
    used = usage.total if name == "tokens" else 2 * prompt + 10 * output
    assert (book.passed is not None) is (used > 3000)
    assert book.passed is None or book.passed.scope == ("suite" if name == "suite_micro_usd" else "run")


def test_a_lost_request_gives_its_place_back() -> None:
    book = account(turns=1)
    book.released(book.admit(10, None))
    assert isinstance(book.admit(10, None), ledger.Ticket)


def test_another_attempt_needs_room_for_another_worst_case() -> None:
    """Naive: the attempts before the last are free, and a provider that bills them passes the cap."""
    for cap, fits in ((399, False), (400, True)):
        book = account(tokens=cap)
        ticket = book.admit(100, 100)
        assert book.attempt_lost(ticket) is fits and book.tokens == 200


def test_a_probe_takes_no_turn_and_is_no_breach() -> None:
    book = account(turns=1, tokens=500)
    probe = book.admit_probe(100, 16)
    assert isinstance(book.admit(10, 100), ledger.Ticket)
    book.replied(probe, TokenUsage(input=9, output=2), Cost(pico_usd=1), whole=True)
    assert (book.replies, book.tokens, book.pico) == (0, 11, 1)
    assert book.admit_probe(500, 16) is None and book.passed is None


def test_without_a_cap_that_needs_it_nothing_is_clamped() -> None:
    assert account(turns=5).admit(10, None).output is None


def test_output_is_clamped_to_what_is_left() -> None:
    assert account(tokens=150).admit(100, 200).output == 50
    # 2 USD in, 10 out per million: 100 in take 200 micro-USD, the other 300 pay for 30 out.
    assert account(micro_usd=500).admit(100, None).output == 30


def test_the_tighter_budget_is_named() -> None:
    assert account(micro_usd=10**6, suite_micro_usd=1).admit(100, None).scope == "suite"
    assert account(micro_usd=1, suite_micro_usd=10**6).admit(100, None).scope == "run"


@pytest.mark.parametrize(("caps", "cap"), [({"micro_usd": 10**6}, "usd"), ({"tokens": 10**6}, "tokens")])
def test_a_whole_reply_that_cannot_be_counted_ends_a_capped_run(caps: dict[str, int], cap: str) -> None:
    """Naive: missing usage is 0, and the cap is never reached."""
    book = account(**caps)
    book.replied(book.admit(10, 10), None, cost(None, PRICE), whole=True)
    assert book.admit(10, 10).cap == cap


def test_a_whole_reply_that_cannot_be_counted_is_fine_without_such_a_cap() -> None:
    book = account(turns=3)
    book.replied(book.admit(10, 10), None, cost(None, PRICE), whole=True)
    assert isinstance(book.admit(10, 10), ledger.Ticket)


def test_a_usd_cap_without_a_price_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a model with a price"):
        ledger.Ledger(GatewayCaps(micro_usd=5), None, 100)
