"""git over a hostile repository's objects: a clean copy, one deadline for all calls, answers as streams."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from grader.git import CLEAN_ENVIRONMENT
from schema.errors import EnvironmentFault

SECONDS = 120
"""Of all git calls over one repository together."""
MEMORY = 2 * 2**30
PACKS = 16
"""A pack of fifty kilobytes can keep git busy for seconds, and thousands fit into a workspace."""
ROOM = 16 * 2**20
"""Bytes of disk: with less left, a git that failed may have failed for want of them."""


class Unreadable(Exception):
    """The objects cannot be read within limits; the text says why."""


class Objects:
    """A repository of our own that holds a sandbox's objects and nothing else of it."""

    def __init__(self, folder: Path, git: Mapping[str, bytes]) -> None:
        """Copy them into ``folder``, which is empty and ours.

        Args:
            folder: where.
            git: the files of the sandbox's ``.git`` that the collector kept.

        Raises:
            Unreadable: more packs than are read, or no time left.
            EnvironmentFault: this host has no git, or no room.
            OSError: this host cannot write.
        """
        self.folder = folder
        self._deadline = time.monotonic() + SECONDS
        packs = sum(name.endswith(".pack") for name in git)
        if packs > PACKS:
            raise Unreadable(f"{packs} packs, more than {PACKS}")
        if self.run("init", "-q", "--bare", "--template=", "--object-format=sha1", ".").returncode:
            # Nothing of the sandbox is in it yet.
            raise EnvironmentFault("git cannot make a repository", about=str(folder), fix="check git")
        for name, data in git.items():
            if name.startswith("objects/"):
                self._take(name, data)

    def _take(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if name.endswith(".pack") and self.run("index-pack", str(path)).returncode:
            # The agent's own index could point anywhere: ours is made from the pack. One that cannot be is
            # a pack that git does not see.
            self._check_room()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """One git call, its whole output: for calls whose answer is short.

        Raises:
            Unreadable: no time is left.
        """
        try:
            return subprocess.run(
                _command(arguments),
                cwd=self.folder,
                env=_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=self._left(),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _late() from None

    @contextmanager
    def reading(self, *arguments: str, stdin: IO[bytes] | int = subprocess.DEVNULL) -> Iterator[IO[bytes]]:
        """One git call, its output as a stream: who has read enough leaves the block, and git ends.

        Raises:
            Unreadable: no time is left; or git failed, which is told when the block has read to the end.
        """
        with subprocess.Popen(
            _command(arguments),
            cwd=self.folder,
            env=_ENVIRONMENT,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            # prlimit becomes git, so that this ends git itself, and with it what the block waits for.
            alarm = threading.Timer(self._left(), process.kill)
            try:
                assert process.stdout is not None  # noqa: S101  # a pipe was asked for
                alarm.start()
                yield process.stdout
                whole = not process.stdout.read(1)
                if whole:
                    process.wait()
            except Exception:
                # Half an answer reads like a damaged one.
                self._left()
                self._check_room()
                raise
            finally:
                alarm.cancel()
                process.kill()
        if whole and process.returncode:
            self._left()
            raise self.damaged()

    def damaged(self) -> Unreadable:
        """What to raise when git failed.

        Raises:
            EnvironmentFault: for want of room on this host, it may be, and that is nobody else's fault.
        """
        self._check_room()
        return Unreadable("objects missing or damaged")

    def _check_room(self) -> None:
        # By the disk, never by what git said: its words can quote the repository.
        if shutil.disk_usage(self.folder).free < ROOM:
            raise EnvironmentFault(
                "no room to read a run's history", about=str(self.folder.parent), fix="free some disk"
            )

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _late()
        return left


_ENVIRONMENT = {**CLEAN_ENVIRONMENT, "GIT_DIR": "."}


def _late() -> Unreadable:
    return Unreadable(f"git took more than {SECONDS} s")


def _command(arguments: tuple[str, ...]) -> list[str]:
    # A hostile object may inflate to anything; prlimit bounds what reading it can take.
    return ["prlimit", f"--as={MEMORY}", "--fsize=1073741824", "git", *arguments]
