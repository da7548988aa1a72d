"""Provider faults: which are borne, how long to wait, and how much time they cost. Does no I/O."""

from __future__ import annotations

import email.utils
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

TRANSIENT = frozenset({408, 409, 425, 429})
"""Statuses below 500 that another attempt may mend."""
OVERLOADED = TRANSIENT | {529}
SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Error codes of a 429 that no waiting mends."""
NO_CREDIT = "Your credit balance is too low"
"""How Anthropic's 400 begins when the account is empty."""
OVERSIZE = "Request too large"
"""How the message of a 429 begins that refuses one request for its size."""
EMBEDDED = {
    "api_error": 500,
    "authentication_error": 401,
    "billing_error": 402,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "server_error": 500,
    "timeout_error": 504,
}
"""What errors are called inside a 200 → the status that they would have come with."""


@dataclass(eq=False)
class Fault(Exception):
    """A provider's failure to answer one attempt."""

    kind: str
    """One word, such as ``rate-limited``, ``server-error``, ``reset``, ``stalled``, ``unreachable``."""
    status: int | None = None
    retry_after: float | None = None
    body: bytes = b""
    content_type: str = "application/json"
    final: bool = False
    """No further attempt can mend it, or none is made."""
    sent: bool = False
    """The provider had the request: a reply may have been generated, and billed, that did not come."""
    waited: float = 0.0
    """Seconds since the last sign of life, where it broke while a body was read."""


def is_borne(status: int) -> bool:
    """Whether another attempt may mend it."""
    return status >= 500 or status in TRANSIENT


def of_status(status: int, headers: Mapping[str, str], body: bytes, now: float) -> Fault | None:
    """The fault that an HTTP answer is; None when it is an answer to pass on. ``now``: seconds since 1970."""
    code, message = _said(body)
    if status == 400 and message.startswith(NO_CREDIT):
        return Fault("quota", status, None, body, final=True)
    if not is_borne(status) or (status == 429 and message.startswith(OVERSIZE)):
        return None
    if code in SPENT:
        return Fault("quota", status, None, body, final=True)
    kind = "rate-limited" if status in OVERLOADED else "server-error"
    return Fault(
        kind,
        status,
        retry_after(headers, now),
        body,
        headers.get("content-type", "application/json"),
        final=headers.get("x-should-retry", "").lower() == "false",
    )


def inside(body: bytes, *, first: bool = False) -> int | None:
    """The status of the error that came with a 200; None when it is no error.

    Args:
        body: a whole answer, or the data of an event.
        first: it is the first event of a stream, where an error may have the form of a part of a reply.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    error = value.get("error")
    if first and value.get("type") == "error" and not error:
        # OpenAI's responses have its fields beside the type.
        error = value
    reply = any(value.get(name) is not None for name in ("choices", "content", "output"))
    if not error or (reply and not first):
        return None
    named = [error.get("code"), error.get("type")] if isinstance(error, dict) else []
    for name in named:
        if isinstance(name, int) and 400 <= name < 600:
            return name
        if isinstance(name, str) and name in EMBEDDED:
            return EMBEDDED[name]
    return 502


def _said(body: bytes) -> tuple[str, str]:
    """Code and message of an error body; empty where it has none."""
    try:
        error = json.loads(body)["error"]
        code, message = error.get("code") or error.get("type"), error.get("message")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return "", ""
    return code if isinstance(code, str) else "", message if isinstance(message, str) else ""


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the provider asks to wait (RFC 9110 §10.2.3, and the finer ``retry-after-ms``)."""
    for name, scale in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) / scale
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < 86_400:
            return seconds
    try:
        at = email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp()
    except (KeyError, ValueError, TypeError):
        return None
    return min(max(0.0, at - now), 86_400.0)


def backoff(attempt: int) -> float:
    """Seconds to wait after the ``attempt``-th failure when the provider does not say: 0.5, 1, 2 … 30."""
    return min(0.5 * 2.0 ** (attempt - 1), 30.0)


Span = tuple[float, float]


@dataclass
class FaultClock:
    """Time lost to provider faults. Faults of concurrent requests overlap: each instant counts once."""

    budget: float
    """Seconds; the most that is ever counted."""
    _kept: list[Span] = field(default_factory=list)
    """Disjoint, ordered, as all lists of spans here."""
    _open: dict[int, list[Span]] = field(default_factory=dict)
    """Of requests on their way: such a one may turn out to be at fault itself."""

    def add(self, start: float, end: float, seq: int) -> None:
        """Count the time from ``start`` to ``end``, lost by the request ``seq``."""
        if end > start:
            self._open[seq] = _joined([*self._open.get(seq, []), (start, end)])

    def take_back(self, seq: int) -> None:
        """What the request lost was its own doing."""
        self._open.pop(seq, None)

    def keep(self, seq: int) -> None:
        """It was not."""
        self._kept = _joined([*self._kept, *self._open.pop(seq, [])])

    @property
    def seconds(self) -> float:
        """Counted so far, at most the budget."""
        spans = _joined([*self._kept, *(span for spans in self._open.values() for span in spans)])
        return min(sum(end - start for start, end in spans), self.budget)

    @property
    def left(self) -> float:
        """Of the budget."""
        return self.budget - self.seconds


def _joined(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
