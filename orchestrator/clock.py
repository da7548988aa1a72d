"""Time: laps that only move forward, and stamps for people."""

import time
from datetime import UTC, datetime


class Clock:
    """Laps of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        """Seconds since the last lap."""
        now_ = time.monotonic()
        lap, self._last = now_ - self._last, now_
        return lap


def now() -> str:
    """UTC time, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
