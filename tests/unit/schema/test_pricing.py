"""Prices: exact sums, unknown is never 0, the long prompt's rates."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schema.hashing import sha256
from schema.jsonfile import canonical, read_model
from schema.pricing import LongPrompt, Price, Pricing, TokenUsage, cost, micro_usd, worst_rates

TABLE = Path(__file__).parents[3] / "pricing.json"
VERSIONS = {
    "2026-11-30.1": "a07220ec8fd603eb1292ea45304d0ce59657ddc377dbaf6bb13df15faa00a807",
}
"""Version of the table → hash of its numbers. A line is added for a new one, and none is ever changed."""
UNPRICED = {"pinning", "source", "verified", "note"}
"""What a row says besides: it may be mended within a version."""


def price(**changes: object) -> Price:
    """A price of an API model."""
    base: dict[str, object] = {
        "input": 3,
        "output": 15,
        "cache_read": "0.3",
        "cache_write": "3.75",
        "segment": "api",
        "pinning": "strong",
    }
    return Price.model_validate({**base, **changes})


def used(**numbers: int) -> TokenUsage:
    """A reply's usage."""
    return TokenUsage.model_validate({"input": 0, "output": 0, **numbers})


def test_cached_parts_are_taken_out_of_the_prompt() -> None:
    usage = used(input=1000, output=100, cache_read=600, cache_write=100)
    # 300 fresh at 3, 600 read at 0.3, 100 written at 3.75, 100 out at 15: USD per million.
    assert cost(usage, price()).pico_usd == 10**6 * (300 * 3 + 180 + 375 + 1500)


@pytest.mark.parametrize(
    ("usage", "of", "reason"),
    [
        (used(input=1), None, "the model is not in pricing.json"),
        (
            used(input=1),
            price(input=None, output=None, segment="saved-login"),
            "saved-login has no price per token",
        ),
        (None, price(), "the provider did not say what it used"),
        (used(input=9, cache_read=1), price(cache_read=None), "pricing.json has no price for cache reads"),
        (used(input=9, cache_write=1), price(cache_write=None), "pricing.json has no price for cache writes"),
        (TokenUsage(input=1, output=1, unpriced="odd"), price(), "odd"),
    ],
)
def test_an_unknown_cost_is_null_and_says_why(
    usage: TokenUsage | None, of: Price | None, reason: str
) -> None:
    """Naive: a missing price or usage counts as 0, and the model looks cheap."""
    assert (cost(usage, of).pico_usd, cost(usage, of).reason) == (None, reason)


def test_a_long_prompt_pays_its_rates_for_every_token() -> None:
    long = LongPrompt(above=100, input=Decimal(6), output=Decimal("22.5"))
    of = price(long_prompt=long)
    assert cost(used(input=100, output=1), of).pico_usd == 10**6 * (100 * 3 + 15)
    assert cost(used(input=101, output=1), of).pico_usd == 101 * 6 * 10**6 + 22_500_000


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**6)), max_size=50))
def test_sums_are_exact_and_their_order_does_not_matter(replies: list[tuple[int, int]]) -> None:
    """Naive: binary floats, whose sum depends on the order."""
    of = price(input="0.1", output="0.7")
    costs = [cost(used(input=i, output=o), of).pico_usd or 0 for i, o in replies]
    exact = sum((Decimal(i) * Decimal("0.1") + Decimal(o) * Decimal("0.7") for i, o in replies), Decimal(0))
    assert sum(costs) == sum(reversed(costs)) == exact * 10**6


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 100),
    st.integers(0, 100),
    st.sampled_from([None, 10, 10**9]),
)
def test_the_worst_rates_bound_every_cost(
    prompt: int, output: int, read: int, written: int, above: int | None
) -> None:
    long = (
        LongPrompt(above=above, input=Decimal(6), output=Decimal(30), cache_read=1, cache_write=9)
        if above
        else None
    )
    of = price(long_prompt=long)
    usage = used(input=prompt + read + written, output=output, cache_read=read, cache_write=written)
    rates = worst_rates(of)
    assert rates is not None
    assert (cost(usage, of).pico_usd or 0) <= usage.input * rates[0] + output * rates[1]


def test_micro_usd_are_rounded_up() -> None:
    assert [micro_usd(pico) for pico in (0, 1, 10**6, 10**6 + 1)] == [0, 1, 1, 2]


def test_a_price_has_both_numbers_or_neither() -> None:
    with pytest.raises(ValidationError, match="both input and output"):
        price(output=None)


def numbers(table: Pricing) -> str:
    """A hash of all in a table that decides what a reply costs, and where it is counted."""
    rows = {name: row.model_dump(mode="json", exclude=UNPRICED) for name, row in table.models.items()}
    return sha256(canonical(rows))


def test_a_version_of_the_table_has_one_set_of_numbers() -> None:
    """Naive: a number is mended in place, and two records of one version were priced differently."""
    table = read_model(TABLE, Pricing)
    told = f"pricing.json has other numbers or a new version: raise tableVersion and add {numbers(table)}"
    assert VERSIONS.get(table.table_version) == numbers(table), told
    assert len(set(VERSIONS.values())) == len(VERSIONS)


@pytest.mark.parametrize(
    "changes", [{"output": Decimal("15.000001")}, {"cache_read": None}, {"segment": "saved-login"}]
)
def test_every_number_is_in_the_hash(changes: dict[str, object]) -> None:
    def table(**rows: Price) -> Pricing:
        head = {"table_version": "1", "effective_date": "2026-01-01", "source": "s", "currency": "USD"}
        return Pricing.model_validate({**head, "models": rows})

    same = numbers(table(m=price()))
    assert numbers(table(m=price(**changes))) != same != numbers(table(m=price(), n=price()))
    assert numbers(table(m=price(pinning="weak", note="n", source="s", verified=True))) == same


MOVING = ("openai:", "anthropic:claude-opus-4-5", "anthropic:claude-sonnet-4-5", "anthropic:claude-haiku-4-5")


def test_a_name_that_its_vendor_moves_on_is_weakly_pinned() -> None:
    """Naive: ``gpt-5`` strong; it stands for whichever snapshot OpenAI has it stand for."""
    for name, row in read_model(TABLE, Pricing).models.items():
        dated = re.search(r"\d{4}-?\d{2}-?\d{2}", name)
        if (name.startswith(MOVING) or name.endswith(("@google", "@xai"))) and not dated:
            assert row.pinning == "weak", name


def test_the_table_holds_many_models_of_several_providers_with_dated_sources() -> None:
    table = read_model(TABLE, Pricing)
    priced = {name: each for name, each in table.models.items() if each.rates}
    assert len(priced) >= 25
    assert len({name.split("/")[0].split(":")[0] + name.partition("@")[2] for name in priced}) >= 4
    for name, each in priced.items():
        assert each.source and any(char.isdigit() for char in each.source), name
        assert each.cache_read is not None, name
        assert each.segment in {"api", "open-weight-hosted"}, name
    unpriced = set(table.models) - set(priced)
    assert unpriced and all(table.models[name].note for name in unpriced)
