"""Caps: what has been used, what requests in flight may still use, and whether one more fits. Does no I/O.

Every admitted request holds its worst case until it is settled with what it used. So in whatever order they
are admitted and settled, what was used never passes a cap, as long as no reply is longer than its bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from schema.gateway import GatewayCap, GatewayCaps
from schema.pricing import Cost, Price, TokenUsage, worst_rates

MICRO = 10**6
"""Pico-USD in a micro-USD."""


@dataclass(frozen=True)
class Ticket:
    """Admission of one request and what it holds."""

    output: int | None
    """Most output tokens it may have; None: no cap needs a limit."""
    tokens: int
    pico: int
    turn: bool = True
    """Whether its reply is one of the agent's."""


@dataclass(frozen=True)
class Full:
    """It does not fit beside the requests in flight; it may when one of them is settled."""


@dataclass(frozen=True)
class Passed:
    """It does not fit at all: a cap is reached."""

    cap: GatewayCap
    reason: str
    scope: Literal["run", "suite"] = "run"


class Ledger:
    """One run's account."""

    def __init__(self, caps: GatewayCaps, price: Price | None, max_output: int) -> None:
        """``max_output``: output tokens of a request that asks for no limit.

        Raises:
            ValueError: a cap on USD, and a model without a price.
        """
        self._caps = caps
        self._max_output = max_output
        self._rates = worst_rates(price) if price else None
        self._has_usd_cap = caps.micro_usd is not None or caps.suite_micro_usd is not None
        if self._has_usd_cap and self._rates is None:
            raise ValueError("a cap on USD needs a model with a price")
        self.replies = 0
        self.tokens = 0
        """Counted; for replies of unknown usage, their worst case."""
        self.pico = 0
        self._held: list[Ticket] = []
        self.passed: Passed | None = None

    def admit(self, input_bound: int, wanted: int | None) -> Ticket | Full | Passed:
        """Ask for one request to be forwarded.

        Args:
            input_bound: tokens that its prompt can have at most.
            wanted: output tokens it asks for; None when it names no limit.
        """
        if self.passed:
            return self.passed
        turns = self.replies + sum(ticket.turn for ticket in self._held)
        if self._caps.turns is not None and turns >= self._caps.turns:
            return self._none("turns", f"{self.replies} replies were given, the cap is {self._caps.turns}")
        output = self._max_output if wanted is None else wanted
        limited = False
        for room, cap, scope in self._rooms(input_bound):
            limited = True
            if room < output and self._held:
                return Full()
            if room < 1:
                return self._none(cap, f"a prompt of at most {input_bound} tokens no longer fits", scope)
            output = min(output, room)
        return self._hold(input_bound, output, limited=limited)

    def admit_probe(self, input_bound: int, output: int) -> Ticket | None:
        """Admit a request of the gateway's own, which takes no turn; None where it does not fit now."""
        if self.passed or any(room < output for room, *_ in self._rooms(input_bound)):
            return None
        return self._hold(input_bound, output, limited=True, turn=False)

    def attempt_lost(self, ticket: Ticket) -> bool:
        """Charge an attempt that may have been billed at its worst case.

        Returns:
            Whether the ticket, held on, still fits: only then may there be another attempt.
        """
        self.tokens += ticket.tokens
        self.pico += ticket.pico
        return all(room >= 0 for room, *_ in self._rooms(0))

    def replied(self, ticket: Ticket, usage: TokenUsage | None, cost: Cost, *, whole: bool) -> None:
        """Settle a request that got a reply. ``whole``: it came to its end, so it should have told its usage.

        Under a cap that needs its usage, a whole reply without one ends the run: what cannot be counted
        cannot be capped. A broken one is charged at its worst case.
        """
        self._held.remove(ticket)
        self.replies += ticket.turn
        self.tokens += ticket.tokens if usage is None else usage.total
        self.pico += ticket.pico if cost.pico_usd is None else cost.pico_usd
        if whole and self._has_usd_cap and cost.pico_usd is None:
            self.passed = self.passed or Passed("usd", f"a reply's cost is unknown: {cost.reason}")
        if whole and self._caps.tokens is not None and usage is None:
            self.passed = self.passed or Passed("tokens", "a reply's tokens are unknown")
        self._look_back()

    def _hold(self, input_bound: int, output: int, *, limited: bool, turn: bool = True) -> Ticket:
        input_rate, output_rate = self._rates or (0, 0)
        ticket = Ticket(
            output=output if limited else None,
            tokens=input_bound + output,
            pico=input_bound * input_rate + output * output_rate,
            turn=turn,
        )
        self._held.append(ticket)
        return ticket

    def released(self, ticket: Ticket) -> None:
        """Settle a request that got no reply."""
        self._held.remove(ticket)

    def _look_back(self) -> None:
        """A provider that gave more than it was asked for is told at once, not by the next request."""
        if self._caps.tokens is not None and self.tokens > self._caps.tokens:
            self.passed = self.passed or Passed("tokens", f"{self.tokens} tokens were used")
        for limit, scope in self._budgets():
            if self.pico > limit * MICRO:
                reason = f"{self.pico / MICRO**2:.6f} USD were spent"
                self.passed = self.passed or Passed("usd", reason, scope)

    def _budgets(self) -> list[tuple[int, Literal["run", "suite"]]]:
        """The caps on USD that are in force."""
        budgets: list[tuple[int, Literal["run", "suite"]]] = []
        if self._caps.micro_usd is not None:
            budgets.append((self._caps.micro_usd, "run"))
        if self._caps.suite_micro_usd is not None:
            budgets.append((self._caps.suite_micro_usd, "suite"))
        return budgets

    def _none(self, cap: GatewayCap, reason: str, scope: Literal["run", "suite"] = "run") -> Full | Passed:
        if self._held:
            return Full()
        self.passed = Passed(cap, reason, scope)
        return self.passed

    def _rooms(self, input_bound: int) -> list[tuple[int, GatewayCap, Literal["run", "suite"]]]:
        """For each cap in force, the output tokens that fit beside what is used and held."""
        rooms: list[tuple[int, GatewayCap, Literal["run", "suite"]]] = []
        if self._caps.tokens is not None:
            held = sum(ticket.tokens for ticket in self._held)
            rooms.append((self._caps.tokens - self.tokens - held - input_bound, "tokens", "run"))
        input_rate, output_rate = self._rates or (0, 0)
        held = sum(ticket.pico for ticket in self._held)
        for limit, scope in self._budgets():
            left = limit * MICRO - self.pico - held - input_bound * input_rate
            # At no price per output token, any number fits as long as the prompt does.
            room = left // output_rate if output_rate else (self._max_output if left >= 0 else -1)
            rooms.append((room, "usd", scope))
        return rooms
