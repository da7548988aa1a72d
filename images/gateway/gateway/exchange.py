"""One request's way through: forwarded, read while it is passed on, settled, told.

The provider's side runs in a task of its own and always reads a reply to its end: else an agent that hangs up
before the last event would never be charged.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

from gateway.bodies import render
from gateway.faults import CREDENTIAL, Fault, is_borne
from gateway.ledger import Full, Ledger, Passed, Ticket
from gateway.provider import Answer, Effort, Provider, Told
from gateway.scrub import Scrub
from gateway.sse import Events, TooLong
from gateway.telling import Teller
from gateway.wires import Reply, Wire
from schema.gateway import Breach, Exchange, GatewayConfig, Outcome, ProviderLost, Retry
from schema.pricing import cost

QUEUE = 32
"""Parts of a reply that wait for the agent to take them."""
PART = 64 * 2**10
"""Most bytes of a part: the two together bound what waits."""
NAME = 200
"""Longest model id that is recorded."""


@dataclass(frozen=True)
class Head:
    """How an answer to the agent begins."""

    status: int
    content_type: str
    final: bool = False
    """Tell the agent's client library not to try again: trying is the gateway's business."""


Part = Head | bytes | None
"""None ends an answer."""


class Spent(Exception):
    """A cap is passed: the request is not forwarded."""


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
    parts: asyncio.Queue[Part] = field(default_factory=lambda: asyncio.Queue(QUEUE))
    """The answer, for the agent."""
    changes: list[str] = field(default_factory=list)
    ticket: Ticket | None = None
    """Held until the order is settled."""
    effort: Effort = field(default_factory=Effort)
    first_byte: float | None = None
    reply_bytes: int = 0
    abandoned: bool = False


class Exchanges:
    """Forwards orders, within the caps."""

    def __init__(self, config: GatewayConfig, provider: Provider, ledger: Ledger, teller: Teller) -> None:
        self._config = config
        self._provider = provider
        self._ledger = ledger
        self._teller = teller
        self._room = asyncio.Semaphore(config.limits.exchanges)
        self._settled = asyncio.Event()
        self._running: dict[asyncio.Task[None], Order] = {}
        self._key = config.key.get_secret_value() if config.key else None
        self._scrub = Scrub(self._key).whole

    async def enter(self) -> None:
        """Take a place before a body is read: no more bodies than places are ever held in memory."""
        await self._room.acquire()

    def leave(self) -> None:
        """Give the place back of a request that was not begun."""
        self._room.release()

    async def begin(self, order: Order) -> None:
        """Start forwarding a request that has a place; the answer comes through ``order.parts``.

        Raises:
            Spent: a cap is passed.
        """
        order.ticket = await self._admit(order)
        order.changes = order.wire.change(order.body, order.ticket.output, self._config.max_tokens_field)
        order.effort = Effort()
        task = asyncio.create_task(self._forward(order))
        self._running[task] = order
        task.add_done_callback(self._running.pop)

    async def drain(self, seconds: float) -> int:
        """Wait for what is in flight, the agents being gone; the number that did not end in time."""
        for order in self._running.values():
            order.abandoned = True
        if not self._running:
            return 0
        _, pending = await asyncio.wait(list(self._running), timeout=seconds)
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)
        return len(pending)

    async def _admit(self, order: Order) -> Ticket:
        wanted = order.wire.wanted(order.body)
        while True:
            passed_before = self._ledger.passed
            asked = self._ledger.admit(order.bound, wanted)
            if isinstance(asked, Ticket):
                return asked
            if isinstance(asked, Passed):
                self._tell_passed(passed_before)
                raise Spent(asked.reason)
            assert isinstance(asked, Full)  # noqa: S101  # the third of three
            await self._settled.wait()

    async def _forward(self, order: Order) -> None:
        try:
            await self._serve(order)
        finally:
            if order.ticket:
                # Cancelled after it was forwarded: charged at its worst case.
                self._settle(order, "broken", None, Reply())
            self._room.release()
            await self._put(order, None)

    async def _serve(self, order: Order) -> None:
        # The agent's own bytes unless something had to be changed.
        sent = render(order.body) if order.changes else order.raw
        self._teller.body(order.seq, "request", sent)
        try:
            answer = await self._provider.ask(
                order.wire.endpoint, order.wire.headers(self._key), sent, order.effort, self._told(order)
            )
        except Fault as fault:
            self._settle(order, "failed", fault.status, Reply())
            self._lost(order, fault)
            await self._deliver_fault(order, fault)
            return
        if answer.status >= 300:
            self._settle(order, "rejected", answer.status, Reply())
            await self._deliver_rejection(order, answer)
        elif answer.rest is None:
            await self._whole(order, answer)
        else:
            await self._stream(order, answer)

    async def _whole(self, order: Order, answer: Answer) -> None:
        reply = order.wire.read(json.loads(answer.body))
        order.reply_bytes = len(answer.body)
        order.first_byte = time.monotonic() - order.effort.began
        self._teller.body(order.seq, "reply", self._scrub(answer.body))
        # Before delivery: what the agent has seen is on the ledger.
        self._settle(order, "replied" if reply.whole else "broken", answer.status, reply)
        await self._put(order, Head(answer.status, "application/json"))
        await self._put(order, self._scrub(answer.body))

    async def _stream(self, order: Order, answer: Answer) -> None:
        """Pass a stream on as it comes, reading it; all of it but for an event nobody asked for."""
        assert answer.rest is not None  # noqa: S101  # by the caller
        hide = any(change.startswith("stream_options") for change in order.changes)
        reader = order.wire.reader(hide_usage=hide)
        events, scrub = Events(self._config.limits.reply_bytes), Scrub(self._key)
        kept = bytearray()
        order.first_byte = time.monotonic() - order.effort.began
        await self._put(order, Head(answer.status, "text/event-stream"))
        whole = True
        try:
            chunk: bytes | None = answer.body
            while chunk is not None:
                order.reply_bytes += len(chunk)
                if self._config.keep_bodies:
                    kept += chunk
                shown = [(event.raw, reader.read(event.data)) for event in events.feed(chunk)]
                # With an event to hide, only whole events can be passed on.
                out = b"".join(raw for raw, show in shown if show) if hide else chunk
                await self._put(order, scrub.feed(out))
                chunk = await anext(answer.rest, None)
        except (Fault, TooLong):
            whole = False
        await self._put(order, scrub.feed(events.rest() if hide else b"") + scrub.rest())
        self._teller.body(order.seq, "reply", self._scrub(bytes(kept)))
        whole = whole and reader.reply.whole and not reader.reply.failed
        self._settle(order, "replied" if whole else "broken", answer.status, reader.reply)

    async def _put(self, order: Order, part: Part) -> None:
        pieces = (
            [part[at : at + PART] for at in range(0, len(part), PART)] if isinstance(part, bytes) else [part]
        )
        for piece in pieces:
            if not order.abandoned:
                await self._put_piece(order, piece)

    async def _put_piece(self, order: Order, piece: Part) -> None:
        try:
            async with asyncio.timeout(self._config.limits.delivery_seconds):
                await order.parts.put(piece)
        except TimeoutError:
            order.abandoned = True
            # What it has not taken is dropped, and its answer ends here.
            while not order.parts.empty():
                order.parts.get_nowait()
            order.parts.put_nowait(None)

    # --- the account

    def _settle(self, order: Order, outcome: Outcome, status: int | None, reply: Reply) -> None:
        """Charge the request, write its line of the ledger, let those that wait look again."""
        assert order.ticket is not None  # noqa: S101  # settled once
        priced = cost(reply.usage, self._config.price)
        counted = outcome in {"replied", "broken"}
        passed_before = self._ledger.passed
        if counted:
            self._ledger.replied(order.ticket, reply.usage, priced, whole=outcome == "replied")
        else:
            self._ledger.released(order.ticket)
        order.ticket = None
        self._teller.tell(
            Exchange(
                at=self._teller.now(),
                seq=order.seq,
                protocol=order.wire.name,
                stream=order.stream,
                outcome=outcome,
                status=status,
                answered=reply.model[:NAME] if reply.model else None,
                usage=reply.usage,
                pico_usd=priced.pico_usd if counted else None,
                cost_note=priced.reason if counted else "",
                attempts=order.effort.attempts,
                began=self._teller.since(order.effort.began),
                first_byte=order.first_byte,
                fault_seconds=order.effort.fault_seconds,
                request_bytes=len(order.raw),
                reply_bytes=order.reply_bytes,
                changes=order.changes,
                abandoned=order.abandoned,
            )
        )
        self._tell_passed(passed_before)
        self._settled.set()
        self._settled = asyncio.Event()

    def _tell_passed(self, before: Passed | None) -> None:
        passed = self._ledger.passed
        if passed and before is None:
            self._teller.tell(
                Breach(at=self._teller.now(), cap=passed.cap, scope=passed.scope, reason=passed.reason)
            )

    def _told(self, order: Order) -> Told:
        def told(fault: Fault, attempt: int, wait: float) -> None:
            clock = self._provider.clock
            self._teller.tell(
                Retry(
                    at=self._teller.now(),
                    seq=order.seq,
                    attempt=attempt,
                    kind=fault.kind,
                    status=fault.status,
                    wait=wait,
                    excluded_seconds=min(clock.seconds + wait, clock.budget),
                )
            )

        return told

    def _lost(self, order: Order, fault: Fault) -> None:
        self._teller.tell(
            ProviderLost(
                at=self._teller.now(),
                seq=order.seq,
                kind=fault.kind,
                status=fault.status,
                excluded_seconds=self._provider.clock.seconds,
            )
        )

    # --- answers that are no reply

    async def _deliver_fault(self, order: Order, fault: Fault) -> None:
        if fault.body and fault.status:
            await self._put(order, Head(fault.status, fault.content_type, final=True))
            await self._put(order, self._scrub(fault.body))
        else:
            await self._say(order, 502, f"the provider gave no answer ({fault.kind})")

    async def _deliver_rejection(self, order: Order, answer: Answer) -> None:
        if answer.status in CREDENTIAL:
            # Such a body may quote the key, or a part of it.
            self._lost(order, Fault("credential", answer.status))
            await self._say(order, answer.status, "the provider refused the harness's account")
        else:
            # What is borne in general is not to be tried again where it came back all the same.
            await self._put(order, Head(answer.status, answer.content_type, final=is_borne(answer.status)))
            await self._put(order, self._scrub(answer.body))

    async def _say(self, order: Order, status: int, message: str) -> None:
        await self._put(order, Head(status, "application/json", final=True))
        await self._put(order, json.dumps(order.wire.error(status, message)).encode())
