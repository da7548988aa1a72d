"""One run: launch, supervise, collect, store, grade, record; each step hands on a frozen value."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from structlog.typing import FilteringBoundLogger

from grader.evidence import EMPTY, Bundle, Tree
from orchestrator.access import Access, Money, ProviderFault, Way, way
from orchestrator.clock import Clock, now
from orchestrator.collect import Budget, Collected, collect
from orchestrator.engine import Engine
from orchestrator.grading import IMAGE as GRADER_IMAGE
from orchestrator.grading import GraderPool
from orchestrator.history import read_history
from orchestrator.images import GATEWAY_IMAGE
from orchestrator.ledger import Ledger, Source
from orchestrator.project import LoadedTask, Project
from orchestrator.records import Records, leak
from orchestrator.sandbox import AGENT_LIMITS, Ended, Sandbox, SandboxSpec, VolumeSize
from orchestrator.scripted import job as scripted_job
from orchestrator.store import EvidenceWriter, evidence_ref
from orchestrator.vet import vet_agent
from orchestrator.workspace import Baseline, Baselines, load_pristine
from schema import SCHEMA_VERSION
from schema.agent import Agent, Provider
from schema.condition import settings
from schema.credentials import SecretFinding, matching_patterns, scan
from schema.errors import EngineError, InfrastructureLeft, Interrupted
from schema.hashing import sha256
from schema.jsonfile import read_bytes
from schema.ledger import ClaimLine, FaultLine, RecordLine
from schema.record import Cost, Record, Stamp
from schema.run import (
    EvidenceRef,
    EvidenceStatus,
    History,
    Isolation,
    ModelAccess,
    RunFacts,
    RunId,
    Tamper,
    Timings,
    Usage,
)
from schema.text import plain_lines
from schema.verdict import Category, Verdict

ATTEMPTS = 3
"""A fault that we saw on engine or host grants a new attempt; the last one counts (Standard §5)."""
ENGINE_SECONDS = 60
"""How long an engine may be away before the plan ends; the run at hand has lost one attempt."""
REFERENCE_IMAGE = "copperbench/kicad"


@dataclass(frozen=True)
class Job:
    """One run and all that decides it, read and verified."""

    run: RunId
    loaded: LoadedTask
    agent: Agent
    provider: Provider
    pristine: Tree
    baseline: Baseline
    stamp: Stamp
    inputs: bytes | None
    """Tar laid into ``/input``; None mounts nothing there."""
    way: Way | None
    """How the agent reaches its model; None for one that calls none."""


class Fault(NamedTuple):
    """What an attempt was lost to."""

    source: Source
    what: str
    usd: float | None
    """What its model cost all the same; None when unknown."""


@dataclass
class Lost:
    """What an attempt's model cost, for when nothing else is left of it."""

    usd: float | None = 0.0
    """None when unknown."""


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


@dataclass(frozen=True)
class Over:
    """A run that is over: what the harness saw of it and what it left. All that grading reads of a run."""

    facts: RunFacts
    end: Tree
    evidence: EvidenceRef | None
    timings: Timings


class Runner:
    """Executes jobs of one project on one engine."""

    def __init__(
        self,
        project: Project,
        engine: Engine,
        pool: GraderPool,
        ledger: Ledger,
        *,
        log: FilteringBoundLogger,
        stop: threading.Event,
        runtime: str | None = None,
        money: Money,
    ) -> None:
        """``stop``: set to end early, with our containers killed; runs in flight are then not recorded."""
        self.project = project
        self.engine = engine
        self.pool = pool
        self.ledger = ledger
        self.records = Records(project.results, ledger)
        self.store = EvidenceWriter(project.results / "evidence.git")
        self.baselines = Baselines(project, engine)
        self.stop = stop
        self.runtime = runtime
        self.money = money
        self.log = log

    def prepare(self, run: RunId, loaded: LoadedTask, inputs: Callable[[], bytes | None]) -> Job:
        """Read and verify all that a run depends on; prepare its baseline if it is not cached."""
        agent = self.project.agent(run.agent)
        vet_agent(agent)
        pristine = load_pristine(self.project, loaded)
        baseline = self.baselines.get(loaded, pristine)
        return Job(
            run=run,
            loaded=loaded,
            agent=agent,
            provider=self.project.provider(run.model),
            pristine=pristine,
            baseline=baseline,
            stamp=self._stamp(run, loaded, agent, baseline),
            inputs=inputs(),
            way=way(self.project, run.model, agent, loaded, money=self.money),
        )

    def execute(self, job: Job) -> tuple[Record, Path | None]:
        """The record of one job: found, judged from evidence that was left, or run now. Path: None if found.

        Raises:
            Interrupted: asked to stop; nothing was recorded, and evidence that was kept will be judged later.
        """
        with self.ledger.holding(job.run, self.stop):
            self.records.settle(job.run)
            if found := self.records.find(job.run, job.stamp):
                return found, None
            record, path = self._left(job) or self._run(job)
        self.log.info(
            "recorded",
            run=str(job.run),
            verdict=record.verdict.verdict,
            category=record.verdict.category,
            path=str(path.relative_to(self.project.results)),
            seconds=record.timings.total,
        )
        return record, path

    def _left(self, job: Job) -> tuple[Record, Path] | None:
        """Judge a run whose evidence was kept before we were killed: it is over, and paid for."""
        ended = {line.claim for line in self.ledger.of(job.run) if isinstance(line, RecordLine | FaultLine)}
        for line in self.ledger.of(job.run):
            if not isinstance(line, ClaimLine) or line.stamp != job.stamp.digest or line.claim in ended:
                continue
            if evidence := self.store.reader.find(evidence_ref(job.run, line.claim)):
                facts, end = self.store.reader.evidence(evidence)
                self.log.info("judging-what-was-left", run=str(job.run), claim=line.claim)
                return self._judge(job, Over(facts, end, evidence, Timings()), time.monotonic())
        return None

    def _run(self, job: Job) -> tuple[Record, Path]:
        began = time.monotonic()
        log = self.log.bind(run=str(job.run))
        claims = [line for line in self.ledger.of(job.run) if isinstance(line, ClaimLine)]
        # The budget survives restarts. A claim that we were killed in is no fault of engine or host.
        claim = max((line.claim for line in claims), default=0)
        faults = self._faults(job, claims)
        unaccounted = self._unaccounted(job, claims)
        while len(faults) < ATTEMPTS:
            if self.stop.is_set():
                raise Interrupted("interrupted", about=str(job.run))
            attempt = len(faults) + 1
            allotment = self._allotment(job)
            claim = self.ledger.claim(job.run, job.stamp.digest, attempt)
            lost = Lost()
            try:
                observed = self._observe(job, claim, allotment, lost)
            except EngineError as fault:
                if self.stop.is_set():
                    raise Interrupted("interrupted", about=str(job.run)) from None
                source: Source = "provider" if isinstance(fault, ProviderFault) else "infrastructure"
                faults.append(Fault(source, _withhold(str(fault)), lost.usd))
                self.ledger.fault(job.run, claim, faults[-1].what, source, usd=lost.usd)
                log.warning("attempt-lost", claim=claim, attempt=attempt, fault=faults[-1].what)
                self._await_engine()
                continue
            log.info(
                "agent-ended",
                claim=claim,
                exit=observed.ended.exit.code,
                killed_by=observed.ended.killed_by,
                oom=observed.ended.exit.oom_killed,
                seconds=round(observed.ended.seconds, 3),
                bytes=observed.collected.stream_bytes,
            )
            lost_usd = None if unaccounted else _sum(faults)
            facts = self._facts(job, observed, claim=claim, attempt=attempt, faults=faults, lost_usd=lost_usd)
            return self._judge(job, self._keep(job, facts, observed), began)
        return self._record_lost(job, claim, faults, None if unaccounted else _sum(faults), began)

    def _faults(self, job: Job, claims: list[ClaimLine]) -> list[Fault]:
        """What attempts before this process's lost a run of this stamp to."""
        ours = {line.claim for line in claims if line.stamp == job.stamp.digest}
        lines = self.ledger.of(job.run)
        return [
            Fault(line.source, line.what, line.usd)
            for line in lines
            if isinstance(line, FaultLine) and line.claim in ours
        ]

    def _unaccounted(self, job: Job, claims: list[ClaimLine]) -> bool:
        """Whether a start of this stamp came to nothing and may have cost what nobody knows."""
        ended = {line.claim for line in self.ledger.of(job.run) if isinstance(line, RecordLine | FaultLine)}
        ours = {line.claim for line in claims if line.stamp == job.stamp.digest}
        return job.way is not None and not ours <= ended

    def _await_engine(self) -> None:
        """An engine that is gone loses one attempt of the runs at hand, not all attempts of all runs.

        Raises:
            EngineError: it stays away; the same command completes the plan later.
        """
        deadline = time.monotonic() + ENGINE_SECONDS
        while not self.engine.ping():
            if time.monotonic() > deadline or self.stop.wait(1):
                raise EngineError(
                    f"the engine does not answer for {ENGINE_SECONDS} s",
                    fix="start it and run the same command again: what is recorded stays",
                )

    # --- launch, supervise, collect

    def _allotment(self, job: Job) -> int | None:
        """Micro-USD of the suite's budget for one attempt; None without a budget.

        Raises:
            InfrastructureLeft: it is spent.
        """
        if job.way is None or self.money.budget is None:
            return None
        allotment = self.money.budget.take(job.way.config.caps.micro_usd)
        if not allotment:
            raise InfrastructureLeft("the budget of --max-usd is spent", fix="raise it and run again")
        return allotment

    def _observe(self, job: Job, claim: int, allotment: int | None, lost: Lost) -> Observed:
        """One attempt. ``lost`` is told what it cost, however it ends."""
        access: Access | None = None
        try:
            with ExitStack() as stack:
                if job.way:
                    access = stack.enter_context(self._access(job, job.way.allotted(allotment), claim))
                return self._attempt(job, claim, access)
        finally:
            lost.usd = access.spent if access else 0.0
            if self.money.budget and allotment is not None:
                spent = None if lost.usd is None else math.ceil(lost.usd * 10**6)
                self.money.budget.give_back(allotment, spent)

    def _attempt(self, job: Job, claim: int, access: Access | None) -> Observed:
        clock = Clock()
        started_at = now()
        with Sandbox(self.engine, self._sandbox_spec(job, claim, access)) as sandbox:
            prepare = clock.lap()
            began = sandbox.start()
            if access:
                access.guard(sandbox.kill)
            start = clock.lap()
            isolation = sandbox.isolation()
            ended = sandbox.watch(began, self.stop, access.spare if access else lambda: 0.0)
            agent = time.monotonic() - began
            if access and (cap := access.close()):
                ended = replace(ended, killed_by=cap)
            clock.lap()
            capture = sandbox.captured()
            collected = self._collect(sandbox, job)
            gather = clock.lap()
            self._keep_log(job.run, claim, sandbox)
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

    def _access(self, job: Job, allotted: Way, claim: int) -> Access:
        script = None
        if allotted.is_scripted:
            script = scripted_job(job.loaded, job.baseline.tree, allotted.route.name)
        return Access(self.engine, self._name(job, claim), allotted, script=script, labels=_labels(job))

    def _name(self, job: Job, claim: int) -> str:
        """Prefix of the claim's names in the engine: a second start of it is refused there."""
        scope = sha256(f"{self.project.results}|{job.run}".encode())[:16]
        return f"copperbench-run-{scope}-c{claim}"

    def _sandbox_spec(self, job: Job, claim: int, access: Access | None) -> SandboxSpec:
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
            name=self._name(job, claim),
            image=job.agent.image,
            command=access.relayed(command) if access else command,
            wall_seconds=task.caps.wall_clock_sec,
            spare_seconds=job.way.config.patience.budget_seconds if job.way else 0,
            workspace=job.baseline.archive,
            inputs=job.inputs,
            environment=job.agent.surroundings(values),
            mounts=(access.mount,) if access else (),
            labels=_labels(job),
            transcripts=job.agent.transcripts,
            runtime=self.runtime,
        )

    def _collect(self, sandbox: Sandbox, job: Job) -> Collected:
        try:
            # Closing the stream ends the engine's side when a budget stopped us early.
            with closing(sandbox.archive()) as stream:
                return collect(stream, baseline=job.baseline.tree, known=job.baseline.known, budget=Budget())
        except EngineError as error:
            if not self.engine.ping():
                raise
            # The engine is well and cannot archive this workspace: the agent's doing.
            return Collected(over_budget=error.what)

    def _keep_log(self, run: RunId, claim: int, sandbox: Sandbox) -> None:
        """What the container printed, for whoever builds the agent: local, never evidence, never a result."""
        text = "\n".join(sandbox.output())
        if any(matching_patterns(text.encode())):
            text = "withheld: it holds a credential\n"
        text = plain_lines(text)
        folder = self.project.cache / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{run.ref.replace('/', ' ')} c{claim}.txt").write_text(text, "utf-8")

    # --- store, grade, record

    def _keep(self, job: Job, facts: RunFacts, observed: Observed) -> Over:
        """Keep the evidence. From here on the run counts as it is, whatever happens to this process."""
        clock = Clock()
        # What is not kept is not graded either: grading again must find the same.
        end: Tree = observed.collected.entries if facts.evidence == "kept" else EMPTY
        evidence: EvidenceRef | None = None
        if facts.evidence == "kept":
            self.store.put_tree(job.pristine, job.loaded.fixture.sha256)
            self.store.put_tree(job.baseline.tree, job.baseline.facts.tree_sha256)
            evidence = self.store.put_run(
                facts, end, known=frozenset(job.baseline.known), ledgers=observed.ledgers
            )
        return Over(facts, end, evidence, observed.timings.model_copy(update={"store": clock.lap()}))

    def _judge(self, job: Job, over: Over, began: float) -> tuple[Record, Path]:
        clock = Clock()
        graded = self.pool.grade(_bundle(job, over.facts, over.end))
        timings = over.timings.model_copy(
            update={
                "grade": clock.lap(),
                "kicad": graded.kicad_seconds,
                "total": time.monotonic() - began,
            }
        )
        record = _draft(job, over.facts, graded.verdict, over.evidence, timings)
        if pattern := leak(record):
            # Only decoding brought it out, so that the scan of raw evidence could not see it.
            record = self._withheld(job, record, pattern)
        return record, self.records.write(record)

    def _withheld(self, job: Job, record: Record, pattern: str) -> Record:
        """The record of a run whose evidence turned out to hold a credential: nothing of it is kept."""
        if record.evidence:
            self.store.drop(record.evidence.ref)
        facts = record.facts.model_copy(
            update={
                "evidence": "secret-leak",
                "secret": SecretFinding(pattern=pattern, path_sha256=None),
                "evidence_detail": "",
                "refused": [],
                "tampering": [],
                "history": History(status="missing", detail="no evidence kept"),
            }
        )
        verdict = self.pool.grade(_bundle(job, facts, {})).verdict
        return _draft(job, facts, verdict, None, record.timings)

    def _facts(
        self,
        job: Job,
        observed: Observed,
        *,
        claim: int,
        attempt: int,
        faults: list[Fault],
        lost_usd: float | None,
    ) -> RunFacts:
        collected = observed.collected
        status: EvidenceStatus = "kept"
        if collected.secret:
            status = "secret-leak"
        elif collected.over_budget:
            status = "over-budget"
        history, secret = History(status="missing", detail="no evidence kept"), collected.secret
        if status == "kept":
            read = read_history(collected, job.baseline.facts.commit, job.baseline.known)
            history = read.history
            secret = read.secret or _scan(observed.ledgers)
            if secret:
                status = "secret-leak"
        volume = VolumeSize()
        return RunFacts(
            run=job.run,
            claim=claim,
            attempt=attempt,
            earlier_faults=[fault.what for fault in faults],
            lost_usd=lost_usd,
            baseline_commit=job.baseline.facts.commit,
            baseline_sha256=job.baseline.facts.tree_sha256,
            started_at=observed.started_at,
            ended_at=observed.ended_at,
            exit_code=observed.ended.exit.code,
            killed_by=observed.ended.killed_by,
            oom_killed=observed.ended.exit.oom_killed,
            # tmpfs hands out whole pages: the last page's worth of bytes cannot be told from full.
            volume_full=collected.stream_bytes >= volume.bytes - 2**20,
            evidence=status,
            evidence_detail=collected.over_budget,
            secret=secret,
            # Without evidence there is nothing to hold against what was copied out.
            tampering=observed.tampering if status == "kept" else [],
            captured_bytes=observed.captured_bytes,
            refused=collected.refused if status == "kept" else [],
            refused_count=collected.refused_count,
            history=history,
            usage=observed.usage,
            access=observed.access,
            isolation=observed.isolation,
        )

    def _record_lost(
        self, job: Job, claim: int, faults: list[Fault], lost_usd: float | None, began: float
    ) -> tuple[Record, Path]:
        """No attempt ran cleanly: a failure that says nothing about the model, shown apart."""
        last = faults[-1]
        facts = RunFacts(
            run=job.run,
            claim=claim,
            attempt=ATTEMPTS,
            earlier_faults=[fault.what for fault in faults[:-1]],
            lost_usd=lost_usd,
            baseline_commit=job.baseline.facts.commit,
            baseline_sha256=job.baseline.facts.tree_sha256,
            started_at=now(),
            ended_at=now(),
            exit_code=None,
            infrastructure=last.what if last.source == "infrastructure" else None,
            provider_fault=last.what if last.source == "provider" else None,
            evidence="none",
            history=History(status="missing", detail="the run never ended cleanly"),
        )
        verdict = Verdict(
            verdict="fail",
            category=Category.PROVIDER_ERROR if facts.provider_fault else Category.INFRASTRUCTURE,
            first_failure=None,
            credit=0,
            exit_path=None,
            assertions=[],
            diagnostics=[fault.what for fault in faults],
        )
        record = _draft(job, facts, verdict, None, Timings(total=time.monotonic() - began))
        return record, self.records.write(record)

    def _prompt(self, run: RunId, agent: Agent) -> str | None:
        """Digest of the prompt text that a run's agent is given, where its manifest names one."""
        if agent.prompts is None:
            return None
        variant = agent.settle(settings(run.condition), {})["prompt"]
        folder = self.project.root / "images" / "agents" / agent.name / agent.prompts
        return sha256(read_bytes(folder / f"{variant}.md"))

    def _stamp(self, run: RunId, loaded: LoadedTask, agent: Agent, baseline: Baseline) -> Stamp:
        grader = self.pool.facts()
        return Stamp(
            schema_version=SCHEMA_VERSION,
            suite_version=run.suite_version,
            manifest_sha256=loaded.manifest_sha256,
            fixture_sha256=loaded.fixture.sha256,
            agent=agent.name,
            agent_version=agent.version,
            agent_commit=agent.commit,
            agent_image=self.engine.digest(agent.image),
            kicad_version=grader.kicad_version,
            reference_image=self.engine.digest(REFERENCE_IMAGE),
            scaffolder_version=baseline.facts.scaffolder_version,
            gateway_image=None if agent.protocol == "none" else self.engine.digest(GATEWAY_IMAGE),
            prompt_sha256=self._prompt(run, agent),
            grader_version=grader.grader_version,
            grader_image=self.engine.digest(GRADER_IMAGE),
            compass_version=grader.compass_version,
            git_version=grader.git_version,
            python_version=grader.python_version,
            platform=self.engine.platform(),
            resources={
                "memoryBytes": AGENT_LIMITS.memory,
                "cpus": AGENT_LIMITS.cpus,
                "pids": AGENT_LIMITS.pids,
                "volumeBytes": VolumeSize().bytes,
                "runtime": self.runtime or "default",
            },
        )


def _bundle(job: Job, facts: RunFacts, end: Tree) -> Bundle:
    return Bundle(
        task=job.loaded.task,
        assertions=job.loaded.assertions,
        agent=job.agent,
        fixture=job.loaded.fixture,
        erc_baseline=job.loaded.erc_baseline,
        drc_baseline=job.loaded.drc_baseline,
        facts=facts,
        pristine=job.pristine,
        baseline=job.baseline.tree,
        end=end,
    )


def _draft(
    job: Job,
    facts: RunFacts,
    verdict: Verdict,
    evidence: EvidenceRef | None,
    timings: Timings,
) -> Record:
    return Record(
        schema_version=SCHEMA_VERSION,
        run=job.run,
        recorded_at=now(),
        tier=job.loaded.task.tier,
        expected_outcome=job.loaded.task.expected_outcome,
        stamp=job.stamp,
        facts=facts,
        verdict=verdict,
        evidence=evidence,
        cost=_cost(job, facts),
        timings=Timings(**{key: round(value, 3) for key, value in timings.model_dump().items()}),
    )


def _sum(faults: list[Fault]) -> float | None:
    """USD of lost attempts; None when that of one is unknown."""
    known = [fault.usd for fault in faults if fault.usd is not None]
    return round(sum(known), 6) if len(known) == len(faults) else None


def _withhold(text: str) -> str:
    """Words of an engine or host, fit for a ledger: one line of bounded length, no credential."""
    line = " ".join(text.encode("utf-8", "replace").decode().split())[:1000]
    return "withheld: it holds a credential" if any(matching_patterns(line.encode())) else line


def _labels(job: Job) -> dict[str, str]:
    return {"role": "run", "run": str(job.run)}


def _scan(ledgers: Mapping[str, bytes]) -> SecretFinding | None:
    """A credential in what the gateway wrote: a model may repeat what it was shown."""
    return next((found for name, data in ledgers.items() if (found := scan(name.encode(), data))), None)


def _cost(job: Job, facts: RunFacts) -> Cost:
    """What the run cost, its lost attempts too; null with a reason where a part is not known."""
    if job.way is None:
        return Cost(usd=None, segment=job.provider.segment, note="no model was called")
    version, segment = job.way.route.table_version, job.way.route.segment
    # Without a usage no attempt is judged: what was spent is what was lost.
    spent = facts.usage.usd if facts.usage else 0.0
    if spent is not None and facts.lost_usd is not None and job.way.route.price and job.way.route.price.rates:
        return Cost(usd=round(spent + facts.lost_usd, 6), table_version=version, segment=segment)
    return Cost(usd=None, table_version=version, segment=segment, note=_unknown(job.way, facts))


def _unknown(found: Way, facts: RunFacts) -> str:
    if found.route.price is None:
        return f"{found.route.model} is not in the price table"
    if found.route.price.rates is None:
        return f"no price per token ({found.route.segment})"
    if facts.lost_usd is None:
        return "what an attempt cost that came to nothing is unknown"
    if facts.usage is not None and not facts.usage.replies:
        return "no model reply"
    return "the usage of a reply is unknown"
