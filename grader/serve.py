"""The grader's server: frames in, answers out. The parent only moves bytes; children grade."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from pathlib import Path
from typing import IO, Any

import compass
import grader
from grader import wire
from grader.child import Lost, grade_jailed
from grader.git import CLEAN_ENVIRONMENT
from grader.jail import deny_network, landlock_abi
from grader.kicad.cache import FolderCache
from grader.kicad.cli import KicadCli
from grader.warm import Fixtures, warm
from schema.hashing import code_hash

_PR_SET_CHILD_SUBREAPER = 36
"""From linux/prctl.h."""


def serve(source: IO[bytes], sink: IO[bytes], cache: Path) -> None:
    """Lock the network out, say what we are, then answer frames until the input ends.

    Args:
        source: frames.
        sink: answers.
        cache: folder of kicad-cli's results by content; servers may share one.

    Raises:
        JailError: the network cannot be locked out; nothing is graded then.
    """
    deny_network()
    _adopt_orphans()
    warm()
    results = FolderCache(cache)
    version = KicadCli().version
    sink.write(wire.encode_answer(describe(version)))
    sink.flush()
    fixtures = Fixtures()
    while frame := wire.read_frame(source.read):
        fixtures.read(frame)
        try:
            verdict, seconds = grade_jailed(frame, version, results)
            answer: dict[str, Any] = {"verdict": verdict.to_json(), "kicadSeconds": seconds}
        except Lost as lost:
            answer = {"failed": str(lost)}
        sink.write(wire.encode_answer(answer))
        sink.flush()


def describe(kicad_version: str) -> dict[str, Any]:
    """What this grader is: versions that go into the stamp, and the locks in force."""
    git = subprocess.run(
        ["git", "--version"], env=CLEAN_ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return {
        "kicad_version": kicad_version,
        "git_version": git.stdout.strip().removeprefix("git version "),
        "python_version": platform.python_version(),
        "grader_version": grader.__version__,
        "compass_version": compass.__version__,
        "landlock": landlock_abi(),
        "code": code_hash(Path(grader.__file__).parents[1], grader.CODE),
    }


def _adopt_orphans() -> None:
    """Become the parent of whatever a jailed child leaves behind, so that it can be found and ended."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot become the reaper of orphans")
