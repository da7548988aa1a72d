"""The standard streams of a container, over the engine's multiplexed connection."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from typing import Any


class Attached:
    """The standard streams of a container: writes go to stdin, reads are demultiplexed stdout."""

    def __init__(self, stream: Any) -> None:
        # docker-py hands out the raw socket's file object, and hangs the HTTP response on it.
        self._stream = stream
        self._sock: socket.socket = getattr(stream, "_sock", stream)
        self._stdout = bytearray()
        self.stderr = bytearray()
        """Last 64 KiB of standard error."""

    def write(self, data: bytes, seconds: float) -> None:
        """Write all of ``data`` to standard input.

        Raises:
            TimeoutError: it was not taken in time. The engine does not tell that the container has died.
        """
        self._sock.settimeout(seconds)
        self._sock.sendall(data)

    def patience(self, seconds: float | None) -> None:
        """Longest wait of the reads that follow; None waits for ever."""
        self._sock.settimeout(seconds)

    def abort(self) -> None:
        """End a read or write that another thread is waiting in."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def read(self, size: int) -> bytes:
        """Read exactly ``size`` bytes of standard output.

        Raises:
            EOFError: the container ended first.
        """
        while len(self._stdout) < size:
            self._frame()
        out = bytes(self._stdout[:size])
        del self._stdout[:size]
        return out

    def line(self, limit: int) -> bytes:
        """Read one line of standard output, its newline taken off.

        Raises:
            EOFError: the container ended first.
            ValueError: the line is longer than ``limit`` bytes.
        """
        searched = 0
        while (end := self._stdout.find(b"\n", searched)) < 0:
            searched = len(self._stdout)
            if searched > limit:
                raise ValueError(f"a line of more than {limit} bytes")
            self._frame()
        out = bytes(self._stdout[:end])
        del self._stdout[: end + 1]
        return out

    def end_input(self) -> None:
        """Close standard input and go on reading."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the connection; the container sees the end of its input."""
        # The HTTP library holds further references, which would keep a merely closed socket open.
        if (handle := self._sock.detach()) >= 0:
            os.close(handle)

    def _frame(self) -> None:
        # Frame header: stream number, three zero bytes, length (Docker Engine API, attach).
        header = self._exactly(8)
        stream, length = struct.unpack(">BxxxI", header)
        body = self._exactly(length)
        if stream == 1:
            self._stdout += body
        else:
            self.stderr = (self.stderr + body)[-65536:]

    def _exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self._sock.recv(min(size, 2**20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
