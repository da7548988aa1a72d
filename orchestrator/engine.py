"""The one place that talks to a Docker engine.

Everything we create carries labels: the project, the run, and its owner (host, boot, pid, start time), so
that the reaper can tell a dead owner's leavings from a live one's and from what is not ours.
"""

from __future__ import annotations

import re
import signal
import time
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.utils import kwargs_from_env

from orchestrator.attached import Attached
from orchestrator.owner import Owner
from schema.errors import EngineError
from schema.hashing import sha256
from schema.jsonfile import canonical
from schema.text import plain

LABEL = "io.copperbench"
NOBODY_ID = 65534
NOBODY = f"{NOBODY_ID}:{NOBODY_ID}"
CALL_SECONDS = 120
KILLED = 128 + signal.SIGKILL
OOM_SECONDS = 0.5
"""How late the engine may learn that an ended container ran out of memory."""
"""Longest wait for one answer of the engine."""


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
    """A container as we start them all: no capability, no privilege, read-only root, and no network."""

    name: str
    image: str
    command: Sequence[str]
    limits: Limits
    labels: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    working_dir: str = "/"
    stdin: bool = False
    """Open until whoever attached first is gone."""
    user: str = NOBODY
    runtime: str | None = None
    """OCI runtime by the engine's name for it; None is the engine's default."""
    network: Literal["none", "host", "bridge"] = "none"
    """Only a gateway has any."""


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

    @cached_property
    def isolation(self) -> list[str]:
        """What the engine does for all its containers, sorted, such as ``cgroup=2`` and ``name=userns``."""
        facts = self.facts()
        security = [str(option) for option in facts.get("SecurityOptions") or []]
        return sorted([*security, f"cgroup={facts.get('CgroupVersion', '1')}"])

    @property
    def _is_remapped(self) -> bool:
        return any("userns" in option for option in self.isolation)

    @cached_property
    def _mapped_root(self) -> tuple[int, int]:
        """What uid and gid 0 of containers are on the host: volumes are mounted with the host's numbers."""
        # With userns-remap the engine's folder is named by them; it tells them nowhere else.
        found = re.search(r"/(\d+)\.(\d+)$", str(self.facts().get("DockerRootDir", "")))
        return (int(found[1]), int(found[2])) if self._is_remapped and found else (0, 0)

    @property
    def _mapped_nobody(self) -> tuple[int, int]:
        """What uid and gid of containers' users are on the host."""
        return self._mapped_root[0] + NOBODY_ID, self._mapped_root[1] + NOBODY_ID

    def runtimes(self) -> list[str]:
        """Names of the OCI runtimes that the engine can start containers with."""
        return sorted(self.facts().get("Runtimes") or {})

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
        with _told("cannot import", tag):
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
    ) -> Iterator[str]:
        """Build an image from a tar context, by the host's network; yields the builder's lines.

        Raises:
            EngineError: the build failed; the message holds the builder's last words.
        """
        with _told("cannot build", tag):
            lines = self._api.build(
                fileobj=context,
                custom_context=True,
                dockerfile=dockerfile,
                tag=tag,
                buildargs=dict(args),
                labels=dict(labels),
                # The host's network with its resolver and mirrors, where the engine gives it to builders.
                network_mode=None if self._is_remapped else "host",
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
        uid, gid = self._mapped_nobody
        options = f"size={size},nr_inodes={inodes},uid={uid},gid={gid},mode={mode},nosuid,nodev"
        with _told("cannot create volume", name):
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
        with _told("cannot remove volume", name), suppress(NotFound):
            self._api.remove_volume(name, force=True)

    # --- containers

    def create(self, spec: ContainerSpec) -> str:
        """Create a container; its name makes a duplicate start impossible. Returns its id.

        Raises:
            EngineError: the engine refused, for one because the name is taken.
        """
        # The host's network goes with the host's users only; the user is then the one that volumes belong to.
        unmapped = self._is_remapped and spec.network == "host"
        host = self._api.create_host_config(
            network_mode=spec.network,
            userns_mode="host" if unmapped else None,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            read_only=True,
            tmpfs={"/tmp": f"rw,nosuid,nodev,noexec,size={spec.limits.tmp},mode=1777"},  # noqa: S108
            pids_limit=spec.limits.pids,
            mem_limit=spec.limits.memory,
            memswap_limit=spec.limits.memory,
            nano_cpus=int(spec.limits.cpus * 1e9),
            ipc_mode="private",
            runtime=spec.runtime,
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
        with _told("cannot create container", spec.name):
            try:
                created = self._api.create_container(
                    spec.image,
                    name=spec.name,
                    entrypoint=[],
                    command=list(spec.command),
                    environment=dict(spec.environment),
                    working_dir=spec.working_dir,
                    user="{}:{}".format(*self._mapped_nobody) if unmapped else spec.user,
                    labels=self._labels(spec.labels),
                    host_config=host,
                    stdin_open=spec.stdin,
                    network_disabled=spec.network == "none",
                    # Else the proxies in this user's client configuration would reach agents.
                    use_config_proxy=False,
                )
            except ImageNotFound:
                raise EngineError("no such image", about=spec.image, fix="run make images") from None
        return str(created["Id"])

    def start(self, container: str) -> None:
        """Start a created container.

        Raises:
            EngineError: the engine or the image's command failed.
        """
        with _told("cannot start container", container[:12]):
            self._api.start(container)

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
        with _told("cannot kill container", container[:12]), _settled():
            self._api.kill(container)

    def exit(self, container: str) -> Exit:
        """How an ended container ended."""
        state = self.inspect(container)["State"]
        code, oom_killed = int(state["ExitCode"]), bool(state["OOMKilled"])
        if code == KILLED and not oom_killed:
            oom_killed = self._hears_of_oom(container)
        return Exit(code=code, oom_killed=oom_killed)

    def _hears_of_oom(self, container: str) -> bool:
        """Whether the engine learned only after a container's end that it had run out of memory.

        Under load that is one case in forty. Its state does not keep it; mostly its events do.
        """
        wanted = {"container": container, "event": "oom"}
        with _told("cannot read events of", container[:12]):
            # Whole seconds, as docker-py's types have it, may be over at once; the engine takes fractions.
            until: Any = time.time() + OOM_SECONDS
            return bool(list(self._api.events(since=1, until=until, filters=wanted)))

    def inspect(self, container: str) -> dict[str, Any]:
        """The engine's description of a container."""
        with _told("cannot inspect container", container[:12]):
            return dict(self._api.inspect_container(container))

    def remove(self, container: str) -> None:
        """Kill and remove a container; gone already is fine.

        Raises:
            EngineError: the engine refused.
        """
        with _told("cannot remove container", container[:12]), _settled():
            self._api.remove_container(container, force=True)

    def output(self, container: str, *, limit: int = 65536) -> tuple[str, str]:
        """The last lines of standard output and error, at most ``limit`` bytes each, for diagnosis."""
        with _told("cannot read the log", container[:12]):
            out = self._api.logs(container, stdout=True, stderr=False, tail=200)
            err = self._api.logs(container, stdout=False, stderr=True, tail=200)
        return out[-limit:].decode("utf-8", "replace"), err[-limit:].decode("utf-8", "replace")

    def put(self, container: str, folder: str, archive: bytes) -> None:
        """Unpack a tar into a container's folder, before or after its start."""
        with _told("cannot put files", container[:12]):
            taken = self._api.put_archive(container, folder, archive)
        if not taken:
            raise EngineError("the engine refused the files", about=container[:12])

    def get(self, container: str, path: str) -> Generator[bytes]:
        """Stream a path of a container as tar. Closing the generator closes the connection.

        Raises:
            EngineError: no such path, or the engine cannot archive what is there.
        """
        with _told("cannot get files", container[:12]):
            stream, _ = self._api.get_archive(container, path, chunk_size=2**20)
            yield from stream

    def attach(self, container: str) -> Attached:
        """Attach to a created container's standard streams; call before :meth:`start`."""
        wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        with _told("cannot attach", container[:12]):
            return Attached(self._api.attach_socket(container, params=wanted))

    # --- what is ours

    def ours(self) -> Iterator[tuple[str, str, Owner | None]]:
        """(kind, name, owner) of every container and volume that carries our label."""
        ours = {"label": f"{LABEL}.owner"}
        with _told("cannot list what is ours", "engine"):
            containers = self._api.containers(all=True, filters=ours)
            volumes = self._api.volumes(filters=ours)["Volumes"] or []
        for item in containers:
            yield "container", str(item["Id"]), Owner.parse(item["Labels"].get(f"{LABEL}.owner", ""))
        for item in volumes:
            labels = item.get("Labels") or {}
            yield "volume", str(item["Name"]), Owner.parse(labels.get(f"{LABEL}.owner", ""))

    def mine(self, *roles: str) -> list[str]:
        """Ids of this process's containers; with ``roles``, of those that are labelled with one of them."""
        mine = {"label": f"{LABEL}.owner={self.owner}"}
        with _told("cannot list what is ours", "engine"):
            containers = self._api.containers(all=True, filters=mine)
        return [
            str(each["Id"])
            for each in containers
            if not roles or each["Labels"].get(f"{LABEL}.role") in roles
        ]

    def _labels(self, more: Mapping[str, str]) -> dict[str, str]:
        return {f"{LABEL}.owner": str(self.owner), **{f"{LABEL}.{key}": v for key, v in more.items()}}


@contextmanager
def _told(what: str, about: str) -> Iterator[None]:
    """Turn whatever the client library raises into one line of ours."""
    try:
        yield
    except (APIError, requests.RequestException) as error:
        raise EngineError(f"{what} ({_short(error)})", about=about) from None


@contextmanager
def _settled() -> Iterator[None]:
    """Let pass that the container is gone, does not run, or is being removed already (409)."""
    try:
        yield
    except NotFound:
        return
    except APIError as error:
        if error.status_code != 409:
            raise


def _short(error: object) -> str:
    """The first line of an engine error, in at most 200 characters."""
    text = getattr(error, "explanation", None) or str(error)
    # The engine may name a file that an agent made.
    return plain(str(text).strip().splitlines()[0][:200]) if str(text).strip() else type(error).__name__
