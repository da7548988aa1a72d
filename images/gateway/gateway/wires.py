"""What the three protocols have in common: the shape of one, and of what is read out of a reply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from schema.gateway import WireProtocol
from schema.pricing import TokenUsage

TIERS = ("default", "standard", "on_demand")
"""What ordinary service is called; the last is Groq's word."""
PLACES = ("", "global", "not_available")
"""Where a request is computed that names no region; anywhere else costs more."""


PROBE_TOKENS = 16
"""Output limit of a probe: the least that every provider takes."""
PROBE_MESSAGE = {"role": "user", "content": "Say yes."}


class NoCount(Exception):
    """A provider's usage that cannot be: missing numbers, negative ones, parts larger than the whole."""


@dataclass
class Reply:
    """What is read out of a reply, whole or while it streams."""

    model: str | None = None
    usage: TokenUsage | None = None
    whole: bool = False
    """It came to its proper end."""
    failed: bool = False
    """The provider reported a fault inside the stream."""


class StreamReader(Protocol):
    """Reads one streamed reply, event by event."""

    reply: Reply

    def read(self, data: bytes) -> bool:
        """Take one event's data. False: the event is there only because the gateway asked for it."""


class Wire(Protocol):
    """One protocol."""

    name: WireProtocol
    path: str
    endpoint: str
    """Appended to the provider's base URL."""

    def headers(self, key: str | None) -> dict[str, str]:
        """The credential header, and what else the provider must be told."""

    def check(self, body: Mapping[str, Any]) -> None:
        """Hold a body against the allow-list.

        Raises:
            NotAllowed: something in it is not listed.
        """

    def pictures(self, body: Mapping[str, Any]) -> Iterable[str]:
        """The base64 of every picture of a checked body; everything else in it counts by bytes."""

    def wanted(self, body: Mapping[str, Any]) -> int | None:
        """Output tokens that the request asks for at most."""

    def change(self, body: dict[str, Any], output: int | None, field: str) -> list[str]:
        """Make the body countable, in place; say what was changed.

        Args:
            output: most output tokens: what is wanted, or what a cap leaves of it; None leaves the body's own
                limit alone.
            field: what this provider calls the limit in chat completions.
        """

    def probe(self, model: str, field: str) -> dict[str, Any]:
        """The smallest request that every provider of the protocol answers. ``field``: as in ``change``."""

    def read(self, body: Any) -> Reply:
        """A reply that was not streamed."""

    def reader(self, *, hide_usage: bool) -> StreamReader:
        """For a streamed reply. ``hide_usage``: the agent did not ask for the event with the usage."""

    def error(self, status: int, message: str) -> dict[str, Any]:
        """An error body that the protocol's clients understand."""


def count(value: Any) -> int:
    """A token count.

    Raises:
        NoCount: it is not one.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**9:
        raise NoCount
    return value


def maybe_count(value: Any) -> int | None:
    """A token count that may be missing.

    Raises:
        NoCount: it is there and not one.
    """
    return None if value is None else count(value)


def off_table(tier: Any, place: Any = None) -> str:
    """Why a reply costs other than the table says; empty when it was served as the table assumes.

    Args:
        tier: how fast a lane the reply says that it took.
        place: where it says that it was computed.
    """
    if tier not in (None, *TIERS):
        return f"it was served at the tier {str(tier)[:40]!r}"
    if place not in (None, *PLACES):
        return f"it was served in the region {str(place)[:40]!r}"
    return ""


def usage_of(
    prompt: int, output: int, total: int | None, read: int | None, written: int | None, *, unpriced: str
) -> TokenUsage:
    """A usage whose numbers agree.

    A total above input and output together holds reasoning that the provider lists apart: it was paid for.

    Raises:
        NoCount: the total is too small, or the cached parts are larger than the prompt.
    """
    if total is not None:
        if total < prompt + output:
            raise NoCount
        output = total - prompt
    if (read or 0) + (written or 0) > prompt:
        raise NoCount
    return TokenUsage(input=prompt, output=output, cache_read=read, cache_write=written, unpriced=unpriced)


def openai_error(status: int, message: str) -> dict[str, Any]:
    """The error body of both OpenAI protocols."""
    kinds = {400: "invalid_request_error", 403: "permission_error", 404: "invalid_request_error"}
    return {
        "error": {
            "message": message,
            "type": kinds.get(status, "invalid_request_error" if status < 500 else "server_error"),
            "param": None,
            "code": None,
        }
    }
