"""One run's volume and containers: made, filled, watched, killed, emptied, removed (DESIGN §3)."""

from __future__ import annotations

import io
import tarfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from grader.evidence import Entry, Tree
from orchestrator.capture import Capture
from orchestrator.engine import ContainerSpec, Engine, Exit, Limits, Mount
from schema.errors import CopperbenchError, EngineError, Interrupted
from schema.run import Cap, Isolation

WORKSPACE = "/workspace"
INPUT = "/input"
HOLDER_IMAGE = "copperbench/holder"
GRACE = 30
"""Seconds that PID 1's own limit leaves beyond the cap: it only matters when we have died."""
SPARED_SECONDS = 5.0
"""Longest wait for an agent beyond its cap, where time is spared: what is spared may be taken back."""
UID = 65534

AGENT_LIMITS = Limits(memory=2 * 2**30, cpus=1.0, pids=256)
HOLDER_LIMITS = Limits(memory=16 * 2**20, cpus=0.1, pids=8, tmp=2**20)


@dataclass(frozen=True)
class VolumeSize:
    """Hard limits of a workspace volume."""

    bytes: int = 256 * 2**20
    inodes: int = 65_536


@dataclass(frozen=True)
class SandboxSpec:
    """All that decides what an agent's container is."""

    name: str
    """Prefix of every name in the engine."""
    image: str
    command: list[str]
    wall_seconds: float
    workspace: bytes
    """Tar laid into the workspace before the start."""
    inputs: bytes | None = None
    """Tar laid into ``/input``; None mounts nothing there."""
    environment: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = AGENT_LIMITS
    volume: VolumeSize = VolumeSize()
    mounts: tuple[Mount, ...] = ()
    """Further volumes of the agent, such as its gateway's socket."""
    spare_seconds: float = 0
    """Most that may be added to the wall clock while the run goes on."""
    runtime: str | None = None
    """OCI runtime of the agent's container; None is the engine's default."""
    transcripts: str = ""
    """Glob of the files in the workspace that are copied out while they are written; empty follows none."""


@dataclass(frozen=True)
class Ended:
    """How the agent's container ended."""

    exit: Exit
    killed_by: Cap | None
    seconds: float
    """From the start's return to the end, by a monotonic clock."""

    def at(self, cap: Cap | None) -> Ended:
        """The same with a cap that was found passed. What it was killed at before stays the reason."""
        return replace(self, killed_by=self.killed_by or cap)


class Sandbox:
    """A context that owns the engine objects of one run and removes them on the way out."""

    def __init__(self, engine: Engine, spec: SandboxSpec) -> None:
        self._engine = engine
        self._spec = spec
        self._volumes: list[str] = []
        self._containers: list[str] = []
        self._capture: Capture | None = None
        self.agent = ""

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def start(self) -> float:
        """Start the agent. Returns the monotonic time at which its wall clock began."""
        self._engine.start(self.agent)
        return time.monotonic()

    def kill(self) -> None:
        """End the agent at once."""
        self._engine.kill(self.agent)

    def watch(self, began: float, stop: threading.Event, spare: Callable[[], float] = lambda: 0.0) -> Ended:
        """Wait for the agent's end; kill it at the wall-clock cap.

        Args:
            began: monotonic time of its start.
            stop: set when it is being killed from outside.
            spare: seconds added to the cap so far.

        Raises:
            Interrupted: ``stop`` was set, and so the container killed, from outside.
            EngineError: the engine failed; not the agent's fault.
        """
        killed: Cap | None = None

        def left() -> float:
            return self._spec.wall_seconds + spare() - (time.monotonic() - began)

        code = self._engine.wait(self.agent, left() - spare())
        while code is None and left() > 0:
            code = self._engine.wait(self.agent, min(left(), SPARED_SECONDS))
        if code is None:
            killed = "wall-clock"
            self._engine.kill(self.agent)
            code = self._engine.wait(self.agent, 60)
        seconds = time.monotonic() - began
        if code is None:
            raise EngineError("a killed container did not end", about=self._spec.name)
        if stop.is_set():
            raise Interrupted("interrupted", about=self._spec.name)
        return Ended(exit=self._engine.exit(self.agent), killed_by=killed, seconds=seconds)

    def captured(self) -> Capture | None:
        """What was copied out of the workspace while the agent lived; no more is once this is called."""
        if self._capture:
            self._capture.close()
        return self._capture

    def archive(self) -> Generator[bytes]:
        """The workspace of the ended agent as a tar stream."""
        return self._engine.get(self.agent, WORKSPACE)

    def output(self) -> tuple[str, str]:
        """What the agent's container printed: for diagnosis, never evidence."""
        return self._engine.output(self.agent)

    def isolation(self) -> Isolation:
        """What the engine enforces on the agent's container, read back."""
        info = self._engine.inspect(self.agent)
        host, config = info["HostConfig"], info["Config"]
        return Isolation(
            network=host["NetworkMode"],
            user=config["User"],
            read_only_root=host["ReadonlyRootfs"],
            cap_drop=host["CapDrop"] or [],
            security_opt=host["SecurityOpt"] or [],
            memory_bytes=host["Memory"],
            memory_swap_bytes=host["MemorySwap"],
            nano_cpus=host["NanoCpus"],
            pids_limit=host["PidsLimit"] or 0,
            ulimits={limit["Name"]: limit["Hard"] for limit in host["Ulimits"] or []},
            volume_bytes=self._spec.volume.bytes,
            runtime=host["Runtime"],
            apparmor=info.get("AppArmorProfile", ""),
            engine=self._engine.isolation,
        )

    def _build(self) -> None:
        spec, engine = self._spec, self._engine
        mounts = [Mount(self._volume("workspace"), WORKSPACE)]
        if spec.inputs is not None:
            mounts.append(Mount(self._volume("input"), INPUT))
        # The holder's start and the agent's creation do not depend on each other and cost 0.2 s each.
        with ThreadPoolExecutor(max_workers=1) as pool:
            holding = pool.submit(self._hold, mounts)
            self.agent = self._create_agent(mounts)
            holding.result()
        engine.put(self.agent, WORKSPACE, spec.workspace)
        if spec.inputs is not None:
            engine.put(self.agent, INPUT, spec.inputs)

    def _volume(self, role: str) -> str:
        name = f"{self._spec.name}-{role}"
        self._engine.create_tmpfs_volume(
            name, size=self._spec.volume.bytes, inodes=self._spec.volume.inodes, labels=self._spec.labels
        )
        self._volumes.append(name)
        return name

    def _hold(self, mounts: list[Mount]) -> None:
        """Start the container that keeps the volumes alive beyond the agent and follows its transcripts."""
        pattern = self._spec.transcripts
        holder = self._engine.create(
            ContainerSpec(
                name=f"{self._spec.name}-holder",
                image=HOLDER_IMAGE,
                command=["follow", WORKSPACE, pattern] if pattern else ["sleep", "infinity"],
                limits=HOLDER_LIMITS,
                labels=self._spec.labels,
                mounts=[Mount(mount.volume, mount.target, read_only=True) for mount in mounts],
            )
        )
        self._containers.append(holder)
        if pattern:
            self._capture = Capture(self._engine.attach(holder))
        self._engine.start(holder)

    def _create_agent(self, mounts: list[Mount]) -> str:
        seconds = int(self._spec.wall_seconds + self._spec.spare_seconds) + 1 + GRACE
        agent = self._engine.create(
            ContainerSpec(
                name=f"{self._spec.name}-agent",
                image=self._spec.image,
                # PID 1 dies at its own limit even when we are dead, and resists the agent's KILL and STOP.
                command=["timeout", "-s", "KILL", str(seconds), *self._spec.command],
                limits=self._spec.limits,
                labels=self._spec.labels,
                environment=self._spec.environment,
                mounts=[*mounts, *self._spec.mounts],
                working_dir=WORKSPACE,
                runtime=self._spec.runtime,
            )
        )
        self._containers.append(agent)
        return agent

    def _remove(self) -> None:
        if self._capture:
            self._capture.close()
        for container in self._containers:
            with suppress(CopperbenchError):
                self._engine.remove(container)
        for volume in self._volumes:
            with suppress(CopperbenchError):
                self._engine.remove_volume(volume)


def pack(tree: Tree, prefix: str = "") -> bytes:
    """A tree as a deterministic tar owned by the sandbox's user, with the folders it needs."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
        made: set[str] = set()
        for path, entry in sorted(tree.items()):
            _add_folders(tar, prefix + path, made)
            _add(tar, prefix + path, entry)
    return out.getvalue()


def _add_folders(tar: tarfile.TarFile, path: str, made: set[str]) -> None:
    parts = path.split("/")[:-1]
    for depth in range(1, len(parts) + 1):
        name = "/".join(parts[:depth])
        if name not in made:
            made.add(name)
            info = _info(name, 0o755)
            info.type = tarfile.DIRTYPE
            tar.addfile(info)


def _add(tar: tarfile.TarFile, path: str, entry: Entry) -> None:
    info = _info(path, entry.mode)
    if entry.kind == "symlink":
        info.type = tarfile.SYMTYPE
        info.linkname = entry.data.decode("utf-8", "surrogateescape")
        tar.addfile(info)
    else:
        info.size = len(entry.data)
        tar.addfile(info, io.BytesIO(entry.data))


def _info(name: str, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode = mode
    info.uid = info.gid = UID
    # A fixed time: the same baseline gives the same archive.
    info.mtime = 1_700_000_000
    return info
