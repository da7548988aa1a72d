"""Anthropic messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway import bodies
from gateway.bodies import NotAllowed
from gateway.wires import (
    PROBE_MESSAGE,
    PROBE_TOKENS,
    NoCount,
    Reply,
    StreamReader,
    count,
    maybe_count,
    off_table,
)
from schema.gateway import WireProtocol
from schema.pricing import TokenUsage

VERSION = "2023-06-01"
FIELDS = frozenset(
    {
        "cache_control",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
TOOLS = re.compile(r"custom|bash_\d{8}|text_editor_\d{8}")
"""Tools that run where the agent runs."""


def _image(part: Mapping[str, Any]) -> None:
    bodies.short_cache(part)
    source = part.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64":
        raise NotAllowed("images must come as base64; nothing is fetched for an agent")
    bodies.allow(source, {"type", "media_type", "data"}, "image source: ")
    bodies.picture(source.get("data"))


def _result(part: Mapping[str, Any]) -> None:
    bodies.short_cache(part)
    bodies.parts(part.get("content"), RESULT_PARTS, "tool_result")


RESULT_PARTS: Mapping[str, tuple[set[str], bodies.Rule | None]] = {
    "text": ({"text", "cache_control"}, bodies.short_cache),
    "image": ({"source", "cache_control"}, _image),
}
PARTS: Mapping[str, tuple[set[str], bodies.Rule | None]] = {
    **RESULT_PARTS,
    "tool_use": ({"id", "name", "input", "cache_control"}, bodies.short_cache),
    "tool_result": ({"tool_use_id", "content", "is_error", "cache_control"}, _result),
    "thinking": ({"thinking", "signature"}, None),
    "redacted_thinking": ({"data"}, None),
}


class Messages:
    """``POST /v1/messages``."""

    name: WireProtocol = "anthropic-messages"
    path = "/v1/messages"
    endpoint = "/messages"

    def headers(self, key: str | None) -> dict[str, str]:
        """The version that this gateway can read, whatever the agent's says, and no beta."""
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def check(self, body: Mapping[str, Any]) -> None:
        """See :class:`gateway.wires.Wire`."""
        bodies.allow(body, FIELDS, "")
        bodies.fixed(body, "service_tier", "auto", "standard_only")
        bodies.fixed(body, "stream", True, False)
        bodies.short_cache(body)
        metadata = body.get("metadata")
        if metadata is not None:
            if not isinstance(metadata, dict):
                raise NotAllowed("'metadata' is not an object")
            bodies.allow(metadata, {"user_id"}, "metadata: ")
        bodies.parts(body.get("system"), {"text": RESULT_PARTS["text"]}, "system")
        for message in bodies.objects(body.get("messages"), "messages"):
            bodies.allow(message, {"role", "content"}, "messages: ")
            bodies.parts(message.get("content"), PARTS, "messages")
        for tool in bodies.objects(body.get("tools") or [], "tools"):
            named = tool.get("type", "custom")
            if not isinstance(named, str) or not TOOLS.fullmatch(named):
                raise NotAllowed(f"a tool of type {named!r} is not allowed in this benchmark")
            bodies.short_cache(tool)

    def pictures(self, body: Mapping[str, Any]) -> Iterator[str]:
        """See :class:`gateway.wires.Wire`."""
        for message in body["messages"]:
            results = [part.get("content") for part in bodies.of_type(message.get("content"), "tool_result")]
            for content in (message.get("content"), *results):
                for part in bodies.of_type(content, "image"):
                    yield part["source"]["data"]

    def wanted(self, body: Mapping[str, Any]) -> int | None:
        """``max_tokens``; the provider insists on it."""
        return bodies.limit(body, "max_tokens")

    def change(self, body: dict[str, Any], output: int | None, field: str) -> list[str]:  # noqa: ARG002
        """See :class:`gateway.wires.Wire`."""
        if output is None or (self.wanted(body) or output + 1) <= output:
            return []
        body["max_tokens"] = output
        return [f"max_tokens = {output}"]

    def probe(self, model: str, field: str) -> dict[str, Any]:  # noqa: ARG002
        """See :class:`gateway.wires.Wire`."""
        return {"model": model, "messages": [PROBE_MESSAGE], "max_tokens": PROBE_TOKENS}

    def read(self, body: Any) -> Reply:
        """See :class:`gateway.wires.Wire`."""
        if not isinstance(body, dict):
            return Reply()
        model = body.get("model")
        whole = isinstance(body.get("content"), list)
        return Reply(model if isinstance(model, str) else None, _usage(body.get("usage")), whole)

    def reader(self, *, hide_usage: bool) -> StreamReader:  # noqa: ARG002
        """See :class:`gateway.wires.Wire`."""
        return _MessagesStream()

    def error(self, status: int, message: str) -> dict[str, Any]:
        """See :class:`gateway.wires.Wire`."""
        kinds = {403: "permission_error", 404: "not_found_error", 413: "request_too_large"}
        named = kinds.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {"type": named, "message": message}}


class _MessagesStream:
    def __init__(self) -> None:
        self.reply = Reply()
        self._usage: dict[str, Any] = {}
        self._ended = False

    def read(self, data: bytes) -> bool:
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            return True
        if not isinstance(event, dict):
            return True
        named = event.get("type")
        if named == "error":
            self.reply.failed = True
        elif named == "message_start" and isinstance(event.get("message"), dict):
            if isinstance(event["message"].get("model"), str):
                self.reply.model = event["message"]["model"]
            self._merge(event["message"].get("usage"))
        elif named == "message_delta":
            # Its counts are cumulative, and only now final: an opening count alone is no usage.
            self._ended = isinstance(event.get("usage"), dict)
            self._merge(event.get("usage"))
        elif named == "message_stop":
            self.reply.whole = True
        self.reply.usage = _usage(self._usage) if self._ended else None
        return True

    def _merge(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._usage |= {name: value for name, value in usage.items() if value is not None}


def _usage(usage: Any) -> TokenUsage | None:
    """Anthropic's input excludes what was cached; ours is the whole prompt."""
    if not isinstance(usage, dict):
        return None
    try:
        fresh, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
        read = maybe_count(usage.get("cache_read_input_tokens"))
        written = maybe_count(usage.get("cache_creation_input_tokens"))
        lifetimes = usage.get("cache_creation")
        hour = lifetimes.get("ephemeral_1h_input_tokens") if isinstance(lifetimes, dict) else None
        unpriced = "part of the prompt was cached for an hour" if maybe_count(hour) else ""
        unpriced = unpriced or off_table(usage.get("service_tier"), usage.get("inference_geo"))
    except NoCount:
        return None
    return TokenUsage(
        input=fresh + (read or 0) + (written or 0),
        output=output,
        cache_read=read,
        cache_write=written,
        unpriced=unpriced,
    )
