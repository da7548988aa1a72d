"""Server-sent events, cut out of a byte stream as it arrives (WHATWG HTML, "Server-sent events")."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")


class TooLong(Exception):
    """An event is longer than it may be."""


@dataclass(frozen=True)
class Event:
    """One event: its bytes as they came, blank line included, and its joined ``data`` lines."""

    raw: bytes
    data: bytes


class Events:
    """Feed bytes in any portions; get whole events. The raw bytes of all events joined are the stream's."""

    def __init__(self, limit: int) -> None:
        """``limit``: most bytes of one event."""
        self._limit = limit
        self._buffer = bytearray()
        self._line = 0
        """Where the line that is being read begins."""
        self._searched = 0
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that ``chunk`` completes.

        Raises:
            TooLong: the event that is being read passes the limit.
        """
        self._buffer += chunk
        found: list[Event] = []
        while match := _LINE_END.search(self._buffer, self._searched):
            if match[0] == b"\r" and match.end() == len(self._buffer):
                # The next portion may begin with the line feed that belongs to it.
                break
            line = bytes(self._buffer[self._line : match.start()])
            self._line = self._searched = match.end()
            if line:
                self._read(line)
            else:
                found.append(self._cut())
        else:
            self._searched = len(self._buffer)
        if len(self._buffer) > self._limit:
            raise TooLong(f"an event of more than {self._limit} bytes")
        return found

    def rest(self) -> bytes:
        """What has come since the last whole event."""
        return bytes(self._buffer)

    def _read(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))

    def _cut(self) -> Event:
        event = Event(bytes(self._buffer[: self._line]), b"\n".join(self._data))
        del self._buffer[: self._line]
        self._line = self._searched = 0
        self._data.clear()
        return event
