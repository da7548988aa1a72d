"""Grade one run: evidence in, verdict out. No model, no network, no clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from grader.conduct import diagnose
from grader.diff import printable
from grader.evidence import Bundle
from grader.kicad.errors import Unjudgeable
from grader.scoring import score, unjudgeable
from grader.taxonomy import tool_errors
from grader.transcript import (
    Transcript,
    failed_over,
    forged_replies,
    mismatches,
    read_transcript,
    resolve_exit_path,
)
from grader.vocabulary import context as vocabulary
from grader.vocabulary.context import Context, NewViolations, Outcome, failed
from grader.vocabulary.registry import judge
from schema.assertions import Assertion
from schema.fixture import BaselineReport, Violation
from schema.paths import decode_path
from schema.verdict import AssertionOutcome, Verdict

if TYPE_CHECKING:
    from grader.kicad.cli import KicadCli

LISTED = 20
"""How many lines of one kind the diagnostics hold."""
LINE = 500
"""Characters of one line of a verdict: a reason may quote what an agent wrote."""


class GradedDesign(vocabulary.Design, Protocol):
    """A design, and what grading asks of it beside the vocabulary."""

    @property
    def escapes(self) -> list[str]: ...
    @property
    def rule_changes(self) -> list[str]: ...


def grade(bundle: Bundle, cli: KicadCli) -> Verdict:
    """The verdict of one run.

    Total: no evidence, however damaged or hostile, makes it raise.

    Raises:
        ToolUnavailable: kicad-cli itself does not run here.
    """
    from grader.kicad.design import Design
    from grader.kicad.violations import new_violations

    end, baseline = (
        Design(tree, artifacts=bundle.fixture.artifacts, pristine=bundle.pristine, cli=cli)
        for tree in (bundle.end, bundle.baseline)
    )
    return grade_designs(bundle, end, baseline, major=cli.major, new_violations=new_violations)


def grade_designs(
    bundle: Bundle,
    end: GradedDesign,
    baseline: GradedDesign,
    *,
    major: str,
    new_violations: NewViolations,
) -> Verdict:
    """:func:`grade` over given readers of the two trees; ``major`` is kicad-cli's major version."""
    transcript = read_transcript(bundle.agent, bundle.task.mode, baseline=bundle.baseline, end=bundle.end)
    exit_path = resolve_exit_path(bundle.facts, transcript, bundle.agent, bundle.task.mode)
    tampering = list(_tampering(bundle, transcript, end))
    lost = unjudgeable(bundle.facts, tampering, transcript.too_large)
    context = Context(
        bundle=bundle,
        transcript=transcript,
        exit_path=exit_path,
        design=end,
        baseline_design=baseline,
        new_violations=new_violations,
        erc_baseline=_recorded(bundle.erc_baseline, major),
        drc_baseline=_recorded(bundle.drc_baseline, major),
    )
    judged = [failed(lost) if lost else judge(assertion, context) for assertion in bundle.assertions]
    errors = tool_errors(transcript.data("tool"))
    diagnostics = list(_diagnostics(bundle, transcript, tampering))
    diagnostics += [f"{count} tool errors of class {kind}" for kind, count in sorted(errors.items())]
    if not lost:
        diagnostics += _rule_changes(end, baseline)
    return score(
        bundle.facts,
        bundle.task.expected_outcome,
        exit_path,
        [_outcome(assertion, outcome) for assertion, outcome in zip(bundle.assertions, judged, strict=True)],
        errors,
        tampered=bool(tampering),
        too_large=bool(transcript.too_large),
        diagnostics=[line(text) for text in diagnostics],
    )


def _recorded(report: BaselineReport, major: str) -> Sequence[Violation] | None:
    return report.kicad.get(major)


def _tampering(bundle: Bundle, transcript: Transcript, end: GradedDesign) -> Iterator[str]:
    """What an honest run cannot have left, one line each: the harness's findings, then ours."""
    forged = forged_replies(transcript, bundle.facts, bundle.agent)
    for tamper in (*bundle.facts.tampering, *transcript.tampering, *([forged] if forged else [])):
        yield f"{tamper.kind}: {tamper.detail}" if tamper.detail else tamper.kind
    if bundle.facts.evidence == "kept":
        yield from (f"path leaves the tree: {escape}" for escape in end.escapes)


def _diagnostics(bundle: Bundle, transcript: Transcript, tampering: Sequence[str]) -> Iterator[str]:
    """Facts that do not decide by themselves, for readers of the record."""
    facts = bundle.facts
    yield from (f"tampering: {text}" for text in tampering[:LISTED])
    yield from transcript.notes[:LISTED]
    yield from islice(diagnose(transcript), LISTED)
    yield from mismatches(transcript, facts)
    if failed_over(transcript):
        yield "not comparable: the agent went over to another provider"
    if facts.oom_killed:
        yield "the engine saw a process run out of memory"
    if facts.volume_full:
        yield "the workspace volume was full"
    if facts.provider_fault is not None:
        yield f"provider fault: {facts.provider_fault}"
    if facts.refused_count:
        yield f"{facts.refused_count} entries of the workspace were not kept"
    for entry in facts.refused[:LISTED]:
        yield f"not kept: {printable(decode_path(entry.path))} ({entry.reason})"


def _rule_changes(end: GradedDesign, baseline: GradedDesign) -> list[str]:
    """Rules in design files that the run changed; what the set-up had changed before it is none of it."""
    try:
        changes = end.rule_changes
        known = set(baseline.rule_changes) if changes else set()
    except Unjudgeable as error:
        return [f"rules in design files could not be compared: {error}"]
    changes = [change for change in changes if change not in known]
    more = [f"{len(changes) - LISTED} more rule changes"] if len(changes) > LISTED else []
    return [f"rule changed in a design file: {change}" for change in changes[:LISTED]] + more


def _outcome(assertion: Assertion, outcome: Outcome) -> AssertionOutcome:
    return AssertionOutcome(
        id=assertion.id,
        type=assertion.type,
        required=assertion.required,
        weight=assertion.weight,
        passed=outcome.passed,
        reason=line(outcome.reason),
        notes=[line(note) for note in outcome.notes],
    )


def line(text: str) -> str:
    """A text as one bounded line that JSON and a terminal can hold, whatever an agent wrote into it."""
    clean = text[: LINE * 2].encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(c if c.isprintable() else " " for c in clean)[:LINE].strip()
