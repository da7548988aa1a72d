"""Transcripts: read within bounds, deviations named, nothing raised."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader import transcript as module
from grader.evidence import Entry
from grader.transcript import (
    Transcript,
    failed_over,
    forged_replies,
    mismatches,
    read_transcript,
    resolve_exit_path,
)
from schema.run import Usage
from schema.task import Mode
from schema.transcript import ExitPath
from tests.unit.grader.support import (
    AGENT,
    RUN_ID,
    START,
    TRANSCRIPT,
    event,
    facts,
    run_end,
    symlink,
    transcript,
    tree,
)

SAMPLES = Path(__file__).parent / "data" / "transcripts"
BEGIN = event("run-start", **START)
TOOL = event("tool", name="x", args={}, result="")
REOPENED = event("deferred-affects-reopened", reopened=[])


def read(
    data: bytes | Entry,
    more: dict[str, bytes] | None = None,
    mode: Mode = Mode.DO,
    path: str = TRANSCRIPT,
) -> Transcript:
    return read_transcript(AGENT, mode, baseline={}, end=tree({path: data, **(more or {})}))


def another(year: str) -> tuple[str, str]:
    """Another run's id and its transcript's path."""
    return RUN_ID.replace("2026", year), TRANSCRIPT.replace("2026", year)


def kinds(read_: Transcript) -> list[str]:
    return [tamper.kind for tamper in read_.tampering]


@pytest.mark.parametrize(
    "data",
    [
        transcript(),
        transcript("refused", TOOL),
        REOPENED + transcript(),
        BEGIN + run_end("stalled"),
        BEGIN
        + b'{"ts":"t","type":"tool","data":{"name":"\\ud800","args":null,"result":"\\udfff"}}\n'
        + run_end(),
        BEGIN + event("tool", name="x", args={"n": 10**300, "f": 1e308}, result="") + run_end(),
    ],
    ids=["done", "refused", "reopened first", "stalled", "lone surrogates", "large numbers"],
)
def test_an_honest_transcript_is_no_tampering(data: bytes) -> None:
    found = read(data)
    assert found.tampering == ()
    assert found.end is not None


@pytest.mark.parametrize(
    "data",
    [b"", BEGIN, BEGIN + TOOL, BEGIN + TOOL[:-9], BEGIN[:-1], b"\0" * 3, REOPENED + BEGIN, REOPENED],
    ids=[
        "empty",
        "start",
        "a tool",
        "cut line",
        "cut start",
        "no line",
        "killed after start",
        "before start",
    ],
)
def test_a_transcript_that_stops_is_a_killed_or_crashed_run(data: bytes) -> None:
    """A naive grader calls every transcript without run-end forged; a killed run leaves just that."""
    found = read(data)
    assert found.tampering == ()
    assert found.end is None
    assert resolve_exit_path(facts(), found, AGENT, Mode.DO) is None
    assert resolve_exit_path(facts(killed_by="turns"), found, AGENT, Mode.DO) is ExitPath.KILLED


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (BEGIN + BEGIN + run_end(), "several-run-starts"),
        (BEGIN + run_end() + run_end(), "several-run-ends"),
        (transcript() + transcript(), "several-run-starts"),
        (transcript() + TOOL, "events-after-run-end"),
        (transcript() + b'{"ts', "events-after-run-end"),
        (TOOL + transcript(), "events-before-run-start"),
        (TOOL + run_end(), "events-before-run-start"),
        (run_end(), "events-before-run-start"),
        (BEGIN + REOPENED + run_end() + REOPENED, "events-after-run-end"),
        (BEGIN + event("run-finished") + run_end(), "transcript-unreadable"),
        (BEGIN + b"\n" + run_end(), "transcript-unreadable"),
        (BEGIN + b"{}\n" + run_end(), "transcript-unreadable"),
        (BEGIN + b"[]\n" + run_end(), "transcript-unreadable"),
        (BEGIN + b"\xff\n" + run_end(), "transcript-unreadable"),
        (b"\xef\xbb\xbf" + transcript(), "transcript-unreadable"),
        (transcript().decode().encode("utf-16") + b"\n", "transcript-unreadable"),
        (BEGIN + b'{"ts":"t","type":"tool","data":{"a":1,"a":2}}\n', "transcript-unreadable"),
        (BEGIN + b'{"ts":"t","type":"tool","type":"run-end","data":{}}\n', "transcript-unreadable"),
        (BEGIN + b'{"ts":"t","type":"tool","data":{"a":NaN}}\n', "transcript-unreadable"),
        (BEGIN + b'{"ts":"t","type":"tool","data":{"a":-Infinity}}\n', "transcript-unreadable"),
        (BEGIN + b'{"ts":"t","type":"tool","data":{"a":1e999}}\n', "transcript-unreadable"),
        (BEGIN + b'{"ts":"t","type":"tool","data":{"a":' + b"9" * 5000 + b"}}\n", "transcript-unreadable"),
        (
            BEGIN + b'{"ts":"t","type":"tool","data":' + b'{"a":' * 5000 + b"1" + b"}" * 5001 + b"\n",
            "transcript-unreadable",
        ),
        (BEGIN + b'{"ts":"t","type":["tool"],"data":{}}\n', "transcript-unreadable"),
        (BEGIN + b'{"ts":1,"type":"tool","data":{}}\n', "transcript-unreadable"),
        (BEGIN + b'{"ts":"t","type":"tool","data":{},"more":1}\n', "transcript-unreadable"),
        (BEGIN + run_end("finished"), "run-end-malformed"),
        (BEGIN + event("run-end"), "run-end-malformed"),
        (BEGIN + event("run-end", exitPath="done", turnsUsed="x"), "run-end-malformed"),
        (BEGIN + run_end("killed"), "run-end-malformed"),
        (symlink("other"), "transcript-not-a-file"),
    ],
)
def test_what_an_honest_run_cannot_leave_is_named(data: bytes | Entry, kind: str) -> None:
    """A model writes a second ending into its transcript: a naive grader takes the one it finds."""
    found = read(data)
    assert kind in kinds(found)
    assert found.end is None


def test_a_second_run_directory_is_tampering() -> None:
    """A naive grader takes the newest directory, which the model made up."""
    name, other = another("2027")
    second = transcript("refused", run_id=name)
    assert kinds(read(transcript(), {other: second})) == ["several-run-directories"]
    assert kinds(read(transcript(), {other.replace("transcript.jsonl", "notes.md"): b""})) == [
        "several-run-directories"
    ]
    assert kinds(read(transcript(), {other: second}, Mode.SYNC)) == ["several-run-directories"]
    assert kinds(read(transcript(), {other: second}, Mode.CREATE)) == []


@pytest.mark.parametrize("said", ["2027-11-30T10-36-02-644Z", "", None, 7, f"x/{RUN_ID}", f"{RUN_ID}\ud800"])
def test_a_transcript_of_another_run_is_tampering(said: object) -> None:
    """An account that was written elsewhere, or earlier, laid into this run's directory."""
    start = {**START, "runId": said} if said is not None else {"request": "x"}
    found = read(event("run-start", **start) + run_end())
    assert kinds(found) == ["run-id-differs"]
    assert found.end is None


def test_files_beside_the_runs_are_no_run() -> None:
    beside = {
        ".copperhead/runs/README.md": b"",
        f"{TRANSCRIPT}.bak": b"",
        "docs/runs/x/transcript.jsonl": b"",
    }
    assert kinds(read(transcript(), beside)) == []


def test_runs_of_the_baseline_belong_to_no_run() -> None:
    """An overlay may ship an old run: a naive grader grades it."""
    name, old = another("2025")
    before = tree({old: transcript("refused", run_id=name)})
    found = read_transcript(
        AGENT, Mode.DO, baseline=before, end={**before, **tree({TRANSCRIPT: transcript()})}
    )
    assert found.end is not None
    assert found.end.exit_path is ExitPath.DONE
    assert found.tampering == ()
    changed = read_transcript(
        AGENT, Mode.DO, baseline=before, end=tree({old: transcript(run_id=name), TRANSCRIPT: transcript()})
    )
    assert kinds(changed) == ["several-run-directories"]


@pytest.mark.parametrize("glob", ["run/transcript.jsonl", "transcript.jsonl", "out/*.jsonl", "a/**/t.jsonl"])
def test_agents_may_write_their_transcript_elsewhere(glob: str) -> None:
    agent = AGENT.model_copy(update={"transcripts": glob})
    path = glob.replace("**", "x").replace("*", "x")
    found = read_transcript(agent, Mode.DO, baseline={}, end=tree({path: transcript(), "docs/x": "y"}))
    assert found.paths == (path,)
    assert found.end is not None


@pytest.mark.parametrize("limit", ["BYTES", "EVENTS", "LINE_BYTES"])
def test_limits_are_inclusive(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit all is read, one above nothing is; foolish reading is no tampering."""
    data = transcript("done", TOOL)
    lines = data.split(b"\n")
    exact = {"BYTES": len(data), "EVENTS": len(lines) - 1, "LINE_BYTES": max(map(len, lines))}[limit]
    monkeypatch.setattr(module, limit, exact)
    assert read(data).end is not None
    monkeypatch.setattr(module, limit, exact - 1)
    found = read(data)
    assert found.too_large
    assert (found.end, found.events, found.tampering) == (None, (), ())


def test_limits_hold_for_all_transcripts_of_a_run_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of stage attempts, each small: a naive grader reads them all into memory."""
    monkeypatch.setattr(module, "EVENTS", 3)
    other = TRANSCRIPT.replace("2026", "2027")
    assert read(transcript(), {other: transcript()}, Mode.CREATE).too_large


def test_depth_is_inclusive() -> None:
    def nested(depth: int) -> bytes:
        # The line and its data are two levels already.
        text = '{"ts":"t","type":"tool","data":{"a":' + "[" * (depth - 2) + "]" * (depth - 2) + "}}\n"
        return BEGIN + text.encode() + run_end()

    assert kinds(read(nested(module.DEPTH))) == []
    assert kinds(read(nested(module.DEPTH + 1))) == ["transcript-unreadable"]


def test_more_replies_than_the_gateway_gave_is_forged() -> None:
    """A model writes assistant events by hand; the gateway knows how often it spoke."""
    usage = {"replies": 1, "inputTokens": 1, "outputTokens": 1, "usd": None}
    reply = event("assistant", text="x", toolCalls=[])
    once, twice = read(transcript("done", reply)), read(transcript("done", reply, reply))
    assert forged_replies(once, facts(usage=usage), AGENT) is None
    found = forged_replies(twice, facts(usage=usage), AGENT)
    assert found is not None
    assert found.kind == "more-replies-than-given"
    assert forged_replies(twice, facts(), AGENT) is None
    assert forged_replies(twice, facts(usage=usage), AGENT.model_copy(update={"protocol": "none"})) is None


LINES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([BEGIN, TOOL, REOPENED, run_end(), run_end("refused"), transcript()]),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ).map(lambda value: json.dumps({"ts": "t", "type": "run-end", "data": value}).encode() + b"\n"),
    st.fixed_dictionaries({"exitPath": st.text(), "turnsUsed": st.integers() | st.text()}).map(
        lambda data: event("run-end", **data)
    ),
)


@settings(max_examples=300)
@given(st.lists(LINES, max_size=6).map(b"".join), st.sampled_from(list(Mode)))
def test_reading_never_raises(data: bytes, mode: Mode) -> None:
    found = read(data, mode=mode)
    if found.end is not None:
        types = [item.type for item in found.events]
        assert found.tampering == ()
        assert types[-1] == "run-end"
        assert types.count("run-end") == types.count("run-start") == 1
    for tamper in found.tampering:
        json.dumps(tamper.to_json(), ensure_ascii=False).encode()


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_reading_arbitrary_bytes_never_raises(data: bytes) -> None:
    assert read(data).end is None


@given(
    st.dictionaries(
        st.sampled_from(
            [TRANSCRIPT, f"{TRANSCRIPT}/x", ".copperhead/runs", ".copperhead/runs/a/b", "\udcff/\udc80"]
        ),
        st.builds(Entry, st.binary(max_size=5), st.just(0o644), st.sampled_from(["file", "symlink"])),
    )
)
def test_reading_arbitrary_trees_never_raises(end: dict[str, Entry]) -> None:
    read_transcript(AGENT, Mode.DO, baseline={}, end=end)


EXPECTED: dict[str, Any] = {
    "T03": ExitPath.DONE,
    "T04": ExitPath.REFUSED,
    "T05": ExitPath.STALLED,
    "T06": ExitPath.PROVIDER_ERROR,
    "T07": ExitPath.REFUSED,
    "T08": None,
    "T09": ExitPath.DONE,
}


def recorded(path: Path) -> Transcript:
    """A recorded transcript, as the run that it says it is of."""
    run_ids = re.findall(rb'"runId": ?"([^"]+)"', path.read_bytes())
    assert len(run_ids) == 1
    return read(path.read_bytes(), path=TRANSCRIPT.replace(RUN_ID, run_ids[0].decode()))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_recorded_transcripts_of_copperhead(name: str) -> None:
    """Real ones, killed, stalled and refused too, are what the contract calls honest."""
    [path] = SAMPLES.glob(f"{name}-*.jsonl")
    found = recorded(path)
    assert found.tampering == ()
    assert resolve_exit_path(facts(), found, AGENT, Mode.DO) is EXPECTED[name]


RECORDED = os.environ.get("COPPERBENCH_TRANSCRIPTS")
"""A folder of recorded transcripts: those that quote boards which are not ours are not kept here."""


@pytest.mark.skipif(RECORDED is None, reason="COPPERBENCH_TRANSCRIPTS names no folder of transcripts")
def test_every_recorded_transcript_is_honest() -> None:
    """An event order or a type that we did not foresee would look like tampering."""
    found = {path.name: recorded(path) for path in Path(str(RECORDED)).glob("*.jsonl")}
    assert found
    assert {name: item.tampering for name, item in found.items() if item.tampering} == {}
    assert {name for name, item in found.items() if not item.data("run-start")} == set()
    ended = {item.end.exit_path for item in found.values() if item.end is not None}
    assert ended <= set(ExitPath) - {ExitPath.KILLED}


def test_an_agent_that_changes_its_provider_is_seen() -> None:
    event_ = event("provider-failover", **{"from": "a", "to": "b"})
    assert failed_over(read(transcript("done", event_)))
    assert not failed_over(read(transcript()))


@pytest.mark.parametrize(
    ("exit_path", "turns", "seen", "says"),
    [
        ("done", 3, {"exit_code": 0}, []),
        ("refused", 3, {"exit_code": 0}, []),
        ("flagged", 3, {"exit_code": 2}, []),
        ("stalled", 3, {"exit_code": 1}, []),
        ("done", 3, {"exit_code": 137, "killed_by": "wall-clock"}, []),
        ("done", 3, {"exit_code": 1}, ["run-end says done, the process ended with exit code 1"]),
        ("stalled", 3, {"exit_code": 0}, ["run-end says stalled, the process ended with exit code 0"]),
        ("done", 2, {"exit_code": 0}, ["run-end counts 2 model replies, the gateway gave 3"]),
    ],
)
def test_where_the_account_and_the_harness_differ_is_named(
    exit_path: str, turns: int, seen: dict[str, object], says: list[str]
) -> None:
    usage = Usage(replies=3, input_tokens=None, output_tokens=None, usd=None)
    transcript = read(BEGIN + run_end(exit_path, turnsUsed=turns))
    assert list(mismatches(transcript, facts(usage=usage, **seen))) == says
