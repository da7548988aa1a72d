"""A reply in each of the three protocols, whole and as a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scripted.moves import Move

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
_ID = re.compile(r"call_(\d+)_\d+")


@dataclass(frozen=True)
class Tokens:
    """What a reply is said to have used. ``cached`` is part of ``input``."""

    input: Any
    output: Any
    cached: Any


@dataclass(frozen=True)
class Told:
    """One reply to be told."""

    turn: int
    model: str
    move: Move
    tokens: Tokens | None

    def calls(self) -> Iterator[tuple[str, str, str]]:
        """(id, name, arguments) of each call; the id names the turn."""
        for number, each in enumerate(self.move.calls):
            yield f"call_{self.turn}_{number}", each.name, each.arguments


def turn_of(body: Mapping[str, Any]) -> int:
    """How many replies the conversation holds. By call ids too: an agent may drop old replies."""
    history = body.get("messages", body.get("input"))
    history = history if isinstance(history, list) else []
    replies = sum(1 for item in history if item.get("role") == "assistant")
    ids = _ID.findall(json.dumps(history))
    return max([replies, *(int(turn) + 1 for turn in ids)])


def whole(path: str, told: Told) -> dict[str, Any]:
    """The body of a reply that is not streamed."""
    if path == CHAT:
        message = {
            "role": "assistant",
            "content": told.move.text or None,
            **({"tool_calls": [_chat_call(*each) for each in told.calls()]} if told.move.calls else {}),
        }
        finish = "tool_calls" if told.move.calls else "stop"
        return {
            "id": f"chatcmpl-{told.turn}",
            "object": "chat.completion",
            "created": 0,
            "model": told.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            **_chat_usage(told.tokens),
        }
    if path == RESPONSES:
        return _response(told, "completed")
    stop = "tool_use" if told.move.calls else "end_turn"
    return {
        "id": f"msg_{told.turn}",
        "type": "message",
        "role": "assistant",
        "model": told.model,
        "content": _blocks(told),
        "stop_reason": stop,
        "stop_sequence": None,
        **_messages_usage(told.tokens),
    }


def stream(path: str, told: Told, *, usage_asked: bool, ascii_only: bool) -> Iterator[bytes]:
    """The events of a streamed reply, as bytes."""
    events = {CHAT: _chat_stream, RESPONSES: _responses_stream, MESSAGES: _messages_stream}[path]
    for event in events(told, usage_asked):
        named = "" if path == CHAT else f"event: {event['type']}\n"
        yield f"{named}data: {json.dumps(event, ensure_ascii=ascii_only)}\n\n".encode("utf-8", "replace")
    if path == CHAT:
        yield b"data: [DONE]\n\n"


def error(path: str, code: str, message: str) -> dict[str, Any]:
    """An error body."""
    if path == MESSAGES:
        return {"type": "error", "error": {"type": code, "message": message}}
    return {"error": {"message": message, "type": code, "param": None, "code": code}}


def _chat_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _chat_usage(tokens: Tokens | None) -> dict[str, Any]:
    if tokens is None:
        return {}
    total = tokens.input + tokens.output if isinstance(tokens.output, int) else tokens.output
    return {
        "usage": {
            "prompt_tokens": tokens.input,
            "completion_tokens": tokens.output,
            "total_tokens": total,
            "prompt_tokens_details": {"cached_tokens": tokens.cached},
        }
    }


def _chat_stream(told: Told, usage_asked: bool) -> Iterator[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{told.turn}",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": told.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }

    yield chunk({"role": "assistant", "content": ""})
    for piece in _halves(told.move.text):
        yield chunk({"content": piece})
    for number, (call_id, name, arguments) in enumerate(told.calls()):
        opening = {"name": name, "arguments": ""}
        yield chunk(
            {"tool_calls": [{"index": number, "id": call_id, "type": "function", "function": opening}]}
        )
        for piece in _halves(arguments):
            yield chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if told.move.calls else "stop")
    if usage_asked and told.tokens:
        yield {**chunk({}), "choices": [], **_chat_usage(told.tokens)}


def _response(told: Told, status: str) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if told.move.text:
        text = {"type": "output_text", "text": told.move.text, "annotations": []}
        output.append(
            {
                "type": "message",
                "id": f"msg_{told.turn}",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            }
        )
    output += [
        {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": name,
            "arguments": arguments,
            "status": "completed",
        }
        for call_id, name, arguments in told.calls()
    ]
    usage: dict[str, Any] = {}
    if told.tokens and status == "completed":
        total = told.tokens.input + told.tokens.output if isinstance(told.tokens.output, int) else 0
        usage = {
            "usage": {
                "input_tokens": told.tokens.input,
                "input_tokens_details": {"cached_tokens": told.tokens.cached},
                "output_tokens": told.tokens.output,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": total,
            }
        }
    return {
        "id": f"resp_{told.turn}",
        "object": "response",
        "created_at": 0,
        "model": told.model,
        "status": status,
        "output": output if status == "completed" else [],
        **usage,
    }


def _responses_stream(told: Told, _: bool) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": _response(told, "in_progress")}
    for index, item in enumerate(_response(told, "completed")["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        if item["type"] == "function_call":
            for piece in _halves(item["arguments"]):
                yield {
                    "type": "response.function_call_arguments.delta",
                    "output_index": index,
                    "item_id": item["id"],
                    "delta": piece,
                }
        else:
            for piece in _halves(told.move.text):
                yield {
                    "type": "response.output_text.delta",
                    "output_index": index,
                    "content_index": 0,
                    "item_id": item["id"],
                    "delta": piece,
                }
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": _response(told, "completed")}


def _blocks(told: Told) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": told.move.text}] if told.move.text else []
    for call_id, name, arguments in told.calls():
        try:
            given = json.loads(arguments)
        except ValueError:
            given = {"_raw": arguments}
        # This protocol has no way to send arguments that are no object.
        given = given if isinstance(given, dict) else {"_raw": given}
        blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": given})
    return blocks


def _messages_usage(tokens: Tokens | None) -> dict[str, Any]:
    if tokens is None:
        return {}
    fresh = tokens.input - tokens.cached if isinstance(tokens.cached, int) else tokens.input
    usage = {
        "input_tokens": fresh,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output,
    }
    return {"usage": usage}


def _messages_stream(told: Told, _: bool) -> Iterator[dict[str, Any]]:
    opening = whole(MESSAGES, told) | {"content": [], "stop_reason": None}
    if told.tokens:
        opening["usage"] = {**opening["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": opening}
    for index, block in enumerate(_blocks(told)):
        if block["type"] == "text":
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "text": ""}}
            deltas = [{"type": "text_delta", "text": piece} for piece in _halves(block["text"])]
        else:
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}}
            pieces = _halves(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = "tool_use" if told.move.calls else "end_turn"
    usage = {"usage": {"output_tokens": told.tokens.output}} if told.tokens else {}
    yield {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, **usage}
    yield {"type": "message_stop"}


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]
