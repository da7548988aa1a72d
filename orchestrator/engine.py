"""The one place that talks to a Docker engine.

Everything we create carries labels: the project, the run, and its owner (host, boot, pid, start time), so
that the reaper can tell a dead owner's leavings from a live one's and from what is not ours.
"""

from __future__ import annotations

import os
import socket
import struct
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.utils import kwargs_from_env

from schema.errors import EngineError
from schema.hashing import sha256
from schema.jsonfile import canonical

LABEL = "io.copperbench"
NOBODY = "65534:65534"
CALL_SECONDS = 120
"""Longest wait for one answer of the engine."""


@dataclass(frozen=True)
class Owner:
    """The process that created something, in a way that survives pid reuse and reboots."""

    host: str
    boot: str
    pid: int
    started: int
    """Clock ticks after boot, from ``/proc/<pid>/stat``."""

    @classmethod
    def current(cls) -> Owner:
        """This process."""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        started = start_ticks(os.getpid()) or 0
        return cls(host=socket.gethostname(), boot=boot, pid=os.getpid(), started=started)

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """Read a label; None when it is not one of ours."""
        parts = text.split("|")
        try:
            host, boot, pid, started = parts
            return cls(host=host, boot=boot, pid=int(pid), started=int(started))
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.host}|{self.boot}|{self.pid}|{self.started}"

    def dead(self) -> bool:
        """Whether the owner provably no longer runs on this host. Another host's owner is never dead."""
        me = Owner.current()
        if self.host != me.host:
            return False
        return self.boot != me.boot or start_ticks(self.pid) != self.started


def start_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks after boot; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command name may hold spaces and parentheses; fields are counted from the last one.
    return int(stat.rpartition(")")[2].split()[19])


@dataclass(frozen=True)
class Limits:
    """What a container may use. Bytes, cores, counts."""

    memory: int
    cpus: float
    pids: int
    nofile: int = 1024
    fsize: int = 256 * 2**20
    tmp: int = 256 * 2**20


@dataclass(frozen=True)
class Mount:
    """A named volume in a container."""

    volume: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class ContainerSpec:
    """A container as we start them all: no network, no capability, no privilege, read-only root."""

    name: str
    image: str
    command: Sequence[str]
    limits: Limits
    labels: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    working_dir: str = "/"
    stdin: bool = False
    user: str = NOBODY


@dataclass(frozen=True)
class Exit:
    """How a container ended, by the engine's own account."""

    code: int
    oom_killed: bool


class Engine:
    """A connection to the engine, with the few operations the harness needs."""

    def __init__(self, api: docker.APIClient) -> None:
        self._api = api
        self.owner = Owner.current()

    @classmethod
    def connect(cls) -> Engine:
        """Connect to the engine that the environment names, else the default socket.

        Raises:
            EngineError: nothing answers.
        """
        try:
            api = docker.APIClient(**kwargs_from_env(), version="auto", timeout=CALL_SECONDS, num_pools=64)
            api.ping()
        except (DockerException, requests.RequestException) as error:
            raise EngineError(f"no Docker engine answers ({_short(error)})", fix="run make setup") from None
        return cls(api)

    # --- what is there

    def ping(self) -> bool:
        """Whether the engine answers now."""
        try:
            return bool(self._api.ping())
        except (DockerException, requests.RequestException):
            return False

    def version(self) -> str:
        """The engine's version."""
        return str(self._api.version()["Version"])

    def platform(self) -> str:
        """``linux/amd64``: what containers run on."""
        version = self._api.version()
        return f"{version['Os']}/{version['Arch']}"

    def facts(self) -> dict[str, Any]:
        """The engine's own description of its host (``docker info``)."""
        return dict(self._api.info())

    def layers(self, image: str) -> list[str]:
        """Layer digests of an image: reproducible where image ids are not.

        Raises:
            EngineError: no such image.
        """
        return list(self._image(image)["RootFS"]["Layers"])

    def digest(self, image: str) -> str:
        """One digest over an image's layers."""
        return "sha256:" + sha256(canonical(self.layers(image)))

    def image_labels(self, image: str) -> dict[str, str] | None:
        """Labels of an image; None when there is no such image."""
        try:
            return dict(self._image(image)["Config"].get("Labels") or {})
        except EngineError:
            return None

    def image_bytes(self, image: str) -> int:
        """Unpacked size of an image with all its layers."""
        return int(self._image(image)["Size"])

    def _image(self, image: str) -> dict[str, Any]:
        try:
            return dict(self._api.inspect_image(image))  # type: ignore[no-untyped-call]
        except ImageNotFound:
            raise EngineError("no such image", about=image, fix="run make images") from None

    # --- images

    def pull(self, image: str) -> bool:
        """Try to pull an image; False when no registry gives it."""
        try:
            self._api.pull(image)
        except (DockerException, requests.RequestException):
            return False
        return True

    def import_root(self, archive: Path, tag: str, changes: Sequence[str] = ()) -> None:
        """Make an image of one layer from a root file system archive."""
        repository, _, label = tag.partition(":")
        result = self._api.import_image(
            src=str(archive), repository=repository, tag=label or "latest", changes=list(changes)
        )
        if "errorDetail" in result:
            raise EngineError(f"import failed: {_short(result)}", about=tag)

    def build(
        self,
        context: IO[bytes],
        *,
        tag: str,
        dockerfile: str,
        args: Mapping[str, str],
        labels: Mapping[str, str],
        network: str,
    ) -> Iterator[str]:
        """Build an image from a tar context; yields the builder's lines.

        Raises:
            EngineError: the build failed; the message holds the builder's last words.
        """
        lines = self._api.build(
            fileobj=context,
            custom_context=True,
            dockerfile=dockerfile,
            tag=tag,
            buildargs=dict(args),
            labels=dict(labels),
            network_mode=network,
            rm=True,
            forcerm=True,
            decode=True,
        )
        tail: list[str] = []
        for item in lines:
            if "error" in item:
                said = " | ".join([*tail[-3:], str(item["error"]).strip()])
                raise EngineError(f"build failed: {said}", about=tag, fix="see the lines above")
            text = str(item.get("stream", "")).rstrip()
            if text:
                tail.append(text)
                yield text

    def tag(self, image: str, tag: str) -> None:
        """Give an image another name."""
        repository, _, label = tag.partition(":")
        self._api.tag(image, repository, label or "latest", force=True)

    # --- volumes

    def create_tmpfs_volume(
        self, name: str, *, size: int, inodes: int, labels: Mapping[str, str], mode: str = "0755"
    ) -> None:
        """A volume in memory with a hard total size in bytes; it lives while a container mounts it.

        Raises:
            EngineError: there is one of that name already.
        """
        # The engine answers a second creation with the first volume: a mark of our own tells them apart.
        mark = uuid.uuid4().hex
        options = f"size={size},nr_inodes={inodes},uid=65534,gid=65534,mode={mode},nosuid,nodev"
        made = self._api.create_volume(
            name,
            driver="local",
            driver_opts={"type": "tmpfs", "device": "tmpfs", "o": options},
            labels=self._labels({**labels, "mark": mark}),
        )
        if (made.get("Labels") or {}).get(f"{LABEL}.mark") != mark:
            raise EngineError("a volume of this name exists", about=name, fix="run copperbench reap")

    def remove_volume(self, name: str) -> None:
        """Remove a volume; gone already is fine.

        Raises:
            EngineError: a container still mounts it.
        """
        try:
            self._api.remove_volume(name, force=True)
        except NotFound:
            return
        except APIError as error:
            raise EngineError(f"cannot remove volume ({_short(error)})", about=name) from None

    # --- containers

    def create(self, spec: ContainerSpec) -> str:
        """Create a container; its name makes a duplicate start impossible. Returns its id.

        Raises:
            EngineError: the engine refused, for one because the name is taken.
        """
        host = self._api.create_host_config(
            network_mode="none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            read_only=True,
            tmpfs={"/tmp": f"rw,nosuid,nodev,noexec,size={spec.limits.tmp},mode=1777"},  # noqa: S108
            pids_limit=spec.limits.pids,
            mem_limit=spec.limits.memory,
            memswap_limit=spec.limits.memory,
            nano_cpus=int(spec.limits.cpus * 1e9),
            ipc_mode="private",
            ulimits=[
                docker.types.Ulimit(name=name, soft=value, hard=value)
                for name, value in (("nofile", spec.limits.nofile), ("fsize", spec.limits.fsize), ("core", 0))
            ],
            log_config=docker.types.LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
            mounts=[
                docker.types.Mount(
                    target=mount.target,
                    source=mount.volume,
                    type="volume",
                    read_only=mount.read_only,
                    # Else the engine gives an empty volume the owner of the image's folder, now and then.
                    no_copy=True,
                )
                for mount in spec.mounts
            ],
        )
        try:
            created = self._api.create_container(
                spec.image,
                name=spec.name,
                entrypoint=[],
                command=list(spec.command),
                environment=dict(spec.environment),
                working_dir=spec.working_dir,
                user=spec.user,
                labels=self._labels(spec.labels),
                host_config=host,
                stdin_open=spec.stdin,
                network_disabled=True,
            )
        except ImageNotFound:
            raise EngineError("no such image", about=spec.image, fix="run make images") from None
        except APIError as error:
            raise EngineError(f"cannot create container ({_short(error)})", about=spec.name) from None
        return str(created["Id"])

    def start(self, container: str) -> None:
        """Start a created container.

        Raises:
            EngineError: the engine or the image's command failed.
        """
        try:
            self._api.start(container)
        except APIError as error:
            raise EngineError(f"cannot start container ({_short(error)})", about=container[:12]) from None

    def wait(self, container: str, seconds: float) -> int | None:
        """Wait for a container's end. Its exit code, or None when it still runs after ``seconds``."""
        try:
            # docker-py lets wait() block for ever unless told; the timeout surfaces as either class.
            return int(self._api.wait(container, timeout=max(seconds, 0.05))["StatusCode"])  # type: ignore[arg-type]
        except (requests.exceptions.ReadTimeout, requests.exceptions.ConnectionError):
            if not self.ping():
                raise EngineError("the engine stopped answering during a run") from None
            return None

    def kill(self, container: str) -> None:
        """SIGKILL; dead or gone already is fine."""
        try:
            self._api.kill(container)
        except NotFound:
            return
        except APIError as error:
            # 409: it does not run.
            if error.status_code != 409:
                raise EngineError(f"cannot kill container ({_short(error)})", about=container) from None

    def exit(self, container: str) -> Exit:
        """How an ended container ended."""
        state = self._api.inspect_container(container)["State"]
        return Exit(code=int(state["ExitCode"]), oom_killed=bool(state["OOMKilled"]))

    def inspect(self, container: str) -> dict[str, Any]:
        """The engine's description of a container."""
        return dict(self._api.inspect_container(container))

    def remove(self, container: str) -> None:
        """Kill and remove a container; gone already is fine.

        Raises:
            EngineError: the engine refused.
        """
        try:
            self._api.remove_container(container, force=True)
        except NotFound:
            return
        except APIError as error:
            # 409: the engine is removing it already.
            if error.status_code != 409:
                raise EngineError(f"cannot remove container ({_short(error)})", about=container) from None

    def output(self, container: str, *, limit: int = 65536) -> tuple[str, str]:
        """The last lines of standard output and error, at most ``limit`` bytes each, for diagnosis."""
        out = self._api.logs(container, stdout=True, stderr=False, tail=200)
        err = self._api.logs(container, stdout=False, stderr=True, tail=200)
        return out[-limit:].decode("utf-8", "replace"), err[-limit:].decode("utf-8", "replace")

    def put(self, container: str, folder: str, archive: bytes) -> None:
        """Unpack a tar into a container's folder, before or after its start."""
        if not self._api.put_archive(container, folder, archive):
            raise EngineError("the engine refused the files", about=container[:12])

    def get(self, container: str, path: str) -> Generator[bytes]:
        """Stream a path of a container as tar. Closing the generator closes the connection.

        Raises:
            FileNotFoundError: no such path.
        """
        try:
            stream, _ = self._api.get_archive(container, path, chunk_size=2**20)
        except NotFound:
            raise FileNotFoundError(path) from None
        yield from stream

    def attach(self, container: str) -> Attached:
        """Attach to a created container's standard streams; call before :meth:`start`."""
        sock = self._api.attach_socket(container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        return Attached(sock)

    # --- what is ours

    def ours(self) -> Iterator[tuple[str, str, Owner | None]]:
        """(kind, name, owner) of every container and volume that carries our label."""
        for item in self._api.containers(all=True, filters={"label": f"{LABEL}.owner"}):
            yield "container", str(item["Id"]), Owner.parse(item["Labels"].get(f"{LABEL}.owner", ""))
        for item in self._api.volumes(filters={"label": f"{LABEL}.owner"})["Volumes"] or []:
            labels = item.get("Labels") or {}
            yield "volume", str(item["Name"]), Owner.parse(labels.get(f"{LABEL}.owner", ""))

    def _labels(self, more: Mapping[str, str]) -> dict[str, str]:
        return {f"{LABEL}.owner": str(self.owner), **{f"{LABEL}.{key}": v for key, v in more.items()}}


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

    def patience(self, seconds: float) -> None:
        """Longest wait of the reads that follow."""
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
            # Frame header: stream number, three zero bytes, length (Docker Engine API, attach).
            header = self._exactly(8)
            stream, length = struct.unpack(">BxxxI", header)
            body = self._exactly(length)
            if stream == 1:
                self._stdout += body
            else:
                self.stderr = (self.stderr + body)[-65536:]
        out = bytes(self._stdout[:size])
        del self._stdout[:size]
        return out

    def close(self) -> None:
        """Close the connection; the container sees the end of its input."""
        # The HTTP library holds further references, which would keep a merely closed socket open.
        if (handle := self._sock.detach()) >= 0:
            os.close(handle)

    def _exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self._sock.recv(min(size, 2**20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _short(error: object) -> str:
    """The first line of an engine error, in at most 200 characters."""
    text = getattr(error, "explanation", None) or str(error)
    return str(text).strip().splitlines()[0][:200] if str(text).strip() else type(error).__name__
