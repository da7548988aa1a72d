"""What an agent may ask: strict JSON, one model, nothing that reaches the network or keeps state."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.images.sources import gateway

bodies = gateway("bodies")
WIRES = gateway("app").WIRES
CHAT, RESPONSES, MESSAGES = WIRES["openai-chat"], WIRES["openai-responses"], WIRES["anthropic-messages"]
IMAGE = "data:image/png;base64,"
PNG = IMAGE + "iVBORw0KGgo="


def chat(**more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], **more}


def responses(**more: Any) -> dict[str, Any]:
    return {"model": "m", "input": "hi", **more}


def messages(**more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **more}


def said(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


FUNCTION = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "url": {"type": "x"}}},
}
ALLOWED = [
    (CHAT, chat()),
    (CHAT, chat(tools=[FUNCTION], tool_choice="auto", n=1, store=False, stream=True, temperature=0)),
    (
        CHAT,
        chat(messages=said({"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": PNG}})),
    ),
    (
        CHAT,
        chat(
            messages=[{"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]}]
        ),
    ),
    (CHAT, chat(web_search_options=None)),
    (RESPONSES, responses(tools=[{"type": "function", "name": "f"}, {"type": "local_shell"}], store=False)),
    (RESPONSES, responses(input=[{"role": "user", "content": "x"}, {"type": "reasoning", "summary": []}])),
    (RESPONSES, responses(input=[{"type": "function_call_output", "call_id": "1", "output": "text"}])),
    (RESPONSES, responses(include=["reasoning.encrypted_content"])),
    (MESSAGES, messages(system=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}])),
    (
        MESSAGES,
        messages(tools=[{"name": "f", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}]),
    ),
    (
        MESSAGES,
        messages(
            messages=said(
                {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "x"}]},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PNG.partition(",")[2]},
                },
            )
        ),
    ),
    (
        MESSAGES,
        messages(messages=said({"type": "tool_use", "id": "1", "name": "f", "input": {"url": "http://x"}})),
    ),
]
REFUSED = [
    (CHAT, chat(n=2)),
    (CHAT, chat(n=True)),
    (CHAT, chat(best_of=2)),
    (CHAT, chat(store=True)),
    (CHAT, chat(service_tier="priority")),
    (CHAT, chat(web_search_options={})),
    (CHAT, chat(plugins=[{"id": "web"}])),
    (CHAT, chat(models=["other"])),
    (CHAT, chat(route="fallback")),
    (CHAT, chat(provider={"order": ["x"]})),
    (CHAT, chat(audio={"voice": "x"})),
    (CHAT, chat(modalities=["text", "audio"])),
    (CHAT, chat(stream="yes")),
    (CHAT, chat(max_tokens=-1)),
    (CHAT, chat(max_tokens=True)),
    (CHAT, chat(max_tokens=1e3)),
    (CHAT, chat(tools=[{"type": "web_search"}])),
    (CHAT, chat(tools=[{"type": "function"}, {"type": "mcp", "server_url": "https://x"}])),
    (CHAT, chat(tools={"0": FUNCTION})),
    (CHAT, chat(messages="hi")),
    (CHAT, chat(messages=[{"role": "critic", "content": "x"}])),
    (CHAT, chat(messages=[{"role": "user", "content": "x", "audio": {"id": "1"}}])),
    (CHAT, chat(messages=said({"type": "image_url", "image_url": {"url": "https://x/?secret"}}))),
    (CHAT, chat(messages=said({"type": "image_url", "image_url": {"url": "DATA:text/html,x"}}))),
    (CHAT, chat(messages=said({"type": "image_url", "image_url": "https://x"}))),
    (CHAT, chat(messages=said({"type": "file", "file": {"file_id": "f"}}))),
    (CHAT, chat(messages=said({"type": "input_audio", "input_audio": {}}))),
    (CHAT, chat(messages=said({"type": "text", "text": "x", "cache_control": {"ttl": "1h"}}))),
    (RESPONSES, responses(background=True)),
    (RESPONSES, responses(store=True)),
    (RESPONSES, responses(previous_response_id="resp_1")),
    (RESPONSES, responses(conversation="conv_1")),
    (RESPONSES, responses(prompt={"id": "pmpt_1"})),
    (RESPONSES, responses(include=["web_search_call.action.sources"])),
    *[
        (RESPONSES, responses(tools=[{"type": kind}]))
        for kind in (
            "web_search",
            "web_search_preview",
            "file_search",
            "code_interpreter",
            "computer_use_preview",
            "image_generation",
            "mcp",
            "shell",
            "Function",
            None,
        )
    ],
    (RESPONSES, responses(input=[{"type": "item_reference", "id": "x"}])),
    (
        RESPONSES,
        responses(input=[{"role": "user", "content": [{"type": "input_file", "file_url": "https://x"}]}]),
    ),
    (
        RESPONSES,
        responses(input=[{"role": "user", "content": [{"type": "input_image", "image_url": "https://x"}]}]),
    ),
    (RESPONSES, responses(input=[{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}])),
    (
        RESPONSES,
        responses(
            input=[{"type": "function_call_output", "call_id": "1", "output": [{"type": "input_file"}]}]
        ),
    ),
    (RESPONSES, responses(input=None)),
    *[
        (MESSAGES, messages(tools=[{"type": kind, "name": "x"}]))
        for kind in (
            "web_search_20250305",
            "web_fetch_20250910",
            "code_execution_20250825",
            "bash_20250124x",
            "",
        )
    ],
    (MESSAGES, messages(container="c")),
    (MESSAGES, messages(mcp_servers=[{"url": "https://x"}])),
    (MESSAGES, messages(speed="fast")),
    (MESSAGES, messages(inference_geo="us")),
    (MESSAGES, messages(context_management={})),
    (MESSAGES, messages(metadata={"note": "x"})),
    (MESSAGES, messages(messages=said({"type": "image", "source": {"type": "url", "url": "https://x"}}))),
    (MESSAGES, messages(messages=said({"type": "image", "source": {"type": "file", "file_id": "f"}}))),
    (MESSAGES, messages(messages=said({"type": "document", "source": {"type": "url", "url": "https://x"}}))),
    (MESSAGES, messages(messages=said({"type": "container_upload", "file_id": "f"}))),
    (
        MESSAGES,
        messages(
            messages=said(
                {
                    "type": "tool_result",
                    "tool_use_id": "1",
                    "content": [{"type": "image", "source": {"type": "url", "url": "https://x"}}],
                }
            )
        ),
    ),
    (
        MESSAGES,
        messages(system=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]),
    ),
    (MESSAGES, messages(tools=[{"name": "f", "cache_control": {"type": "ephemeral", "ttl": "1h"}}])),
]


@pytest.mark.parametrize(("wire", "body"), ALLOWED)
def test_what_agents_need_passes(wire: Any, body: dict[str, Any]) -> None:
    wire.check(body)
    wire.wanted(body)


@pytest.mark.parametrize(
    ("wire", "body"),
    REFUSED,
    ids=lambda value: json.dumps(value)[:70] if isinstance(value, dict) else value.name,
)
def test_what_reaches_out_keeps_state_or_costs_otherwise_is_refused(wire: Any, body: dict[str, Any]) -> None:
    with pytest.raises(bodies.NotAllowed):
        wire.check(body)
        wire.wanted(body)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model": "m", "model": "other"}',
        b'{"model": "m", "mod\\u0065l": "other"}',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b"[]",
        b'"text"',
        b"",
        b'{"a": 1} {"b": 2}',
        b'{"a": 1,}',
        b"\xff\xfe{\x00}\x00",
        '{"model": "m"}'.encode("utf-16"),
        b'\xef\xbb\xbf{"a": 1}',
        b'{"a": "\xff"}',
        b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": [' + b"{}," * 60_000 + b"{}]}",
    ],
    ids=range(16),
)
def test_bodies_that_two_readers_could_read_differently_are_refused(raw: bytes) -> None:
    with pytest.raises(bodies.NotAllowed):
        bodies.parse(raw, 200_000 if len(raw) < 100_000 else 100_000)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.text(st.characters())),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=5), st.sampled_from([CHAT, RESPONSES, MESSAGES]))
def test_no_body_makes_the_gateway_stumble(body: dict[str, Any], wire: Any) -> None:
    """It is refused or let pass; no other error comes out."""
    raw = json.dumps(body).encode()
    parsed = bodies.parse(raw, 200_000)
    assert bodies.parse(bodies.render(parsed), 200_000) == body
    try:
        wire.check(parsed)
        wire.wanted(parsed)
        list(wire.pictures(parsed))
    except bodies.NotAllowed:
        pass


def test_a_lone_surrogate_travels_as_it_came() -> None:
    raw = b'{"a":"half: \\ud83d"}'
    assert bodies.render(bodies.parse(raw, 100)) == raw


LONG = PNG.replace("=", "A") + "A" * 10**6
DATA = LONG.partition(",")[2]
SOURCE = {"type": "base64", "media_type": "image/png", "data": DATA}


def bound(wire: Any, body: dict[str, Any]) -> int:
    wire.check(body)
    return int(bodies.prompt_bound(json.dumps(body).encode(), wire.pictures(body)))


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (CHAT, chat(messages=said({"type": "image_url", "image_url": {"url": LONG}}))),
        (RESPONSES, responses(input=said({"type": "input_image", "image_url": LONG}))),
        (
            RESPONSES,
            responses(
                input=[
                    {
                        "type": "function_call_output",
                        "call_id": "1",
                        "output": [{"type": "input_image", "image_url": LONG}],
                    }
                ]
            ),
        ),
        (MESSAGES, messages(messages=said({"type": "image", "source": SOURCE}))),
        (
            MESSAGES,
            messages(
                messages=said(
                    {
                        "type": "tool_result",
                        "tool_use_id": "1",
                        "content": [{"type": "image", "source": SOURCE}],
                    }
                )
            ),
        ),
    ],
)
def test_the_bound_counts_pictures_as_pictures_not_as_text(wire: Any, body: dict[str, Any]) -> None:
    most = bodies.IMAGE_TOKENS + bodies.PROMPT_OVERHEAD + 1000
    assert bodies.IMAGE_TOKENS < bound(wire, body) < most


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (CHAT, chat(messages=[{"role": "user", "content": LONG}])),
        (CHAT, chat(messages=said({"type": "text", "text": LONG}))),
        (CHAT, chat(tools=[{"type": "function", "function": {"name": "f", "description": LONG}}])),
        (CHAT, chat(tools=[{"type": "function", "function": SOURCE}])),
        (RESPONSES, responses(input=LONG)),
        (RESPONSES, responses(instructions=LONG)),
        (
            RESPONSES,
            responses(
                input=[
                    {
                        "type": "local_shell_call_output",
                        "call_id": "1",
                        "output": [{"type": "input_image", "image_url": LONG}],
                    }
                ]
            ),
        ),
        (MESSAGES, messages(system=LONG)),
        (MESSAGES, messages(messages=said({"type": "tool_use", "id": "1", "name": "f", "input": SOURCE}))),
        (MESSAGES, messages(messages=said({"type": "text", "text": LONG}))),
    ],
)
def test_text_that_begins_like_a_picture_counts_as_text(wire: Any, body: dict[str, Any]) -> None:
    """Naive: pictures are found by how a string begins, and a million letters count as one."""
    assert bound(wire, body) > 10**6


@pytest.mark.parametrize(
    "start", ["lorem ipsum ", "AAAA", "", "iVBORw0KGg", "UklGRgAAAABXQVZF", "R0lGODlhAQABAIAA"]
)
def test_a_picture_begins_as_one(start: str) -> None:
    """Naive: its place says what it is, and text in it is counted as a picture."""
    for wire, body in (
        (CHAT, chat(messages=said({"type": "image_url", "image_url": {"url": IMAGE + start}}))),
        (RESPONSES, responses(input=said({"type": "input_image", "image_url": IMAGE + start}))),
        (MESSAGES, messages(messages=said({"type": "image", "source": {"type": "base64", "data": start}}))),
    ):
        with pytest.raises(bodies.NotAllowed):
            wire.check(body)


@pytest.mark.parametrize("start", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"RIFF\0\0\0\0WEBPVP8 "])
def test_the_three_kinds_of_pictures_pass(start: bytes) -> None:
    bodies.picture(base64.b64encode(start + b"rest").decode())


@pytest.mark.parametrize(
    ("wire", "body", "output", "changes", "field"),
    [
        (CHAT, chat(), None, [], None),
        (CHAT, chat(), 7, ["max_completion_tokens = 7"], "max_completion_tokens"),
        (CHAT, chat(max_completion_tokens=7), 7, [], "max_completion_tokens"),
        (
            CHAT,
            chat(max_tokens=9),
            7,
            ["max_tokens left out", "max_completion_tokens = 7"],
            "max_completion_tokens",
        ),
        (
            CHAT,
            chat(max_tokens=5, max_completion_tokens=7),
            7,
            ["max_tokens left out"],
            "max_completion_tokens",
        ),
        (RESPONSES, responses(), 7, ["max_output_tokens = 7"], "max_output_tokens"),
        (RESPONSES, responses(max_output_tokens=6), 7, [], None),
        (MESSAGES, messages(), 7, ["max_tokens = 7"], "max_tokens"),
    ],
)
def test_output_is_clamped_where_a_cap_asks_for_it(
    wire: Any, body: dict[str, Any], output: int | None, changes: list[str], field: str | None
) -> None:
    assert wire.change(body, output, "max_completion_tokens") == changes
    assert field is None or body[field] == 7


@pytest.mark.parametrize(
    ("heeded", "ignored"),
    [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")],
)
def test_a_limit_under_a_name_that_the_provider_ignores_holds_all_the_same(heeded: str, ignored: str) -> None:
    """Naive: the name that came is lowered; the provider does not know it, and answers at any length."""
    body = chat(**{ignored: 1})
    CHAT.change(body, CHAT.wanted(body), heeded)
    assert body[heeded] == 1 and ignored not in body


def test_a_stream_is_asked_for_its_usage() -> None:
    body = chat(stream=True, stream_options={"include_obfuscation": False})
    assert CHAT.change(body, None, "max_tokens") == ["stream_options.include_usage = true"]
    assert body["stream_options"] == {"include_obfuscation": False, "include_usage": True}
    assert CHAT.change(body, None, "max_tokens") == []
