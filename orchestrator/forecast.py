"""What a plan may take before it is started: bounds from the tasks' caps, expectations from records.

A bound is of all attempts that a run may get, an expectation of one: a fault of engine or provider grants
another, with all its caps anew. A start that we end ourselves takes no attempt and is in neither. Costs are
summed within one segment only: segments do not add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import groupby
from statistics import fmean

from orchestrator.models import Route
from orchestrator.starts import ATTEMPTS
from schema.base import Model
from schema.pricing import PICO, Price, Segment, no_price, worst_rates
from schema.record import Record
from schema.run import Plan, RunId, RunSpec
from schema.task import Caps

UNBOUNDED = "unbounded, the task caps neither tokens nor USD"
NO_RECORDS = "no records yet"
SEGMENTS = "the models' segments differ, and do not add up"
MAX_USD = "--max-usd"

_NEAREST: tuple[tuple[str, Callable[[RunId], Hashable]], ...] = (
    ("of the same task", lambda run: (run.model, run.agent, run.condition, run.task)),
    ("of other tasks", lambda run: (run.model, run.agent, run.condition)),
    ("with other agents or conditions", lambda run: run.model),
)
"""Which records foretell a run, the best first."""


class Estimate(Model):
    """USD, and what they rest on; null with the reason where they are not known, never 0."""

    usd: float | None
    basis: str

    def __str__(self) -> str:
        return f"not known: {self.basis}" if self.usd is None else f"{self.usd:.4f} USD by {self.basis}"


class Expected(Estimate):
    """What earlier runs let expect."""

    input_tokens: float | None = None
    output_tokens: float | None = None

    def __str__(self) -> str:
        if self.input_tokens is None or self.output_tokens is None:
            return super().__str__()
        return f"{super().__str__()}, in all {self.input_tokens:.0f} tokens in, {self.output_tokens:.0f} out"


class Forecast(Model):
    """What the runs of one model, agent and condition may cost together."""

    model: str
    agent: str
    condition: str
    segment: Segment
    runs: int
    worst: Estimate
    expected: Expected


def worst_case(plan: Plan) -> dict[str, float | int]:
    """Upper bounds over the whole plan: runs, attempts at each, model replies, seconds of wall clock."""
    return {
        "runs": len(plan.specs),
        "attempts": ATTEMPTS,
        "turns": ATTEMPTS * sum(spec.caps.turns for spec in plan.specs),
        "wallClockSec": ATTEMPTS * sum(spec.caps.wall_clock_sec for spec in plan.specs),
    }


def forecast(
    plan: Plan, route: Callable[[str], Route], records: Sequence[Record], max_usd: float | None = None
) -> list[Forecast]:
    """A forecast for each model, agent and condition of a plan, in the plan's order.

    Args:
        route: of a model id.
        records: of any runs.
        max_usd: the budget of the whole plan, and so of each part.
    """

    def key(spec: RunSpec) -> tuple[str, str, str]:
        return spec.run.model, spec.run.agent, spec.run.condition

    out = []
    for (model, agent, condition), group in groupby(plan.specs, key):
        specs, way = list(group), route(model)
        worsts = [worst(spec.caps, way.price) for spec in specs]
        means = [expected(spec.run, way.price, records) for spec in specs]
        out.append(
            Forecast(
                model=model,
                agent=agent,
                condition=condition,
                segment=way.segment,
                runs=len(specs),
                worst=_within(_together(worsts), max_usd),
                expected=Expected(
                    usd=_sum(each.usd for each in means),
                    basis=_bases(means),
                    input_tokens=_sum(each.input_tokens for each in means),
                    output_tokens=_sum(each.output_tokens for each in means),
                ),
            )
        )
    return out


def whole(forecasts: Sequence[Forecast], max_usd: float | None = None) -> Estimate:
    """The most that all runs of a plan can cost."""
    if len({each.segment for each in forecasts}) > 1:
        return _within(Estimate(usd=None, basis=SEGMENTS), max_usd)
    worsts = [each.worst for each in forecasts]
    known = _sum(each.usd for each in worsts)
    bases = dict.fromkeys(each.basis for each in worsts if known is not None or each.usd is None)
    return _within(Estimate(usd=known, basis="; ".join(bases)), max_usd)


def worst(caps: Caps, price: Price | None) -> Estimate:
    """The most that one run can cost: what its caps let through in every attempt, at the dearest rates."""
    rates = worst_rates(price) if price else None
    if rates is None:
        return Estimate(usd=None, basis=no_price(price))
    bounds = [] if caps.usd is None else [(caps.usd, "the cap on USD")]
    if caps.tokens is not None:
        bounds.append((caps.tokens * max(rates) / PICO, "the cap on tokens, each at the dearest rate"))
    if not bounds:
        return Estimate(usd=None, basis=UNBOUNDED)
    usd, basis = min(bounds)
    return Estimate(usd=ATTEMPTS * usd, basis=f"{basis}, {ATTEMPTS} attempts a run")


def expected(run: RunId, price: Price | None, records: Iterable[Record]) -> Expected:
    """What a run costs and uses on average, by the records nearest to it that have a usage."""
    counted = [(record, record.facts.usage) for record in records if record.facts.usage is not None]
    for where, key in _NEAREST:
        found = [(record, usage) for record, usage in counted if key(record.run) == key(run)]
        if found:
            usd = _mean(record.cost.usd for record, _ in found)
            basis = f"{len(found)} record{'s' * (len(found) > 1)} {where}"
            if usd is None:
                basis = f"{no_price(price) or 'no record says what it cost'}; tokens by {basis}"
            return Expected(
                usd=usd,
                basis=basis,
                input_tokens=_mean(usage.input_tokens for _, usage in found),
                output_tokens=_mean(usage.output_tokens for _, usage in found),
            )
    return Expected(usd=None, basis="; ".join(filter(None, (no_price(price), NO_RECORDS))))


def _together(estimates: Sequence[Estimate]) -> Estimate:
    return Estimate(usd=_sum(each.usd for each in estimates), basis=_bases(estimates))


def _within(estimate: Estimate, max_usd: float | None) -> Estimate:
    """No more than the budget, which ends a plan whatever its caps say."""
    if max_usd is None or (estimate.usd is not None and estimate.usd <= max_usd):
        return estimate
    return Estimate(usd=max_usd, basis=MAX_USD)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum; unknown as soon as one is."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _bases(estimates: Sequence[Estimate]) -> str:
    """On what a sum rests; where it is unknown, only why."""
    unknown = [each for each in estimates if each.usd is None]
    counts = Counter(each.basis for each in unknown or estimates)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{basis} ({runs} runs)" for basis, runs in counts.items())
