"""Stored evidence graded again in grader containers, and recorded anew where it may be (Standard §8).

A verdict of another environment or another grader never replaces one: it becomes a record of its own, whose
stamp tells what graded it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from grader.evidence import Bundle
from grader.rescore import Rescored
from orchestrator.clock import now
from orchestrator.engine import Engine
from orchestrator.grading import GraderPool
from orchestrator.kicad import environment
from orchestrator.ledger import Ledger
from orchestrator.records import Records
from schema.hashing import sha256
from schema.jsonfile import canonical
from schema.record import Stamp
from schema.run import RunFacts, Timings
from schema.verdict import Verdict


class Graders:
    """A pool of graders for each environment that is needed."""

    def __init__(self, engine: Engine, jobs: int, scope: str) -> None:
        """
        Args:
            engine: where the containers run.
            jobs: how many of each environment.
            scope: makes container names particular to this process.
        """
        self._engine = engine
        self._jobs = jobs
        self._scope = scope
        self._pools: dict[str, GraderPool] = {}
        self._seconds: dict[tuple[str, str, str], tuple[float, float]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in self._pools.values():
            pool.close()

    def provide(self, majors: Iterable[str]) -> None:
        """Make graders for these majors of kicad-cli.

        Raises:
            EnvironmentFault: an image is not built; it says what to run.
            UsageError: there is no environment for a major.
        """
        for chosen in [environment(major) for major in sorted(set(majors) - self._pools.keys(), key=int)]:
            if self._engine.image_labels(chosen.grader) is None:
                raise chosen.missing(f"not built, and KiCad {chosen.major} is to grade")
            self._pools[chosen.major] = GraderPool(self._engine, self._jobs, self._scope, environment=chosen)

    def grade(self, bundle: Bundle, major: str) -> Verdict:
        """The verdict of one environment."""
        began = time.monotonic()
        graded = self._pools[major].grade(bundle)
        self._seconds[_execution(bundle.facts, major)] = time.monotonic() - began, graded.kicad_seconds
        return graded.verdict

    def timings(self, facts: RunFacts, major: str) -> dict[str, float]:
        """How long grading one run took, as fields of ``Timings``; zeros where nothing was graded."""
        grade, kicad = self._seconds.get(_execution(facts, major), (0.0, 0.0))
        return {"grade": round(grade, 3), "kicad": round(kicad, 3)}

    def stamp(self, stamp: Stamp, major: str) -> Stamp:
        """A record's stamp, as it is when the graders of an environment judge the same evidence."""
        chosen = environment(major)
        facts = self._pools[major].facts()
        return stamp.model_copy(
            update={
                "kicad_version": facts.kicad_version,
                "reference_image": self._engine.digest(chosen.kicad),
                "grader_version": facts.grader_version,
                "grader_image": self._engine.digest(chosen.grader),
                "compass_version": facts.compass_version,
                "git_version": facts.git_version,
                "python_version": facts.python_version,
            }
        )


def _execution(facts: RunFacts, major: str) -> tuple[str, str, str]:
    return str(facts.run), facts.started_at, major


class Recorder:
    """Writes new records of old evidence, each once."""

    def __init__(self, results: Path, ledger: Ledger, graders: Graders) -> None:
        self._ledger = ledger
        self._records = Records(results, ledger)
        self._graders = graders
        self._known = {_identity(record.facts, record.stamp) for _, record in self._records.all()}

    def record(self, outcome: Rescored) -> Path | None:
        """Write what a grader says now as a new record.

        None when there is nothing to say, or when the same run has a record of the same stamp already.
        """
        old = outcome.record
        if outcome.verdict is None:
            return None
        stamp = self._graders.stamp(old.stamp, outcome.kicad)
        identity = _identity(old.facts, stamp)
        if identity in self._known:
            return None
        timings = old.timings.model_dump() | self._graders.timings(old.facts, outcome.kicad)
        timings["total"] = round(old.timings.total - old.timings.grade + timings["grade"], 3)
        new = old.model_copy(
            update={
                "recorded_at": now(),
                "stamp": stamp,
                "verdict": outcome.verdict,
                "timings": Timings(**timings),
            }
        )
        with self._ledger.holding(old.run, threading.Event()):
            self._records.settle(old.run)
            path = self._records.write(new)
        self._known.add(identity)
        return path


def _identity(facts: RunFacts, stamp: Stamp) -> str:
    """Of one execution judged under one stamp: facts hold the run, the attempt and the times."""
    return sha256(canonical([facts.to_json(), stamp.to_json()]))
