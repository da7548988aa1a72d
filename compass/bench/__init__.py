"""Scoring: each detector against its corpus, with floors that gate, intervals, and every failing case by
name."""

from compass.bench.guardrail import evaluate as guardrail
from compass.bench.router import evaluate as router

__all__ = ["guardrail", "router"]
