"""One attempt of a run: its model's gateway, its sandbox, and what is collected from them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass

from orchestrator.access import Access, Money, Way
from orchestrator.clock import Clock, now
from orchestrator.collect import Budget, Collected, collect
from orchestrator.engine import Engine
from orchestrator.job import Job
from orchestrator.project import Project
from orchestrator.sandbox import Ended, Sandbox, SandboxSpec
from orchestrator.scripted import job as scripted_job
from schema.condition import settings
from schema.credentials import matching_patterns
from schema.errors import EngineError
from schema.hashing import sha256
from schema.run import Isolation, ModelAccess, Tamper, Timings, Usage
from schema.text import plain_lines


@dataclass(frozen=True)
class Site:
    """Where a plan's attempts take place, and what ends them all."""

    project: Project
    engine: Engine
    stop: threading.Event
    """Set to end early, with our containers killed."""
    runtime: str | None
    money: Money


@dataclass(frozen=True)
class Observed:
    """What one attempt gave: how the container ended and what came out of it."""

    ended: Ended
    collected: Collected
    tampering: list[Tamper]
    """What of its transcripts the agent took back."""
    captured_bytes: int | None
    usage: Usage | None
    access: ModelAccess | None
    ledgers: Mapping[str, bytes]
    """What the gateway wrote, by name."""
    isolation: Isolation
    started_at: str
    ended_at: str
    timings: Timings


def allot(job: Job, money: Money) -> int | None:
    """Micro-USD of the suite's budget for one attempt; None without a budget.

    Raises:
        InfrastructureLeft: it is spent, or all of it is with other runs.
    """
    if job.way is None or money.budget is None:
        return None
    allotment = money.budget.take(job.way.config.caps.micro_usd)
    if not allotment:
        money.budget.give_back(0, 0)
        raise money.budget.spent(0)
    return allotment


class Attempt:
    """One start of a run under one claim."""

    def __init__(self, site: Site, job: Job, claim: int, allotment: int | None) -> None:
        """``allotment``: its part of the suite's budget, settled when it is over."""
        self._site = site
        self._job = job
        self._claim = claim
        self._allotment = allotment
        scope = sha256(f"{site.project.results}|{job.run}".encode())[:16]
        # Prefix of its names in the engine: a second start of the claim is refused there.
        self._name = f"copperbench-run-{scope}-c{claim}"
        self._labels = {"role": "run", "run": str(job.run)}
        self.usd: float | None = 0.0
        """What its model cost, however it ended; None when unknown."""

    def observe(self) -> Observed:
        """Launch, supervise, collect.

        Raises:
            EngineError: a fault of engine, host or provider.
            EnvironmentFault: the provider refuses us.
            InfrastructureLeft: the suite's budget is spent.
            Interrupted: asked to stop.
        """
        access: Access | None = None
        try:
            with ExitStack() as stack:
                if self._job.way:
                    access = stack.enter_context(self._access(self._job.way))
                return self._observe(access)
        finally:
            self.usd = access.spent if access else 0.0
            if self._site.money.budget and self._allotment is not None:
                spent = None if self.usd is None else math.ceil(self.usd * 10**6)
                self._site.money.budget.give_back(self._allotment, spent)

    def _observe(self, access: Access | None) -> Observed:
        clock = Clock()
        started_at = now()
        with Sandbox(self._site.engine, self._sandbox_spec(access)) as sandbox:
            prepare = clock.lap()
            began = sandbox.start()
            if access:
                access.guard(sandbox.kill)
            start = clock.lap()
            isolation = sandbox.isolation()
            ended = sandbox.watch(began, self._site.stop, access.spare if access else lambda: 0.0)
            agent = time.monotonic() - began
            if access:
                ended = ended.at(access.close())
            clock.lap()
            capture = sandbox.captured()
            collected = self._collect(sandbox)
            gather = clock.lap()
            self._keep_log(sandbox)
        return Observed(
            ended=ended,
            collected=collected,
            tampering=list(capture.tampering(collected.entries)) if capture else [],
            captured_bytes=capture.size if capture else None,
            usage=access.usage() if access else None,
            access=access.facts() if access else None,
            ledgers=access.ledgers() if access else {},
            isolation=isolation,
            started_at=started_at,
            ended_at=now(),
            timings=Timings(prepare=prepare, start=start, agent=agent, collect=gather),
        )

    def _access(self, way: Way) -> Access:
        allotted, script = way.allotted(self._allotment), None
        if allotted.is_scripted:
            script = scripted_job(self._job.loaded, self._job.baseline.tree, way.route.name)
        return Access(
            self._site.engine,
            self._name,
            allotted,
            script=script,
            labels=self._labels,
            budget=self._site.money.budget,
        )

    def _sandbox_spec(self, access: Access | None) -> SandboxSpec:
        job = self._job
        task = job.loaded.task
        defaults = {
            "maxTurns": str(task.config.max_turns),
            "maxRepairCycles": str(task.config.max_repair_cycles),
        }
        values = job.agent.settle(settings(job.run.condition), defaults) | {
            "request": task.request,
            "model": job.way.route.name if job.way else job.run.model,
            "brief": "brief.md",
        }
        command = job.agent.command(task.mode, values)
        return SandboxSpec(
            name=self._name,
            image=job.agent.image,
            command=access.relayed(command) if access else command,
            wall_seconds=task.caps.wall_clock_sec,
            spare_seconds=job.way.config.patience.budget_seconds if job.way else 0,
            workspace=job.baseline.archive,
            inputs=job.inputs,
            environment=job.agent.surroundings(values),
            mounts=(access.mount,) if access else (),
            labels=self._labels,
            transcripts=job.agent.transcripts,
            runtime=self._site.runtime,
        )

    def _collect(self, sandbox: Sandbox) -> Collected:
        baseline = self._job.baseline
        try:
            # Closing the stream ends the engine's side when a budget stopped us early.
            with closing(sandbox.archive()) as stream:
                return collect(stream, baseline=baseline.tree, known=baseline.known, budget=Budget())
        except EngineError as error:
            if not self._site.engine.ping():
                raise
            # The engine is well and cannot archive this workspace: the agent's doing.
            return Collected(over_budget=error.what)

    def _keep_log(self, sandbox: Sandbox) -> None:
        """What the container printed, for whoever builds the agent: local, never evidence, never a result."""
        text = "\n".join(sandbox.output())
        if any(matching_patterns(text.encode())):
            text = "withheld: it holds a credential\n"
        text = plain_lines(text)
        folder = self._site.project.cache / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{self._job.run.ref.replace('/', ' ')} c{self._claim}.txt"
        (folder / name).write_text(text, "utf-8")
