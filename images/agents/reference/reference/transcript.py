"""Writes the transcript contract: one JSON object a line, ``{"ts", "type", "data"}`` (Standard §11)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

FULL = 16 * 2**20
"""Bytes after which texts are cut: readers take 32 MiB, and the end has to be among them."""
CUT = 2000


class Transcript:
    """Appends events as they happen."""

    def __init__(self, root: Path) -> None:
        self.started = time.time_ns()
        self.id = clock(self.started).replace(":", "-").replace(".", "-")
        folder = root / ".copperhead/runs" / self.id
        folder.mkdir(parents=True)
        self._path = folder / "transcript.jsonl"
        self._bytes = 0

    def add(self, kind: str, **data: Any) -> None:
        """One event, now."""
        if self._bytes > FULL:
            data = _cut(data)
        # ASCII: a model's broken text may hold lone surrogates, which no UTF-8 file can.
        line = json.dumps({"ts": clock(time.time_ns()), "type": kind, "data": data}, separators=(",", ":"))
        with self._path.open("a", encoding="ascii") as file:
            file.write(line + "\n")
        self._bytes += len(line)

    @property
    def milliseconds(self) -> int:
        """Since the start."""
        return (time.time_ns() - self.started) // 1_000_000


def clock(nanoseconds: int) -> str:
    """UTC time, ISO 8601, milliseconds."""
    seconds, rest = divmod(nanoseconds // 1_000_000, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03}Z"


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > CUT:
        return f"{value[:CUT]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list) else value
