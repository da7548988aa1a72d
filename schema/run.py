"""Runs: how they are named, planned, and what the harness saw of them."""

from typing import Annotated, Literal

from pydantic import Field

from schema.base import Model
from schema.condition import DEFAULT
from schema.credentials import SecretFinding
from schema.hashing import sha256
from schema.paths import encode_name
from schema.task import Caps, Outcome, Sha256, TaskId, Tier

Cap = Literal["turns", "wall-clock", "tokens", "usd", "requests"]
"""What a run was killed at; ``requests``: it flooded its gateway."""


class RunId(Model):
    """Names one planned run; a pure function of the plan."""

    suite_version: str
    task: TaskId
    model: str
    agent: str
    condition: str = DEFAULT
    repeat: int = Field(ge=1)

    def __str__(self) -> str:
        return f"{self.suite_version}/{self.task}/{self.model}/{self.agent}/{self.condition}/{self.repeat}"

    @property
    def ref(self) -> str:
        """As a git ref below ``refs/runs/``: every part encoded, so that no two runs share one."""
        parts = (self.suite_version, self.task, self.model, self.agent, self.condition, f"r{self.repeat}")
        # Git allows neither in a ref: ``..``, and a caret, which stands for a capital letter.
        return "/".join(encode_name(part).replace(".", "%2E").replace("^", "%5E") for part in parts)

    @property
    def short(self) -> str:
        """16 hex digits for names with a length limit: containers, volumes."""
        return sha256(str(self).encode())[:16]


class RunSpec(Model):
    """One planned run and all that decides it."""

    run: RunId
    tier: Tier
    outcome: Outcome
    caps: Caps
    manifest_sha256: Sha256
    fixture_sha256: Sha256


class Plan(Model):
    """Written before anything starts; it fixes the denominator."""

    schema_version: str
    id: Sha256
    """SHA-256 of the specs' canonical JSON."""
    created_at: str
    suite: str
    specs: list[RunSpec]


class Tamper(Model):
    """Something an honest run cannot have left behind."""

    kind: str
    """Kebab-case name of what was found."""
    detail: str = ""


class RefusedEntry(Model):
    """An entry of the workspace that was not kept as evidence, and why."""

    path: str
    """Percent-encoded."""
    reason: str


class History(Model):
    """The agent's own commits, read from a clean copy of its objects."""

    status: Literal["ok", "missing", "unreadable", "rewritten", "uncommitted"]
    """``rewritten``: the baseline is not an ancestor of HEAD. ``uncommitted``: there are commits, and the
    last one is not what the run left, bookkeeping and KiCad's side files aside."""
    head: str | None = None
    commits: list[str] = []
    """Commit ids on top of the baseline, newest first."""
    detail: str = ""


class Usage(Model):
    """What the gateway counted; None where the provider did not say."""

    replies: int
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    usd: float | None
    table_version: str | None = None


class ModelAccess(Model):
    """What the gateway saw besides usage."""

    answered: list[str]
    """Model ids that replies named, each once."""
    comparable: bool
    """False when another model than the pinned one answered, two versions of it did, or none was named."""
    retries: int
    """Provider faults that were borne."""
    refused_requests: int
    excluded_seconds: float
    """Taken off the agent's wall clock for the provider's faults."""


class Isolation(Model):
    """What the engine enforced on the agent's container, read back with ``inspect``."""

    network: str
    user: str
    read_only_root: bool
    cap_drop: list[str]
    security_opt: list[str]
    memory_bytes: int
    memory_swap_bytes: int
    nano_cpus: int
    pids_limit: int
    ulimits: dict[str, int]
    volume_bytes: int
    runtime: str
    """OCI runtime: ``runc`` shares the host's kernel, ``runsc`` (gVisor) puts one of its own in between."""
    apparmor: str = ""
    """AppArmor profile; empty where the kernel has none."""
    engine: list[str] = []
    """What the engine does for all its containers: seccomp, userns, cgroup version."""


class Timings(Model):
    """Seconds of each step, by the orchestrator's monotonic clock. Diagnostic; never scored."""

    prepare: float = 0
    start: float = 0
    agent: float = 0
    collect: float = 0
    store: float = 0
    grade: float = 0
    kicad: float = 0
    """Part of ``grade`` spent inside kicad-cli."""
    total: float = 0


EvidenceStatus = Literal["kept", "over-budget", "secret-leak", "none"]


class RunFacts(Model):
    """``run.json``: what the harness itself saw. The agent's claims never override it."""

    run: RunId
    claim: int = Field(ge=1)
    """Which claim of this run in the ledger: every time it was started has its own."""
    attempt: int = Field(ge=1, le=3)
    """One more than the faults of engine and host before it."""
    baseline_commit: str
    baseline_sha256: Sha256
    """Tree hash of the baseline tree."""
    started_at: str
    ended_at: str
    exit_code: int | None
    killed_by: Cap | None = None
    oom_killed: bool = False
    volume_full: bool = False
    earlier_faults: list[str] = []
    """What failed on engine, host or provider in attempts before this one; each granted a new attempt."""
    lost_usd: float | None = 0
    """What lost attempts and starts that came to nothing cost; None when that of one is unknown."""
    infrastructure: str | None = None
    """What failed on the engine or host, seen by the orchestrator; None when nothing did."""
    provider_fault: str | None = None
    """What the model's provider failed with in every attempt; None when it did not."""
    evidence: EvidenceStatus
    evidence_detail: str = ""
    secret: SecretFinding | None = None
    tampering: list[Tamper] = []
    """What the harness itself saw; what the evidence shows is the grader's to find."""
    captured_bytes: int | None = None
    """Of transcripts, copied out while the agent lived; None when nothing was followed."""
    refused: list[RefusedEntry] = []
    refused_count: int = 0
    history: History
    usage: Usage | None = None
    """What the gateway counted in the attempt that is judged."""
    access: ModelAccess | None = None
    """How the model was reached; None for an agent that calls none."""
    isolation: Isolation | None = None


class EvidenceEntry(Model):
    """One file or symlink of the end tree."""

    path: str
    """Percent-encoded."""
    kind: Literal["file", "symlink"]
    mode: Annotated[str, Field(pattern=r"^[0-7]{4}$")]
    """Permission bits as collected."""
    size: int
    sha256: Sha256
    """Of the content, or of a symlink's target text."""


class Evidence(Model):
    """``manifest.json`` of an evidence tree; its canonical JSON's SHA-256 is the evidence id."""

    schema_version: str
    run_sha256: Sha256
    """Of the canonical JSON of ``run.json``."""
    entries: list[EvidenceEntry]
    """Sorted by path bytes."""
    ledgers: dict[str, Sha256] = {}
    """What the gateway wrote beside the tree → SHA-256: ``gateway.jsonl``, and ``bodies.jsonl`` if kept."""


class EvidenceRef(Model):
    """Where a record's evidence is."""

    id: Sha256
    ref: str
    """Ref in the evidence store."""
