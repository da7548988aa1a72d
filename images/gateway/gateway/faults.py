"""Provider faults: which are borne, how long to wait, and how much time they cost. Does no I/O."""

from __future__ import annotations

import email.utils
from collections.abc import Mapping
from dataclasses import dataclass, field

BORNE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""HTTP statuses that another attempt may mend."""
CREDENTIAL = frozenset({401, 402, 403})
"""Statuses by which a provider refuses the harness's key or its account, not the agent's request."""
SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Error codes of a 429 that no waiting mends."""


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
    """No further attempt can mend it."""


def of_status(
    status: int, headers: Mapping[str, str], body: bytes, code: str | None, now: float
) -> Fault | None:
    """The fault that an HTTP answer is; None when it is an answer to pass on. ``now``: seconds since 1970."""
    if status not in BORNE:
        return None
    if code in SPENT:
        return Fault("quota", status, None, body, final=True)
    kind = "rate-limited" if status in {408, 409, 425, 429, 529} else "server-error"
    return Fault(
        kind,
        status,
        retry_after(headers, now),
        body,
        headers.get("content-type", "application/json"),
        final=headers.get("x-should-retry", "").lower() == "false",
    )


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


@dataclass
class FaultClock:
    """Time lost to provider faults. Faults of concurrent requests overlap: each instant counts once."""

    budget: float
    """Seconds; the most that is ever counted."""
    _spans: list[tuple[float, float]] = field(default_factory=list)
    """Disjoint, ordered."""

    def add(self, start: float, end: float) -> None:
        """Count the time from ``start`` to ``end``."""
        if end <= start:
            return
        apart = [span for span in self._spans if span[1] < start or span[0] > end]
        joined = [span for span in self._spans if not (span[1] < start or span[0] > end)]
        start = min([start, *(span[0] for span in joined)])
        end = max([end, *(span[1] for span in joined)])
        self._spans = sorted([*apart, (start, end)])

    @property
    def seconds(self) -> float:
        """Counted so far, at most the budget."""
        return min(sum(end - start for start, end in self._spans), self.budget)

    @property
    def left(self) -> float:
        """Of the budget."""
        return self.budget - self.seconds
