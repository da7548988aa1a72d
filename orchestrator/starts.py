"""What earlier starts of a run came to, by the ledger: its attempts and what they cost survive restarts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from schema.credentials import matching_patterns
from schema.ledger import ClaimLine, FaultLine, FaultSource, RecordLine

ATTEMPTS = 3
"""A fault that we saw on engine, host or provider grants a new attempt; the last one counts (Standard §5)."""


class Fault(NamedTuple):
    """What a start was lost to."""

    source: FaultSource
    what: str
    usd: float | None
    """What its model cost all the same; None when unknown."""


class Starts:
    """The starts of one run under one stamp that gave no record."""

    def __init__(self, lines: Sequence[ClaimLine | FaultLine | RecordLine], stamp: str) -> None:
        """
        Args:
            lines: the ledger's, of the run.
            stamp: digest of the stamp.
        """
        ours = {line.claim for line in lines if isinstance(line, ClaimLine) and line.stamp == stamp}
        ended = {line.claim for line in lines if not isinstance(line, ClaimLine)}
        self.last = max((line.claim for line in lines if isinstance(line, ClaimLine)), default=0)
        """Number of the run's newest claim, whatever its stamp; 0 before the first."""
        self._lost = [
            Fault(line.source, line.what, line.usd)
            for line in lines
            if isinstance(line, FaultLine) and line.claim in ours
        ]
        # A process that died left a claim without an outcome, and nobody knows what it cost.
        self._unaccounted = not ours <= ended

    def lose(self, fault: Fault) -> None:
        """One more came to nothing."""
        self._lost.append(fault)

    @property
    def faults(self) -> list[str]:
        """What took an attempt each. Being ended by ourselves takes none (docs/decisions/005)."""
        return [fault.what for fault in self._lost if fault.source != "harness"]

    @property
    def newest(self) -> Fault:
        """The last one that was lost."""
        return self._lost[-1]

    @property
    def attempt(self) -> int:
        """Number of the attempt that comes next."""
        return len(self.faults) + 1

    @property
    def usd(self) -> float | None:
        """What all of them cost; None when that of one is unknown."""
        known = [fault.usd for fault in self._lost if fault.usd is not None]
        if self._unaccounted or len(known) < len(self._lost):
            return None
        return round(sum(known), 6)


def fit_for_ledger(text: str) -> str:
    """Words of an engine or host as one line of bounded length that holds no credential."""
    line = " ".join(text.encode("utf-8", "replace").decode().split())[:1000]
    return "withheld: it holds a credential" if any(matching_patterns(line.encode())) else line
