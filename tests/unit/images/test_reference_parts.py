"""The reference agent's parts: the jail, the reader of replies, trimming, drift."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.documents import parse_json
from grader.drift import mismatches as graded_mismatches
from grader.kicad.netlist import read_netlist
from schema.gateway import Patience
from tests.doubles.provider import HANG_UP, fails, says, serving
from tests.unit.grader.support import tree
from tests.unit.images.sources import netlist, reference, scaffold

errors = reference("errors")
workspaces = reference("workspace")
model = reference("model")
conversations = reference("conversation")
drift = reference("drift")
checks = reference("checks")


# --- the jail


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    (tmp_path / "outside.txt").write_text("secret")
    root = tmp_path / "ws"
    for name in ("hw/x.kicad_sch", "docs/BOM.md", ".git/config", ".copperhead/runs/a/transcript.jsonl"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (root / "out").symlink_to(tmp_path / "outside.txt")
    (root / "up").symlink_to("..")
    (root / "git").symlink_to(".git")
    (root / "alias.md").symlink_to("docs/BOM.md")
    (root / "loop").symlink_to("loop")
    return workspaces.Workspace(root)


@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt",
        "/etc/passwd",
        "hw/../../outside.txt",
        "out",
        "up/outside.txt",
        ".git/config",
        ".GIT/config",
        "git/config",
        "hw/.git/x",
        ".copperhead/runs/a/transcript.jsonl",
        ".copperhead/llm-cache/x",
        "a\0b",
        "\ud800",
        "x" * 5000,
        "loop",
    ],
)
def test_no_path_leads_out_or_into_the_books(desk: Any, path: str) -> None:
    """A naive agent checks the text of a path and follows the symlink."""
    for act in (desk.read, lambda name: desk.write(name, b"x")):
        with pytest.raises(errors.ToolError):
            act(path)
    assert desk.touched == []


def test_a_symlink_inside_means_the_file_it_points_at(desk: Any) -> None:
    assert desk.write("alias.md", b"new") == "docs/BOM.md"
    assert desk.touched == ["docs/BOM.md"]


def test_listing_shows_what_may_be_read(desk: Any) -> None:
    (desk.root / os.fsdecode(b"\xff.md")).write_text("no name")
    assert list(desk.files()) == ["alias.md", "docs/BOM.md", "hw/x.kicad_sch"]


def test_every_change_is_taken_back(desk: Any) -> None:
    def seen() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in desk.root.rglob("*") if p.is_file() and not p.is_symlink()}

    before = seen()
    desk.write("docs/BOM.md", b"1")
    desk.write("docs/BOM.md", b"2")
    desk.write("new/folder/x.md", b"3")
    assert desk.touched == ["docs/BOM.md", "new/folder/x.md"]
    desk.restore()
    assert seen() == before and not (desk.root / "new").exists() and desk.touched == []


# --- replies


def reply(*calls: Any, **message: Any) -> Any:
    body = {"choices": [{"message": {"content": None, "tool_calls": list(calls), **message}}]}
    return model.parse_reply(json.dumps(body).encode())


def arguments(text: Any) -> Any:
    return reply({"id": "1", "function": {"name": "t", "arguments": text}}).calls[0]


@pytest.mark.parametrize("text", ["{}", "", "null", None, {}])
def test_no_arguments_may_be_said_in_many_ways(text: Any) -> None:
    assert (arguments(text).args, arguments(text).fault) == ({}, "")


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ',
        "[]",
        '"x"',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": 1' + "0" * 400 + "}",
        "[" * 3000,
        '{"a":' * 25,
    ],
)
def test_arguments_that_cannot_be_used_say_so_and_stay_readable(text: str) -> None:
    made = arguments(text)
    assert made.fault
    # The transcript's reader takes them: what a model garbles must not look like tampering.
    parse_json(json.dumps({"args": made.args}).encode(), "line", depth=100)


def test_arguments_without_end_are_cut() -> None:
    made = arguments('{"a": "' + "x" * model.ARGUMENTS + '"}')
    assert made.fault and len(made.args["_raw"]) == 1000


@pytest.mark.parametrize("item", [None, 1, "x", {}, {"function": 3}, {"function": {"name": None}}, {"id": 7}])
def test_a_call_that_is_none_becomes_one_without_a_name(item: Any) -> None:
    (made,) = reply(item).calls
    assert made.name == "" and made.id == "call_0"


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{"message": 3}]}', b"[" * 100_000],
)
def test_what_is_no_chat_completion_is_the_providers_fault(body: bytes) -> None:
    with pytest.raises(errors.ProviderError):
        model.parse_reply(body)


@pytest.mark.parametrize(
    "usage", [None, {}, [], {"prompt_tokens": "3"}, {"prompt_tokens": -1}, {"prompt_tokens": 10**400}]
)
def test_a_usage_that_is_not_told_is_unknown_and_never_0(usage: Any) -> None:
    body = {"choices": [{"message": {"content": "x"}}], "usage": usage}
    assert model.parse_reply(json.dumps(body).encode()).tokens_in is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=200)
@given(JSON, JSON, JSON)
def test_reading_a_reply_never_raises_anything_else(message: Any, calls: Any, usage: Any) -> None:
    whole = message if isinstance(message, dict) else {"content": message, "tool_calls": calls}
    body = json.dumps({"choices": [{"message": whole}], "usage": usage}).encode()
    try:
        read = model.parse_reply(body)
    except errors.ProviderError:
        return
    for made in read.calls:
        parse_json(json.dumps({"name": made.name, "args": made.args}).encode(), "line", depth=100)


# --- asking


def client(base_url: str) -> Any:
    return model.Client(base_url, "m", timeout=5, pause=0.0)


def client_of_a_run() -> Any:
    return model.Client("http://127.0.0.1:8080/v1", "m")


def test_a_request_holds_model_messages_and_tools_and_asks_for_no_stream() -> None:
    with serving(says(text="hi")) as provider:
        assert (
            client(provider.base_url).ask([{"role": "user", "content": "\ud800 x"}], [{"t": 1}]).text == "hi"
        )
    assert provider.paths == ["/v1/chat/completions"]
    assert provider.requests == [
        {"model": "m", "messages": [{"role": "user", "content": "? x"}], "tools": [{"t": 1}]}
    ]


@pytest.mark.parametrize("first", [fails(429, retry_after="0"), fails(500), fails(503), HANG_UP])
def test_a_passing_fault_is_tried_again(first: Any) -> None:
    with serving(first, says(text="hi")) as provider:
        assert client(provider.base_url).ask([], []).text == "hi"


@pytest.mark.parametrize("last", [fails(429), fails(500), HANG_UP])
def test_a_lasting_fault_ends_after_three_tries(last: Any) -> None:
    with serving(last) as provider, pytest.raises(errors.ProviderError):
        client(provider.base_url).ask([], [])
    assert len(provider.requests) == model.TRIES


@pytest.mark.parametrize("status", [429, 500, 503])
def test_who_says_that_no_retry_helps_is_heeded(status: int) -> None:
    """Naive: each try of the agent costs the run the gateway's whole patience again."""
    lost = fails(status, "stalled", x_should_retry="false")
    with serving(lost) as provider, pytest.raises(errors.ProviderError):
        client(provider.base_url).ask([], [])
    assert len(provider.requests) == 1


def test_the_gateways_patience_ends_before_the_agents() -> None:
    """Naive: a fifth of the wall clock; a hanging provider then ends as the agent's own failure."""
    patience = Patience()
    # An attempt that begins as the budget ends may wait once for the head and once for the body.
    longest = patience.budget_seconds + 2 * patience.first_byte_seconds + patience.idle_seconds
    assert longest < model.TIMEOUT and client_of_a_run()._timeout == model.TIMEOUT


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404])
def test_a_refused_request_is_not_repeated(status: int) -> None:
    with serving(fails(status, "no such model")) as provider, pytest.raises(errors.ProviderError) as caught:
        client(provider.base_url).ask([], [])
    assert len(provider.requests) == 1 and str(caught.value) == f"{status} no such model"


def test_nobody_there_is_the_providers_fault() -> None:
    with pytest.raises(errors.ProviderError):
        client("http://127.0.0.1:9/v1").ask([], [])


# --- trimming


def talk(room: int, sizes: list[tuple[int, int]]) -> Any:
    talked = conversations.Conversation("instructions", "request", room=room)
    for said, answered in sizes:
        made = model.Reply("a" * said, (model.Call("i", "t", {"x": "y"}),), 1, 1)
        talked.reply(made, ["r" * answered])
    return talked


@settings(max_examples=100, deadline=None)
@given(
    st.integers(500, 20_000),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 9000)), max_size=12),
    st.integers(0, 4),
)
def test_trimming_keeps_instructions_request_and_the_order_of_turns(
    room: int, sizes: list[tuple[int, int]], halvings: int
) -> None:
    talked = talk(room, sizes)
    for _ in range(halvings):
        talked.halve()
    first, second, *rest = talked.messages()
    assert first == {"role": "system", "content": "instructions"}
    assert second["role"] == "user" and second["content"].startswith("request")
    # Every result still follows the reply that asked for it.
    assert [message["role"] for message in rest] == ["assistant", "tool"] * (len(rest) // 2)
    if sizes:
        assert rest[-2]["content"] == "a" * sizes[-1][0]


def test_what_fits_is_sent_whole() -> None:
    talked = talk(100_000, [(10, 1000)] * 5)
    assert all(message["content"] == "r" * 1000 for message in talked.messages() if message["role"] == "tool")


def test_old_results_go_before_turns_do() -> None:
    talked = talk(12_000, [(10, 1000)] * 11)
    rest = talked.messages()[2:]
    assert len(rest) == 22 and rest[1]["content"] == conversations.STUB and rest[-1]["content"] == "r" * 1000


def test_halving_ends() -> None:
    talked = talk(100_000, [(2000, 20_000)] * 8)
    count = 0
    while talked.halve():
        count += 1
        assert count < 20


# --- drift, with the grader's own reading as the oracle

PARTS = {"R1": "10k", "R2": "4k7 1%", "J1": "a|b"}
NETS = {
    "/SENSE": ["R1.1", "J1.1"],
    "GND": ["R2.2"],
    "Net-(R1-Pad2)": ["R1.2", "R2.1"],
    "/sub/A{slash}B": ["J1.2"],
}
CELL = st.sampled_from(
    [
        "R1",
        "R2",
        "J1",
        "R9",
        "10k",
        "10 K",
        "4k71%",
        "fp:R",
        "fp:J",
        r"a\|b",
        "",
        "GND",
        "SENSE",
        "/SENSE",
        "A/B",
        "1",
        "2",
    ]
)


def table(header: str, rows: list[tuple[str, ...]]) -> str:
    lines = [header, "|".join(["---"] * header.count("|")), *(" | ".join(row) for row in rows)]
    return "# T\n\n" + "".join(f"| {line} |\n" for line in lines)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(CELL, CELL, CELL), max_size=6),
    st.lists(st.tuples(CELL, CELL, CELL), max_size=6),
)
def test_drift_is_what_the_grader_calls_drift(
    bom: list[tuple[str, ...]], pinout: list[tuple[str, ...]]
) -> None:
    text = netlist(NETS, PARTS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "netlist"
        path.write_text(text)
        ours = scaffold("netlist").read(path)
    documents = {
        "docs/BOM.md": "| Refdes | Value | Footprint |\n|---|---|---|\n"
        + "".join(f"| {' | '.join(row)} |\n" for row in bom),
        "docs/PINOUT.md": "| Refdes | Pin | Net |\n|---|---|---|\n"
        + "".join(f"| {' | '.join(row)} |\n" for row in pinout),
    }
    graded = graded_mismatches(tree(documents), "docs", read_netlist(text.encode()))
    found = drift.mismatches(documents["docs/BOM.md"], documents["docs/PINOUT.md"], ours)
    assert len(found) == len(graded), (found, graded)


@pytest.mark.parametrize(
    "text", [None, "", "# Bill\n\nnothing", "| Refdes | Value |\n|---|---|\n| R1 | 10k |\n"]
)
def test_a_document_without_its_table_is_drift(text: str | None) -> None:
    empty = scaffold("netlist").Netlist((), {})
    assert [item.subject for item in drift.mismatches(text, "| Refdes | Pin | Net |\n|-|-|-|\n", empty)] == [
        "BOM.md"
    ]


# --- what is new


def finding(kind: str, *items: str, severity: str = "error") -> Any:
    return checks.Finding("erc", kind, severity, items, "t")


def test_what_was_there_is_not_new_and_a_swapped_one_is() -> None:
    before = [finding("a", "1"), finding("a", "2")]
    assert checks.fresh(before, before) == []
    assert checks.fresh(before, [finding("a", "1"), finding("a", "3")]) == [finding("a", "3")]
    assert checks.fresh(before, [*before, finding("a", "1")]) == [finding("a", "1")]
    assert checks.fresh([finding("a", "1", severity="warning")], [finding("a", "1")]) == [finding("a", "1")]


def test_kinds_whose_items_kicad_picks_anew_are_counted() -> None:
    before = [finding("unconnected_items", "1", "2")]
    assert checks.fresh(before, [finding("unconnected_items", "2", "3")]) == []
    assert (
        len(checks.fresh(before, [finding("unconnected_items", "2", "3"), finding("unconnected_items", "4")]))
        == 2
    )
