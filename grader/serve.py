"""The grader's server: frames in, answers out, one jailed child a record.

The parent only moves bytes. The child unpacks the hostile evidence, grades it and exits; whatever happens to
it ends with it. kicad-cli's results are kept in a folder that later records of the same content reuse.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import compass
import grader
from grader import wire
from grader.git import CLEAN_ENVIRONMENT
from grader.grade import grade
from grader.kicad.cache import FolderCache
from grader.kicad.cli import KicadCli
from schema.verdict import Verdict

CHILD_SECONDS = 600
"""Wall limit of one grade, kicad-cli's calls included."""
CHILD_MEMORY = 3 * 2**30
"""Address space of the child. kicad-cli has limits of its own."""
ANSWER_BYTES = 16 * 2**20
PR_SET_CHILD_SUBREAPER = 36
"""From linux/prctl.h."""


class Lost(Exception):
    """The jailed child ended without a verdict; the text says how."""


def grade_jailed(frame: bytes, cli: KicadCli) -> tuple[Verdict, float]:
    """Grade one frame in a child of our own; returns the verdict and the seconds spent in kicad-cli.

    Unpacking the evidence is the child's work too: the parent only moves bytes.

    Raises:
        Lost: the child was killed or crashed.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(frame, cli, writer)
    os.close(writer)
    try:
        answer = _collect(child, reader)
    finally:
        os.close(reader)
        _end_orphans()
    if "verdict" not in answer:
        raise Lost(answer.get("failed", "the grading process ended without a verdict"))
    return Verdict.model_validate(answer["verdict"]), float(answer["kicadSeconds"])


def _child(frame: bytes, cli: KicadCli, writer: int) -> None:
    """Grade and leave; never returns."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_AS, (CHILD_MEMORY, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        before = cli.seconds
        verdict = grade(wire.decode(frame), cli)
        answer: dict[str, Any] = {"verdict": verdict.to_json(), "kicadSeconds": cli.seconds - before}
        code = 0
    except MemoryError:
        answer = {"failed": f"grading needed more than {CHILD_MEMORY} bytes"}
    except Exception as error:
        # The parent reports it as the grader's own failure; the trace goes to the container's log.
        sys.excepthook(type(error), error, error.__traceback__)
        answer = {"failed": f"{type(error).__name__}: {error}"[:500]}
    with suppress(OSError), os.fdopen(writer, "wb") as out:
        out.write(json.dumps(answer).encode())
    os._exit(code)


def _adopt_orphans() -> None:
    """Become the parent of whatever a jailed child leaves behind, so that it can be found and ended."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot become the reaper of orphans")


def _end_orphans() -> None:
    """Kill and reap every process below this one: between records there is none."""
    while True:
        for line in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(line), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _collect(child: int, reader: int) -> dict[str, Any]:
    """Read the child's answer within its limits; kill its whole session when it is late."""
    deadline = time.monotonic() + CHILD_SECONDS
    parts: list[bytes] = []
    size = 0
    failed = ""
    with selectors.DefaultSelector() as ready:
        ready.register(reader, selectors.EVENT_READ)
        while not failed:
            if not ready.select(max(0.0, deadline - time.monotonic())):
                failed = f"grading took more than {CHILD_SECONDS} s"
                break
            part = os.read(reader, 2**16)
            if not part:
                break
            parts.append(part)
            size += len(part)
            if size > ANSWER_BYTES:
                failed = f"the verdict is larger than {ANSWER_BYTES} bytes"
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if failed:
        return {"failed": failed}
    try:
        answer = json.loads(b"".join(parts))
    except ValueError:
        return {"failed": f"the grading process ended with status {status}"}
    return answer if isinstance(answer, dict) else {"failed": "the verdict is not an object"}


def describe(cli: KicadCli) -> dict[str, str]:
    """What this grader is: versions that go into the stamp."""
    return {
        "kicad_version": cli.version,
        "git_version": _first_line(["git", "--version"]).removeprefix("git version "),
        "python_version": platform.python_version(),
        "grader_version": grader.__version__,
        "compass_version": compass.__version__,
    }


def _first_line(command: list[str]) -> str:
    done = subprocess.run(command, env=CLEAN_ENVIRONMENT, capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[0]


def serve(source: IO[bytes], sink: IO[bytes], cache: Path) -> None:
    """Say what we are, then answer frames until the input ends.

    Args:
        source: frames.
        sink: answers.
        cache: folder of kicad-cli's results by content; servers may share one.
    """
    _adopt_orphans()
    # Made before any fork: children inherit the version it has asked for.
    cli = KicadCli(cache=FolderCache(cache))
    sink.write(wire.encode_answer(describe(cli)))
    sink.flush()
    while frame := wire.read_frame(source.read):
        try:
            verdict, seconds = grade_jailed(frame, cli)
            answer: dict[str, Any] = {"verdict": verdict.to_json(), "kicadSeconds": seconds}
        except Lost as lost:
            answer = {"failed": str(lost)}
        sink.write(wire.encode_answer(answer))
        sink.flush()
