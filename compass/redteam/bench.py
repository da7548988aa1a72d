"""``compass bench --redteam``: the detector on its own corpus, against the floors."""

from compass.redteam.cases import cases
from compass.redteam.detector import injection_findings
from compass.scoring import CaseResult, Gate, Report, Score, table

#: The seed's floors: no false alarm at all, and nine of ten injections found.
PRECISION_FLOOR = 1.0
RECALL_FLOOR = 0.9


def evaluate() -> Report:
    """Every row, text and programmatic, through ``injection_findings``."""
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
    score = Score.of(results)
    return Report(
        "redteam",
        tuple(results),
        (Gate("precision", PRECISION_FLOOR, score.precision), Gate("recall", RECALL_FLOOR, score.recall)),
        {
            "languages": {
                k: v.to_json() for k, v in table(results, lambda result: spoken[result.case]).items()
            }
        },
    )
