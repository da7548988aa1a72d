"""One jailed child a record: it alone touches hostile evidence, and ends with it.

The child sees the installed programs and a scratch folder of its own: no other record, no cache.
What kicad-cli answered before comes to it, and what it answers now leaves it, as messages to the parent, so
that a program gone wrong in one record's jail cannot write what another record will be graded by.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import socket
import struct
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from grader import wire
from grader.grade import grade
from grader.jail import confine
from grader.kicad.cache import Cache
from grader.kicad.cli import KicadCli
from schema.verdict import Verdict

WALL_SECONDS = 840
"""Wall limit of one grade, kicad-cli's calls included."""
MEMORY = 3 * 2**30
"""Address space of the child. kicad-cli has limits of its own."""
ANSWER_BYTES = 16 * 2**20
RESULT_BYTES = 512 * 2**20
"""Largest result of kicad-cli that is kept."""
READABLE = ("/usr", "/bin", "/lib", "/lib64", "/etc", "/opt", "/proc", "/sys")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")

_HEAD = struct.Struct(">c64sQ")
"""Kind (get, put, answer), cache key, bytes that follow."""
_GET, _PUT, _ANSWER = b"g", b"p", b"a"
_MISS = 2**64 - 1
_LENGTH = struct.Struct(">Q")


class Lost(Exception):
    """The child ended without a verdict; the text says how."""


def grade_jailed(frame: bytes, version: str, cache: Cache) -> tuple[Verdict, float]:
    """Grade one frame; returns the verdict and the seconds spent in kicad-cli.

    Args:
        frame: a bundle as :mod:`grader.wire` packs it; it is unpacked in the child.
        version: kicad-cli's, asked once for all records.
        cache: kicad-cli's results by content; the child reaches it only through us.

    Raises:
        Lost: the child was killed, crashed, or broke a limit.
    """
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryDirectory(prefix="record-", ignore_cleanup_errors=True) as scratch:
        child = os.fork()
        if child == 0:
            ours.close()
            _be_child(frame, version, theirs, Path(scratch))
        theirs.close()
        try:
            with ours:
                answer = _attend(ours, cache)
        except (OSError, EOFError, ValueError) as error:
            answer = {"failed": _say(error)}
        finally:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            _end_orphans()
    if "verdict" not in answer:
        ended = f" (signal {os.WTERMSIG(status)})" if os.WIFSIGNALED(status) else ""
        raise Lost(f"{answer.get('failed', 'no verdict')}{ended}")
    return Verdict.model_validate(answer["verdict"]), float(answer["kicadSeconds"])


def _say(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"grading took more than {WALL_SECONDS} s"
    if isinstance(error, EOFError | ConnectionError):
        return "the grading process ended without a verdict"
    return f"the grading process broke its protocol ({error})"


def _attend(ours: socket.socket, cache: Cache) -> dict[str, Any]:
    """Serve the child's cache requests until it answers."""
    deadline = time.monotonic() + WALL_SECONDS
    while True:
        kind, raw_key, size = _HEAD.unpack(_receive(ours, _HEAD.size, deadline))
        key = raw_key.decode("ascii")
        if kind == _ANSWER and size <= ANSWER_BYTES:
            answer = json.loads(_receive(ours, size, deadline))
            return answer if isinstance(answer, dict) else {}
        if kind == _PUT and size <= RESULT_BYTES:
            cache.put(key, _receive(ours, size, deadline))
        elif kind == _GET and size == 0:
            value = cache.get(key)
            ours.settimeout(max(deadline - time.monotonic(), 0.01))
            ours.sendall(_LENGTH.pack(_MISS) if value is None else _LENGTH.pack(len(value)) + value)
        else:
            raise ValueError("unknown or oversized message")


def _receive(stream: socket.socket, size: int, deadline: float | None = None) -> bytes:
    parts: list[bytes] = []
    while size:
        if deadline is not None:
            stream.settimeout(max(deadline - time.monotonic(), 0.01))
        part = stream.recv(min(size, 2**20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class _ParentsCache:
    """The child's end: a cache that lives with the parent."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream

    def get(self, key: str) -> bytes | None:
        """The stored value, or None."""
        self._stream.sendall(_HEAD.pack(_GET, key.encode(), 0))
        (size,) = _LENGTH.unpack(_receive(self._stream, _LENGTH.size))
        return None if size == _MISS else _receive(self._stream, size)

    def put(self, key: str, value: bytes) -> None:
        """Store a value."""
        if len(value) <= RESULT_BYTES:
            self._stream.sendall(_HEAD.pack(_PUT, key.encode(), len(value)) + value)


def _be_child(frame: bytes, version: str, stream: socket.socket, scratch: Path) -> None:
    """Lock the door, grade, answer, leave; never returns."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Of each process below, by the kernel's count: also when nobody is left to look at a clock.
        resource.setrlimit(resource.RLIMIT_CPU, (WALL_SECONDS, WALL_SECONDS))
        tempfile.tempdir = str(scratch)
        # One record's garbage goes with the process; looking for it copies the parent's pages.
        gc.disable()
        confine(readable=map(Path, READABLE), writable=(scratch, *map(Path, DEVICES)))
        cli = KicadCli(cache=_ParentsCache(stream), scratch=scratch, version=version)
        verdict = grade(wire.decode(frame), cli)
        answer: dict[str, Any] = {"verdict": verdict.to_json(), "kicadSeconds": cli.seconds}
        code = 0
    except MemoryError:
        answer = {"failed": f"grading needed more than {MEMORY} bytes"}
    except Exception as error:
        # The parent reports it as the grader's own failure; the trace goes to the container's log.
        sys.excepthook(type(error), error, error.__traceback__)
        answer = {"failed": f"{type(error).__name__}: {error}"[:500]}
    with suppress(OSError):
        text = json.dumps(answer).encode()
        stream.sendall(_HEAD.pack(_ANSWER, b"0" * 64, len(text)) + text)
    os._exit(code)


def _end_orphans() -> None:
    """Kill and reap every process that the child left: between records there is none."""
    while True:
        for line in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(line), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
