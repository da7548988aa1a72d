"""Tasks and suites: what to run, against what, under what limits (Standard §1, §3)."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from schema.assertions import Number, RelativePath
from schema.base import Model

TaskId = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Tier(StrEnum):
    """Reasoning load."""

    SIMPLE = "simple"
    MEDIUM = "medium"
    HARD = "hard"


class Mode(StrEnum):
    """Which surface of the agent is driven."""

    DO = "do"
    CREATE = "create"
    SYNC = "sync"
    CHECK = "check"


class Outcome(StrEnum):
    """What the right run does (Standard §3)."""

    EDIT = "edit"
    REFUSAL = "refusal"
    FLAG = "flag"


class FixtureRef(Model):
    """The starting project and the hash it must have."""

    path: Annotated[str, Field(pattern=r"^fixtures/[a-z0-9][a-z0-9-]*$")]
    """``fixtures/<id>``."""
    sha256: Sha256
    """Tree hash (Standard §7)."""

    @property
    def id(self) -> str:
        """Name of the fixture's folder."""
        return self.path.split("/")[1]


SetupCommand = Literal["init", "quiet-baseline"]


class Setup(Model):
    """Steps without a model or a network, run before the baseline commit."""

    commands: list[SetupCommand] = ["init"]
    """``init`` scaffolds the documents; ``quiet-baseline`` silences, in the sandbox's project file only,
    every violation type that the fixture's baseline carries."""


class TaskConfig(Model):
    """What goes into ``.copperhead/config.json``."""

    budgets: dict[str, Number] = {}
    """Budget key → number. The key's name carries the unit."""
    max_turns: int = Field(default=40, ge=1, le=1000)
    max_repair_cycles: int = Field(default=5, ge=0, le=100)


class Caps(Model):
    """Hard caps, enforced by killing the container."""

    turns: int = Field(ge=1, le=1000)
    """Model replies."""
    wall_clock_sec: float = Field(gt=0, le=24 * 3600)
    """Seconds from the container's start."""
    tokens: int | None = Field(default=None, ge=1)
    """Input and output tokens together."""
    usd: float | None = Field(default=None, gt=0)


class Task(Model):
    """``task.json``."""

    id: TaskId
    """Equals the name of the task's folder."""
    title: str | None = Field(default=None, max_length=80)
    """One line for tables; the id when absent."""
    tier: Tier
    mode: Mode
    fixture: FixtureRef
    request: str = Field(min_length=1, max_length=20_000)
    """Prompt for ``do`` and ``sync``; for ``create`` the path of the brief."""
    setup: Setup = Setup()
    expected_outcome: Outcome
    config: TaskConfig = TaskConfig()
    caps: Caps
    tags: list[str] = []
    """Acceptance criteria and capabilities, for coverage."""
    variant_of: TaskId | None = None
    """Only on mutated variants."""
    repeats: int | None = Field(default=None, ge=1, le=100)
    """A lower default for ``create`` tasks."""

    @model_validator(mode="after")
    def _brief(self) -> Self:
        if self.mode is Mode.CREATE and self.request != "brief.md":
            raise ValueError("a create task's request is the path of its brief, brief.md")
        return self


class Suite(Model):
    """``suites/<id>.json``: a named selection of tasks."""

    id: TaskId
    title: str
    tasks: list[TaskId] = Field(min_length=1)
    repeats: int = Field(default=3, ge=1, le=100)
    """Runs of each (task, model) pair when the command line does not say."""

    @model_validator(mode="after")
    def _unique(self) -> Self:
        if len(set(self.tasks)) != len(self.tasks):
            raise ValueError("a task is listed twice")
        return self


class Edit(Model):
    """Replace an exact anchor in one file."""

    path: RelativePath
    find: str = Field(min_length=1)
    replace: str
    count: int | Literal["all"] = 1
    """How often the anchor must occur; a difference is an error of the solution."""


class Expectation(Model):
    """What a solution's run must be graded as."""

    verdict: Literal["pass", "fail"]
    first_failure: str | None = None
    """Id of the required assertion that catches it; the first that fails in manifest order."""
    category: str | None = None

    @model_validator(mode="after")
    def _declared(self) -> Self:
        if (self.verdict == "fail") != (self.first_failure is not None):
            raise ValueError("a failing solution, and only that, declares its firstFailure")
        return self


class Solution(Model):
    """``solutions/<name>/solution.json``: a run as data (Standard §9).

    Beside it may lie ``files/`` (laid over the tree) and ``change.diff`` (a unified diff, applied with git).
    Order: edits, diff, files, deletions.
    """

    note: str
    """What it does and why a grader must catch it, or why it is right."""
    expect: Expectation
    exit_path: Literal["done", "refused", "flagged", "stalled"]
    summary: str = Field(min_length=1)
    """The agent's closing words; a refusal's citation is read from here."""
    edits: list[Edit] = []
    delete: list[RelativePath] = []
    commits: int = Field(ge=0, le=50)
    """Commits on top of the baseline; the last holds all changes."""
    bookkeeping: bool = False
    """Also write what an honest finished run leaves: change log entry and proposal."""
