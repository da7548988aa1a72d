"""The stamp: everything that could make two records of the same run differ, read off project and engine."""

from __future__ import annotations

from orchestrator.engine import Engine
from orchestrator.grading import IMAGE as GRADER_IMAGE
from orchestrator.grading import GraderFacts
from orchestrator.images import COMMIT_LABEL, GATEWAY_IMAGE
from orchestrator.project import LoadedTask, Project
from orchestrator.sandbox import AGENT_LIMITS, VolumeSize
from orchestrator.versions import node_version
from orchestrator.workspace import Baseline
from schema import SCHEMA_VERSION
from schema.agent import Agent
from schema.condition import settings
from schema.hashing import sha256
from schema.jsonfile import read_bytes
from schema.record import Stamp
from schema.run import RunId

REFERENCE_IMAGE = "copperbench/kicad"


def stamp(
    project: Project,
    engine: Engine,
    grader: GraderFacts,
    *,
    run: RunId,
    loaded: LoadedTask,
    agent: Agent,
    baseline: Baseline,
    runtime: str | None,
) -> Stamp:
    """The stamp of a run's record (Standard §8).

    Args:
        grader: what the grader image says of itself.
        runtime: the container runtime asked for; None is the engine's own.
    """
    return Stamp(
        schema_version=SCHEMA_VERSION,
        suite_version=run.suite_version,
        manifest_sha256=loaded.manifest_sha256,
        fixture_sha256=loaded.fixture.sha256,
        agent=agent.name,
        agent_version=agent.version,
        agent_commit=agent.commit or (engine.image_labels(agent.image) or {}).get(COMMIT_LABEL),
        agent_image=engine.digest(agent.image),
        kicad_version=grader.kicad_version,
        reference_image=engine.digest(REFERENCE_IMAGE),
        scaffolder_version=baseline.facts.scaffolder_version,
        gateway_image=None if agent.protocol == "none" else engine.digest(GATEWAY_IMAGE),
        prompt_sha256=_prompt(project, run, agent),
        grader_version=grader.grader_version,
        grader_image=engine.digest(GRADER_IMAGE),
        compass_version=grader.compass_version,
        git_version=grader.git_version,
        python_version=grader.python_version,
        node_version=node_version(project, engine, agent),
        platform=engine.platform(),
        resources={
            "memoryBytes": AGENT_LIMITS.memory,
            "cpus": AGENT_LIMITS.cpus,
            "pids": AGENT_LIMITS.pids,
            "volumeBytes": VolumeSize().bytes,
            "runtime": runtime or "default",
        },
    )


def _prompt(project: Project, run: RunId, agent: Agent) -> str | None:
    """Digest of the prompt text that a run's agent is given, where its manifest names one."""
    if agent.prompts is None:
        return None
    variant = agent.settle(settings(run.condition), {})["prompt"]
    folder = project.root / "images" / "agents" / agent.name / agent.prompts
    return sha256(read_bytes(folder / f"{variant}.md"))
