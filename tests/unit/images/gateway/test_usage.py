"""Counting: three protocols, whole and streamed; what cannot be is unknown, never 0."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.pricing import TokenUsage
from tests.unit.images.sources import gateway, scripted

WIRES = gateway("app").WIRES
CHAT, RESPONSES, MESSAGES = WIRES["openai-chat"], WIRES["openai-responses"], WIRES["anthropic-messages"]
sse, told = gateway("sse"), scripted("wire")
moves = scripted("moves")


@pytest.mark.parametrize(
    ("wire", "usage", "expected"),
    [
        (CHAT, {"prompt_tokens": 9, "completion_tokens": 4}, TokenUsage(input=9, output=4)),
        (
            CHAT,
            {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}},
            TokenUsage(input=9, output=4, cache_read=8),
        ),
        (
            CHAT,
            {"prompt_tokens": 9, "completion_tokens": 4, "prompt_cache_hit_tokens": 3, "total_tokens": 13},
            TokenUsage(input=9, output=4, cache_read=3),
        ),
        # Reasoning listed apart from the completion was paid for.
        (
            CHAT,
            {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 20},
            TokenUsage(input=9, output=11),
        ),
        (
            RESPONSES,
            {"input_tokens": 9, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 2}},
            TokenUsage(input=9, output=4, cache_read=2),
        ),
        (
            MESSAGES,
            {
                "input_tokens": 2,
                "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 1,
                "output_tokens": 3,
            },
            TokenUsage(input=8, output=3, cache_read=5, cache_write=1),
        ),
        (MESSAGES, {"input_tokens": 2, "output_tokens": 3}, TokenUsage(input=2, output=3)),
    ],
)
def test_usage_in_one_form(wire: Any, usage: dict[str, Any], expected: TokenUsage) -> None:
    assert (
        wire.read({"model": "m", "usage": usage, "choices": [], "output": [], "content": []}).usage
        == expected
    )


def test_a_cache_that_lasts_an_hour_has_no_price() -> None:
    usage = {"input_tokens": 1, "output_tokens": 1, "cache_creation": {"ephemeral_1h_input_tokens": 5}}
    assert MESSAGES.read({"usage": usage}).usage.unpriced


COUNTS = {"prompt_tokens": 9, "completion_tokens": 4, "input_tokens": 9, "output_tokens": 4}


@pytest.mark.parametrize("tier", [None, "default", "standard", "on_demand"])
@pytest.mark.parametrize("wire", [CHAT, RESPONSES, MESSAGES])
def test_ordinary_service_is_priced(wire: Any, tier: str | None) -> None:
    usage = COUNTS | ({"service_tier": tier, "inference_geo": "global"} if wire is MESSAGES else {})
    assert wire.read({"usage": usage, "service_tier": tier}).usage.unpriced == ""


@pytest.mark.parametrize("tier", ["priority", "flex", "batch", "scale", 7, ["default"]])
@pytest.mark.parametrize("wire", [CHAT, RESPONSES, MESSAGES])
def test_another_tier_has_no_price(wire: Any, tier: Any) -> None:
    """Naive: what was asked for is what was served and billed."""
    usage = COUNTS | ({"service_tier": tier} if wire is MESSAGES else {})
    assert wire.read({"usage": usage, "service_tier": tier}).usage.unpriced


@pytest.mark.parametrize(("place", "priced"), [("", True), ("not_available", True), ("us", False)])
def test_a_region_has_no_price(place: str, priced: bool) -> None:
    assert (MESSAGES.read({"usage": COUNTS | {"inference_geo": place}}).usage.unpriced == "") is priced


def test_a_streams_tier_is_the_last_that_it_names() -> None:
    read = RESPONSES.reader(hide_usage=False)
    for tier in ("auto", "priority"):
        read.read(json.dumps({"response": {"service_tier": tier, "usage": COUNTS}}).encode())
    assert "priority" in read.reply.usage.unpriced
    read = CHAT.reader(hide_usage=False)
    read.read(b'{"service_tier": "flex", "choices": [{"finish_reason": "stop"}]}')
    read.read(json.dumps({"choices": [], "usage": COUNTS}).encode())
    assert "flex" in read.reply.usage.unpriced


IMPOSSIBLE = [-1, "7", True, 1.5, 10**12, None, [], {}]


@pytest.mark.parametrize("value", IMPOSSIBLE)
@pytest.mark.parametrize(
    ("wire", "name", "other"),
    [
        (CHAT, "prompt_tokens", "completion_tokens"),
        (CHAT, "completion_tokens", "prompt_tokens"),
        (RESPONSES, "input_tokens", "output_tokens"),
        (MESSAGES, "output_tokens", "input_tokens"),
    ],
)
def test_a_count_that_cannot_be_is_unknown(wire: Any, name: str, other: str, value: Any) -> None:
    assert wire.read({"usage": {name: value, other: 5}}).usage is None


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        {},
        {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 12},
        {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 10}},
        {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": -1}},
    ],
)
def test_a_usage_that_contradicts_itself_is_unknown(usage: Any) -> None:
    assert CHAT.read({"usage": usage}).usage is None


PATHS = [(CHAT, told.CHAT), (RESPONSES, told.RESPONSES), (MESSAGES, told.MESSAGES)]


def replayed(wire: Any, stream: bytes, cuts: list[int], *, hide: bool = False) -> tuple[Any, bytes]:
    """What is read out of a stream that comes in these portions, and the bytes that are shown."""
    reader, events, shown = wire.reader(hide_usage=hide), sse.Events(10**7), b""
    cuts = sorted({cut for cut in cuts if cut < len(stream)})
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        for event in events.feed(stream[start:end]):
            shown += event.raw if reader.read(event.data) else b""
    return reader.reply, shown + events.rest()


@given(
    st.sampled_from(PATHS),
    st.text(max_size=40),
    st.integers(1, 10**6),
    st.integers(0, 10**6),
    st.tuples(st.lists(st.integers(0, 3000), max_size=30), st.booleans()),
)
def test_a_stream_is_counted_as_its_whole_reply(
    path: Any, text: str, prompt: int, output: int, form: tuple[list[int], bool]
) -> None:
    """Wherever the bytes are cut, inside a character too."""
    (wire, name), (cuts, ascii_only) = path, form
    reply = told.Told(
        2, "m-1", moves.Move(text, [moves.call("f", path="µΩ")]), told.Tokens(prompt, output, prompt // 2)
    )
    stream = b"".join(told.stream(name, reply, usage_asked=True, ascii_only=ascii_only))
    streamed, shown = replayed(wire, stream, cuts)
    whole = wire.read(json.loads(json.dumps(told.whole(name, reply))))
    assert streamed.whole and whole.whole
    assert (
        (streamed.model, streamed.usage.total) == (whole.model, whole.usage.total) == ("m-1", prompt + output)
    )
    assert streamed.usage.cache_read == whole.usage.cache_read == prompt // 2
    assert shown == stream


@pytest.mark.parametrize(("wire", "name"), PATHS)
@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_a_stream_that_breaks_off_is_not_whole(wire: Any, name: str, part: float) -> None:
    """Naive: Anthropic's opening usage taken for the reply's."""
    reply = told.Told(0, "m", moves.Move("x" * 50, []), told.Tokens(10, 20, 0))
    stream = b"".join(told.stream(name, reply, usage_asked=True, ascii_only=True))
    read, _ = replayed(wire, stream[: int(len(stream) * part)], [])
    assert not read.whole and (read.usage is None or read.usage.total == 30)


def test_the_usage_that_nobody_asked_for_is_kept_from_the_agent() -> None:
    reply = told.Told(0, "m", moves.Move("x", []), told.Tokens(10, 20, 0))
    asked = b"".join(told.stream(told.CHAT, reply, usage_asked=True, ascii_only=True))
    unasked = b"".join(told.stream(told.CHAT, reply, usage_asked=False, ascii_only=True))
    read, shown = replayed(CHAT, asked, [7, 100, 333], hide=True)
    assert shown == unasked and read.usage.total == 30


def test_a_count_that_comes_along_with_every_chunk_is_no_usage_until_the_last() -> None:
    """Naive: a stream that was cut is charged for the part of it that had come."""
    read = CHAT.reader(hide_usage=False)
    for output in (1, 2):
        usage = {"prompt_tokens": 9, "completion_tokens": output}
        read.read(json.dumps({"choices": [{"delta": {}, "finish_reason": None}], "usage": usage}).encode())
    assert not read.reply.usage and not read.reply.whole
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    read.read(json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage}).encode())
    assert read.reply.usage.output == 3 and read.reply.whole


def test_an_error_inside_a_stream_is_a_broken_reply() -> None:
    read, _ = replayed(
        MESSAGES, b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n', []
    )
    assert read.failed
