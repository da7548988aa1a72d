"""A request on its way: what was asked, and the answer as the agent takes it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from gateway.ledger import Ticket
from gateway.provider import Effort
from gateway.wires import Wire

QUEUE = 32
"""Parts of a reply that wait for the agent to take them."""


@dataclass(frozen=True)
class Head:
    """How an answer to the agent begins."""

    status: int
    content_type: str
    final: bool = False
    """Tell the agent's client library not to try again: trying is the gateway's business."""


Part = Head | bytes | None
"""None ends an answer."""


@dataclass
class Order:
    """A checked request and what becomes of it."""

    seq: int
    wire: Wire
    body: dict[str, Any]
    raw: bytes
    bound: int
    """Tokens that its prompt has at most."""
    stream: bool
    probe: bool = False
    """The gateway's own."""
    parts: asyncio.Queue[Part] = field(default_factory=lambda: asyncio.Queue(QUEUE))
    """The answer, for the agent."""
    changes: list[str] = field(default_factory=list)
    ticket: Ticket | None = None
    """Held until the order is settled, or has failed for good."""
    settled: bool = False
    effort: Effort = field(default_factory=Effort)
    first_byte: float | None = None
    reply_bytes: int = 0
    abandoned: bool = False
    """The agent hung up or stopped reading."""
