"""From judged assertions to a verdict: strict pass or fail, partial credit, one category (Standard §5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from grader.taxonomy import categorise
from schema.run import RunFacts
from schema.task import Outcome
from schema.transcript import ExitPath
from schema.verdict import AssertionOutcome, Category, Verdict


def unjudgeable(facts: RunFacts, tampering: Sequence[str], too_large: str = "") -> str | None:
    """Why nothing of a run can be judged, or None. Then every assertion fails with this reason."""
    if facts.secret is not None or facts.evidence == "secret-leak":
        pattern = f" (pattern {facts.secret.pattern})" if facts.secret else ""
        return f"secret leak{pattern}: no evidence was kept"
    if facts.infrastructure is not None:
        return f"infrastructure: {facts.infrastructure}"
    if tampering:
        return f"evidence tampered: {tampering[0]}"
    if facts.evidence == "over-budget" or too_large:
        return f"evidence over budget: {facts.evidence_detail or too_large or 'nothing was kept'}"
    if facts.evidence == "none":
        return f"no evidence: {facts.evidence_detail or 'nothing was kept'}"
    return None


def score(
    facts: RunFacts,
    expected: Outcome,
    exit_path: ExitPath | None,
    assertions: Sequence[AssertionOutcome],
    errors: Mapping[Category, int],
    *,
    tampered: bool = False,
    too_large: bool = False,
    diagnostics: Sequence[str] = (),
) -> Verdict:
    """The verdict of one run; pure and total.

    It is ``pass`` iff every required assertion passed; else ``fail`` with exactly one category. A run whose
    evidence cannot be judged has only failed assertions (:func:`unjudgeable`).
    """
    failures = [outcome for outcome in assertions if not outcome.passed]
    first = next((outcome.id for outcome in failures if outcome.required), None)
    category = None
    if first is not None:
        kinds = [(outcome.type, outcome.required) for outcome in failures]
        category = categorise(
            facts, expected, exit_path, kinds, errors, tampered=tampered, too_large=too_large
        )
    return Verdict(
        verdict="pass" if first is None else "fail",
        category=category,
        first_failure=first,
        credit=credit(assertions),
        exit_path=exit_path,
        assertions=list(assertions),
        diagnostics=list(diagnostics),
    )


def credit(assertions: Sequence[AssertionOutcome]) -> float:
    """Passed weight over all weight, in [0, 1]; diagnostic only."""
    # Exact, so that neither order nor size of the weights shows in the last digit.
    whole = sum((Fraction(outcome.weight) for outcome in assertions), Fraction())
    part = sum((Fraction(outcome.weight) for outcome in assertions if outcome.passed), Fraction())
    return float(part / whole) if whole else 0.0
