"""Grader containers: networkless, mounting nothing, fed bundles on standard input (DESIGN §3)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grader
from grader import wire
from grader.evidence import Bundle
from grader.lost import unjudged
from orchestrator.attached import Attached
from orchestrator.engine import ContainerSpec, Engine, Limits
from orchestrator.kicad import REFERENCE, Environment
from schema.errors import CopperbenchError, EngineError, Interrupted
from schema.hashing import code_hash, sha256
from schema.jsonfile import validate_as
from schema.verdict import Verdict

IMAGE = REFERENCE.grader
OUR_CODE = code_hash(Path(grader.__file__).parents[1], grader.CODE)
"""As it was when it was read: who edits it later runs on with what is in memory."""
LIMITS = Limits(memory=4 * 2**30, cpus=2.0, pids=512, fsize=2**30, tmp=2 * 2**30)
RECORDS = 50
"""A grader container is replaced after this many records, whatever they left in it."""
SECONDS = 900
"""Longest wait for one grade; the grader's own limits are lower."""
START_SECONDS = 60
WRITE_SECONDS = 60


@dataclass(frozen=True)
class GraderFacts:
    """What a grader container says of itself when it starts."""

    kicad_version: str
    git_version: str
    python_version: str
    grader_version: str
    compass_version: str
    landlock: int
    """Version of Landlock that jails each record; 0 where the kernel has none."""
    code: str
    """Hash of the code that grades."""


@dataclass(frozen=True)
class Graded:
    """One answer."""

    verdict: Verdict
    kicad_seconds: float


class Slot:
    """One grader container at a time, replaced when it is worn or lost."""

    def __init__(self, engine: Engine, name: str, environment: Environment = REFERENCE) -> None:
        self._engine = engine
        self._name = name
        self._environment = environment
        self._container = ""
        self._streams: Attached | None = None
        self._used = 0
        self.facts: GraderFacts | None = None

    def grade(self, bundle: Bundle) -> Graded:
        """Grade one bundle.

        Raises:
            EngineError: the container was lost, which is the grader's failure, not the agent's.
        """
        answer = self.ask(wire.encode(bundle))
        if "verdict" not in answer:
            raise EngineError(f"no verdict ({answer.get('failed', 'unknown')})", about=str(bundle.facts.run))
        verdict = validate_as(Verdict, answer["verdict"], "grader's answer")
        return Graded(verdict=verdict, kicad_seconds=float(answer["kicadSeconds"]))

    def ask(self, frame: bytes) -> dict[str, Any]:
        """Send one frame and read its answer."""
        if self._used >= RECORDS:
            self.close()
        streams = self._streams or self.open()
        self._used += 1
        try:
            streams.write(frame, WRITE_SECONDS)
            streams.patience(SECONDS)
            return wire.decode_answer(streams.read)
        except (OSError, EOFError, ValueError) as error:
            said = bytes(streams.stderr).decode("utf-8", "replace").strip().splitlines()
            self.close()
            raise EngineError(
                f"the grader was lost ({said[-1][:200] if said else error!r})", about=self._name
            ) from None

    def open(self) -> Attached:
        """Start the container and read what it says of itself.

        Raises:
            EnvironmentFault: it grades with other code than ours. Their models differ: what one writes the
                other may not read, and that would pass for the agent's fault.
        """
        self._container = self._engine.create(
            ContainerSpec(
                name=self._name,
                image=self._environment.grader,
                command=["python3", "-m", "grader", "--serve"],
                limits=LIMITS,
                labels={"role": "grader"},
                environment={"HOME": "/tmp", "LC_ALL": "C.UTF-8"},  # noqa: S108  # in the container
                stdin=True,
            )
        )
        self._streams = self._engine.attach(self._container)
        self._streams.patience(START_SECONDS)
        self._engine.start(self._container)
        try:
            self.facts = GraderFacts(**wire.decode_answer(self._streams.read))
        except (OSError, EOFError, TypeError, ValueError) as error:
            said = bytes(self._streams.stderr).decode("utf-8", "replace").strip().splitlines()
            self.close()
            raise EngineError(
                f"the grader does not start ({said[-1][:200] if said else error!r})",
                about=self._environment.grader,
                fix=f"run {self._environment.build}",
            ) from None
        if self.facts.code != OUR_CODE:
            self.close()
            raise self._environment.missing("built from other code than this")
        return self._streams

    def abort(self) -> None:
        """End whatever another thread is waiting for here."""
        if streams := self._streams:
            streams.abort()

    def close(self) -> None:
        """Remove the container."""
        if self._streams:
            self._streams.close()
        if self._container:
            with suppress(CopperbenchError):
                self._engine.remove(self._container)
        self._streams, self._container, self._used = None, "", 0


class GraderPool:
    """As many slots as jobs; each is used by one thread at a time."""

    def __init__(
        self,
        engine: Engine,
        jobs: int,
        scope: str,
        stop: threading.Event | None = None,
        environment: Environment = REFERENCE,
    ) -> None:
        """
        Args:
            engine: where the containers run.
            jobs: how many slots.
            scope: makes container names particular to this process.
            stop: set when our containers are being killed: a grader lost then says nothing of its evidence.
            environment: the KiCad to grade with.
        """
        self._engine = engine
        self._stop = stop or threading.Event()
        self._environment = environment
        name = sha256(f"{scope}|{environment.major}|{engine.owner}".encode())[:16]
        self._slots = [Slot(engine, f"copperbench-grader-{name}-{n}", environment) for n in range(jobs)]
        self._free: queue.SimpleQueue[Slot] = queue.SimpleQueue()
        for slot in self._slots:
            self._free.put(slot)
        self._facts: GraderFacts | None = None
        self._lock = threading.Lock()

    @contextmanager
    def slot(self) -> Iterator[Slot]:
        """Borrow a slot."""
        slot = self._free.get()
        try:
            yield slot
        finally:
            self._free.put(slot)

    def grade(self, bundle: Bundle) -> Graded:
        """Grade one bundle in the next free slot; a grader lost on it is tried once more.

        Evidence that no grader survives is the agent's doing and fails.

        Raises:
            EngineError: the engine itself is gone.
            Interrupted: the grader was killed because we are to stop.
        """
        reason = ""
        for _ in range(2):
            try:
                with self.slot() as slot:
                    return slot.grade(bundle)
            except EngineError as error:
                if self._stop.is_set():
                    raise Interrupted("interrupted", about=str(bundle.facts.run)) from None
                if not self._engine.ping():
                    raise
                reason = error.what
        return Graded(verdict=unjudged(bundle, reason), kicad_seconds=0)

    def facts(self) -> GraderFacts:
        """What the graders say of themselves; starts one if none runs."""
        with self._lock:
            if self._facts is None:
                with self.slot() as slot:
                    if slot.facts is None:
                        slot.open()
                    self._facts = slot.facts
            if self._facts is None:
                raise EngineError("the grader says nothing of itself", about=self._environment.grader)
            return self._facts

    def abort(self) -> None:
        """End all waiting: the containers are being killed."""
        for slot in self._slots:
            slot.abort()

    def close(self) -> None:
        """Remove every container of the pool."""
        for slot in self._slots:
            slot.close()
