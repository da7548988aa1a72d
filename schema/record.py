"""Records: one append-only JSON file a run, readable on its own (Standard §8)."""

from typing import Annotated

from pydantic import Field

from schema.base import Model
from schema.hashing import sha256
from schema.jsonfile import canonical
from schema.pricing import Segment
from schema.run import EvidenceRef, RunFacts, RunId, Timings
from schema.task import Outcome, Sha256, Tier
from schema.verdict import Verdict


class Stamp(Model):
    """What must be known to say whether two records may be compared."""

    schema_version: str
    suite_version: str
    manifest_sha256: Sha256
    fixture_sha256: Sha256
    agent: str
    agent_version: str
    agent_commit: str | None = None
    """None where neither manifest nor package says it."""
    agent_image: str
    """Digest over the image's layer digests."""
    kicad_version: str
    reference_image: str
    scaffolder_version: str
    gateway_image: str | None = None
    """None for an agent that calls no model."""
    prompt_sha256: str | None = None
    """Of the agent's prompt text, where its manifest names one."""
    grader_version: str
    grader_image: str
    compass_version: str
    git_version: str
    """Of the grader image: it counts the lines of a diff."""
    python_version: str
    node_version: str | None = None
    """Of the agent's image, where the agent is an npm package."""
    platform: str
    """``linux/amd64``."""
    resources: dict[str, int | float | str]
    """Caps that the engine enforced: memory, cpus, pids, volume."""

    @property
    def digest(self) -> str:
        """One digest over all of it: runs under one stamp need not be paid twice."""
        return sha256(canonical(self.to_json()))

    @property
    def kicad_major(self) -> str:
        """``9``: the environment that the record belongs to."""
        return self.kicad_version.split(".")[0]

    @property
    def group(self) -> tuple[str, str, str, str, str]:
        """Records share a table only when this agrees, and the task's and fixture's hashes (Standard §8)."""
        return (
            self.schema_version,
            self.suite_version,
            self.agent,
            self.agent_version,
            self.kicad_major,
        )


class Cost(Model):
    """What the run cost; null with a reason where it is not known, never 0."""

    usd: float | None
    table_version: str | None = None
    segment: Segment
    note: str = ""


class Record(Model):
    """``results/<date>/<model>/<task-id>/run-<n>.json``."""

    schema_version: str
    run: RunId
    recorded_at: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T")]
    tier: Tier
    expected_outcome: Outcome
    stamp: Stamp
    facts: RunFacts
    verdict: Verdict
    evidence: EvidenceRef | None
    """None when nothing was kept: secret leak, or infrastructure before there was evidence."""
    cost: Cost
    timings: Timings
