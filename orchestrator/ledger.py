"""Writing the ledger: who takes on a run and what became of it, in a chain that shows changes (Standard §8).

Every line is on disk before what it announces happens. A process that dies leaves claims without an outcome,
never a chain that does not hold.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from grader.ledger import LEDGER, Chain
from orchestrator.clock import now
from orchestrator.owner import Owner
from schema.errors import Interrupted
from schema.hashing import sha256
from schema.ledger import ClaimLine, FaultLine, FaultSource, LedgerLine, PlanLine, RecordLine
from schema.run import RunId

LOCKS = ".runs.lock"
WAIT_SECONDS = 0.2


class Ledger:
    """The ledger of one results folder; threads and processes may share it."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._path = results / LEDGER
        self._mutex = threading.Lock()
        self._chain = Chain()
        self._size = 0
        results.mkdir(parents=True, exist_ok=True)
        me = Owner.current()
        self._host = sha256(f"{me.host}|{me.boot}".encode())[:12]
        # Held open for good: closing any descriptor of the file would drop this process's locks on runs.
        self._locks = os.open(results / LOCKS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def close(self) -> None:
        """Give up all runs still held."""
        os.close(self._locks)

    # --- reading

    def chain(self) -> Chain:
        """Every line, other processes' too.

        Raises:
            CheckFailed: the chain is broken.
        """
        with self._locked():
            return self._chain

    def of(self, run: RunId) -> list[ClaimLine | FaultLine | RecordLine]:
        """The lines of one run."""
        name = str(run)
        return [line for line in self.chain().lines if not isinstance(line, PlanLine) and line.run == name]

    # --- writing

    def plan(self, path: Path) -> None:
        """Fix a written plan; nothing when it is the newest one already."""
        relative, digest = self._file(path)
        plans = [line.path for line in self.chain().lines if isinstance(line, PlanLine)]
        if plans[-1:] != [relative]:
            self._append(lambda prev: PlanLine(prev=prev, at=now(), path=relative, sha256=digest))

    def claim(self, run: RunId, stamp: str, attempt: int) -> int:
        """Take on a run that is held; returns which claim of it this is."""
        number = 1 + sum(isinstance(line, ClaimLine) for line in self.of(run))
        self._append(
            lambda prev: ClaimLine(
                prev=prev,
                at=now(),
                run=str(run),
                claim=number,
                attempt=attempt,
                stamp=stamp,
                host=self._host,
            )
        )
        return number

    def fault(
        self,
        run: RunId,
        claim: int,
        what: str,
        source: FaultSource = "infrastructure",
        *,
        usd: float | None = 0.0,
    ) -> None:
        """A claim of a run that is held came to nothing.

        ``usd``: what its model cost all the same; None when unknown.
        """
        self._append(
            lambda prev: FaultLine(
                prev=prev, at=now(), run=str(run), claim=claim, source=source, what=what, usd=usd
            )
        )

    def record(self, run: RunId, claim: int, path: Path) -> None:
        """A run that is held has a record."""
        relative, digest = self._file(path)
        self._append(
            lambda prev: RecordLine(
                prev=prev, at=now(), run=str(run), claim=claim, path=relative, sha256=digest
            )
        )

    # --- one process a run

    @contextmanager
    def holding(self, run: RunId, stop: threading.Event) -> Iterator[None]:
        """Hold a run as long as this process lives; waits while another one has it.

        Raises:
            Interrupted: ``stop`` was set while waiting.
        """
        place = int(run.short[:15], 16)
        while not self._try(place):
            if stop.wait(WAIT_SECONDS):
                raise Interrupted("interrupted while another process has it", about=str(run))
        try:
            yield
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, place)

    def _try(self, place: int) -> bool:
        # One byte a run of one file: the kernel drops the lock with the process, however it ends.
        try:
            fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError:
            return False
        return True

    # --- the file

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        """Alone with the file, all its lines read."""
        with self._mutex, self._path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._read(file)
            yield file

    def _read(self, file: IO[bytes]) -> None:
        if os.fstat(file.fileno()).st_size < self._size:
            self._chain, self._size = Chain(), 0
        file.seek(self._size)
        whole, newline, torn = file.read().rpartition(b"\n")
        self._chain = self._chain.extended(whole, LEDGER)
        self._size += len(whole) + len(newline)
        if torn:
            # A line counts once it is whole: whoever wrote half of one died before acting on it.
            file.truncate(self._size)

    def _append(self, make: Callable[[str], LedgerLine]) -> None:
        with self._locked() as file:
            line = make(self._chain.head).text()
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
            self._read(file)

    def _file(self, path: Path) -> tuple[str, str]:
        return str(path.relative_to(self._results)), sha256(path.read_bytes())
