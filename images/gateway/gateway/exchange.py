"""One request's way through: forwarded, read while it is passed on, settled, told.

The provider's side runs in a task of its own and always reads a reply to its end: else an agent that hangs up
before the last event would never be charged.
"""

from __future__ import annotations

import asyncio
import json
import time

from gateway.bodies import prompt_bound, render
from gateway.books import Books
from gateway.faults import Fault, is_borne
from gateway.ledger import Full, Ledger, Passed, Ticket
from gateway.order import Head, Order, Part
from gateway.provider import Answer, Asked, Effort, Provider
from gateway.scrub import Scrub
from gateway.sse import Events, TooLong
from gateway.telling import Teller
from gateway.wires import PROBE_TOKENS, Reply
from schema.gateway import GatewayConfig, Outcome

PART = 64 * 2**10
"""Most bytes of a part: with the length of the queue it bounds what waits."""
FOR_ALL = frozenset({"credential", "quota"})
"""Faults that every other request would meet too."""
TELLING = FOR_ALL | {"payment", "unreachable"}
"""Faults that leave no doubt whose they are."""


class Spent(Exception):
    """The request is not forwarded: a cap is passed, or the run is over."""


class Exchanges:
    """Forwards orders, within the caps."""

    def __init__(self, config: GatewayConfig, provider: Provider, ledger: Ledger, teller: Teller) -> None:
        self._config = config
        self._provider = provider
        self.ledger = ledger
        self._teller = teller
        self.books = Books(config, ledger, teller, provider.clock)
        self.is_closing = False
        self._accepted = False
        """The provider has answered a request of this run: key and account are in order."""
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
            Spent: a cap is passed, or the run is over.
        """
        order.ticket = await self._admit(order)
        order.changes = order.wire.change(order.body, order.ticket.output, self._config.max_tokens_field)
        order.effort = Effort(order.seq)
        task = asyncio.create_task(self._forward(order))
        self._running[task] = order
        task.add_done_callback(self._running.pop)

    async def drain(self, seconds: float) -> int:
        """Wait for what is in flight, the agents being gone; the number that did not end in time.

        Nothing more is forwarded, and nothing asked for again.
        """
        self.is_closing = True
        self._provider.over.set()
        self._look_again()
        unfinished, end = 0, time.monotonic() + seconds
        while self._running:
            for order in self._running.values():
                order.abandoned = True
            _, pending = await asyncio.wait(list(self._running), timeout=max(end - time.monotonic(), 0))
            unfinished += len(pending)
            for task in pending:
                task.cancel()
            if pending:
                await asyncio.wait(pending)
        return unfinished

    async def _admit(self, order: Order) -> Ticket:
        wanted = order.wire.wanted(order.body)
        while True:
            if self.is_closing:
                raise Spent("its agent has ended")
            if self._teller.is_flooded:
                raise Spent("too many requests were refused")
            passed_before = self.ledger.passed
            asked = self.ledger.admit(order.bound, wanted)
            if isinstance(asked, Ticket):
                return asked
            if isinstance(asked, Passed):
                self.books.tell_passed(passed_before)
                raise Spent(asked.reason)
            assert isinstance(asked, Full)  # noqa: S101  # the third of three
            await self._settled.wait()

    async def _forward(self, order: Order) -> None:
        try:
            await self._serve(order)
        finally:
            if not order.settled:
                self._cut_off(order)
            self._room.release()
            await self._put(order, None)

    async def _serve(self, order: Order) -> None:
        # The agent's own bytes unless something had to be changed.
        sent = render(order.body) if order.changes else order.raw
        self._teller.body(order.seq, "request", sent)
        try:
            answer = await self._provider.ask(self._asked(order, sent), order.effort, _Bearing(self, order))
        except Fault as fault:
            await self._fail(order, fault)
            return
        if answer.status >= 300:
            self._settle(order, "rejected", answer.status, Reply())
            await self._deliver_rejection(order, answer)
            return
        self._begun(order)
        if answer.rest is None:
            await self._whole(order, answer)
        else:
            await self._stream(order, answer)

    def _asked(self, order: Order, sent: bytes) -> Asked:
        return Asked(order.wire.endpoint, order.wire.headers(self._key), sent)

    def _begun(self, order: Order) -> None:
        """From here on it is a reply, and charged as one whatever becomes of it."""
        self._accepted = True
        order.first_byte = time.monotonic() - order.effort.began

    async def _whole(self, order: Order, answer: Answer) -> None:
        self._teller.body(order.seq, "reply", self._scrub(answer.body))
        # Before delivery: what the agent has seen is on the ledger.
        self._read_whole(order, answer)
        await self._put(order, Head(answer.status, "application/json"))
        await self._put(order, self._scrub(answer.body))

    def _read_whole(self, order: Order, answer: Answer) -> None:
        reply = order.wire.read(json.loads(answer.body))
        order.reply_bytes = len(answer.body)
        self._settle(order, "replied" if reply.whole else "broken", answer.status, reply)

    async def _stream(self, order: Order, answer: Answer) -> None:
        """Pass a stream on as it comes, reading it; all of it but for an event nobody asked for."""
        assert answer.rest is not None  # noqa: S101  # by the caller
        hide = any(change.startswith("stream_options") for change in order.changes)
        reader = order.wire.reader(hide_usage=hide)
        events, scrub = Events(self._config.limits.reply_bytes), Scrub(self._key)
        kept = bytearray()
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
        except Fault as fault:
            whole = False
            self._provider.lost(order.effort, time.monotonic() - fault.waited)
        except TooLong:
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
        """Settle, and let those that wait look again."""
        self.books.settle(order, outcome, status, reply)
        self._look_again()

    def _look_again(self) -> None:
        self._settled.set()
        self._settled = asyncio.Event()

    def _cut_off(self, order: Order) -> None:
        """Settle what was cancelled. Before its first byte it is no reply, but may have become one."""
        if order.first_byte is not None:
            self._settle(order, "broken", None, Reply())
            return
        if order.effort.asking:
            order.effort.uncounted += 1
            if order.ticket:
                self.ledger.attempt_lost(order.ticket)
        self._settle(order, "failed", None, Reply())

    # --- faults

    async def _fail(self, order: Order, fault: Fault) -> None:
        """A request that failed for good: by the provider's fault, or by its own."""
        if order.ticket:
            # Its attempts are charged; the probe may need the room.
            self.ledger.released(order.ticket)
            order.ticket = None
        if await self._is_its_own(order, fault):
            self._provider.clock.take_back(order.seq)
            self._settle(order, "rejected", fault.status, Reply())
        else:
            self._settle(order, "failed", fault.status, Reply())
            self._lost(order, fault)
        if fault.body and fault.status:
            await self._put(order, Head(fault.status, fault.content_type, final=True))
            await self._put(order, self._scrub(fault.body))
        else:
            await self._say(order, 502, f"the provider gave no answer ({fault.kind})")

    async def _is_its_own(self, order: Order, fault: Fault) -> bool:
        """Whether the provider answers another request while it fails at this one.

        Else an agent could buy itself a new attempt: it need only ask for what breaks the provider.
        """
        if fault.kind in TELLING or self.is_closing:
            return False
        field = self._config.max_tokens_field
        body = order.wire.probe(self._config.model, field)
        raw = render(body)
        bound = prompt_bound(raw, ())
        ticket = self.ledger.admit_probe(bound, PROBE_TOKENS)
        if ticket is None:
            return False
        effort = Effort(order.seq)
        probe = Order(
            order.seq, order.wire, body, raw, bound, stream=False, probe=True, ticket=ticket, effort=effort
        )
        try:
            answer = await self._provider.probe(self._asked(probe, raw), effort)
        except Fault as failed:
            self._settle_failed_probe(probe, failed)
            return False
        except BaseException:
            self._cut_off(probe)
            raise
        if answer.status >= 300:
            self._settle(probe, "rejected", answer.status, Reply())
            return False
        self._begun(probe)
        self._read_whole(probe, answer)
        return True

    def _settle_failed_probe(self, probe: Order, fault: Fault) -> None:
        if fault.sent and probe.ticket:
            self.ledger.attempt_lost(probe.ticket)
        self._settle(probe, "failed", fault.status, Reply())

    def _lost(self, order: Order, fault: Fault) -> None:
        # After the end nobody waited for it: what came of the run is decided.
        if not self.is_closing or fault.kind in FOR_ALL:
            self.books.lost(order, fault)

    def _refusal(self, status: int) -> str:
        """The kind of fault that a refusal is; empty for one of the request itself.

        Some providers answer 403 to what they find indecent, and 402 to a limit that the account's rest
        does not cover: once they have taken the key such an answer is not about it.
        """
        if status == 401 or (status in {402, 403} and not self._accepted):
            return "credential"
        return "payment" if status == 402 else ""

    # --- answers that are no reply

    async def _deliver_rejection(self, order: Order, answer: Answer) -> None:
        kind = self._refusal(answer.status)
        if kind:
            # Such a body may quote the key, or a part of it.
            self._lost(order, Fault(kind, answer.status))
            await self._say(order, answer.status, "the provider refused the harness's account")
        else:
            # What is borne in general is not to be tried again where it came back all the same.
            await self._put(order, Head(answer.status, answer.content_type, final=is_borne(answer.status)))
            await self._put(order, self._scrub(answer.body))

    async def _say(self, order: Order, status: int, message: str) -> None:
        await self._put(order, Head(status, "application/json", final=True))
        await self._put(order, json.dumps(order.wire.error(status, message)).encode())


class _Bearing:
    """How one order's faults are borne."""

    def __init__(self, exchanges: Exchanges, order: Order) -> None:
        self._exchanges = exchanges
        self._order = order

    def failed(self, fault: Fault) -> bool:
        """See :class:`gateway.provider.Bearing`."""
        ticket = self._order.ticket
        return not (fault.sent and ticket) or self._exchanges.ledger.attempt_lost(ticket)

    def is_wanted(self) -> bool:
        """See :class:`gateway.provider.Bearing`."""
        return not self._order.abandoned and not self._exchanges.is_closing

    def waits(self, fault: Fault, attempt: int, seconds: float) -> None:
        """See :class:`gateway.provider.Bearing`."""
        self._exchanges.books.retry(self._order, fault, attempt, seconds)
