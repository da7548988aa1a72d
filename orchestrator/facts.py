"""From what an attempt gave to the facts that are graded and recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.attempt import Observed
from orchestrator.clock import now
from orchestrator.history import read_history
from orchestrator.job import Job
from orchestrator.sandbox import VolumeSize
from orchestrator.starts import ATTEMPTS, Starts
from schema.credentials import SecretFinding, scan
from schema.errors import InfrastructureLeft
from schema.run import EvidenceStatus, History, RunFacts


def run_facts(job: Job, observed: Observed, starts: Starts, claim: int) -> RunFacts:
    """Of a run that came to an end, whatever end."""
    collected = observed.collected
    status: EvidenceStatus = "kept"
    if collected.secret:
        status = "secret-leak"
    elif collected.over_budget:
        status = "over-budget"
    history, secret = History(status="missing", detail="no evidence kept"), collected.secret
    if status == "kept":
        books = job.agent.bookkeeping
        read = read_history(
            collected,
            job.baseline.facts.commit,
            job.baseline.known,
            aside=(*books.always, *books.committed),
        )
        history = read.history
        secret = read.secret or _scan(observed.ledgers)
        if secret:
            status = "secret-leak"
    return RunFacts(
        run=job.run,
        claim=claim,
        attempt=starts.attempt,
        earlier_faults=starts.faults,
        lost_usd=_lost_usd(job, starts),
        baseline_commit=job.baseline.facts.commit,
        baseline_sha256=job.baseline.facts.tree_sha256,
        started_at=observed.started_at,
        ended_at=observed.ended_at,
        exit_code=observed.ended.exit.code,
        killed_by=observed.ended.killed_by,
        oom_killed=observed.ended.exit.oom_killed,
        # tmpfs hands out whole pages: the last page's worth of bytes cannot be told from full.
        volume_full=collected.stream_bytes >= VolumeSize().bytes - 2**20,
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


def lost_facts(job: Job, starts: Starts) -> RunFacts:
    """Of a run none of whose attempts came to an end."""
    source, what, _ = starts.newest
    return RunFacts(
        run=job.run,
        claim=starts.last,
        attempt=ATTEMPTS,
        earlier_faults=starts.faults[:-1],
        lost_usd=_lost_usd(job, starts),
        baseline_commit=job.baseline.facts.commit,
        baseline_sha256=job.baseline.facts.tree_sha256,
        started_at=now(),
        ended_at=now(),
        exit_code=None,
        infrastructure=what if source == "infrastructure" else None,
        provider_fault=what if source == "provider" else None,
        evidence="none",
        history=History(status="missing", detail="the run never ended cleanly"),
    )


def withheld_facts(facts: RunFacts, pattern: str) -> RunFacts:
    """Of a run whose evidence turned out to hold a credential: nothing that could quote it."""
    return facts.model_copy(
        update={
            "evidence": "secret-leak",
            "secret": SecretFinding(pattern=pattern, path_sha256=None),
            "evidence_detail": "",
            "refused": [],
            "tampering": [],
            "history": History(status="missing", detail="no evidence kept"),
        }
    )


def require_clean_attempts(facts: Sequence[RunFacts]) -> None:
    """Refuse to call a plan done some of whose runs say nothing of their agent or model.

    Raises:
        InfrastructureLeft: runs were lost to engine, host or provider in every attempt.
    """
    engine = sum(each.infrastructure is not None for each in facts)
    provider = sum(each.provider_fault is not None for each in facts)
    if not engine + provider:
        return
    fixes = ["see copperbench doctor and .cache/logs"] * (engine > 0)
    fixes += ["see providerFault in the records"] * (provider > 0)
    lost = [f"{engine} to engine or host"] * (engine > 0) + [f"{provider} to the provider"] * (provider > 0)
    raise InfrastructureLeft(
        f"{engine + provider} runs never got a clean attempt ({', '.join(lost)}) "
        "and are recorded as failures, shown apart",
        fix=f"{' and '.join(fixes)} for what failed",
    )


def _lost_usd(job: Job, starts: Starts) -> float | None:
    return starts.usd if job.way else 0.0


def _scan(ledgers: Mapping[str, bytes]) -> SecretFinding | None:
    """A credential in what the gateway wrote: a model may repeat what it was shown."""
    return next((found for name, data in ledgers.items() if (found := scan(name.encode(), data))), None)
