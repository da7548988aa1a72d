"""The verdict of a run whose evidence no grader survives."""

from grader.evidence import Bundle
from schema.text import plain
from schema.verdict import AssertionOutcome, Category, Verdict

LINE = 480
"""Characters of the reason."""


def unjudged(bundle: Bundle, reason: str) -> Verdict:
    """Every assertion failed: what cannot be judged within the grader's limits is over budget.

    ``reason`` may hold a grader's last words, which may quote the evidence.
    """
    reason = plain(reason)[:LINE]
    outcomes = [
        AssertionOutcome(
            id=assertion.id,
            type=assertion.type,
            required=assertion.required,
            weight=assertion.weight,
            passed=False,
            reason=f"not judged: {reason}",
        )
        for assertion in bundle.assertions
    ]
    return Verdict(
        verdict="fail",
        category=Category.EVIDENCE_OVER_BUDGET,
        first_failure=next(outcome.id for outcome in outcomes if outcome.required),
        credit=0,
        exit_path=None,
        assertions=outcomes,
        diagnostics=[reason],
    )
