"""What becomes of requests, written down: charged in the ledger, told as events."""

from __future__ import annotations

from gateway.faults import Fault, FaultClock
from gateway.ledger import Ledger, Passed
from gateway.order import Order
from gateway.telling import Teller
from gateway.wires import Reply
from schema.gateway import Breach, Exchange, GatewayConfig, Outcome, ProviderLost, Retry
from schema.pricing import cost

NAME = 200
"""Longest model id that is recorded."""
UNCOUNTED = "an attempt broke after it was sent, and may have been billed"


class Books:
    """The one place where an order is settled."""

    def __init__(self, config: GatewayConfig, ledger: Ledger, teller: Teller, clock: FaultClock) -> None:
        self._price = config.price
        self._ledger = ledger
        self._teller = teller
        self._clock = clock

    def settle(self, order: Order, outcome: Outcome, status: int | None, reply: Reply) -> None:
        """Charge the request and write its line of the ledger."""
        priced = cost(reply.usage, self._price)
        counted = outcome in {"replied", "broken"}
        passed_before = self._ledger.passed
        if order.ticket and counted:
            self._ledger.replied(order.ticket, reply.usage, priced, whole=outcome == "replied")
        elif order.ticket:
            self._ledger.released(order.ticket)
        order.ticket, order.settled = None, True
        if not order.probe:
            self._clock.keep(order.seq)
        uncounted = order.effort.uncounted
        self._teller.tell(
            Exchange(
                at=self._teller.now(),
                seq=order.seq,
                protocol=order.wire.name,
                stream=order.stream,
                outcome=outcome,
                probe=order.probe,
                status=status,
                answered=reply.model[:NAME] if reply.model else None,
                usage=reply.usage,
                pico_usd=priced.pico_usd if counted and not uncounted else None,
                cost_note=(priced.reason if counted else "") or (UNCOUNTED if uncounted else ""),
                attempts=order.effort.attempts,
                uncounted=uncounted,
                began=self._teller.since(order.effort.began),
                first_byte=order.first_byte,
                fault_seconds=order.effort.fault_seconds,
                excluded_seconds=self._clock.seconds,
                request_bytes=len(order.raw),
                reply_bytes=order.reply_bytes,
                changes=order.changes,
                abandoned=order.abandoned,
            )
        )
        self.tell_passed(passed_before)

    def tell_passed(self, before: Passed | None) -> None:
        """Tell of a cap that is passed now and was not ``before``."""
        passed = self._ledger.passed
        if passed and before is None:
            self._teller.tell(
                Breach(at=self._teller.now(), cap=passed.cap, scope=passed.scope, reason=passed.reason)
            )

    def retry(self, order: Order, fault: Fault, attempt: int, wait: float) -> None:
        """Tell of a fault that is borne."""
        self._teller.tell(
            Retry(
                at=self._teller.now(),
                seq=order.seq,
                attempt=attempt,
                kind=fault.kind,
                status=fault.status,
                wait=wait,
                excluded_seconds=self._clock.seconds,
            )
        )

    def lost(self, order: Order, fault: Fault) -> None:
        """Tell of a request that failed for good by the provider's fault."""
        self._teller.tell(
            ProviderLost(
                at=self._teller.now(),
                seq=order.seq,
                kind=fault.kind,
                status=fault.status,
                excluded_seconds=self._clock.seconds,
            )
        )
