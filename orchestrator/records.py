"""Records on disk: append-only, whole or not at all, never overwritten, told to the ledger (Standard §8)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.results import read_records
from orchestrator.ledger import Ledger
from schema.credentials import matching_patterns
from schema.errors import CheckFailed, CopperbenchError
from schema.jsonfile import pretty, read_model
from schema.ledger import ClaimLine, RecordLine
from schema.paths import encode_name
from schema.record import Record, Stamp
from schema.run import RunId, RunSpec


@dataclass(frozen=True)
class Finished:
    """One planned run, recorded now or found recorded."""

    spec: RunSpec
    record: Record
    path: Path | None
    """None when the record was there already."""


Report = Callable[[Finished], None]
"""Told of each run as it finishes."""


class Records:
    """The records of one results folder. A run is written by whoever holds it in the ledger."""

    def __init__(self, results: Path, ledger: Ledger) -> None:
        self._results = results
        self._ledger = ledger

    def all(self) -> Iterator[tuple[Path, Record]]:
        """Every record with its path, in path order."""
        return read_records(self._results)

    def find(self, run: RunId, stamp: Stamp) -> Record | None:
        """A record of this run under the same stamp: the run need not be paid again."""
        for line in self._ledger.of(run):
            if isinstance(line, RecordLine):
                record = read_model(self._results / line.path, Record)
                if record.stamp == stamp:
                    return record
        return None

    def settle(self, run: RunId) -> None:
        """Finish what a dead process left of a run: tell the ledger of its record, drop half-written ones."""
        lines = self._ledger.of(run)
        told = {line.path for line in lines if isinstance(line, RecordLine)}
        claims = {line.claim for line in lines if isinstance(line, ClaimLine)}
        for part in self._results.glob(f"*/{_folder(run)}/.{run.short}.*.tmp"):
            part.unlink(missing_ok=True)
        for path in sorted(self._results.glob(f"*/{_folder(run)}/run-*.json")):
            if str(path.relative_to(self._results)) in told:
                continue
            # What is no record, or nobody's, is for verify to name.
            with contextlib.suppress(CopperbenchError):
                record = read_model(path, Record)
                if record.run == run and record.facts.claim in claims:
                    self._ledger.record(run, record.facts.claim, path)

    def write(self, record: Record) -> Path:
        """Write a record durably under the next free number of its folder, and tell the ledger.

        Raises:
            CheckFailed: the text itself holds a credential; nothing is written.
        """
        text = pretty(record.to_json()).encode()
        if found := leak(record):
            raise CheckFailed(f"the record holds a credential ({found})", about=str(record.run))
        folder = self._results / record.recorded_at[:10] / _folder(record.run)
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{record.run.short}.{os.getpid()}.tmp"
        with part.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            path = _link(part, folder)
        finally:
            part.unlink()
        self._ledger.record(record.run, record.facts.claim, path)
        return path


def leak(record: Record) -> str | None:
    """Id of a credential pattern that a record's own text matches."""
    return next(matching_patterns(pretty(record.to_json()).encode()), None)


def _folder(run: RunId) -> str:
    return f"{encode_name(run.model)}/{run.task}"


def _link(part: Path, folder: Path) -> Path:
    """Give the finished file the next free name; an existing one is never replaced."""
    number = 1
    while True:
        path = folder / f"run-{number}.json"
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
            sync_folder(folder)
            return path
        number += 1


def sync_folder(folder: Path) -> None:
    """Make a folder's entries durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
