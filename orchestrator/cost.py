"""What a run cost, its lost attempts too; null with a reason where a part is not known, never 0."""

from __future__ import annotations

from orchestrator.access import Way
from orchestrator.job import Job
from schema.record import Cost
from schema.run import RunFacts


def cost(job: Job, facts: RunFacts) -> Cost:
    """The cost that a record states (Standard §8)."""
    if job.way is None:
        return Cost(usd=None, segment=job.provider.segment, note="no model was called")
    version, segment = job.way.route.table_version, job.way.route.segment
    # Without a usage no attempt is judged: what was spent is what was lost.
    spent = facts.usage.usd if facts.usage else 0.0
    if spent is not None and facts.lost_usd is not None and job.way.route.price and job.way.route.price.rates:
        return Cost(usd=round(spent + facts.lost_usd, 6), table_version=version, segment=segment)
    return Cost(usd=None, table_version=version, segment=segment, note=_unknown(job.way, facts))


def _unknown(found: Way, facts: RunFacts) -> str:
    if found.route.price is None:
        return f"{found.route.model} is not in the price table"
    if found.route.price.rates is None:
        return f"no price per token ({found.route.segment})"
    if facts.lost_usd is None:
        return "what an attempt cost that came to nothing is unknown"
    if facts.usage is not None and not facts.usage.replies:
        return "no model reply"
    return "the usage of a reply, or of an attempt that broke, is unknown"
