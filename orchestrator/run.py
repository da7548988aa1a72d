"""One run: claim, attempt, store, grade, record; each step hands on a frozen value."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from grader.evidence import EMPTY, Tree
from orchestrator.access import Money, ProviderFault, way
from orchestrator.attempt import Attempt, Observed, Site, allot
from orchestrator.clock import Clock, now
from orchestrator.cost import cost
from orchestrator.engine import Engine
from orchestrator.facts import lost_facts, run_facts, withheld_facts
from orchestrator.grading import GraderPool
from orchestrator.job import Job
from orchestrator.ledger import Ledger
from orchestrator.project import LoadedTask, Project
from orchestrator.records import Records, leak
from orchestrator.stamp import stamp
from orchestrator.starts import ATTEMPTS, Fault, Starts, fit_for_ledger
from orchestrator.store import EvidenceWriter, evidence_ref
from orchestrator.vet import vet_agent
from orchestrator.workspace import Baselines, load_pristine
from schema import SCHEMA_VERSION
from schema.errors import CopperbenchError, EngineError, Interrupted
from schema.ledger import ClaimLine
from schema.record import Record
from schema.run import EvidenceRef, RunFacts, RunId, Timings
from schema.verdict import Category, Verdict

ENGINE_SECONDS = 60
"""How long an engine may be away before the plan ends; the run at hand has lost one attempt."""


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
        self.site = Site(project, engine, stop, runtime, money)
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
            stamp=stamp(
                self.project,
                self.engine,
                self.pool.facts(),
                run=run,
                loaded=loaded,
                agent=agent,
                baseline=baseline,
                runtime=self.site.runtime,
            ),
            inputs=inputs(),
            way=way(self.project, run.model, agent, loaded, money=self.site.money),
        )

    def execute(self, job: Job) -> tuple[Record, Path | None]:
        """The record of one job: found, judged from evidence that was left, or run now. Path: None if found.

        Raises:
            Interrupted: asked to stop; nothing was recorded, and evidence that was kept will be judged later.
        """
        with self.ledger.holding(job.run, self.site.stop):
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
        lines = self.ledger.of(job.run)
        ended = {line.claim for line in lines if not isinstance(line, ClaimLine)}
        for line in lines:
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
        starts = Starts(self.ledger.of(job.run), job.stamp.digest)
        while starts.attempt <= ATTEMPTS:
            if self.site.stop.is_set():
                raise Interrupted("interrupted", about=str(job.run))
            allotment = allot(job, self.site.money)
            claim = self.ledger.claim(job.run, job.stamp.digest, starts.attempt)
            starts.last = claim
            attempt = Attempt(self.site, job, claim, allotment)
            try:
                observed = attempt.observe()
                facts = run_facts(job, observed, starts, claim)
            except CopperbenchError as told:
                # Whatever it came to after a signal, it came of our killing its containers.
                stopped = self.site.stop.is_set()
                error = Interrupted("interrupted", about=str(job.run)) if stopped else told
                fault = _fault(error, attempt.usd)
                self.ledger.fault(job.run, claim, fault.what, fault.source, usd=fault.usd)
                if fault.source == "harness":
                    raise error from None
                log.warning("attempt-lost", claim=claim, attempt=starts.attempt, fault=fault.what)
                starts.lose(fault)
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
            return self._judge(job, self._keep(job, facts, observed), began)
        return self._record_lost(job, starts, began)

    def _await_engine(self) -> None:
        """An engine that is gone loses one attempt of the runs at hand, not all attempts of all runs.

        Raises:
            EngineError: it stays away; the same command completes the plan later.
        """
        deadline = time.monotonic() + ENGINE_SECONDS
        while not self.engine.ping():
            if time.monotonic() > deadline or self.site.stop.wait(1):
                raise EngineError(
                    f"the engine does not answer for {ENGINE_SECONDS} s",
                    fix="start it and run the same command again: what is recorded stays",
                )

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
        graded = self.pool.grade(job.bundle(over.facts, over.end))
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
        facts = withheld_facts(record.facts, pattern)
        verdict = self.pool.grade(job.bundle(facts, {})).verdict
        return _draft(job, facts, verdict, None, record.timings)

    def _record_lost(self, job: Job, starts: Starts, began: float) -> tuple[Record, Path]:
        """No attempt ran cleanly: a failure that says nothing about the model, shown apart."""
        facts = lost_facts(job, starts)
        verdict = Verdict(
            verdict="fail",
            category=Category.PROVIDER_ERROR if facts.provider_fault else Category.INFRASTRUCTURE,
            first_failure=None,
            credit=0,
            exit_path=None,
            assertions=[],
            diagnostics=starts.faults,
        )
        record = _draft(job, facts, verdict, None, Timings(total=time.monotonic() - began))
        return record, self.records.write(record)


def _fault(error: CopperbenchError, usd: float | None) -> Fault:
    """Whose fault it is that an attempt came to nothing."""
    if isinstance(error, ProviderFault):
        return Fault("provider", fit_for_ledger(str(error)), usd)
    if isinstance(error, EngineError):
        return Fault("infrastructure", fit_for_ledger(str(error)), usd)
    # An interrupt, a spent budget, a provider that refuses us altogether: we end it; no attempt is lost.
    return Fault("harness", fit_for_ledger(str(error)), usd)


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
        cost=cost(job, facts),
        timings=Timings(**{key: round(value, 3) for key, value in timings.model_dump().items()}),
    )
