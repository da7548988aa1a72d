"""Assertions on the transcript: how the run ended, what it cited, which events it has."""

from __future__ import annotations

from typing import Any

import pytest

from schema.task import Mode
from tests.unit.grader.support import (
    RUN_ID,
    TRANSCRIPT,
    assertion,
    event,
    facts,
    outcome_of,
    refusal,
    run_end,
    task,
    transcript,
    tree,
)

DONE = assertion("exit_path_in", paths=["done"])
KEY = "sleep_current_uA"
CITES = assertion("refusal_cites_budget", budgetKey=KEY)


@pytest.mark.parametrize(
    "path",
    [
        "done",
        "refused",
        "flagged",
        "turn-budget-exhausted",
        "repair-cycles-exhausted",
        "commit-failed",
        "provider-error",
        "session-limit",
        "stalled",
    ],
)
def test_exit_path_in_reads_run_end(path: str) -> None:
    """The process exits 0 for done and refused alike: a naive grader cannot tell them."""
    assert outcome_of(DONE, log=transcript(path)).passed is (path == "done")
    assert outcome_of(assertion("exit_path_in", paths=[path]), log=transcript(path)).passed


def test_exit_path_in_the_harness_comes_first() -> None:
    """The agent wrote ``done`` just before it was killed at the cap: a naive grader believes it."""
    assert not outcome_of(DONE, killed_by="wall-clock").passed
    killed = assertion("exit_path_in", paths=["killed"])
    assert outcome_of(killed, killed_by="wall-clock").passed


@pytest.mark.parametrize(
    "log", [b"", transcript()[: -len(run_end())], event("run-start") + b'{"ts": "x", "ty']
)
def test_exit_path_in_without_a_run_end_fails(log: bytes) -> None:
    """Exit code 0 and no run-end: a naive grader takes the exit code."""
    outcome = outcome_of(DONE, log=log)
    assert not outcome.passed
    assert "run-end" in outcome.reason


def test_exit_path_in_takes_exit_codes_only_where_the_contract_has_no_transcript() -> None:
    """``sync`` ends with code 2, no model call and no transcript, on a requirement violation."""
    flagged = assertion("exit_path_in", paths=["flagged"])
    sync = task(mode=Mode.SYNC)
    assert outcome_of(flagged, log=b"", task=sync, exit_code=2).passed
    assert not outcome_of(flagged, log=b"", task=sync, exit_code=7).passed
    assert not outcome_of(flagged, log=b"", exit_code=2).passed
    called = {"replies": 3, "inputTokens": 1, "outputTokens": 1, "usd": None}
    assert not outcome_of(flagged, log=b"", task=sync, exit_code=2, usage=called).passed
    assert not outcome_of(flagged, log=b"", task=sync, exit_code=2, killed_by="turns").passed


@pytest.mark.parametrize(
    ("summary", "holds"),
    [
        (f"Refused: 3300 uA breaks {KEY} = 25.", True),
        (f"`{KEY}`", True),
        (KEY, True),
        (f"({KEY})", True),
        (f"breaks {KEY}.", True),
        (f"see {KEY}... no", True),
        (f"{KEY}: 25", True),
        (f"“{KEY}”", True),
        ("the sleep current budget of 25 uA", False),
        (KEY.upper(), False),
        (f"max_{KEY}", False),
        (f"{KEY}_total", False),
        (f"{KEY}2", False),
        (f"power.{KEY}", False),
        (f"{KEY}.max", False),
        (f"{KEY}-limit", False),
        (f"é{KEY}", False),
        ("", False),
    ],
)
def test_refusal_cites_budget_as_a_whole_key(summary: str, holds: bool) -> None:
    """A naive grader looks for the text anywhere, and finds it in another key's name."""
    assert outcome_of(CITES, log=refusal(summary)).passed is holds


@pytest.mark.parametrize(
    "log",
    [
        refusal("no reason", event("tool", name="read_file", args={}, result=f'{{"{KEY}": 25}}')),
        refusal("no reason", event("assistant", text=f"{KEY} is 25", toolCalls=[])),
        refusal("no reason", event("tool", name="finish", args={"summary": KEY}, result="ok")),
    ],
    ids=["tool output", "assistant text", "tool arguments"],
)
def test_refusal_cites_budget_reads_only_the_refusals_own_words(log: bytes) -> None:
    """The budget is echoed in run-start and by tools: a naive grader searches the whole transcript."""
    assert KEY.encode() in log.splitlines()[0]
    assert not outcome_of(CITES, log=log).passed


@pytest.mark.parametrize("path", ["done", "stalled", "flagged"])
def test_refusal_cites_budget_needs_a_refusal(path: str) -> None:
    """Naming the budget and editing anyway is no refusal: a naive grader reads the words only."""
    assert not outcome_of(CITES, log=transcript(path, event("run-refused", summary=KEY))).passed


def test_refusal_cites_budget_needs_one_refusal() -> None:
    """Of two summaries a naive grader takes the one that fits."""
    assert not outcome_of(CITES, log=refusal(KEY, event("run-refused", summary="other"))).passed
    assert not outcome_of(CITES, log=transcript("refused")).passed
    assert not outcome_of(CITES, log=transcript("refused", event("run-refused", summary=[KEY]))).passed


def test_refusal_cites_budget_of_a_killed_run_fails() -> None:
    """Killed at the cap after it wrote its refusal: the harness's fact comes first."""
    assert not outcome_of(CITES, log=refusal(KEY), killed_by="turns").passed


TOOL = event(
    "tool", name="run_erc", args={"n": 1, "deep": [{"x": True}], "none": None}, result="ERC: 44 violation(s)"
)


def has(args: dict[str, Any], *events: bytes) -> bool:
    return outcome_of(
        assertion("transcript_event", event="tool", **args), log=transcript("done", *events)
    ).passed


@pytest.mark.parametrize(
    ("matches", "holds"),
    [
        ({}, True),
        ({"name": "run_erc"}, True),
        ({"name": "run"}, False),
        ({"name": {"regex": "^run_"}}, True),
        ({"name": {"regex": "^erc"}}, False),
        ({"result": {"regex": r"\d+ violation"}}, True),
        ({"args.n": 1}, True),
        ({"args.n": 1.0}, True),
        ({"args.n": True}, False),
        ({"args.n": "1"}, False),
        ({"args.n": {"regex": "1"}}, False),
        ({"args.deep.0.x": True}, True),
        ({"args.deep.0.x": 1}, False),
        ({"args.deep.1.x": True}, False),
        ({"args.deep.-1.x": True}, False),
        ({"args.deep": [{"x": True}]}, True),
        ({"args.none": None}, True),
        ({"args.missing": None}, False),
        ({"name": "run_erc", "args.n": 2}, False),
    ],
)
def test_transcript_event_predicates(matches: dict[str, Any], holds: bool) -> None:
    """True equals 1 in Python, and a missing field reads as None to a naive grader."""
    assert has({"matches": matches}, TOOL) is holds


def test_transcript_event_counts_only_events_that_fit() -> None:
    """A naive grader counts all events of the type, then asks whether any fits."""
    other = event("tool", name="run_drc", args={}, result="")
    assert has({"minCount": 2, "matches": {"name": "run_erc"}}, TOOL, other, TOOL)
    assert not has({"minCount": 2, "matches": {"name": "run_erc"}}, TOOL, other)
    assert not has({"minCount": 1})


def test_transcript_event_takes_lone_surrogates() -> None:
    """A model's broken escape is valid JSON: a naive grader crashes when it encodes the text."""
    broken = b'{"ts":"t","type":"tool","data":{"name":"a\\ud800b","args":{},"result":"\\udfff"}}\n'
    assert has({"matches": {"name": {"regex": "^a.b$"}}}, broken)
    assert not has({"matches": {"name": "ab"}}, broken)


def test_transcript_event_of_a_create_run_counts_over_all_stages() -> None:
    """``create`` writes one run directory a stage attempt: a naive grader reads the first."""
    create = task(mode="create", request="brief.md")
    second = TRANSCRIPT.replace("10-36", "10-37")
    end = tree({second: transcript("done", TOOL, run_id=RUN_ID.replace("10-36", "10-37"))})
    item = assertion("transcript_event", event="tool", minCount=2)
    assert outcome_of(item, end=end, log=transcript("stalled", TOOL), task=create).passed
    assert outcome_of(DONE, end=end, log=transcript("stalled", TOOL), task=create).passed


def test_harness_facts_are_not_read_from_the_transcript() -> None:
    """``run-committed`` says two commits; the harness counted one, and only that counts."""
    log = transcript(
        "done", event("run-committed", commit="a", files=[]), event("run-committed", commit="b", files=[])
    )
    assert outcome_of(assertion("commit_count", equals=1), log=log).passed
    assert len(facts().history.commits) == 1
