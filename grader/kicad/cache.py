"""Results of kicad-cli, kept by content: equal inputs are never run twice."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Protocol


class Cache(Protocol):
    """Maps a hex digest to bytes. Values never change once stored."""

    def get(self, key: str) -> bytes | None:
        """The stored value, or None."""

    def put(self, key: str, value: bytes) -> None:
        """Store a value. Failing to store is not an error: it only costs time."""


class MemoryCache:
    """A cache for one process."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        """The stored value, or None."""
        return self._values.get(key)

    def put(self, key: str, value: bytes) -> None:
        """Store a value."""
        self._values[key] = value


class FolderCache:
    """A cache that processes share: one file a value, written whole or not at all."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def get(self, key: str) -> bytes | None:
        """The stored value, or None."""
        try:
            return self._path(key).read_bytes()
        except OSError:
            return None

    def put(self, key: str, value: bytes) -> None:
        """Store a value; two writers of one key leave one whole value."""
        path = self._path(key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            new = Path(name)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(value)
                new.replace(path)
            finally:
                new.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        if len(key) != 64 or not key.isalnum():
            raise ValueError(f"not a digest: {key!r}")
        return self._root / key[:2] / key[2:]
