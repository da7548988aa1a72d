"""One run, told to a person: what was asked of it, what it did, which assertions held, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from grader.results import read_records
from schema.errors import UsageError
from schema.record import Record


def find(results: Path, wanted: str) -> tuple[Path, Record]:
    """The record that a path, a run id or a part of either means; of one run its newest record.

    Raises:
        UsageError: no run, or several different ones.
    """
    exact = Path(wanted).resolve()
    found = [(path, record) for path, record in read_records(results) if _means(wanted, exact, path, record)]
    runs = sorted({str(record.run) for _, record in found})
    if not runs:
        raise UsageError(f"no record of {wanted!r}", about=str(results), fix="see copperbench results")
    if len(runs) > 1:
        raise UsageError(
            f"{wanted!r} means {len(runs)} runs: {', '.join(runs[:3])}…", fix="give more of the run's id"
        )
    return max(found, key=lambda item: item[1].recorded_at)


def _means(wanted: str, exact: Path, path: Path, record: Record) -> bool:
    return path.resolve() == exact or wanted in str(record.run) or wanted in str(path)


def lines(record: Record) -> Iterator[str]:
    """All that a record says, for a terminal."""
    run, verdict, facts = record.run, record.verdict, record.facts
    yield f"run       {run}"
    yield f"task      {record.tier}, expected {record.expected_outcome}"
    outcome = verdict.verdict if verdict.category is None else f"{verdict.verdict} ({verdict.category})"
    yield f"verdict   {outcome}, credit {verdict.credit:.2f}, exit path {verdict.exit_path or 'none'}"
    yield f"ended     exit code {facts.exit_code}{_how(record)}"
    yield f"attempt   {facts.attempt} of 3, claim {facts.claim}"
    yield from (f"lost      {fault}" for fault in facts.earlier_faults)
    if facts.infrastructure:
        yield f"lost      {facts.infrastructure}"
    yield f"commits   {len(facts.history.commits)} on the baseline ({facts.history.status})"
    cost = "unknown" if record.cost.usd is None else f"{record.cost.usd:.4f} USD"
    yield f"cost      {cost}, {record.cost.segment}{f' ({record.cost.note})' if record.cost.note else ''}"
    times = record.timings
    yield f"time      agent {times.agent:.1f} s, grading {times.grade:.1f} s, all {times.total:.1f} s"
    kept = f"{record.evidence.id[:16]}… {record.evidence.ref}" if record.evidence else facts.evidence
    yield f"evidence  {kept}"
    stamp = record.stamp
    yield (
        f"stamp     {stamp.agent} {stamp.agent_version}, KiCad {stamp.kicad_version}, "
        f"grader {stamp.grader_version}, suite {stamp.suite_version}"
    )
    yield from (f"note      {note}" for note in verdict.diagnostics)


def _how(record: Record) -> str:
    facts = record.facts
    reasons = [
        f"killed at the {facts.killed_by} cap" if facts.killed_by else "",
        "out of memory" if facts.oom_killed else "",
        "volume full" if facts.volume_full else "",
        f"{facts.refused_count} entries refused" if facts.refused_count else "",
        *(f"tampering: {tamper.kind}" for tamper in facts.tampering),
    ]
    return "".join(f", {reason}" for reason in reasons if reason)
