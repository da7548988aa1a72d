"""The guardrail against its corpus: precision and recall, by family and by split."""

from collections.abc import Callable, Sequence
from pathlib import Path

from compass.corpus import FOLDER, UNSEEN, CorpusError, Row, rows
from compass.guardrail import findings
from compass.scoring import CaseResult, Gate, Report, Score

CORPUS = FOLDER / "guardrail.tsv"
#: The seed's floors: a false alarm is the worse failure, so precision has to be perfect.
PRECISION, RECALL = 1.0, 0.95
LABELS = {"block": True, "allow": False}

#: Command and branch to "stop it" and the reason.
Judge = Callable[[str, str | None], tuple[bool, str]]


def cases(path: Path = CORPUS) -> list[tuple[Row, bool, str, str | None]]:
    """Row, whether it must be blocked, command, branch. Raises CorpusError for an unknown label."""
    found = []
    for row in rows(path, range(2, 4)):
        label, command, *branch = row.columns
        if label not in LABELS:
            raise CorpusError(f"{row.case}: label {label!r}, expected block or allow")
        found.append((row, LABELS[label], command, (branch or [""])[0] or None))
    return found


def own(command: str, branch: str | None) -> tuple[bool, str]:
    """The guardrail's own answer."""
    found = findings(command, branch)
    return bool(found), found[0].rule if found else ""


def evaluate(path: Path = CORPUS, judge: Judge = own) -> Report:
    """Score ``judge`` on the corpus at ``path``; the floors are not over the unseen rows."""
    results = judged(path, judge)
    unseen = Score.of(judged(UNSEEN / CORPUS.name, judge))
    return Report("guardrail", tuple(results), gates(results), unseen=unseen)


def judged(path: Path, judge: Judge) -> list[CaseResult]:
    """Every row of ``path`` put to ``judge``. Raises CorpusError."""
    results = []
    for row, block, command, branch in cases(path):
        got, detail = judge(command, branch)
        results.append(CaseResult(row.case, row.family, row.split, block, got, command, detail))
    return results


def gates(results: Sequence[CaseResult]) -> tuple[Gate, ...]:
    """The seed's floors on ``results``."""
    score = Score.of(results)
    return Gate("precision", PRECISION, score.precision), Gate("recall", RECALL, score.recall)
