"""The follower: copies transcripts out while they are written, and reads nothing but regular files."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.evidence import Entry
from orchestrator.attached import Attached
from orchestrator.capture import Capture
from tests.unit.images.sources import AGENTS

PATTERN = ".copperhead/runs/*/transcript.jsonl"
PATH = ".copperhead/runs/a b/transcript.jsonl"


class Streams(Attached):
    """A process' standard output, read like an attached container's."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def patience(self, seconds: float | None) -> None:
        """As long as it takes."""

    def read(self, size: int) -> bytes:
        """Exactly ``size`` bytes."""
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def abort(self) -> None:
        """End the process."""
        self._process.terminate()

    def close(self) -> None:
        """Nothing more to close."""
        self._process.communicate()


UID = 65534
"""The holder's user and the agent's: root, as whom tests may run, reads everything."""


@pytest.fixture
def workspace() -> Iterator[Path]:
    """Not below pytest's own folder, which only its user may enter."""
    with tempfile.TemporaryDirectory(prefix="copperbench-follow-") as name:
        root = Path(name)
        (root / PATH).parent.mkdir(parents=True)
        for folder in (root, *root.rglob("*")):
            folder.chmod(0o755)
        yield root


@pytest.fixture
def capture(workspace: Path) -> Iterator[Capture]:
    # From standard input: nor may it enter a checkout, it may be.
    with (AGENTS.parent / "holder/follow").open("rb") as script:
        process = subprocess.Popen(
            ["perl", "-", str(workspace), PATTERN],
            stdin=script,
            stdout=subprocess.PIPE,
            user=UID if os.geteuid() == 0 else None,
        )
    made = Capture(Streams(process))
    yield made
    made.close()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "the follower did not see it"
        time.sleep(0.02)


def kinds(capture: Capture, data: bytes | None) -> list[str]:
    """What is found when the run ends with this transcript."""
    capture.close()
    end = {} if data is None else {PATH: Entry(data)}
    return [tamper.kind for tamper in capture.tampering(end)]


def test_what_is_appended_is_copied_and_an_honest_end_begins_with_it(
    workspace: Path, capture: Capture
) -> None:
    for number in range(1, 4):
        with (workspace / PATH).open("ab") as file:
            file.write(b"%d\n" % number)
        until(lambda n=number: capture.size == 2 * n)  # type: ignore[misc]
    assert kinds(capture, b"1\n2\n3\n4\n") == []


def test_a_line_that_was_rewritten_shows(workspace: Path, capture: Capture) -> None:
    """Naive: only the end counts, and a run edits its own story before it is read."""
    (workspace / PATH).write_bytes(b"refused\n")
    until(lambda: capture.size == 8)
    assert kinds(capture, b"done...\n") == ["transcript-rewritten"]


def test_a_transcript_that_went_away_shows(workspace: Path, capture: Capture) -> None:
    (workspace / PATH).write_bytes(b"x\n")
    until(lambda: capture.size == 2)
    assert kinds(capture, None) == ["transcript-removed"]


@pytest.mark.parametrize("how", ["shorter", "another file", "gone for a while"])
def test_a_transcript_that_was_replaced_and_put_back_shows(
    workspace: Path, capture: Capture, how: str
) -> None:
    path = workspace / PATH
    path.write_bytes(b"one\ntwo\n")
    until(lambda: capture.size == 8)
    if how == "shorter":
        os.truncate(path, 4)
    elif how == "another file":
        (workspace / "other").write_bytes(b"one\ntwo\nthree\n")
        (workspace / "other").rename(path)
    else:
        path.unlink()
    until(lambda: bool(capture._lost))
    path.write_bytes(b"one\ntwo\nthree\n")
    assert kinds(capture, b"one\ntwo\nthree\n") == ["transcript-replaced"]


@pytest.mark.parametrize("kind", ["fifo", "symlink", "folder"])
def test_what_is_no_regular_file_is_not_read_and_does_not_block(
    workspace: Path, capture: Capture, kind: str
) -> None:
    path = workspace / PATH
    (workspace / "secret").write_bytes(b"outside")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "symlink":
        path.symlink_to(workspace / "secret")
    else:
        path.mkdir()
    other = workspace / ".copperhead/runs/z/transcript.jsonl"
    other.parent.mkdir()
    other.write_bytes(b"seen\n")
    until(lambda: capture.size == 5)
    assert list(capture._held) == [".copperhead/runs/z/transcript.jsonl"]


def test_hard_names_come_through(workspace: Path, capture: Capture) -> None:
    name = b"n\xff \n%41 data"
    folder = workspace / ".copperhead/runs" / os.fsdecode(name)
    folder.mkdir()
    (folder / "transcript.jsonl").write_bytes(b"y")
    until(lambda: capture.size == 1)
    assert list(capture._held) == [f".copperhead/runs/{os.fsdecode(name)}/transcript.jsonl"]


def test_a_flood_of_transcripts_is_bounded_and_shows(workspace: Path, capture: Capture) -> None:
    """Naive: follow the first so many, and a crowd of others hides the one that counts."""
    (workspace / PATH).write_bytes(b"x")
    until(lambda: capture.size == 1)
    for number in range(150):
        path = workspace / f".copperhead/runs/{number}/transcript.jsonl"
        path.parent.mkdir()
        path.write_bytes(b"x")
    until(lambda: bool(capture._hidden))
    (workspace / PATH).write_bytes(b"xy")
    until(lambda: bytes(capture._held[PATH]) == b"xy")
    assert len(capture._held) <= 64
    assert list(capture._hidden.values()) == ["there are too many"]


def test_as_many_transcripts_as_are_followed_are_no_crowd(workspace: Path, capture: Capture) -> None:
    for number in range(64):
        path = workspace / f".copperhead/runs/{number}/transcript.jsonl"
        path.parent.mkdir()
        path.write_bytes(b"x")
    until(lambda: capture.size == 64)
    time.sleep(2 * PERIOD)
    capture.close()
    assert capture._hidden == {}


PERIOD = 0.25
"""Seconds between two looks."""


def hide(root: Path, how: str) -> None:
    """Put a transcript where the follower can tell that it is there, and cannot read it."""
    path = root / PATH
    if how == "pipe":
        os.mkfifo(path)
    elif how == "link":
        (root / "elsewhere").write_bytes(b"one\n")
        path.symlink_to(root / "elsewhere")
    elif how == "folder":
        path.mkdir()
    elif how == "file":
        # From its first moment, as a umask of 777 makes it.
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0))
    else:
        path.touch()
        {"its folder": path.parent, "all folders": root / ".copperhead", "workspace": root}[how].chmod(0)


@pytest.mark.parametrize("how", ["file", "its folder", "all folders", "workspace", "pipe", "link", "folder"])
def test_a_transcript_that_was_hidden_shows_however_honest_its_end(
    workspace: Path, capture: Capture, how: str
) -> None:
    """Naive: what cannot be read is not there; it is told in one go at the end, or replaced."""
    hide(workspace, how)
    until(lambda: bool(capture._hidden))
    for folder in (workspace, workspace / ".copperhead", (workspace / PATH).parent):
        folder.chmod(0o755)
    assert "transcript-hidden" in kinds(capture, b"another story\n")
    assert len(capture._hidden) == 1


def test_what_is_hidden_for_one_look_is_no_tampering(workspace: Path, capture: Capture) -> None:
    """One look may fall between two steps of anything."""
    hide(workspace, "file")
    time.sleep(PERIOD / 3)
    (workspace / PATH).chmod(0o644)
    (workspace / PATH).write_bytes(b"one\n")
    until(lambda: capture.size == 4)
    time.sleep(2 * PERIOD)
    assert kinds(capture, b"one\n") == []


def test_a_transcript_that_goes_and_comes_is_not_hidden(workspace: Path, capture: Capture) -> None:
    path = workspace / PATH
    deadline = time.monotonic() + 4 * PERIOD
    while time.monotonic() < deadline:
        path.unlink(missing_ok=True)
        path.write_bytes(b"x")
    capture.close()
    assert capture._hidden == {}
