"""OpenAI responses."""

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
        "background",
        "conversation",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "model",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt_cache_key",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)
INCLUDED = frozenset({"reasoning.encrypted_content", "message.output_text.logprobs"})
TOOLS = frozenset({"apply_patch", "custom", "function", "local_shell"})
"""Tools that run where the agent runs."""


def _image(part: Mapping[str, Any]) -> None:
    bodies.inline_image(part.get("image_url"))


PARTS: Mapping[str, tuple[set[str], bodies.Rule | None]] = {
    "input_text": ({"text"}, None),
    "output_text": ({"text", "annotations", "logprobs"}, None),
    "refusal": ({"refusal"}, None),
    "input_image": ({"image_url", "detail"}, _image),
    "summary_text": ({"text"}, None),
    "reasoning_text": ({"text"}, None),
}
ITEMS: Mapping[str, set[str]] = {
    "message": {"id", "role", "content", "status", "phase"},
    "function_call": {"id", "call_id", "name", "arguments", "status"},
    "function_call_output": {"id", "call_id", "output", "status"},
    "custom_tool_call": {"id", "call_id", "name", "input", "status"},
    "custom_tool_call_output": {"id", "call_id", "output", "status"},
    "local_shell_call": {"id", "call_id", "action", "status"},
    "local_shell_call_output": {"id", "call_id", "output", "status"},
    "apply_patch_call": {"id", "call_id", "operation", "status"},
    "apply_patch_call_output": {"id", "call_id", "output", "status"},
    "reasoning": {"id", "summary", "content", "encrypted_content", "status"},
}


class Responses:
    """``POST /v1/responses``."""

    name: WireProtocol = "openai-responses"
    path = "/v1/responses"
    endpoint = "/responses"

    def headers(self, key: str | None) -> dict[str, str]:
        """Bearer."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def check(self, body: Mapping[str, Any]) -> None:
        """See :class:`gateway.wires.Wire`."""
        bodies.allow(body, FIELDS, "")
        for name in ("background", "store"):
            bodies.fixed(body, name, False)
        for name in ("previous_response_id", "conversation"):
            bodies.fixed(body, name)
        bodies.fixed(body, "service_tier", "default")
        bodies.fixed(body, "stream", True, False)
        included = body.get("include") or []
        if not isinstance(included, list) or not all(
            isinstance(each, str) and each in INCLUDED for each in included
        ):
            raise NotAllowed(f"'include' may only hold {', '.join(sorted(INCLUDED))}")
        for tool in bodies.objects(body.get("tools") or [], "tools"):
            bodies.kind(tool, TOOLS, "a tool")
        if not isinstance(body.get("input"), str):
            for item in bodies.objects(body.get("input"), "input"):
                self._item(item)

    def _item(self, item: Mapping[str, Any]) -> None:
        named = (
            "message" if item.get("type") is None and "role" in item else bodies.kind(item, ITEMS, "an input")
        )
        bodies.allow(item, {"type", *ITEMS[named]}, f"input {named}: ")
        for name in _contents(item):
            bodies.parts(item.get(name), PARTS, f"input {named}")

    def pictures(self, body: Mapping[str, Any]) -> Iterator[str]:
        """See :class:`gateway.wires.Wire`."""
        for item in body["input"] if isinstance(body["input"], list) else []:
            for name in _contents(item):
                for part in bodies.of_type(item.get(name), "input_image"):
                    yield part["image_url"]

    def wanted(self, body: Mapping[str, Any]) -> int | None:
        """``max_output_tokens``."""
        return bodies.limit(body, "max_output_tokens")

    def change(self, body: dict[str, Any], output: int | None, field: str) -> list[str]:  # noqa: ARG002
        """See :class:`gateway.wires.Wire`."""
        if output is None or (self.wanted(body) or output + 1) <= output:
            return []
        # The provider takes no less than 16.
        body["max_output_tokens"] = output
        return [f"max_output_tokens = {output}"]

    def probe(self, model: str, field: str) -> dict[str, Any]:  # noqa: ARG002
        """See :class:`gateway.wires.Wire`."""
        return {"model": model, "input": [PROBE_MESSAGE], "max_output_tokens": PROBE_TOKENS}

    def read(self, body: Any) -> Reply:
        """See :class:`gateway.wires.Wire`."""
        if not isinstance(body, dict):
            return Reply()
        model = body.get("model")
        whole = body.get("status") in {"completed", "incomplete"} or isinstance(body.get("output"), list)
        return Reply(
            model if isinstance(model, str) else None,
            _usage(body.get("usage"), body.get("service_tier")),
            whole,
            failed=body.get("status") == "failed",
        )

    def reader(self, *, hide_usage: bool) -> StreamReader:  # noqa: ARG002
        """See :class:`gateway.wires.Wire`."""
        return _ResponsesStream()

    def error(self, status: int, message: str) -> dict[str, Any]:
        """See :class:`gateway.wires.Wire`."""
        return openai_error(status, message)


def _contents(item: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of an input that hold parts. What a shell or a patch gave back is the agent's own text."""
    bare = str(item.get("type")).startswith(("local_shell", "apply_patch"))
    return ("content", "summary") if bare else ("content", "summary", "output")


class _ResponsesStream:
    def __init__(self) -> None:
        self.reply = Reply()

    def read(self, data: bytes) -> bool:
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            return True
        if not isinstance(event, dict):
            return True
        named, response = event.get("type"), event.get("response")
        if named in {"error", "response.failed"}:
            self.reply.failed = True
        if isinstance(response, dict):
            if isinstance(response.get("model"), str):
                self.reply.model = response["model"]
            if isinstance(response.get("usage"), dict):
                self.reply.usage = _usage(response["usage"], response.get("service_tier"))
        if named in {"response.completed", "response.incomplete"}:
            self.reply.whole = True
        return True


def _usage(usage: Any, tier: Any) -> TokenUsage | None:
    if not isinstance(usage, dict):
        return None
    details = usage.get("input_tokens_details")
    details = details if isinstance(details, dict) else {}
    try:
        return usage_of(
            count(usage.get("input_tokens")),
            count(usage.get("output_tokens")),
            maybe_count(usage.get("total_tokens")),
            maybe_count(details.get("cached_tokens")),
            maybe_count(details.get("cache_write_tokens")),
            unpriced=off_table(tier),
        )
    except NoCount:
        return None
