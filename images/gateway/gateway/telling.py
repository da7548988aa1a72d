"""Standard output: one JSON line an event, for the orchestrator to follow."""

from __future__ import annotations

import json
import time
from typing import BinaryIO, Literal

from schema.gateway import Body, Breach, Closed, GatewayEvent, Refused

SHOWN = 100
"""Refusals written out one by one; further ones are counted."""


class Teller:
    """Writes events, each flushed whole. Blocks when nobody reads: nothing is forwarded that is not told."""

    def __init__(self, out: BinaryIO, *, keep_bodies: bool, refusals: int) -> None:
        """``refusals``: how many make a flood."""
        self._out = out
        self._keep_bodies = keep_bodies
        self._most = refusals
        self._began = time.monotonic()
        self._ended = False
        self.refused = 0

    def now(self) -> float:
        """Seconds since the start."""
        return self.since(time.monotonic())

    def since(self, moment: float) -> float:
        """A monotonic time as seconds since the start."""
        return round(moment - self._began, 6)

    def tell(self, event: GatewayEvent) -> None:
        """Write one event; none after the last."""
        if self._ended:
            return
        self._ended = isinstance(event, Closed)
        line = json.dumps(event.model_dump(by_alias=True), separators=(",", ":"), ensure_ascii=False)
        # Lone surrogates, which an agent can write into a name that is quoted here, are not UTF-8.
        self._out.write(line.encode("utf-8", "replace") + b"\n")
        self._out.flush()

    @property
    def is_flooded(self) -> bool:
        """Whether too many requests were refused."""
        return self.refused > self._most

    def refuse(self, seq: int, status: int, reason: str) -> None:
        """Write a refusal; too many of them end the run."""
        self.refused += 1
        if self.refused <= SHOWN:
            self.tell(Refused(at=self.now(), seq=seq, status=status, reason=reason[:300]))
        if self.refused == self._most + 1:
            self.tell(Breach(at=self.now(), cap="requests", reason=f"{self.refused} requests were refused"))

    def body(self, seq: int, side: Literal["request", "reply"], data: bytes) -> None:
        """Write a body, if bodies are kept."""
        if not self._keep_bodies:
            return
        # Never encoded: what is kept is searched for credentials.
        self.tell(Body(at=self.now(), seq=seq, side=side, text=data.decode("utf-8", "backslashreplace")))
