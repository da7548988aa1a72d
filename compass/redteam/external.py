"""``compass redteam --external FILE``: the detector on somebody else's labelled rows, without floors."""

from pathlib import Path

from compass.corpus import CorpusError
from compass.redteam.detector import injection_findings
from compass.scoring import CaseResult, Report

_LABELS = {"inject": True, "safe": False, "1": True, "0": False, "true": True, "false": False}


def evaluate(path: Path) -> Report:
    """Rows ``label <TAB> text`` (inject or safe, 1 or 0) through ``injection_findings``.

    No floor applies: a foreign set says how far the rules reach, not whether they broke. Raises CorpusError
    for a row of another shape and OSError when the file cannot be read.
    """
    results = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        label, tab, text = line.rstrip("\r").partition("\t")
        if not tab or label.strip().lower() not in _LABELS:
            raise CorpusError(f"{path}:{number}: expected 'inject' or 'safe', a tab, and a text")
        rules = sorted({finding.rule for finding in injection_findings(text)})
        case = f"{path.name}:{number}"
        expected = _LABELS[label.strip().lower()]
        results.append(
            CaseResult(case, "external", "external", expected, bool(rules), text, ", ".join(rules))
        )
    return Report("redteam-external", tuple(results), ())
