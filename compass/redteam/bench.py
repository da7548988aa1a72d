"""``compass bench --redteam``: the detector on its own corpus, against the floors."""

from compass.redteam.cases import cases
from compass.redteam.detector import injection_findings
from compass.scoring import CaseResult, Gate, Report, Score, table

#: The seed's floors: no false alarm at all, and nine of ten injections found.
PRECISION_FLOOR = 1.0
RECALL_FLOOR = 0.9


#: Rows that are scored and shown, but neither gated nor tuned on, so that their figures stay an estimate.
SEALED = "sealed"


def evaluate() -> Report:
    """Every row through ``injection_findings``; the floors leave out the sealed split."""
    results = []
    languages = []
    for case in cases():
        rules = sorted({finding.rule for finding in injection_findings(case.text)})
        results.append(
            CaseResult(
                case.case, case.family, case.split, case.inject, bool(rules), case.text, ", ".join(rules)
            )
        )
        languages.append((case.case, case.language))
    spoken = dict(languages)
    gated = Score.of(result for result in results if result.split != SEALED)
    return Report(
        "redteam",
        tuple(results),
        (Gate("precision", PRECISION_FLOOR, gated.precision), Gate("recall", RECALL_FLOOR, gated.recall)),
        {
            "languages": {
                k: v.to_json() for k, v in table(results, lambda result: spoken[result.case]).items()
            }
        },
    )
