"""The scripted provider in the engine, and what it is told: a task's right answer, which no agent sees."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from grader.evidence import Tree
from orchestrator.attached import Attached
from orchestrator.companion import START_SECONDS, Companion
from orchestrator.engine import ContainerSpec, Engine, Limits, Mount
from orchestrator.images import SCRIPTED_IMAGE
from orchestrator.project import LoadedTask
from schema.errors import UsageError
from schema.hashing import walk_files

FOLDER = "/provider"
SOCKET = f"{FOLDER}/provider.sock"
LIMITS = Limits(memory=256 * 2**20, cpus=1.0, pids=64, nofile=256, fsize=2**20, tmp=2**20)
GOLD = "gold"
CANNOT_BE_PLAYED = 2
"""Exit code of a provider that does not know the script, or cannot play it on the task."""


def job(loaded: LoadedTask, baseline: Tree, script: str) -> dict[str, Any]:
    """What the provider needs to play a script on a task: the answer, and the files that it changes.

    Raises:
        UsageError: the task's answer deletes a file, for which an agent has no tool, or does not apply.
    """
    solution = loaded.solution(GOLD)
    folder = loaded.folder / "solutions" / GOLD
    if solution.delete:
        raise UsageError("its answer deletes a file, which no script can", about=str(folder))
    texts = {path: entry.data for path, entry in baseline.items() if entry.kind == "file"}
    files = {
        name.decode(): path.read_text("utf-8")
        for name, path in (walk_files(folder / "files") if (folder / "files").is_dir() else ())
    }
    edits = [{"path": edit.path, "find": edit.find, "replace": edit.replace} for edit in solution.edits]
    if (folder / "change.diff").is_file():
        files = _patched(texts, edits, folder / "change.diff") | files
        edits = []
    touched = [*(edit["path"] for edit in edits), *files]
    return {
        "script": script,
        "model": script,
        "listen": SOCKET,
        "request": loaded.task.request,
        "exit_path": solution.exit_path,
        "summary": solution.summary,
        "edits": edits,
        "files": files,
        "before": {path: texts[path].decode("utf-8") for path in dict.fromkeys(touched) if path in texts},
        "budgets": list(loaded.task.config.budgets),
    }


def _patched(texts: Mapping[str, bytes], edits: list[dict[str, str]], diff: Path) -> dict[str, str]:
    """The files that edits and a diff change, as they are afterwards."""
    with tempfile.TemporaryDirectory(prefix="copperbench-scripted-") as name:
        root = Path(name)
        for path, data in texts.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        for edit in edits:
            target = root / edit["path"]
            target.write_bytes(target.read_bytes().replace(edit["find"].encode(), edit["replace"].encode()))
        done = subprocess.run(
            ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", str(diff.resolve())],
            cwd=root,
            # The folder must not be taken for a part of a repository around it.
            env={"PATH": "/usr/bin:/bin", "HOME": name, "GIT_CEILING_DIRECTORIES": str(root.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise UsageError(f"does not apply ({done.stderr.strip()[:200]})", about=str(diff))
        after = {path.decode(): file.read_bytes() for path, file in walk_files(root)}
    return {path: data.decode("utf-8") for path, data in after.items() if texts.get(path) != data}


class ScriptedProvider:
    """A context that owns one run's scripted provider: a container without a network, and its socket."""

    def __init__(
        self, engine: Engine, name: str, task: Mapping[str, Any], labels: Mapping[str, str] | None = None
    ) -> None:
        """``task``: what :func:`job` gives."""
        self._engine = engine
        self._name = name
        self._job = dict(task)
        self._labels = dict(labels or {})
        socket = Mount(f"{name}-provider-socket", FOLDER)
        spec = ContainerSpec(
            name=f"{name}-provider",
            image=SCRIPTED_IMAGE,
            command=["python3", "-m", "scripted"],
            limits=LIMITS,
            labels=self._labels,
            mounts=[socket],
            stdin=True,
        )
        self._companion = Companion(engine, spec, socket)
        self._streams: Attached | None = None

    @property
    def mount(self) -> Mount:
        """The socket's folder, for the gateway and nobody else."""
        return self._companion.mount

    @property
    def container(self) -> str:
        """Its id; empty before it is made."""
        return self._companion.container

    def __enter__(self) -> Self:
        """Start it, and wait until it listens.

        Raises:
            EngineError: the engine refused.
            UsageError: there is no such script, or it cannot be played on the task.
        """
        try:
            self._start()
        except BaseException:
            self._companion.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._companion.remove()

    def given(self) -> list[dict[str, Any]]:
        """What it says it gave, a line an answer; ends it."""
        if self._streams is None:
            return []
        self._companion.end_input()
        self._streams.patience(START_SECONDS)
        lines: list[dict[str, Any]] = []
        try:
            while True:
                lines.append(json.loads(self._streams.line(2**20)))
        except (EOFError, OSError):
            return lines

    def _start(self) -> None:
        self._streams = self._companion.start(json.dumps(self._job).encode() + b"\n")
        self._streams.patience(START_SECONDS)
        try:
            self._streams.line(2**20)
        except (EOFError, OSError):
            if self._engine.wait(self.container, START_SECONDS) == CANNOT_BE_PLAYED:
                words = self._companion.last_words.removeprefix("scripted: ")
                raise UsageError(words, about=f"scripted:{self._job['script']}") from None
            raise self._companion.stillborn() from None
