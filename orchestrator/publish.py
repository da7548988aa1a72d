"""What of the evidence may be committed: that of boards which we drew ourselves (Standard §7)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from grader.results import read_records
from grader.store import BUNDLE, STORE, tree_ref
from orchestrator.project import Project
from orchestrator.store import EvidenceWriter
from schema.errors import UsageError


@dataclass(frozen=True)
class Bundled:
    """What was written."""

    path: Path
    records: int
    left_out: int
    """Records whose evidence holds a board that is not ours."""


def make_bundle(project: Project) -> Bundled:
    """Write the bundle of all evidence that may be committed.

    Raises:
        UsageError: there is none.
    """
    ours = {project.fixture(name).sha256 for name in project.fixture_ids() if project.fixture(name).vendored}
    kept = [record for _, record in read_records(project.results) if record.evidence]
    chosen = [record for record in kept if record.stamp.fixture_sha256 in ours]
    if not chosen:
        raise UsageError("no evidence of a board of ours", fix="run copperbench prove --suite starter")
    wanted = {record.evidence.ref for record in chosen if record.evidence}
    wanted |= {tree_ref(record.stamp.fixture_sha256) for record in chosen}
    wanted |= {tree_ref(record.facts.baseline_sha256) for record in chosen}
    path = project.results / BUNDLE
    part = path.with_name(f".{BUNDLE}.{os.getpid()}.tmp")
    EvidenceWriter(project.results / STORE).make_bundle(part, wanted)
    part.rename(path)
    return Bundled(path, len(chosen), len(kept) - len(chosen))
