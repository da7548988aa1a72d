"""A whole grade: what cannot be judged fails as a whole, and nothing raises."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.evidence import Entry
from grader.grade import LINE, line
from grader.grade import grade as real_grade
from grader.kicad.cli import KicadCli
from grader.kicad.errors import Unjudgeable
from schema.assertions import Assertion
from schema.verdict import Verdict
from tests.unit.grader.support import (
    TRANSCRIPT,
    FakeDesign,
    assertions,
    bundle,
    event,
    netlist,
    refusal,
    run_end,
    task,
    transcript,
    tree,
    verdict_of,
)

RENAMED = FakeDesign(netlist({"/PDM_DATA": ["MK1.1"]}), frozenset({"PDM_DATA"}))
ITEMS = assertions(
    {"id": "end", "type": "exit_path_in", "args": {"paths": ["done"]}},
    {"id": "net", "type": "net_present", "args": {"net": "PDM_DATA"}, "weight": 2},
    {"id": "spec", "type": "file_unchanged", "args": {"path": "docs/SPEC.md"}, "required": False},
)
FILES = tree({"docs/SPEC.md": "spec"})


def grade(*items: Assertion, design: FakeDesign = RENAMED, **fields: Any) -> Verdict:
    return verdict_of(bundle(*(items or ITEMS), baseline=FILES, **fields), design)


def test_a_run_passes_when_every_required_assertion_does() -> None:
    verdict = grade(end=tree())
    assert (verdict.verdict, verdict.category, verdict.first_failure) == ("pass", None, None)
    assert verdict.credit == 0.75
    assert [outcome.passed for outcome in verdict.assertions] == [True, True, False]


def test_a_run_fails_with_the_first_failed_required_assertion() -> None:
    verdict = grade(design=FakeDesign())
    assert (verdict.verdict, verdict.category, verdict.first_failure) == ("fail", "wrong-target", "net")


@pytest.mark.parametrize(
    ("fields", "category", "words"),
    [
        (
            {"evidence": "secret-leak", "secret": {"pattern": "sk", "pathSha256": "0"}},
            "secret-leak",
            "pattern sk",
        ),
        ({"evidence": "over-budget", "evidence_detail": "50001 entries"}, "evidence-over-budget", "50001"),
        ({"evidence": "none"}, "infrastructure", "no evidence"),
        ({"infrastructure": "engine died"}, "infrastructure", "engine died"),
        ({"tampering": [{"kind": "history", "detail": "rewritten"}]}, "evidence-tampered", "rewritten"),
        ({"log": transcript() + transcript("refused")}, "evidence-tampered", "several-run"),
        ({"log": transcript() + event("tool")}, "evidence-tampered", "events-after-run-end"),
        ({"design": FakeDesign(RENAMED.netlist, escapes=["a.kicad_sch: ../x"])}, "evidence-tampered", "../x"),
    ],
)
def test_what_cannot_be_judged_fails_as_a_whole(fields: dict[str, Any], category: str, words: str) -> None:
    """A naive grader judges what is left, and a run whose evidence is gone or forged may pass."""
    verdict = grade(**fields)
    assert (verdict.verdict, verdict.category, verdict.first_failure) == ("fail", category, "end")
    assert verdict.credit == 0
    assert all(not outcome.passed and words in outcome.reason for outcome in verdict.assertions)


def test_a_transcript_too_large_to_read_is_over_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that reads a huge board over and over forged nothing."""
    monkeypatch.setattr("grader.transcript.BYTES", 10)
    verdict = grade()
    assert (verdict.verdict, verdict.category) == ("fail", "evidence-over-budget")
    assert "bytes" in verdict.assertions[0].reason


def test_a_killed_run_fails_by_its_cap_whatever_it_wrote() -> None:
    verdict = grade(killed_by="wall-clock")
    assert (verdict.verdict, verdict.category, verdict.exit_path) == ("fail", "wall-clock", "killed")


def test_a_crash_is_no_tampering() -> None:
    verdict = grade(log=transcript()[: -len(run_end())])
    assert (verdict.verdict, verdict.category, verdict.exit_path) == ("fail", "agent-crashed", None)


def test_replies_that_the_gateway_never_gave_are_tampering() -> None:
    usage = {"replies": 0, "inputTokens": 0, "outputTokens": 0, "usd": 0}
    verdict = grade(log=transcript("done", event("assistant", text=None, toolCalls=[])), usage=usage)
    assert verdict.category == "evidence-tampered"


def test_escapes_are_not_looked_for_where_no_evidence_was_kept() -> None:
    verdict = grade(evidence="over-budget", design=FakeDesign(escapes=["x"]))
    assert verdict.category == "evidence-over-budget"


def test_diagnostics_tell_what_does_not_decide() -> None:
    design = FakeDesign(RENAMED.netlist, RENAMED.labels, rule_changes=["demo.kicad_sch: PWR_FLAG added"])
    result = event("tool", name="x", args={}, result="edit REVERTED: x")
    verdict = grade(
        log=transcript("done", result, result, event("provider-failover", to="b")),
        design=design,
        oom_killed=True,
        refused=[{"path": "a%0Ab", "reason": "named pipe"}],
        refused_count=3,
    )
    told = "\n".join(verdict.diagnostics)
    for words in (
        "PWR_FLAG",
        "2 tool errors of class file-revert",
        "out of memory",
        "a\\nb (named pipe)",
        "3 entries",
        "not comparable: the agent went over to another provider",
    ):
        assert words in told
    assert verdict.verdict == "pass"


def test_rules_that_the_set_up_changed_are_not_the_runs() -> None:
    """``quiet-baseline`` edits severities in every sandbox: a naive record blames the agent for it."""
    quiet = FakeDesign(rule_changes=["demo.kicad_pro: severities edited"])
    flagged = FakeDesign(rule_changes=[*quiet.rule_changes, "demo.kicad_sch: PWR_FLAG added"])
    verdict = verdict_of(bundle(*ITEMS, baseline=FILES), flagged, quiet)
    assert verdict.diagnostics == ["rule changed in a design file: demo.kicad_sch: PWR_FLAG added"]


def test_lost_evidence_needs_no_kicad() -> None:
    """kicad-cli is never asked about a run that left nothing: this one would raise at a touch."""
    verdict = real_grade(bundle(*ITEMS, evidence="none"), cast("KicadCli", SimpleNamespace(major="9")))
    assert (verdict.verdict, verdict.category) == ("fail", "infrastructure")


def test_the_harness_knows_a_refusal_from_an_edit() -> None:
    items = assertions(
        {"id": "refused", "type": "exit_path_in", "args": {"paths": ["refused"]}},
        {"id": "cites", "type": "refusal_cites_budget", "args": {"budgetKey": "sleep_current_uA"}},
        {"id": "same", "type": "rollback_byte_identical"},
    )
    declined = task(expectedOutcome="refusal")
    good = verdict_of(bundle(*items, task=declined, log=refusal("breaks sleep_current_uA = 25")))
    assert good.verdict == "pass"
    assert verdict_of(bundle(*items, task=declined, log=transcript())).category == "missed-refusal"
    assert verdict_of(bundle(*items, task=declined, log=refusal("no"))).first_failure == "cites"


@pytest.mark.parametrize(
    "text", ["a\nb\x1b[2J\u202e", "\ud800", "x" * 10_000, "\0", "\ud83d" * 5000, "😀" * 5000, "", "\u2028"]
)
def test_a_line_of_a_verdict_is_one_bounded_line(text: str) -> None:
    """A reason quotes what an agent wrote: terminals, JSON and tables must survive it."""
    clean = line(text)
    assert len(clean) <= LINE
    assert len(clean.splitlines()) <= 1
    json.dumps(clean, ensure_ascii=False).encode()


ALL = assertions(
    {"id": "a1", "type": "erc_no_new_violations"},
    {"id": "a2", "type": "drc_no_new_violations", "args": {"severity": "warning"}},
    {"id": "a3", "type": "erc_clean"},
    {"id": "a4", "type": "drc_clean"},
    {"id": "a5", "type": "check_clean"},
    {"id": "a6", "type": "drift_clean", "args": {"newOnly": True}},
    {"id": "a7", "type": "net_present", "args": {"net": "a"}},
    {"id": "a8", "type": "net_absent", "args": {"net": "/a/b"}},
    {"id": "a9", "type": "symbol_present", "args": {"refdes": "R1"}},
    {"id": "b1", "type": "symbol_absent", "args": {"refdes": "R1"}},
    {"id": "b2", "type": "pin_net_equals", "args": {"refdes": "R1", "pin": "1", "net": "a"}},
    {
        "id": "b3",
        "type": "doc_row_matches",
        "args": {"doc": "BOM.md", "key": "a", "column": "b", "pattern": "."},
    },
    {"id": "b4", "type": "doc_contains", "args": {"doc": "BOM.md", "pattern": "a", "absent": True}},
    {"id": "b5", "type": "constraint_registered", "args": {"key": "a", "max": 1}},
    {"id": "b6", "type": "files_touched_subset", "args": {"allowed": ["docs/*"]}},
    {"id": "b7", "type": "file_unchanged", "args": {"path": "docs/BOM.md"}},
    {"id": "b8", "type": "diff_ratio_max", "args": {"path": "docs/BOM.md", "ratio": 0.5}},
    {"id": "b9", "type": "commit_count", "args": {"max": 1}},
    {"id": "c1", "type": "rollback_byte_identical"},
    {"id": "c2", "type": "no_secret"},
    {"id": "c3", "type": "exit_path_in", "args": {"paths": ["done"]}},
    {"id": "c4", "type": "refusal_cites_budget", "args": {"budgetKey": "a"}},
    {"id": "c5", "type": "transcript_event", "args": {"event": "tool", "matches": {"a.b": {"regex": "."}}}},
)
PATHS = [
    "docs/BOM.md",
    "docs/PINOUT.md",
    ".copperhead/constraints.json",
    ".copperhead/config.json",
    TRANSCRIPT,
    "\udcff",
]
CONTENT = st.binary(max_size=60) | st.sampled_from(
    [
        transcript(),
        refusal("a\ud800"),
        b'{"a": {"max": 1}, "budgets": {"a": 1}, "docs": "\\ud800"}',
        b"| a | b |\n|---|---|\n| a | x |\n",
        b"| Refdes | Pin | Net | Value | Footprint |\n|-|-|-|-|-|\n| R1 | 1 | a |||\n",
    ]
)
TREES = st.dictionaries(
    st.sampled_from(PATHS),
    st.builds(Entry, CONTENT, st.sampled_from([0o644, 0o755]), st.sampled_from(["file", "file", "symlink"])),
)
BROKEN = Unjudgeable("broken \ud800 \n file")
DESIGNS = st.sampled_from([FakeDesign(), RENAMED, FakeDesign(BROKEN, BROKEN, BROKEN, BROKEN)])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TREES, TREES, DESIGNS, st.sampled_from(["do", "sync", "check"]))
def test_grading_never_raises_and_always_serialises(
    before: dict[str, Entry], after: dict[str, Entry], design: FakeDesign, mode: str
) -> None:
    given_ = bundle(*ALL, baseline=before, end=after, log=b"", task=task(mode=mode))
    verdict = verdict_of(given_, design, design)
    assert verdict == verdict_of(given_, design, design)
    text = json.dumps(verdict.to_json(), ensure_ascii=False)
    assert Verdict.model_validate_json(text.encode()) == verdict
    assert len(verdict.assertions) == 23
