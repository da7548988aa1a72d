"""What tokens cost: the price table, and the one function that multiplies (Standard §8).

Prices are decimals with at most six places, in USD per million tokens, so that a price times a token count is
a whole number of pico-USD: sums are exact. A cost that is not known is None with a reason, never 0.
"""

from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import Field, PlainSerializer, model_validator

from schema.base import Model

Segment = Literal["api", "open-weight-hosted", "open-weight-self-hosted", "saved-login", "provider-free"]
Pinning = Literal["strong", "weak"]

Usd = Annotated[
    Decimal,
    Field(ge=0, lt=10**6, decimal_places=6),
    PlainSerializer(float, return_type=float, when_used="json"),
]

PICO = 10**12
"""Pico-USD in a USD."""


class TokenUsage(Model):
    """One reply's tokens, as its provider counted them, in one form for all protocols."""

    input: int = Field(ge=0)
    """The whole prompt, cached parts included."""
    output: int = Field(ge=0)
    """Reasoning included."""
    cache_read: int | None = Field(default=None, ge=0)
    """Part of ``input`` read from a cache; None when the provider says nothing of it."""
    cache_write: int | None = Field(default=None, ge=0)
    """Part of ``input`` written to a cache."""
    unpriced: str = ""
    """Why the table's prices do not cover this reply, such as another cache lifetime; empty when they do."""

    @property
    def total(self) -> int:
        """Input and output together: what ``caps.tokens`` counts."""
        return self.input + self.output


class Rates(Model):
    """USD per million tokens. A cache price is None where the provider has no such thing."""

    input: Usd
    output: Usd
    cache_read: Usd | None = None
    cache_write: Usd | None = None


class LongPrompt(Rates):
    """Rates for the whole request once its prompt is longer than ``above`` tokens."""

    above: int = Field(ge=1)


class Price(Model):
    """One model's price, USD per million tokens; ``input`` and ``output`` are null on a route without one."""

    input: Usd | None
    output: Usd | None
    cache_read: Usd | None = None
    cache_write: Usd | None = None
    long_prompt: LongPrompt | None = None
    segment: Segment
    pinning: Pinning
    source: str | None = None
    """Who published the numbers, and when they were read."""
    verified: bool = False
    """True: read on the provider's own page. False: reported by somebody else."""
    note: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.input is None) != (self.output is None):
            raise ValueError("a price has both input and output, or neither")
        return self

    @property
    def rates(self) -> Rates | None:
        """The ordinary rates; None on a route without a price."""
        if self.input is None or self.output is None:
            return None
        return Rates(
            input=self.input, output=self.output, cache_read=self.cache_read, cache_write=self.cache_write
        )


class Pricing(Model):
    """``pricing.json``: model id as in ``--model`` → price."""

    table_version: str
    """``2026-11-30.1``: the date, and a counter within it. Any change of a number makes a new version."""
    effective_date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    source: str
    currency: Literal["USD"]
    models: dict[str, Price]
    """``prefix:*`` stands for every model of a route that has no price per token."""

    def price(self, model: str) -> Price | None:
        """A model's price: its own row, else its route's; None when the table has neither."""
        return self.models.get(model) or self.models.get(model.partition(":")[0] + ":*")


class Cost(Model):
    """What one reply cost, exactly; None and why where that is not known."""

    pico_usd: int | None
    reason: str = ""


def no_price(price: Price | None) -> str:
    """Why no number of tokens has a known cost; empty where one has."""
    if price is None:
        return "the model is not in pricing.json"
    return "" if price.rates else f"{price.segment} has no price per token"


def cost(usage: TokenUsage | None, price: Price | None) -> Cost:
    """Price one reply.

    Returns:
        Exact pico-USD; None with a reason for an unknown usage, an unknown model, a route without a price, or
        tokens that the table has no price for.
    """
    rates = price.rates if price else None
    if price is None or rates is None:
        return Cost(pico_usd=None, reason=no_price(price))
    if usage is None:
        return Cost(pico_usd=None, reason="the provider did not say what it used")
    if usage.unpriced:
        return Cost(pico_usd=None, reason=usage.unpriced)
    if price.long_prompt is not None and usage.input > price.long_prompt.above:
        rates = price.long_prompt
    read, written = usage.cache_read or 0, usage.cache_write or 0
    for tokens, rate, what in ((read, rates.cache_read, "reads"), (written, rates.cache_write, "writes")):
        if tokens and rate is None:
            return Cost(pico_usd=None, reason=f"pricing.json has no price for cache {what}")
    return Cost(
        pico_usd=_pico(rates.input) * (usage.input - read - written)
        + _pico(rates.cache_read) * read
        + _pico(rates.cache_write) * written
        + _pico(rates.output) * usage.output
    )


def worst_rates(price: Price) -> tuple[int, int] | None:
    """Pico-USD that an input and an output token can cost at most; None without a price."""
    if price.rates is None:
        return None
    tiers = [price.rates, *([price.long_prompt] if price.long_prompt else [])]
    inputs = [rate for tier in tiers for rate in (tier.input, tier.cache_read, tier.cache_write)]
    return max(map(_pico, inputs)), max(_pico(tier.output) for tier in tiers)


def micro_usd(pico_usd: int) -> int:
    """Whole micro-USD, rounded up: a cost is never understated."""
    return -(-pico_usd // 10**6)


def _pico(rate: Decimal | None) -> int:
    """USD per million tokens → pico-USD per token."""
    return int((rate or Decimal(0)) * 10**6)
