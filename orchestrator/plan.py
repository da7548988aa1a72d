"""Plans: what is to be run, fixed before anything starts (Standard §5: the denominator)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from grader.results import PLANS
from orchestrator.clock import now
from orchestrator.project import LoadedTask
from orchestrator.records import sync_folder
from schema import SCHEMA_VERSION, SUITE_VERSION
from schema.agent import Agent
from schema.condition import DEFAULT, settings
from schema.errors import UsageError
from schema.hashing import sha256
from schema.jsonfile import canonical, pretty
from schema.run import Plan, RunId, RunSpec


def expand(
    tasks: Iterable[LoadedTask],
    models: Sequence[str],
    agent: str,
    repeats: int,
    suite: str,
    *,
    condition: str = DEFAULT,
) -> Plan:
    """Every (task, model, repeat) as one frozen spec, in a fixed order."""
    specs = [
        RunSpec(
            run=RunId(
                suite_version=SUITE_VERSION,
                task=loaded.task.id,
                model=model,
                agent=agent,
                condition=condition,
                repeat=repeat,
            ),
            tier=loaded.task.tier,
            outcome=loaded.task.expected_outcome,
            caps=loaded.task.caps,
            manifest_sha256=loaded.manifest_sha256,
            fixture_sha256=loaded.fixture.sha256,
        )
        for loaded in tasks
        for model in models
        for repeat in range(1, min(repeats, loaded.task.repeats or repeats) + 1)
    ]
    return _freeze(suite, specs)


def check_agent(agent: Agent, loaded: LoadedTask, condition: str) -> None:
    """Refuse a task or a condition that an agent cannot carry out.

    Raises:
        UsageError: it cannot.
    """
    loaded.under(condition)
    agent.settle(settings(condition), {})
    if loaded.task.mode not in agent.commands:
        raise UsageError(
            f"agent {agent.name} has no command for mode {loaded.task.mode}",
            about=f"tasks/{loaded.task.id}",
            fix=f"use an agent that has one, or a suite of {', '.join(agent.commands)} tasks",
        )


def join(plans: Iterable[Plan]) -> Plan:
    """One plan of several, in their order.

    Raises:
        UsageError: there is nothing to run.
    """
    parts = list(plans)
    if not parts:
        raise UsageError("nothing to run", fix="name a task or a suite")
    return _freeze(parts[0].suite, [spec for part in parts for spec in part.specs])


def _freeze(suite: str, specs: list[RunSpec]) -> Plan:
    return Plan(
        schema_version=SCHEMA_VERSION,
        id=sha256(canonical([spec.to_json() for spec in specs])),
        created_at=now(),
        suite=suite,
        specs=specs,
    )


def write(plan: Plan, results: Path) -> Path:
    """Write the plan durably under its own id; the same plan again leaves the file as it is."""
    folder = results / PLANS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{plan.id[:16]}.json"
    if not path.exists():
        part = folder / f".{plan.id[:16]}.{os.getpid()}.tmp"
        with part.open("w", encoding="utf-8") as file:
            file.write(pretty(plan.to_json()))
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
        sync_folder(folder)
    return path
