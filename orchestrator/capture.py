"""What an agent's transcript held while it was written, copied out by the holder: the end must begin with it.

An agent can rewrite its transcript as long as it lives. It cannot take back what was copied out before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

from grader.evidence import Entry
from orchestrator.attached import Attached
from schema.paths import decode_path, encode_path
from schema.run import Tamper

HEADER = 4096
"""Longest header line: a path of ours, percent-encoded."""


class Capture:
    """Reads a follower's stream in a thread of its own until the holder ends or :meth:`close`."""

    def __init__(self, streams: Attached) -> None:
        self._streams = streams
        self._held: dict[str, bytearray] = {}
        self._lost: dict[str, str] = {}
        self._hidden: dict[str, str] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading; a second time does nothing."""
        if not self._closed:
            self._closed = True
            self._streams.abort()
            self._thread.join()
            self._streams.close()

    @property
    def size(self) -> int:
        """Bytes that were copied out."""
        return sum(len(data) for data in self._held.values())

    def tampering(self, end: Mapping[str, Entry]) -> Iterator[Tamper]:
        """What the end tree's transcripts took back, and what was hidden while the agent lived.

        Call after the agent's end and :meth:`close`.
        """
        for path, why in sorted(self._hidden.items()):
            # What stands there in the end was held against nothing; an honest writer hides nothing.
            yield Tamper(kind="transcript-hidden", detail=f"{encode_path(path)}: {why}")
        for path, held in sorted(self._held.items()):
            entry = end.get(path)
            if entry is None:
                yield Tamper(kind="transcript-removed", detail=encode_path(path))
            elif entry.kind != "file" or not entry.data.startswith(bytes(held)):
                yield Tamper(kind="transcript-rewritten", detail=encode_path(path))
            elif path in self._lost:
                # Put back as it was: an honest writer only appends.
                yield Tamper(kind="transcript-replaced", detail=f"{encode_path(path)}: {self._lost[path]}")

    def _read(self) -> None:
        self._streams.patience(None)
        try:
            while True:
                self._piece(self._line().decode("ascii").split(" ", 2))
        except (EOFError, OSError, ValueError):
            # The holder ended, or we did. What was read until then is what the end is held against.
            return

    def _piece(self, header: list[str]) -> None:
        kind, path = header[0], decode_path(header[1])
        if kind in {"lost", "hidden"}:
            (self._lost if kind == "lost" else self._hidden)[path] = header[2]
            return
        offset, length = (int(number) for number in header[2].split(" "))
        data = self._streams.read(length)
        held = self._held.setdefault(path, bytearray())
        if offset == len(held):
            held += data

    def _line(self) -> bytes:
        line = bytearray()
        while not line.endswith(b"\n"):
            line += self._streams.read(1)
            if len(line) > HEADER:
                raise ValueError("no header line")
        return bytes(line[:-1])
