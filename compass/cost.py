"""What routing costs beside always taking the strongest tier: the seed's formula on dated, overridable
prices.

Cost of a task = ``price_in × tok_in / 1e6 + price_out × tok_out / 1e6``; savings = 100 × (all-strongest −
routed) /
all-strongest. Prices come from a ``pricing.json`` (the benchmark's own table, ``schema.pricing.Pricing``) or
from the
dated tables in ``compass/data/prices.json``; environment variables and flags override single numbers. Where
every
tier has the same ratio of output to input price, savings do not depend on the token profile at all.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compass.router import TIERS, Tier
from schema.errors import UsageError

_DATA = Path(__file__).parent / "data" / "prices.json"
#: The benchmark's own price table, where the package lies in its repository.
_REPOSITORY = Path(__file__).parent.parent / "pricing.json"


class PriceError(UsageError):
    """A price table or an override cannot be used; the message says which number and where."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Table:
    """Prices by tier, with the date and source that make a number reproducible."""

    version: str
    date: str
    source: str
    prices: Mapping[Tier, Price]
    overridden: tuple[str, ...] = ()

    @property
    def profile_free(self) -> bool:
        """Whether all tiers share one ratio of output to input price, so that savings ignore the profile."""
        ratios = [price.output / price.input for price in self.prices.values() if price.input]
        return len(ratios) == len(self.prices) and max(ratios) - min(ratios) < 1e-9

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, ready for ``json.dumps``."""
        prices = {tier: {"input": price.input, "output": price.output} for tier, price in self.prices.items()}
        return {
            "table": self.version,
            "date": self.date,
            "source": self.source,
            "usd_per_mtok": prices,
            "overridden": list(self.overridden),
            "savings_independent_of_profile": self.profile_free,
        }


@dataclass(frozen=True, slots=True)
class Profile:
    """Tokens assumed for each task; the seed's is a short task description arriving at the router."""

    tokens_in: int = 2_000
    tokens_out: int = 500

    def cost(self, price: Price) -> float:
        """USD for one task."""
        return price.input * self.tokens_in / 1e6 + price.output * self.tokens_out / 1e6


def load(name: str | None = None, file: Path | None = None) -> Table:
    """The table called ``name``, or read from ``file`` (a ``pricing.json``), or the default.

    The default is the repository's ``pricing.json`` where it prices all three tiers, else the shipped table.
    Raises PriceError for an unknown name, for a file that cannot be read, and for one given by name that does
    not price every tier.
    """
    shipped = _read(_DATA)
    if file is not None:
        return _table(_read(file), shipped["tiers"], str(file))
    if name is None and _REPOSITORY.exists():
        own = _read(_REPOSITORY)
        if not _unpriced(own, shipped["tiers"]):
            return _table(own, shipped["tiers"], _REPOSITORY.name)
    chosen = name or shipped["default"]
    if chosen not in shipped["tables"]:
        raise PriceError(f"no price table {chosen!r}; there are {', '.join(sorted(shipped['tables']))}")
    return _table(shipped["tables"][chosen], shipped["tiers"], _DATA.name)


def _read(path: Path) -> dict[str, Any]:
    """The object in ``path``; fields that this module does not know are left alone."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PriceError(f"cannot be read: {error}", about=str(path), fix="give a pricing.json") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("models", {}), dict):
        raise PriceError("is no object with models", about=str(path), fix="give a pricing.json")
    if raw.get("currency", "USD") != "USD":
        raise PriceError(f"prices are in {raw['currency']}", about=str(path), fix="give them in USD")
    return raw


def _unpriced(raw: Mapping[str, Any], ids: Mapping[Tier, str]) -> list[Tier]:
    return [tier for tier in TIERS if _entry(raw.get("models", {}), tier, ids[tier]) is None]


def _table(raw: Mapping[str, Any], ids: Mapping[Tier, str], where: str) -> Table:
    prices: dict[Tier, Price] = {}
    for tier in TIERS:
        entry = _entry(raw.get("models", {}), tier, ids[tier])
        if entry is None:
            raise PriceError(f"{where} has no price for {tier} ({ids[tier]})")
        prices[tier] = Price(
            _number(f"{where}: {tier} input", str(entry["input"])),
            _number(f"{where}: {tier} output", str(entry["output"])),
        )
    return Table(
        str(raw.get("tableVersion", where)),
        str(raw.get("effectiveDate", "")),
        str(raw.get("source", "")),
        prices,
    )


def _entry(models: Mapping[str, Any], tier: Tier, model: str) -> Mapping[str, Any] | None:
    """The tier's own model if it is priced, else the last priced model whose id names the tier.

    ``models`` is keyed like ``schema.agent.Pricing``: ``provider:model``, perhaps with ``@host`` behind.
    """
    priced = {
        key: value
        for key, value in models.items()
        if isinstance(value, dict) and value.get("input") is not None and value.get("output") is not None
    }
    exact = [key for key in priced if key == model or key.endswith((":" + model, "/" + model))]
    named = sorted(key for key in priced if tier in key)
    found = (exact or named)[-1:]
    return priced[found[0]] if found else None


def override(table: Table, environment: Mapping[str, str]) -> Table:
    """Apply ``COMPASS_BENCH_<TIER>_IN`` and ``_OUT``. Raises PriceError for what is not a number of at
    least 0."""
    prices = dict(table.prices)
    used: list[str] = []
    for tier in TIERS:
        for suffix, side in (("IN", "input"), ("OUT", "output")):
            name = f"COMPASS_BENCH_{tier.upper()}_{suffix}"
            if name in environment:
                value = _number(name, environment[name])
                price = prices[tier]
                prices[tier] = (
                    replace(price, input=value) if side == "input" else replace(price, output=value)
                )
                used.append(name)
    return replace(table, prices=prices, overridden=tuple(used))


def profile(environment: Mapping[str, str], tok_in: int | None = None, tok_out: int | None = None) -> Profile:
    """The token profile: a flag before ``COMPASS_BENCH_TOK_IN``/``_OUT`` before the seed's 2,000 and 500."""
    made = Profile()
    given_in = tok_in if tok_in is not None else environment.get("COMPASS_BENCH_TOK_IN")
    given_out = tok_out if tok_out is not None else environment.get("COMPASS_BENCH_TOK_OUT")
    if given_in is not None:
        made = replace(made, tokens_in=int(_number("COMPASS_BENCH_TOK_IN", str(given_in))))
    if given_out is not None:
        made = replace(made, tokens_out=int(_number("COMPASS_BENCH_TOK_OUT", str(given_out))))
    return made


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise PriceError(f"{name}={text!r} is not a number") from None
    if not 0 <= value < 1e12:
        raise PriceError(f"{name}={text!r} is not a number of at least 0")
    return value


@dataclass(frozen=True, slots=True)
class Savings:
    """Totals in USD over a set of tasks, and each policy's savings (%) against always the strongest tier."""

    tasks: int
    routed: float
    oracle: float
    cheapest: float
    strongest: float

    def percent(self, total: float) -> float:
        """Savings of ``total`` against the strongest tier, in per cent; 0 where nothing costs anything."""
        return 100 * (self.strongest - total) / self.strongest if self.strongest else 0.0

    def to_json(self) -> dict[str, Any]:
        """Totals and percentages."""
        return {
            "tasks": self.tasks,
            "usd": {
                "routed": round(self.routed, 6),
                "oracle": round(self.oracle, 6),
                "all_cheapest": round(self.cheapest, 6),
                "all_strongest": round(self.strongest, 6),
            },
            "savings_percent": {
                "routed": round(self.percent(self.routed), 2),
                "oracle": round(self.percent(self.oracle), 2),
                "all_cheapest": round(self.percent(self.cheapest), 2),
            },
        }


def savings(assigned: Sequence[Tier], needed: Sequence[Tier], table: Table, tokens: Profile) -> Savings:
    """Compare an assignment with the oracle (every task to the tier it needs) and the two constant
    policies."""
    each = {tier: tokens.cost(price) for tier, price in table.prices.items()}
    return Savings(
        len(assigned),
        sum(each[tier] for tier in assigned),
        sum(each[tier] for tier in needed),
        each[TIERS[0]] * len(assigned),
        each[TIERS[-1]] * len(assigned),
    )
