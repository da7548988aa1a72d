"""Verdicts: strict pass or fail, and why (Standard §5, §6)."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from schema.base import Model
from schema.transcript import ExitPath


class Category(StrEnum):
    """Exactly one for every failed run."""

    TOOL_PROTOCOL = "tool-protocol"
    FILE_REVERT = "file-revert"
    TURN_BUDGET = "turn-budget"
    REPAIR_EXHAUSTED = "repair-exhausted"
    OBLIGATION_OPEN = "obligation-open"
    DRIFT_LEFT = "drift-left"
    CONSTRAINT_VIOLATION = "constraint-violation"
    FALSE_REFUSAL = "false-refusal"
    STALLED = "stalled"
    COMMIT_FAILED = "commit-failed"
    WRONG_TARGET = "wrong-target"
    MISSED_REFUSAL = "missed-refusal"
    WALL_CLOCK = "wall-clock"
    COST_CAP = "cost-cap"
    RESOURCE_CAP = "resource-cap"
    AGENT_CRASHED = "agent-crashed"
    EVIDENCE_TAMPERED = "evidence-tampered"
    EVIDENCE_OVER_BUDGET = "evidence-over-budget"
    SECRET_LEAK = "secret-leak"  # noqa: S105  # a category's name
    PROVIDER_ERROR = "provider-error"
    INFRASTRUCTURE = "infrastructure"


class AssertionOutcome(Model):
    """One assertion, judged."""

    id: str
    type: str
    required: bool
    weight: float
    passed: bool
    reason: str
    """One line: what was found, or why it could not be judged."""
    notes: list[str] = []
    """What a reader should know beside the outcome, such as a count that decided where identity could not."""


class Verdict(Model):
    """The grade of one run. Recomputable offline from its evidence."""

    verdict: Literal["pass", "fail"]
    category: Category | None
    """None iff the verdict is pass."""
    first_failure: str | None
    """Id of the first required assertion that failed, in manifest order."""
    credit: float = Field(ge=0, le=1)
    """Passed weight over all weight; diagnostic only."""
    exit_path: ExitPath | None
    """By the transcript, or ``killed`` by the harness; None when the run left no run-end."""
    assertions: list[AssertionOutcome]
    diagnostics: list[str] = []
    """Facts that do not decide: refused entries, rules in design files that changed, tool-error counts."""
