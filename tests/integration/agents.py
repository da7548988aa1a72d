"""Plays an agent's own image against a scripted provider, and grades what it leaves.

The container is walled as the orchestrator's are: no network, no capabilities, a read-only root; the relay is
the only way to the model.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.evidence import Bundle, Tree
from grader.transcript import Transcript, read_transcript
from orchestrator.collect import Budget, collect
from orchestrator.engine import Engine
from orchestrator.grading import GraderPool
from orchestrator.history import read_history
from orchestrator.project import LoadedTask, Project
from orchestrator.workspace import Baseline, Baselines, load_pristine
from schema import SUITE_VERSION
from schema.agent import Agent
from schema.run import RunFacts, RunId, Usage
from schema.verdict import Verdict
from tests.doubles.provider import Answer, Provider, serving

UID = 65534
WALLS = (
    *("--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
    *("--user", f"{UID}:{UID}", "--tmpfs", "/tmp:rw,noexec,nosuid,nodev,mode=1777,size=256m"),
    *("--memory", "2g", "--pids-limit", "256", "--workdir", "/workspace"),
)
RUN = "2026-11-30T00:00:00.000Z"


@dataclass(frozen=True)
class Played:
    """What one run left."""

    task: LoadedTask
    agent: Agent
    baseline: Baseline
    pristine: Tree
    facts: RunFacts
    end: Tree
    provider: Provider
    out: str
    err: str

    @property
    def transcript(self) -> Transcript:
        """As the grader reads it."""
        return read_transcript(self.agent, self.task.task.mode, baseline=self.baseline.tree, end=self.end)

    @property
    def changed(self) -> dict[str, bytes]:
        """What the run changed or made, but for its own books: path → bytes."""
        return {
            name: entry.data
            for name, entry in self.end.items()
            if not name.startswith(".copperhead/runs/") and self.baseline.tree.get(name) != entry
        }

    def grade(self, pool: GraderPool) -> Verdict:
        """The verdict of a real grader container."""
        bundle = Bundle(
            task=self.task.task,
            assertions=self.task.assertions,
            agent=self.agent,
            fixture=self.task.fixture,
            erc_baseline=self.task.erc_baseline,
            drc_baseline=self.task.drc_baseline,
            facts=self.facts,
            pristine=self.pristine,
            baseline=self.baseline.tree,
            end=self.end,
        )
        return pool.grade(bundle).verdict


def play(
    project: Project,
    engine: Engine,
    *,
    agent: str,
    task: str,
    script: tuple[Answer, ...],
    conditions: Mapping[str, str] | None = None,
    image: str = "",
    baseline: Baseline | None = None,
) -> Played:
    """Run an agent on a task's baseline, its model played by a script.

    ``image``: another than the manifest's; ``baseline``: another than the task's own.
    """
    loaded, manifest = project.task(task), project.agent(agent)
    pristine = load_pristine(project, loaded)
    start = baseline or Baselines(project, engine).get(loaded, pristine)
    values = manifest.settle(
        conditions or {},
        {
            "maxTurns": str(loaded.task.config.max_turns),
            "maxRepairCycles": str(loaded.task.config.max_repair_cycles),
        },
    )
    values |= {"request": loaded.task.request, "model": "played", "brief": "brief.md"}
    with tempfile.TemporaryDirectory(prefix="agent") as name:
        root = Path(name)
        root.chmod(0o755)
        _lay_out(start.archive, root / "workspace")
        (root / "gateway").mkdir()
        with serving(*script, socket=root / "gateway/gateway.sock") as provider:
            done = _contain(
                root,
                image or manifest.image,
                manifest.command(loaded.task.mode, values),
                manifest.surroundings(values),
            )
        collected = collect(
            _stream(root / "workspace"), baseline=start.tree, known=start.known, budget=Budget()
        )
    assert collected.secret is None and collected.over_budget == "" and collected.refused == []
    replies = sum(
        provider.script[min(n, len(provider.script) - 1)].status == 200 for n in range(len(provider.requests))
    )
    facts = RunFacts(
        run=RunId(suite_version=SUITE_VERSION, task=task, model="scripted:test", agent=agent, repeat=1),
        claim=1,
        attempt=1,
        baseline_commit=start.facts.commit,
        baseline_sha256=start.facts.tree_sha256,
        started_at=RUN,
        ended_at=RUN,
        exit_code=done.returncode,
        evidence="kept",
        history=read_history(
            collected,
            start.facts.commit,
            aside=(*manifest.bookkeeping.always, *manifest.bookkeeping.committed),
        ).history,
        usage=Usage(replies=replies, input_tokens=None, output_tokens=None, usd=None),
    )
    return Played(
        task=loaded,
        agent=manifest,
        baseline=start,
        pristine=pristine,
        facts=facts,
        end=collected.entries,
        provider=provider,
        out=done.stdout,
        err=done.stderr,
    )


def _lay_out(archive: bytes, folder: Path) -> None:
    folder.mkdir()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, UID, UID)


def _contain(
    root: Path, image: str, command: list[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    name = f"agents-test-{os.getpid()}-{root.name}"
    volumes = (f"--volume={root}/workspace:/workspace", f"--volume={root}/gateway:/gateway:ro")
    variables = [f"--env={key}={value}" for key, value in environment.items()]
    relayed = ["timeout", "-s", "KILL", "300", "relay", "/gateway/gateway.sock", *command]
    return subprocess.run(
        ["docker", "run", "--rm", "--name", name, *WALLS, *volumes, *variables, image, *relayed],
        capture_output=True,
        text=True,
        check=False,
    )


def _stream(folder: Path) -> Iterator[bytes]:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(folder, "workspace")
    yield out.getvalue()
