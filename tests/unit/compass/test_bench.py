"""Scoring: intervals, corpora, floors, and other people's tools."""

import shlex
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass.bench import guardrail, router, text, tool
from compass.corpus import FOLDER, CorpusError, rows
from compass.scoring import CaseResult, Gate, Proportion, Report, Score, wilson


def case(expected: bool, got: bool, family: str = "a") -> CaseResult:
    return CaseResult("x:1", family, "base", expected, got, "text")


def test_wilson_matches_published_values() -> None:
    # Newcombe (1998), table I, method 3: 81/263, 15/148, 0/20, 1/29.
    for hits, total, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        assert wilson(hits, total) == pytest.approx((low, high), abs=0.0001)
    assert wilson(0, 0) == (0, 1)


@given(st.integers(0, 500), st.integers(1, 500))
def test_wilson_holds_the_observed_share(hits: int, total: int) -> None:
    hits = min(hits, total)
    low, high = wilson(hits, total)
    assert 0 <= low <= hits / total <= high <= 1


def test_score_counts_the_four_cells() -> None:
    score = Score.of(
        [case(True, True), case(True, False), case(False, True), case(False, False), case(True, True)]
    )
    assert (score.tp, score.fn, score.fp, score.tn) == (2, 1, 1, 1)
    assert score.precision.value == pytest.approx(2 / 3)
    assert score.recall.value == pytest.approx(2 / 3)


def test_nothing_observed_reaches_no_floor() -> None:
    assert not Gate("precision", 0.0, Proportion(0, 0)).ok
    assert Proportion(0, 0).value is None
    assert text.percent(Proportion(0, 0)) == "none observed"
    assert Gate("recall", 0.95, Proportion(19, 20)).ok
    assert not Gate("recall", 0.951, Proportion(19, 20)).ok


def test_guardrail_reaches_its_floors() -> None:
    report = guardrail.evaluate()
    assert report.ok
    assert {gate.name for gate in report.gates} == {"precision", "recall"}


def test_router_reaches_its_floors() -> None:
    assert router.evaluate().ok


def test_one_false_alarm_or_many_misses_fail_the_gate() -> None:
    everything = guardrail.evaluate(judge=lambda _command, _branch: (True, ""))
    nothing = guardrail.evaluate(judge=lambda _command, _branch: (False, ""))
    assert not everything.ok and not nothing.ok
    assert len(everything.failures) == sum(not c.expected for c in everything.cases)
    assert any("false alarm" in line for line in text.detector(everything))
    assert any("missed" in line for line in text.detector(nothing))


def test_guardrail_corpus_is_large_and_balanced() -> None:
    cases = guardrail.cases()
    assert len(cases) >= 240
    assert sum(not block for _, block, _, _ in cases) >= 0.45 * len(cases)
    assert len({(command, branch) for _, _, command, branch in cases}) == len(cases)
    labels = {(row.family, block) for row, block, _, _ in cases}
    for family in {row.family for row, *_ in cases}:
        assert {(family, True), (family, False)} <= labels, family
    splits = Counter(row.split for row, *_ in cases)
    assert min(splits["base"], splits["holdout"]) > 200


def test_every_row_has_a_neighbour_of_the_other_label() -> None:
    cases = guardrail.cases()
    for at, (row, block, _, _) in enumerate(cases):
        near = cases[max(0, at - 3) : at + 4]
        assert any(
            other.family == row.family and label != block for other, label, _, _ in near
        ) or row.family in (
            "data",
            "permissions",
            "force-push",
            "hard-reset",
            "exfiltration",
        ), row.case


def test_corpus_format(tmp_path: Path) -> None:
    corpus = tmp_path / "c.tsv"
    corpus.write_text("# note\nallow\ta␤b\nblock\tc\tmain\n\nallow\td\n", encoding="utf-8")
    (tmp_path / "c.index.tsv").write_text("\nfam\tholdout\nfam\tbase\tde\n", encoding="utf-8")
    found = list(rows(corpus, range(2, 4)))
    assert [row.columns for row in found] == [("allow", "a\nb"), ("block", "c", "main"), ("allow", "d")]
    assert [(row.family, row.split) for row in found] == [
        ("fam", "holdout"),
        ("fam", "base"),
        ("contributed", "base"),
    ]
    assert found[1].tags == ("de",)
    assert found[0].case == "c.tsv:2"


def test_corpus_errors_name_the_line(tmp_path: Path) -> None:
    corpus = tmp_path / "c.tsv"
    corpus.write_text("allow\tx\nallow\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"c\.tsv:2"):
        list(rows(corpus, range(2, 4)))
    corpus.write_text("perhaps\tx\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"c\.tsv:1.*perhaps"):
        guardrail.evaluate(corpus)
    corpus.write_text("base\tgpt\tx\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="gpt"):
        router.evaluate(corpus)
    corpus.write_text("allow\tx\n", encoding="utf-8")
    (tmp_path / "c.index.tsv").write_text("a\tbase\na\tbase\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="index"):
        list(rows(corpus, range(2, 4)))


def test_corpora_keep_the_seeds_columns() -> None:
    for line in (FOLDER / "guardrail.tsv").read_text(encoding="utf-8").splitlines():
        assert len(line.split("\t")) in (2, 3)
        assert line.split("\t")[0] in ("block", "allow")
    for line in (FOLDER / "router.tsv").read_text(encoding="utf-8").splitlines():
        assert len(line.split("\t")) == 3


GREP = """
import json, sys
for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps({"block": "rm -rf" in case["text"], "reason": "grep"}), flush=True)
"""


def scripted(tmp_path: Path, code: str) -> str:
    script = tmp_path / "tool.py"
    script.write_text(code, encoding="utf-8")
    return shlex.join([sys.executable, str(script)])


def test_another_tool_is_scored_on_the_same_rows(tmp_path: Path) -> None:
    report = tool.evaluate(scripted(tmp_path, GREP), name="grep")
    assert not report.ok
    assert report.unanswered == 0
    assert len(report.report.cases) == len(guardrail.cases())
    block = report.block().splitlines()
    assert block[0] == "tool: grep"
    assert block[1] == "corpus: compass/corpora/guardrail.tsv"
    assert [line.split(":")[0] for line in block] == ["tool", "corpus", "commit", "precision", "scorer"]
    assert report.to_json()["corpus_sha256"] == report.digest


@pytest.mark.parametrize("code", ["", "import sys; sys.exit(3)"])
def test_a_tool_that_answers_nothing_has_no_score(tmp_path: Path, code: str) -> None:
    with pytest.raises(tool.ToolError, match="answers nothing"):
        tool.evaluate(scripted(tmp_path, code))


@pytest.mark.parametrize("answer", ["no", "[]", '{"block": "yes"}'])
def test_an_answer_that_cannot_be_read_is_an_error(tmp_path: Path, answer: str) -> None:
    code = f"import sys\nfor line in sys.stdin: print({answer!r}, flush=True)"
    with pytest.raises(tool.ToolError, match=r"guardrail\.tsv:1"):
        tool.evaluate(scripted(tmp_path, code))


def test_a_tool_that_cannot_start_is_an_error() -> None:
    with pytest.raises(tool.ToolError, match="cannot start"):
        tool.evaluate("/nonexistent/tool")
    with pytest.raises(tool.ToolError, match="empty"):
        tool.evaluate("  ")


def test_a_tool_that_dies_on_the_way_fails_but_is_scored(tmp_path: Path) -> None:
    code = GREP.replace("    print", "    if '/usr/lib' in line: sys.exit(1)\n    print")
    report = tool.evaluate(scripted(tmp_path, code))
    assert report.unanswered > 0
    assert not report.ok
    assert any("got no answer" in line for line in text.tool(report))


def test_a_tool_that_closes_its_output_is_waited_for_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its input still takes lines: a naive scorer waits the whole time limit for each of them."""
    monkeypatch.setattr(tool, "NEXT", 3600.0)
    code = GREP.replace("    print", "    if 'branch' in line and n > 9: os.close(1)\n    n += 1\n    print")
    code = code.replace("import json, sys", "import json, os, sys\nn = 0").replace(
        "print(", "n > 10 or print("
    )
    report = tool.evaluate(scripted(tmp_path, code))
    unseen = report.report.unseen
    assert unseen and report.unanswered == len(report.report.cases) - 10 + unseen.total


def test_report_is_plain_data() -> None:
    report = Report("x", (case(True, False),), (Gate("recall", 0.9, Proportion(0, 1)),), {"more": 1})
    data = report.to_json()
    assert data["ok"] is False and data["more"] == 1
    assert data["failures"][0]["case"] == "x:1"
