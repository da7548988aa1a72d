"""Recomputing stored grades from stored evidence (Standard §14).

Where the grading happens is the caller's: in this process's jailed children inside the grader image, or in
grader containers from the host. What is compared is the same.

A record belongs to the environment of its stamp, a major of kicad-cli. Graded in another one, a different
outcome is that environment's, and no failure to reproduce.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from grader.evidence import EMPTY, Bundle
from grader.results import read_records
from grader.store import STORE, EvidenceStore, whole_store
from schema.agent import Agent
from schema.assertions import Assertion, AssertionList
from schema.condition import apply
from schema.errors import CheckFailed, CopperbenchError
from schema.fixture import BaselineReport, Fixture
from schema.hashing import manifest_hash
from schema.jsonfile import read_model
from schema.record import Record
from schema.task import Task
from schema.verdict import AssertionOutcome, Verdict

Grade = Callable[[Bundle, str], Verdict]
"""``grade(bundle, major)``: the verdict in the environment of a major of kicad-cli."""


@dataclass(frozen=True)
class Rescored:
    """One record, graded again."""

    path: Path
    record: Record
    verdict: Verdict | None
    """None when it could not be graded again."""
    differences: tuple[str, ...]
    kicad: str
    """kicad-cli's major it was graded with."""

    @property
    def matches(self) -> bool:
        """Whether everything came out as recorded."""
        return not self.differences

    @property
    def elsewhere(self) -> bool:
        """Whether it was graded, and in another environment than the record's own."""
        return self.verdict is not None and self.kicad != self.record.stamp.kicad_major


def locate(path: Path) -> tuple[Path, Path]:
    """(checkout, results) for a path that is a checkout, its results folder, or a date folder in it.

    Raises:
        CheckFailed: it is none of these.
    """
    for folder in (path.resolve(), *path.resolve().parents):
        if (folder / "tasks").is_dir() and (folder / "results").is_dir():
            return folder, folder / "results"
    raise CheckFailed(
        "no tasks and results here", about=str(path), fix="give a checkout or a folder of its results"
    )


def records_below(path: Path) -> list[tuple[Path, Record]]:
    """The records that a path means, with their files, in path order.

    Args:
        path: a checkout, or a folder of its results.

    Raises:
        CheckFailed: it is neither.
    """
    root, results = locate(path)
    scope = path.resolve()
    return [item for item in read_records(results) if scope == root or item[0].is_relative_to(scope)]


def rescore(path: Path, grade: Grade, *, jobs: int, kicad: str | None = None) -> Iterator[Rescored]:
    """Grade every record below ``path`` again, in path order.

    Args:
        path: see :func:`records_below`.
        grade: how a bundle becomes a verdict.
        jobs: how many at a time; the outcome does not depend on it.
        kicad: major of kicad-cli to grade with; None means each record's own.
    """
    root, results = locate(path)
    records = records_below(path)
    with Loader(root, results) as loader, ThreadPoolExecutor(max_workers=jobs) as workers:
        yield from workers.map(lambda item: _again(loader, item, grade, kicad), records)


def _again(loader: Loader, item: tuple[Path, Record], grade: Grade, kicad: str | None) -> Rescored:
    file, record = item
    major = kicad or record.stamp.kicad_major
    try:
        if record.evidence is None and record.facts.evidence == "none":
            # Infrastructure left nothing to grade: the record's own category is all there is.
            return Rescored(file, record, record.verdict, (), major)
        verdict = grade(loader.bundle(record), major)
    except CopperbenchError as error:
        return Rescored(file, record, None, (f"cannot be graded again: {error}",), major)
    return Rescored(file, record, verdict, tuple(differences(record.verdict, verdict)), major)


@dataclass(frozen=True)
class _Pinned:
    """What all runs of one task by one agent are graded by."""

    manifest_sha256: str
    task: Task
    assertions: tuple[Assertion, ...]
    agent: Agent
    fixture: Fixture
    erc: BaselineReport
    drc: BaselineReport


class Loader:
    """Reads what grading again needs; what runs share is read once."""

    def __init__(self, root: Path, results: Path) -> None:
        self._root = root
        self._results = results
        self._open = ExitStack()
        self._store = EvidenceStore(results / STORE)
        self._pinned: dict[tuple[str, str], _Pinned] = {}

    def __enter__(self) -> Self:
        self._store = EvidenceStore(self._open.enter_context(whole_store(self._results)))
        if self._store.path.is_dir():
            self._open.enter_context(self._store)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def bundle(self, record: Record) -> Bundle:
        """All that grading a record again may read.

        Raises:
            CheckFailed: the task or fixture is not the one that was graded, or evidence is missing.
        """
        pinned = self._read(record.run.task, record.run.agent)
        if (found := pinned.manifest_sha256) != record.stamp.manifest_sha256:
            raise CheckFailed(
                f"the task has changed since (manifest {found[:12]}…, recorded "
                f"{record.stamp.manifest_sha256[:12]}…)",
                about=f"tasks/{record.run.task}",
                fix="check out the recorded version",
            )
        facts, end = record.facts, EMPTY
        if record.evidence is not None:
            facts, end = self._store.evidence(record.evidence)
            if facts != record.facts:
                raise CheckFailed("run.json in the evidence is not the record's", about=str(record.run))
        return Bundle(
            task=apply(pinned.task, record.run.condition),
            assertions=pinned.assertions,
            agent=pinned.agent,
            fixture=pinned.fixture,
            erc_baseline=pinned.erc,
            drc_baseline=pinned.drc,
            facts=facts,
            pristine=self._store.tree(record.stamp.fixture_sha256),
            baseline=self._store.tree(facts.baseline_sha256),
            end=end,
        )

    def _read(self, task_id: str, agent: str) -> _Pinned:
        key = task_id, agent
        if key not in self._pinned:
            folder = self._root / "tasks" / task_id
            task = read_model(folder / "task.json", Task)
            fixture = self._root / task.fixture.path
            self._pinned[key] = _Pinned(
                manifest_sha256=manifest_hash(folder),
                task=task,
                assertions=tuple(read_model(folder / "assertions.json", AssertionList)),
                agent=read_model(self._root / "images" / "agents" / agent / "agent.json", Agent),
                fixture=read_model(fixture / "fixture.json", Fixture),
                erc=read_model(fixture / "baseline" / "erc.json", BaselineReport),
                drc=read_model(fixture / "baseline" / "drc.json", BaselineReport),
            )
        return self._pinned[key]


def differences(recorded: Verdict, again: Verdict) -> Iterator[str]:
    """What is not as recorded, a line each."""
    for name in ("verdict", "category", "first_failure", "credit", "exit_path"):
        old, new = getattr(recorded, name), getattr(again, name)
        if old != new:
            yield f"{name}: recorded {old}, now {new}"
    old_outcomes = {outcome.id: outcome for outcome in recorded.assertions}
    new_outcomes = {outcome.id: outcome for outcome in again.assertions}
    for key in [*old_outcomes, *(k for k in new_outcomes if k not in old_outcomes)]:
        yield from _outcome_difference(key, old_outcomes.get(key), new_outcomes.get(key))
    if recorded.diagnostics != again.diagnostics:
        yield "diagnostics differ"


def _outcome_difference(
    key: str, old: AssertionOutcome | None, new: AssertionOutcome | None
) -> Iterator[str]:
    if old is None or new is None:
        yield f"assertion {key}: {'not recorded' if old is None else 'no longer graded'}"
    elif old.passed != new.passed:
        yield f"assertion {key}: recorded {_word(old)} ({old.reason}), now {_word(new)} ({new.reason})"
    elif old != new:
        yield f"assertion {key}: same outcome, other words: recorded {old.reason!r}, now {new.reason!r}"


def _word(outcome: AssertionOutcome) -> str:
    return "pass" if outcome.passed else "fail"
