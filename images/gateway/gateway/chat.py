"""OpenAI chat completions."""

from __future__ import annotations

import json
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
    openai_error,
    usage_of,
)
from schema.gateway import WireProtocol
from schema.pricing import TokenUsage

FIELDS = frozenset(
    {
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "modalities",
        "model",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_k",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
    }
)
MESSAGE_FIELDS = frozenset(
    {
        "content",
        "function_call",
        "name",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "refusal",
        "role",
        "tool_call_id",
        "tool_calls",
    }
)
LIMITS = ("max_tokens", "max_completion_tokens")
"""The old and the new name of the limit on output."""
ROLES = frozenset({"assistant", "developer", "function", "system", "tool", "user"})


def _image(part: Mapping[str, Any]) -> None:
    image = part.get("image_url")
    if not isinstance(image, dict):
        raise NotAllowed("image_url is not an object")
    bodies.allow(image, {"url", "detail"}, "image_url: ")
    bodies.inline_image(image.get("url"))


PARTS: Mapping[str, tuple[set[str], bodies.Rule | None]] = {
    "text": ({"text", "cache_control"}, bodies.short_cache),
    "refusal": ({"refusal"}, None),
    "image_url": ({"image_url"}, _image),
}


class Chat:
    """``POST /v1/chat/completions``."""

    name: WireProtocol = "openai-chat"
    path = "/v1/chat/completions"
    endpoint = "/chat/completions"

    def headers(self, key: str | None) -> dict[str, str]:
        """Bearer."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def check(self, body: Mapping[str, Any]) -> None:
        """See :class:`gateway.wires.Wire`."""
        bodies.allow(body, FIELDS, "")
        bodies.fixed(body, "n", 1)
        bodies.fixed(body, "store", False)
        bodies.fixed(body, "service_tier", "default")
        bodies.fixed(body, "modalities", ["text"])
        bodies.fixed(body, "stream", True, False)
        options = body.get("stream_options")
        if options is not None:
            if not isinstance(options, dict):
                raise NotAllowed("'stream_options' is not an object")
            bodies.allow(options, {"include_usage", "include_obfuscation"}, "stream_options: ")
        for message in bodies.objects(body.get("messages"), "messages"):
            bodies.allow(message, MESSAGE_FIELDS, "messages: ")
            if message.get("role") not in ROLES:
                raise NotAllowed("messages: a role that is not known")
            bodies.parts(message.get("content"), PARTS, "messages")
        for tool in bodies.objects(body.get("tools") or [], "tools"):
            bodies.kind(tool, {"function", "custom"}, "a tool")

    def pictures(self, body: Mapping[str, Any]) -> Iterator[str]:
        """See :class:`gateway.wires.Wire`."""
        for message in body["messages"]:
            for part in bodies.of_type(message.get("content"), "image_url"):
                yield part["image_url"]["url"]

    def wanted(self, body: Mapping[str, Any]) -> int | None:
        """The larger of the two limits that a body can name: servers differ in which they heed."""
        named = [bodies.limit(body, name) for name in LIMITS]
        return max((each for each in named if each is not None), default=None)

    def change(self, body: dict[str, Any], output: int | None, field: str) -> list[str]:
        """See :class:`gateway.wires.Wire`."""
        changes: list[str] = []
        options = body.get("stream_options") or {}
        if body.get("stream") and options.get("include_usage") is not True:
            body["stream_options"] = {**options, "include_usage": True}
            changes.append("stream_options.include_usage = true")
        if output is None:
            return changes
        # One name, the one that this provider heeds: a server ignores the other, or refuses both at once.
        for name in LIMITS:
            if name != field and body.pop(name, None) is not None:
                changes.append(f"{name} left out")
        if body.get(field) != output:
            body[field] = output
            changes.append(f"{field} = {output}")
        return changes

    def probe(self, model: str, field: str) -> dict[str, Any]:
        """See :class:`gateway.wires.Wire`."""
        return {"model": model, "messages": [PROBE_MESSAGE], field: PROBE_TOKENS}

    def read(self, body: Any) -> Reply:
        """See :class:`gateway.wires.Wire`."""
        if not isinstance(body, dict):
            return Reply()
        model = body.get("model")
        whole = isinstance(body.get("choices"), list)
        return Reply(
            model if isinstance(model, str) else None,
            _usage(body.get("usage"), body.get("service_tier")),
            whole,
        )

    def reader(self, *, hide_usage: bool) -> StreamReader:
        """See :class:`gateway.wires.Wire`."""
        return _ChatStream(hide_usage)

    def error(self, status: int, message: str) -> dict[str, Any]:
        """See :class:`gateway.wires.Wire`."""
        return openai_error(status, message)


class _ChatStream:
    def __init__(self, hide_usage: bool) -> None:
        self.reply = Reply()
        self._hide = hide_usage
        self._finished = False
        self._tier: Any = None

    def read(self, data: bytes) -> bool:
        if data.strip() == b"[DONE]":
            self.reply.whole = True
            return True
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            return True
        if not isinstance(chunk, dict):
            return True
        if chunk.get("error"):
            self.reply.failed = True
        if isinstance(chunk.get("model"), str) and chunk["model"]:
            self.reply.model = chunk["model"]
        choices = chunk.get("choices")
        if isinstance(choices, list):
            self._finished |= any(isinstance(each, dict) and each.get("finish_reason") for each in choices)
        self._tier = chunk.get("service_tier") or self._tier
        if isinstance(chunk.get("usage"), dict):
            # Some servers count along with every chunk: until the last one such a count is no usage.
            if self._finished or choices == []:
                self.reply.usage = _usage(chunk["usage"], self._tier)
            # Some compatible servers never send [DONE].
            self.reply.whole |= self._finished
            return not (self._hide and choices == [])
        return True


def _usage(usage: Any, tier: Any) -> TokenUsage | None:
    """Compatible servers put cached tokens in one of three places."""
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    read = details.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    try:
        return usage_of(
            count(usage.get("prompt_tokens")),
            count(usage.get("completion_tokens")),
            maybe_count(usage.get("total_tokens")),
            maybe_count(read),
            maybe_count(details.get("cache_write_tokens")),
            unpriced=off_table(tier),
        )
    except NoCount:
        return None
