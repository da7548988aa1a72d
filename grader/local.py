"""Graders as processes of this machine: how the grader image grades on its own.

Each is the same server that an orchestrator talks to, so that both ways grade with the same code.
"""

from __future__ import annotations

import queue
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grader import wire
from grader.evidence import Bundle
from schema.errors import CheckFailed, EnvironmentFault
from schema.verdict import Verdict


@contextmanager
def local_graders(jobs: int, cache: Path) -> Iterator[LocalGraders]:
    """``jobs`` grader processes that share one cache folder; ended on the way out."""
    graders = LocalGraders(jobs, cache)
    try:
        yield graders
    finally:
        graders.close()


class LocalGraders:
    """A pool of grader processes; any number of threads may ask at once."""

    def __init__(self, jobs: int, cache: Path) -> None:
        self._cache = cache
        self._all: list[subprocess.Popen[bytes]] = []
        self._free: queue.SimpleQueue[subprocess.Popen[bytes] | None] = queue.SimpleQueue()
        self._version = ""
        for _ in range(jobs):
            self._free.put(None)

    def grade(self, bundle: Bundle) -> Verdict:
        """Grade one bundle.

        Raises:
            CheckFailed: the grader gave no verdict.
        """
        process = self._free.get() or self._start()
        try:
            answer = _ask(process, wire.encode(bundle))
        except (OSError, EOFError, ValueError) as error:
            process.kill()
            self._free.put(None)
            raise CheckFailed(f"the grader was lost ({error!r})", about=str(bundle.facts.run)) from None
        self._free.put(process)
        if "verdict" not in answer:
            raise CheckFailed(str(answer.get("failed")), about=str(bundle.facts.run))
        return Verdict.model_validate(answer["verdict"])

    @property
    def kicad_major(self) -> str:
        """Which environment this is, as a grader says of itself; starts one if none runs."""
        self._free.put(self._free.get() or self._start())
        return self._version.split(".")[0]

    def close(self) -> None:
        """End every process."""
        for process in self._all:
            process.kill()
            process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "grader", "--serve", "--cache", str(self._cache)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._all.append(process)
        try:
            self._version = str(wire.decode_answer(_reader(process))["kicad_version"])
        except EOFError:
            raise EnvironmentFault("the grader does not start", fix="see its message above") from None
        return process


def _ask(process: subprocess.Popen[bytes], frame: bytes) -> dict[str, object]:
    if process.stdin is None:
        raise EOFError
    process.stdin.write(frame)
    process.stdin.flush()
    return wire.decode_answer(_reader(process))


def _reader(process: subprocess.Popen[bytes]) -> wire.Read:
    def read(size: int) -> bytes:
        data = process.stdout.read(size) if process.stdout else b""
        if len(data) < size:
            raise EOFError("the process ended")
        return data

    return read
