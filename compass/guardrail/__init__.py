"""The guardrail: which shell commands nobody should run unseen, and why.

``danger_reason(command)`` answers with a sentence or None; ``findings(command)`` with rule ids and spans.
"""

from collections.abc import Sequence

from compass.guardrail import machine as _machine
from compass.guardrail import paths
from compass.guardrail.large import condense
from compass.guardrail.rules import HANDLERS
from compass.guardrail.rules.branches import PROTECTED, is_protected
from compass.guardrail.rules.shells import fallback
from compass.guardrail.rules.writes import judge
from compass.guardrail.words import SECRET, UNKNOWN, sanitise
from compass.scoring import Finding

__all__ = ["PROTECTED", "danger_reason", "findings"]


def _reading(path: str) -> str:
    return SECRET + UNKNOWN if paths.secret(path) else UNKNOWN


def findings(command: str, branch: str | None = None, protected: Sequence[str] = PROTECTED) -> list[Finding]:
    """Every reason not to run ``command``, in the order of their spans; empty when there is none.

    ``branch`` is the branch checked out where the command would run, None when that is not known.
    ``protected``
    are branch names or globs that nobody rewrites. Spans are code-point offsets into ``command``. Text that
    is too
    large or nested to be judged is itself a finding (family ``limits``).
    """
    patterns = tuple(protected)
    judged = _machine.Machine(HANDLERS, judge, _reading, fallback, lambda name: is_protected(name, patterns))
    state = judged.state(branch)
    texts, overflow = condense(sanitise(command))
    try:
        for text in texts:
            judged.run(text, state, span=None if len(texts) == 1 else (0, len(command)))
    except (_machine.OverBudgetError, RecursionError) as error:
        overflow = overflow or f"cannot be judged: {error}"
    if overflow:
        judged.add(Finding("limits.size", "limits", 0, len(command), overflow))
    return sorted(judged.findings, key=lambda finding: (finding.start, finding.end))


def danger_reason(
    command: str, branch: str | None = None, protected: Sequence[str] = PROTECTED
) -> str | None:
    """Why ``command`` must not run unseen, as one sentence; None when no rule objects. See ``findings``."""
    found = findings(command, branch, protected)
    return found[0].why if found else None
