"""The model at the other end: OpenAI's chat completions over plain HTTP, not streamed."""

from __future__ import annotations

import http.client
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from reference.errors import ContextTooLong, ProviderError, Unusable

TIMEOUT = 3600.0
"""Seconds of silence. A hanging provider is the gateway's to give up, with a fault that is not ours; a run
whose gateway never answers ends at the wall clock."""
TRIES = 3
LONGEST_PAUSE = 30.0
"""Seconds. Whoever stands between us and the provider retries too, and longer."""
REPLY_BYTES = 16 * 2**20
CALLS = 64
"""Tool calls of one reply that are looked at."""
ARGUMENTS = 500_000
"""Characters of one call's arguments."""
DEPTH = 20
MOST_TOKENS = 10**12
"""Above it a usage is nonsense."""

Message = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One tool call as the model made it."""

    id: str
    name: str
    args: Any
    """What the arguments say; ``{"_raw": text}`` when that is no JSON object."""
    fault: str = ""
    """Why the arguments cannot be used."""


@dataclass(frozen=True)
class Reply:
    """One model reply."""

    text: str | None
    calls: tuple[Call, ...]
    tokens_in: int | None
    tokens_out: int | None


class Client:
    """Asks one model at one base URL."""

    def __init__(self, base_url: str, model: str, *, timeout: float = TIMEOUT, pause: float = 1.0) -> None:
        """
        Args:
            base_url: plain HTTP, up to ``/v1``.
            model: as the provider knows it.
            timeout: seconds that a request may go unanswered.
            pause: seconds before the first retry.

        Raises:
            Unusable: another scheme.
        """
        parts = urlsplit(base_url)
        if parts.scheme != "http":
            raise Unusable(f"{base_url} is not an http address; the relay's is")
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._path = f"{parts.path.rstrip('/')}/chat/completions"
        self._model = model
        self._timeout = timeout
        self._pause = pause

    def ask(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Reply:
        """The model's reply to a conversation.

        Raises:
            ContextTooLong: the provider takes less.
            ProviderError: every try failed, or what came back is no reply.
        """
        # ASCII: a provider may reject the bytes of a lone surrogate, and "?" is what the model then reads.
        request = {"model": self._model, "messages": _clean(list(messages)), "tools": list(tools)}
        body = json.dumps(request).encode("ascii")
        said = ""
        for attempt in range(TRIES):
            try:
                status, headers, data = self._post(body)
            except (OSError, http.client.HTTPException) as error:
                said, wait = f"{error.__class__.__name__}: {error}", 0.0
            else:
                if status == 200:
                    return parse_reply(data)
                said, wait = f"{status} {_reason(data)}", _seconds(headers.get("retry-after", ""))
                if status in {400, 413} and _too_long(data):
                    raise ContextTooLong(said)
                if status not in {408, 409, 425, 429} and status < 500:
                    break
                # Whoever says so has tried for as long as there is any sense in it.
                if headers.get("x-should-retry", "").strip().lower() == "false":
                    break
            if attempt + 1 < TRIES:
                time.sleep(min(max(wait, self._pause * 2**attempt), LONGEST_PAUSE))
        raise ProviderError(said[:500])

    def _post(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        try:
            connection.request("POST", self._path, body, {"Content-Type": "application/json"})
            with connection.getresponse() as response:
                headers = {name.lower(): value for name, value in response.getheaders()}
                return response.status, headers, response.read(REPLY_BYTES + 1)
        finally:
            connection.close()


def parse_reply(data: bytes) -> Reply:
    """Read a chat completion; what a model may have garbled becomes a call that says what is wrong.

    Raises:
        ProviderError: not a chat completion.
    """
    if len(data) > REPLY_BYTES:
        raise ProviderError(f"a reply of more than {REPLY_BYTES} bytes")
    try:
        whole = json.loads(data)
        message = whole["choices"][0]["message"]
        text, calls = message.get("content"), list(message.get("tool_calls") or [])
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise ProviderError(f"not a chat completion ({error.__class__.__name__})") from None
    usage = whole.get("usage")
    return Reply(
        text=text if isinstance(text, str) else None,
        calls=tuple(_call(item, number) for number, item in enumerate(calls[:CALLS])),
        tokens_in=_count(usage, "prompt_tokens"),
        tokens_out=_count(usage, "completion_tokens"),
    )


def _call(item: Any, number: int) -> Call:
    outer = item if isinstance(item, dict) else {}
    function = outer.get("function")
    inner = function if isinstance(function, dict) else {}
    name, identity, raw = inner.get("name"), outer.get("id"), inner.get("arguments")
    name = name[:100] if isinstance(name, str) else ""
    identity = identity[:200] if isinstance(identity, str) and identity else f"call_{number}"
    text = raw if isinstance(raw, str) else ""
    if len(text) > ARGUMENTS:
        return Call(identity, name, {"_raw": text[:1000]}, f"{len(text)} characters, more than {ARGUMENTS}")
    try:
        # Some models send nothing for a tool without arguments, some an object where a text is due.
        text = text if isinstance(raw, str | None) else json.dumps(raw)
        args = json.loads(text or "{}", parse_constant=_finite, parse_float=_finite, parse_int=_whole)
        if _deep(args):
            raise ValueError(f"nested deeper than {DEPTH}")
    except (ValueError, RecursionError) as error:
        return Call(identity, name, {"_raw": text}, f"not JSON ({str(error)[:100]})")
    args = {} if args is None else args
    return Call(identity, name, args, "" if isinstance(args, dict) else "not a JSON object")


def _deep(value: Any, depth: int = DEPTH) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth == 0 or any(_deep(item, depth - 1) for item in inner)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no number that JSON readers agree on")
    return number


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


def _count(usage: Any, key: str) -> int | None:
    value = usage.get(key) if isinstance(usage, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < MOST_TOKENS else None


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


def _reason(data: bytes) -> str:
    """One line of what an error's body says."""
    try:
        error = json.loads(data)["error"]
        said = str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, RecursionError, LookupError, TypeError):
        said = data[:200].decode("utf-8", "replace")
    return " ".join(said.split())[:300]


def _too_long(data: bytes) -> bool:
    text = data[:4000].lower()
    return b"context" in text or b"too long" in text or b"too large" in text


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0
