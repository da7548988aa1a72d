"""What must hold around the suite: canaries stay where they were planted, host and engine as they were."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from orchestrator.engine import Engine
from orchestrator.project import Project
from schema.credentials import matching_patterns
from schema.errors import EngineError
from schema.hashing import hash_folder

MARKER = "copperbench-host-" + "sentinel"
CANARIES = {
    # One in a credential's shape, which scans would catch, and one that only a search for it finds.
    "OPENAI_API_KEY": "sk-" + "canary0planted0in0the0environment",
    "COPPERBENCH_CANARY": "canary-planted-" + "in-the-environment",
}
WORDS = tuple(value.encode() for value in CANARIES.values())
PAYLOADS = ("/tmp/copperbench-pwned", "/var/tmp/copperbench-pwned", "~/copperbench-pwned")
"""What the payloads of repository attacks would make on the host."""


def plant() -> None:
    """Put the canaries into this process's environment, which is the orchestrator's."""
    os.environ.update(CANARIES)


class Sentinel:
    """A tree on the host that no run may read or change, and the checkout's own inputs."""

    def __init__(self, root: Path, project: Project) -> None:
        self._tree = root / "sentinel"
        self._inputs = [project.root / part for part in ("tasks", "fixtures", "images", "suites")]
        for number in range(20):
            path = self._tree / f"folder{number % 4}" / f"file{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{MARKER} {number}\n" * 50)
        self._before = self._state()

    def faults(self) -> Iterator[str]:
        """What is not as it was."""
        if self._state() != self._before:
            yield "files of the host have changed"
        for payload in PAYLOADS:
            if Path(payload).expanduser().exists():
                yield f"a payload ran on the host: {payload}"

    def _state(self) -> list[str]:
        return [hash_folder(folder) for folder in (self._tree, *self._inputs)]


class Watch(threading.Thread):
    """Looks for canaries in running containers: their description, every byte of their file systems."""

    def __init__(self, engine: Engine, images: set[str]) -> None:
        """``images``: those of which a container is to be read whole."""
        super().__init__(daemon=True)
        self._engine = engine
        self._ending = threading.Event()
        self._wanted = images
        self._seen: set[str] = set()
        self.exported: set[str] = set()
        """Images of which a container was read to its end."""
        self.found: list[str] = []

    def run(self) -> None:
        """Until :meth:`stop`."""
        while not self._ending.wait(0.3):
            for kind, name, owner in list(self._engine.ours()):
                if kind == "container" and owner == self._engine.owner:
                    if name not in self._seen:
                        self._look(name)
                    if self.exported < self._wanted:
                        self._read(name)

    @property
    def inspected(self) -> int:
        """Containers looked at."""
        return len(self._seen)

    def stop(self) -> None:
        """End the watch and wait for it."""
        self._ending.set()
        self.join()

    def _look(self, container: str) -> None:
        try:
            described = self._engine.inspect(container)
        except EngineError:
            # Gone already.
            return
        self._seen.add(container)
        if any(word in json.dumps(described).encode() for word in WORDS):
            self.found.append(f"docker inspect {container[:12]}")

    def _read(self, container: str) -> None:
        """Read a container whole, unless one of its image was."""
        with suppress(EngineError):
            image = self._engine.inspect(container)["Config"]["Image"]
            if image in self._wanted - self.exported and self._export(container):
                self.exported.add(image)

    def _export(self, container: str) -> bool:
        """Whether the container lived long enough to be read whole."""
        with subprocess.Popen(
            ["docker", "export", container], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            stream = process.stdout or io.BytesIO()
            rest = b""
            while chunk := stream.read(2**20):
                if any(word in rest + chunk for word in WORDS):
                    self.found.append(f"docker export {container[:12]}")
                rest = chunk[-100:]
        return process.returncode == 0


def leaked(project: Project) -> Iterator[str]:
    """Canaries and credentials in any byte that runs left: evidence, records, logs, reports, caches."""
    for path in sorted(project.root.rglob("*")):
        if not path.is_file() or path.is_relative_to(project.root / "tasks"):
            continue
        kept = path.is_relative_to(project.results) or path.is_relative_to(project.cache / "logs")
        for data in _contents(path):
            if any(word in data for word in WORDS):
                yield f"a canary in {path.relative_to(project.root)}"
            if kept and (pattern := next(matching_patterns(data), None)):
                yield f"a credential ({pattern}) in {path.relative_to(project.root)}"
    yield from _objects(project)


def _contents(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    yield data
    with suppress(zlib.error):
        yield zlib.decompress(data)


def _objects(project: Project) -> Iterator[str]:
    """Every object of the evidence store, also those that no ref reaches."""
    git = [
        "git",
        "--git-dir",
        str(project.results / "evidence.git"),
        "cat-file",
        "--batch-all-objects",
        "--batch",
    ]
    with tempfile.TemporaryFile() as out:
        subprocess.run(git, stdout=out, check=True)
        out.seek(0)
        rest = b""
        while chunk := out.read(2**22):
            data = rest + chunk
            if any(word in data for word in WORDS):
                yield "a canary in the evidence store"
            if pattern := next(matching_patterns(data), None):
                yield f"a credential ({pattern}) in the evidence store"
            rest = chunk[-4096:]


def graded_again(project: Project) -> Iterator[str]:
    """Rescoring all of it, in another order and at another parallelism, must match byte for byte."""
    done = _copperbench(project, "rescore", "results", "--jobs", "2")
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        if "MATCH" not in line and "records" not in line and line.strip():
            yield line[:300]
    if done.returncode:
        yield f"rescore ended with {done.returncode}: {done.stderr.decode('utf-8', 'replace')[-300:]}"
    yield from _unfit(done.stdout + done.stderr, "rescore")


def shown(project: Project) -> Iterator[str]:
    """What commands print and reports hold is plain text, whatever agents wrote."""
    done = _copperbench(project, "leaderboard")
    if done.returncode:
        yield f"leaderboard ended with {done.returncode}"
    yield from _unfit(done.stdout + done.stderr, "leaderboard")
    for path in [project.root / "LEADERBOARD.md", *project.results.glob("*/*/*/*.json")]:
        yield from _unfit(path.read_bytes(), path.name)
    for path in (project.cache / "logs").glob("*.jsonl"):
        yield from _unfit(path.read_bytes(), path.name)


def _unfit(data: bytes, about: str) -> Iterator[str]:
    text = data.decode("utf-8", "surrogateescape")
    if bad := sorted({f"U+{ord(c):04X}" for c in text if not c.isprintable() and c != "\n"}):
        yield f"{about} holds {', '.join(bad[:8])}"


def left_in_the_engine(engine: Engine) -> Iterator[str]:
    """Containers and volumes of this process."""
    for kind, name, owner in engine.ours():
        if owner == engine.owner:
            yield f"{kind} {name}"


def _copperbench(project: Project, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *arguments],
        cwd=project.root,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
