"""Reading and auditing the ledger of a results folder, offline (Standard §8).

A chain alone can be rewritten whole; it says something against a head that was published elsewhere, such as
in LEADERBOARD.md or in a paper.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.results import PLANS, read_records
from schema.errors import CheckFailed, CopperbenchError
from schema.hashing import sha256
from schema.jsonfile import parse_json, read_bytes, read_model, validate_as
from schema.ledger import GENESIS, ClaimLine, FaultLine, LedgerLine, PlanLine, RecordLine
from schema.record import Record
from schema.run import Plan, RunSpec

LEDGER = "ledger.jsonl"
REPAIR = "run the command that was interrupted again"


@dataclass(frozen=True)
class Chain:
    """The lines of a ledger whose chain holds."""

    lines: tuple[LedgerLine, ...] = ()
    digests: tuple[str, ...] = ()
    """Of each line."""

    @property
    def head(self) -> str:
        """Digest of the last line."""
        return self.digests[-1] if self.digests else GENESIS

    def extended(self, data: bytes, about: str) -> Chain:
        """This chain and more whole lines.

        Raises:
            CheckFailed: a line is no ledger line, or does not continue the chain.
        """
        lines, digests = list(self.lines), list(self.digests)
        for raw in data.splitlines():
            where = f"{about} line {len(lines) + 1}"
            try:
                line: LedgerLine = validate_as(LedgerLine, parse_json(raw, where), where)  # type: ignore[arg-type]
            except CopperbenchError as error:
                raise CheckFailed(f"is no ledger line ({error})", about=where) from None
            if line.prev != (digests[-1] if digests else GENESIS) or line.text() != raw:
                raise CheckFailed(
                    "does not continue the chain: a line here or before it was changed, added or removed",
                    about=where,
                    fix="restore the ledger from where it was published",
                )
            lines.append(line)
            digests.append(sha256(raw))
        return Chain(tuple(lines), tuple(digests))


def read_chain(results: Path) -> Chain:
    """The ledger of a results folder; without lines when there is none.

    Raises:
        CheckFailed: the chain is broken, or its last line is torn.
    """
    path = results / LEDGER
    data = read_bytes(path) if path.is_file() else b""
    whole, _, torn = data.rpartition(b"\n")
    chain = Chain().extended(whole, LEDGER)
    if torn:
        raise CheckFailed("is torn", about=f"{LEDGER} line {len(chain.lines) + 1}", fix=REPAIR)
    return chain


def planned(chain: Chain, results: Path) -> dict[str, RunSpec]:
    """What the newest plan that names a run asks of it: the denominator of every rate.

    Raises:
        InvalidFile: a plan is missing or breaks the schema.
    """
    specs: dict[str, RunSpec] = {}
    for path in dict.fromkeys(line.path for line in reversed(chain.lines) if isinstance(line, PlanLine)):
        for spec in read_model(results / path, Plan).specs:
            specs.setdefault(str(spec.run), spec)
    return specs


def audit(results: Path, heads: dict[str, str]) -> Iterator[str]:
    """Everything that does not add up between ledger, plans, records and published heads, a line each.

    Args:
        results: the results folder.
        heads: where a head was published → the head; the chain must hold each.
    """
    try:
        chain = read_chain(results)
        records = {str(path.relative_to(results)): record for path, record in read_records(results)}
    except CopperbenchError as error:
        yield str(error)
        return
    for where, head in heads.items():
        if head not in {GENESIS, *chain.digests}:
            yield f"{where}: its ledger head {head} is not in the chain: this is not what was published"
    yield from _plans(chain, results)
    yield from _records(chain, results, records)
    yield from _claims(chain)
    yield from _planned(chain, results, records)


def _plans(chain: Chain, results: Path) -> Iterator[str]:
    listed = {line.path: line.sha256 for line in chain.lines if isinstance(line, PlanLine)}
    for path, digest in listed.items():
        yield from _file(results, path, digest)
    for file in sorted((results / PLANS).glob("*.json")):
        name = f"{PLANS}/{file.name}"
        if name not in listed:
            yield f"{name}: not in the ledger; {REPAIR}"


def _file(results: Path, path: str, digest: str) -> Iterator[str]:
    file = results / path
    if not file.is_file():
        yield f"{path}: in the ledger and not here"
    elif sha256(file.read_bytes()) != digest:
        yield f"{path}: is not what the ledger has: it was changed"


def _records(chain: Chain, results: Path, records: dict[str, Record]) -> Iterator[str]:
    listed: set[str] = set()
    for line in chain.lines:
        if not isinstance(line, RecordLine):
            continue
        if line.path in listed:
            yield f"{line.path}: in the ledger twice"
        listed.add(line.path)
        yield from _file(results, line.path, line.sha256)
        record = records.get(line.path)
        if record and (str(record.run), record.facts.claim) != (line.run, line.claim):
            yield f"{line.path}: in the ledger as a record of {line.run}, claim {line.claim}"
    yield from (
        f"{path}: a record that is not in the ledger; {REPAIR}" for path in records if path not in listed
    )
    yield from _twice(chain, records)


def _twice(chain: Chain, records: dict[str, Record]) -> Iterator[str]:
    """Runs that were executed twice under one stamp, or whose one execution was graded twice under one."""
    stamps = {(line.run, line.claim): line.stamp for line in chain.lines if isinstance(line, ClaimLine)}
    seen: Counter[tuple[str, int, str]] = Counter()
    for record in records.values():
        run, claim, stamp = str(record.run), record.facts.claim, record.stamp.digest
        first = stamps.get((run, claim)) == stamp
        seen[run, 0 if first else claim, stamp] += 1
    yield from (f"{run}: recorded {n} times under one stamp" for (run, _, _), n in seen.items() if n > 1)


def _claims(chain: Chain) -> Iterator[str]:
    claims: defaultdict[str, int] = defaultdict(int)
    for number, line in enumerate(chain.lines, 1):
        if isinstance(line, ClaimLine):
            claims[line.run] += 1
            if line.claim != claims[line.run]:
                yield f"{LEDGER} line {number}: claim {line.claim} of {line.run} is out of count"
        elif isinstance(line, RecordLine | FaultLine) and line.claim > claims[line.run]:
            yield f"{LEDGER} line {number}: {line.run} was never claimed"


def _planned(chain: Chain, results: Path, records: dict[str, Record]) -> Iterator[str]:
    have = {
        (str(record.run), record.stamp.manifest_sha256, record.stamp.fixture_sha256)
        for record in records.values()
    }
    try:
        specs = planned(chain, results)
    except CopperbenchError as error:
        yield str(error)
        return
    for run, spec in specs.items():
        if (run, spec.manifest_sha256, spec.fixture_sha256) not in have:
            yield f"{run}: planned and not recorded; {REPAIR}"
