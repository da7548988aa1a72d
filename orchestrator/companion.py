"""A container that serves a run over a unix socket: its volume, its streams, its end."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from orchestrator.attached import Attached
from orchestrator.engine import ContainerSpec, Engine, Mount
from schema.errors import CopperbenchError, EngineError

VOLUME_BYTES = 2**20
"""The socket's volume holds nothing else."""
START_SECONDS = 30.0
COMPANION = "companion"
"""Role of such containers: they outlive a run that is interrupted, until it has heard them out."""


class Companion:
    """Owns one such container; it reads a line on its standard input and serves until that input ends."""

    def __init__(self, engine: Engine, spec: ContainerSpec, socket: Mount) -> None:
        """``socket``: the volume of its own, and where it has it."""
        self._engine = engine
        self._spec = replace(spec, labels={**spec.labels, "role": COMPANION})
        self._socket = socket
        self.container = ""
        self._streams: Attached | None = None

    @property
    def mount(self) -> Mount:
        """The socket's folder, for whom it serves."""
        return Mount(self._socket.volume, self._socket.target, read_only=True)

    def start(self, line: bytes) -> Attached:
        """Make and start it, hand it its line; its streams.

        Raises:
            EngineError: the engine refused.
        """
        self._engine.create_tmpfs_volume(
            self._socket.volume, size=VOLUME_BYTES, inodes=16, labels=self._spec.labels
        )
        self.container = self._engine.create(self._spec)
        self._streams = self._engine.attach(self.container)
        self._engine.start(self.container)
        self._streams.write(line, START_SECONDS)
        return self._streams

    def end_input(self) -> None:
        """Ask it to end."""
        if self._streams:
            self._streams.end_input()

    def abort(self) -> None:
        """End a read of its streams that another thread is waiting in."""
        if self._streams:
            self._streams.abort()

    @property
    def last_words(self) -> str:
        """The last line on its standard error; empty without one."""
        said = self._streams.stderr.decode("utf-8", "replace").strip().splitlines() if self._streams else []
        return said[-1] if said else ""

    def stillborn(self) -> EngineError:
        """What to raise when it did not begin to serve."""
        return EngineError(
            f"it did not start ({self.last_words or 'no word from it'})", about=self._spec.name
        )

    def remove(self) -> None:
        """Take it and its volume out of the engine; whatever is gone already is fine."""
        if self.container:
            with suppress(CopperbenchError):
                self._engine.remove(self.container)
        if self._streams:
            self._streams.close()
        with suppress(CopperbenchError):
            self._engine.remove_volume(self._socket.volume)
