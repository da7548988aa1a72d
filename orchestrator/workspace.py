"""The baseline every run of a task starts from: prepared once, in a networkless container, and cached.

Fixture, scaffolded documents, overlay, configuration and one commit with fixed identity and dates: the same
inputs give the same commit id (DESIGN §3, Standard §3.1).
"""

from __future__ import annotations

import io
import json
import secrets
import tarfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.evidence import Entry, Tree
from orchestrator.engine import Engine, Limits
from orchestrator.kicad import REFERENCE
from orchestrator.project import LoadedTask, Project, read_tree
from orchestrator.sandbox import Sandbox, SandboxSpec, pack
from orchestrator.store import hash_tree
from schema.base import Model
from schema.errors import CopperbenchError, EnvironmentFault, FixtureError
from schema.hashing import git_blob_id, hash_folder, sha256
from schema.jsonfile import canonical, pretty, read_model

IMAGE = "copperbench/agent-base"
SECONDS = 300
LIMITS = Limits(memory=2 * 2**30, cpus=2.0, pids=256)


class BaselineFacts(Model):
    """What is cached beside a prepared workspace."""

    commit: str
    """Id of the baseline commit."""
    tree_sha256: str
    """Tree hash of the baseline tree, ``.git`` left out."""
    archive_sha256: str
    scaffolder_version: str
    notes: list[str] = []


@dataclass(frozen=True)
class Baseline:
    """A prepared workspace."""

    facts: BaselineFacts
    archive: bytes
    """Tar of the whole workspace, ``.git`` included, ready for the engine."""
    tree: Tree
    """The baseline tree, ``.git`` left out."""
    known: dict[str, str]
    """git blob id → path."""


class Baselines:
    """Prepared workspaces by (fixture, what the scaffolder is given, its image): repeats don't pay again."""

    def __init__(self, project: Project, engine: Engine) -> None:
        self._project = project
        self._engine = engine
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._ready: dict[str, Baseline] = {}

    def get(self, loaded: LoadedTask, pristine: Tree) -> Baseline:
        """The baseline of a task, from memory, from the cache, or prepared now."""
        given = hash_tree(inputs(loaded))
        key = sha256(canonical([loaded.fixture.sha256, given, self._engine.digest(IMAGE)]))
        with self._locks[key]:
            if key not in self._ready:
                folder = self._project.cache / "baselines" / key
                self._ready[key] = _cached(folder) or self._prepare(loaded, pristine, key, folder)
            return self._ready[key]

    def _prepare(self, loaded: LoadedTask, pristine: Tree, key: str, folder: Path) -> Baseline:
        spec = SandboxSpec(
            # Of its own: other processes, other checkouts too, may be preparing the same.
            name=f"copperbench-prep-{key[:16]}-{secrets.token_hex(4)}",
            image=IMAGE,
            command=["python3", "-m", "scaffold", "/input", "/workspace"],
            wall_seconds=SECONDS,
            workspace=pack(pristine),
            inputs=pack(inputs(loaded)),
            environment={
                "HOME": "/tmp",  # noqa: S108  # in the container
                "PYTHONPATH": "/opt/copperbench",
                # The workspace is the working folder: a fixture's json.py must not stand in for Python's.
                "PYTHONSAFEPATH": "1",
            },
            labels={"role": "prep", "task": loaded.task.id},
            limits=LIMITS,
        )
        with Sandbox(self._engine, spec) as sandbox:
            ended = sandbox.watch(sandbox.start(), threading.Event())
            out, err = sandbox.output()
            if ended.exit.code:
                raise EnvironmentFault(
                    f"the baseline cannot be prepared ({_last_line(err or out)})",
                    about=f"task {loaded.task.id}",
                    fix="mend the task or run make images",
                )
            said: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
            archive = _normalise(b"".join(sandbox.archive()))
        facts = BaselineFacts(
            commit=said["baselineCommit"],
            tree_sha256=hash_tree(_tree_of(archive)),
            archive_sha256=sha256(archive),
            scaffolder_version=said["scaffolderVersion"],
            notes=said.get("notes", []),
        )
        _keep(folder, archive, facts)
        return _baseline(facts, archive)


def load_pristine(project: Project, loaded: LoadedTask) -> Tree:
    """A task's fixture tree, verified against both pins.

    Raises:
        FixtureError: not synchronised, or not the bytes that task and fixture pin.
    """
    fixture = loaded.fixture
    root = project.fixture_tree(fixture.id)
    if not root.is_dir():
        raise FixtureError(
            "fixture is not here", about=f"fixtures/{fixture.id}/tree", fix="run copperbench fixtures sync"
        )
    found = hash_folder(root)
    if not found == fixture.sha256 == loaded.task.fixture.sha256:
        raise FixtureError(
            f"tree hash is {found[:12]}…, the fixture pins {fixture.sha256[:12]}… and the task "
            f"{loaded.task.fixture.sha256[:12]}…",
            about=f"fixtures/{fixture.id}/tree",
            fix="run copperbench fixtures sync",
        )
    return read_tree(root)


def inputs(loaded: LoadedTask) -> Tree:
    """What the prep container is given: the task, the fixture, what to quiet, the overlay.

    Raises:
        FixtureError: the fixture was never measured in the reference environment.
    """
    # What agents run is the reference environment: what only another major reports is not theirs to silence.
    counts = loaded.fixture.baseline.get(REFERENCE.major)
    if counts is None:
        raise FixtureError(
            f"no baseline for KiCad {REFERENCE.major}",
            about=f"fixtures/{loaded.fixture.id}",
            fix=f"run copperbench fixtures measure {loaded.fixture.id} --write",
        )
    quiet = [
        {"source": source, "type": kind}
        for source, report in (("erc", counts.erc), ("drc", counts.drc))
        if report is not None
        for kind in sorted({*report.error_types, *report.warning_types})
    ]
    prep = {"task": loaded.task.to_json(), "fixture": loaded.fixture.to_json(), "quiet": quiet}
    tree: dict[str, Entry] = {"prep.json": Entry(pretty(prep).encode())}
    for part in ("overlay", "brief.md"):
        path = loaded.folder / part
        if path.is_dir():
            tree |= {f"{part}/{name}": entry for name, entry in read_tree(path).items()}
        elif path.is_file():
            tree[part] = Entry(path.read_bytes())
    return tree


def _normalise(archive: bytes) -> bytes:
    """The engine's tar of ``workspace/`` rewritten with fixed times and owner, names relative to it."""
    tree = {path.partition("/")[2]: entry for path, entry in _files(archive)}
    # git refuses a repository without these folders, and a tree of files has no empty ones.
    tree |= {f".git/{name}/.keep": Entry(b"") for name in ("refs/tags", "objects/info", "objects/pack")}
    return pack(tree)


def _files(archive: bytes) -> Iterator[tuple[str, Entry]]:
    """Regular files of a tar that we or our scaffolder made: unlike evidence, trusted."""
    with tarfile.open(fileobj=io.BytesIO(archive), encoding="utf-8", errors="surrogateescape") as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.isreg() else None
            if stream is not None:
                yield member.name, Entry(data=stream.read(), mode=member.mode & 0o777)


def _tree_of(archive: bytes) -> Tree:
    return {path: entry for path, entry in _files(archive) if not path.startswith(".git/")}


def _baseline(facts: BaselineFacts, archive: bytes) -> Baseline:
    tree = _tree_of(archive)
    return Baseline(
        facts=facts,
        archive=archive,
        tree=tree,
        known={git_blob_id(entry.data): path for path, entry in tree.items()},
    )


def _cached(folder: Path) -> Baseline | None:
    """A cached baseline; None when there is none or it does not verify."""
    try:
        archive = (folder / "workspace.tar").read_bytes()
        facts = read_model(folder / "baseline.json", BaselineFacts)
    except (OSError, CopperbenchError):
        return None
    return _baseline(facts, archive) if sha256(archive) == facts.archive_sha256 else None


def _keep(folder: Path, archive: bytes, facts: BaselineFacts) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in (
        ("workspace.tar", archive),
        ("baseline.json", pretty(facts.to_json()).encode()),
    ):
        part = folder / f"{name}.{secrets.token_hex(4)}.part"
        part.write_bytes(data)
        part.rename(folder / name)


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"
