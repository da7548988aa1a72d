"""``--max-usd``: one budget, shared among runs that go on at the same time."""

from __future__ import annotations

import threading

from schema.errors import InfrastructureLeft


class SuiteBudget:
    """Whole micro-USD, handed out in allotments; what a run does not spend comes back.

    An allotment is a cap of its run's gateway, so the sum of what runs spend never passes the budget. Where a
    provider bills more than it was asked for it does: what was overspent is taken from the rest.
    """

    def __init__(self, micro_usd: int, jobs: int) -> None:
        """``jobs``: runs that may go on at the same time; each is left a fair part."""
        self._left = micro_usd
        self._jobs = jobs
        self._out = 0
        self._handed = 0
        self._lock = threading.Lock()

    def take(self, cap: int | None) -> int:
        """An allotment for one run: its part of what is left, at most its own cap. 0: the budget is spent."""
        with self._lock:
            part = self._left // max(self._jobs - self._out, 1)
            allotment = part if cap is None else min(part, cap)
            self._left -= allotment
            self._out += 1
            self._handed += allotment
            return allotment

    def give_back(self, allotment: int, spent: int | None) -> None:
        """Settle a run. ``spent``: None when its cost is unknown, and then its whole allotment is gone."""
        with self._lock:
            self._out -= 1
            self._handed -= allotment
            self._left = max(self._left + (0 if spent is None else allotment - spent), 0)

    @property
    def left(self) -> int:
        """What is not handed out."""
        with self._lock:
            return self._left

    def spent(self, allotment: int) -> InfrastructureLeft:
        """What to say to a run whose allotment is not enough."""
        with self._lock:
            others = self._left + self._handed - allotment
        if others > 0:
            return InfrastructureLeft(
                "this run's part of the budget of --max-usd is spent",
                fix="run again with --jobs 1 or a higher --max-usd",
            )
        return InfrastructureLeft("the budget of --max-usd is spent", fix="raise it and run again")
