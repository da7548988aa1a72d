"""``compass bench --redteam``: the detector on its own corpus, against the floors."""

from collections.abc import Sequence

from compass.redteam.cases import UNSEEN, Case, cases, file_cases
from compass.redteam.detector import injection_findings
from compass.scoring import CaseResult, Gate, Report, Score, table

#: The seed's floors: no false alarm at all, and nine of ten injections found.
PRECISION_FLOOR = 1.0
RECALL_FLOOR = 0.9


def evaluate() -> Report:
    """Every row through ``injection_findings``; the floors are over all of them but the unseen ones."""
    rows = list(cases())
    results = tuple(map(_result, rows))
    spoken = {case.case: case.language for case in rows}
    return Report(
        "redteam",
        results,
        gates(results),
        {
            "languages": {
                k: v.to_json() for k, v in table(results, lambda result: spoken[result.case]).items()
            }
        },
        Score.of(map(_result, file_cases(UNSEEN))),
    )


def gates(results: Sequence[CaseResult]) -> tuple[Gate, ...]:
    """The seed's floors on ``results``."""
    score = Score.of(results)
    return Gate("precision", PRECISION_FLOOR, score.precision), Gate("recall", RECALL_FLOOR, score.recall)


def _result(case: Case) -> CaseResult:
    rules = sorted({finding.rule for finding in injection_findings(case.text)})
    return CaseResult(
        case.case, case.family, case.split, case.inject, bool(rules), case.text, ", ".join(rules)
    )
