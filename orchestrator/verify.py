"""``copperbench verify``: do ledger, plans, records, evidence and published heads add up?"""

from __future__ import annotations

from collections.abc import Iterator

from grader.ledger import audit
from grader.report.leaderboard import published_head
from grader.results import read_records
from grader.store import EvidenceStore, whole_store
from orchestrator.project import Project
from schema.errors import CopperbenchError


def faults(project: Project, head: str | None) -> Iterator[str]:
    """Everything that does not add up, a line each.

    Args:
        project: a checkout.
        head: a ledger head that was published somewhere before.
    """
    heads = {"--head": head} if head else {}
    if printed := published_head(project.results.parent / "LEADERBOARD.md"):
        heads["LEADERBOARD.md"] = printed
    found = list(audit(project.results, heads))
    yield from found
    if not found:
        yield from _evidence(project)


def _evidence(project: Project) -> Iterator[str]:
    """Records whose evidence is not there. That it is theirs, byte for byte, is for rescore to say."""
    wanted = [record for _, record in read_records(project.results) if record.evidence]
    if not wanted:
        return
    try:
        with whole_store(project.results) as path, EvidenceStore(path) as store:
            for record in wanted:
                if record.evidence and store.find(record.evidence.ref) != record.evidence:
                    yield f"{record.run}: its evidence {record.evidence.id[:16]}… is not in the store"
    except CopperbenchError as error:
        yield str(error)
