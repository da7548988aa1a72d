"""The follower: copies transcripts out while they are written, and reads nothing but regular files."""

import os
import subprocess
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


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / PATH).parent.mkdir(parents=True)
    return tmp_path


@pytest.fixture
def capture(workspace: Path) -> Iterator[Capture]:
    process = subprocess.Popen(
        ["perl", str(AGENTS.parent / "holder/follow"), str(workspace), PATTERN], stdout=subprocess.PIPE
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


def test_a_flood_of_transcripts_is_bounded(workspace: Path, capture: Capture) -> None:
    for number in range(60):
        path = workspace / f".copperhead/runs/{number}/transcript.jsonl"
        path.parent.mkdir()
        path.write_bytes(b"x")
    until(lambda: capture.size >= 16)
    time.sleep(0.6)
    assert len(capture._held) <= 32
