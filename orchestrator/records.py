"""Records on disk: append-only, written whole or not at all, never overwritten (Standard §8)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.results import read_records
from schema.credentials import matching_patterns
from schema.errors import CheckFailed
from schema.jsonfile import pretty
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
    """The records of one results folder."""

    def __init__(self, results: Path) -> None:
        self._results = results

    def all(self) -> Iterator[tuple[Path, Record]]:
        """Every record with its path, in path order."""
        return read_records(self._results)

    def find(self, run: RunId, stamp: Stamp) -> Record | None:
        """A record of this run under the same stamp: the run need not be paid again."""
        folder = f"*/{encode_name(run.model)}/{run.task}"
        for path in sorted(self._results.glob(f"{folder}/run-*.json")):
            record = Record.model_validate_json(path.read_bytes())
            if record.run == run and record.stamp == stamp:
                return record
        return None

    def write(self, record: Record) -> Path:
        """Write a record durably under the next free number of its folder.

        Raises:
            CheckFailed: the text itself holds a credential; nothing is written.
        """
        text = pretty(record.to_json()).encode()
        if found := next(matching_patterns(text), None):
            raise CheckFailed(f"the record holds a credential ({found})", about=str(record.run))
        folder = self._results / record.recorded_at[:10] / encode_name(record.run.model) / record.run.task
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{record.run.short}.{os.getpid()}.tmp"
        with part.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            return _link(part, folder)
        finally:
            part.unlink()


def _link(part: Path, folder: Path) -> Path:
    """Give the finished file the next free name; an existing one is never replaced."""
    number = 1
    while True:
        path = folder / f"run-{number}.json"
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
            _sync_folder(folder)
            return path
        number += 1


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
