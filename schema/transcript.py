"""The transcript contract: one JSON object a line, ``{"ts", "type", "data"}`` (Standard §11)."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from schema.base import Model

EventType = Literal[
    "deferred-affects-reopened",
    "run-start",
    "assistant",
    "tool",
    "edit-tools-unlocked",
    "budget-extended",
    "turn-timeout",
    "provider-failover",
    "session-limit",
    "run-failed",
    "work-preserved",
    "restore-failed",
    "run-refused",
    "changelog-append-failed",
    "openspec-archive",
    "openspec-archive-failed",
    "run-committed",
    "run-end",
]


class ExitPath(StrEnum):
    """How a run ended, by its own account, or ``killed`` by the harness's."""

    DONE = "done"
    REFUSED = "refused"
    FLAGGED = "flagged"
    TURN_BUDGET = "turn-budget-exhausted"
    REPAIR_CYCLES = "repair-cycles-exhausted"
    COMMIT_FAILED = "commit-failed"
    PROVIDER_ERROR = "provider-error"
    SESSION_LIMIT = "session-limit"
    STALLED = "stalled"
    KILLED = "killed"


class Event(Model):
    """One line of a transcript, its data unread."""

    ts: str
    """ISO 8601 UTC time, by the agent's clock."""
    type: EventType
    data: dict[str, Any]


class _Data(BaseModel):
    """Event data as agents write it: fields we rely on are typed, others are kept unread."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class RunStart(_Data):
    """``run-start``: what the agent was asked and with what it ran."""

    request: str
    run_id: str
    command: str
    model: str | None = None
    provider: str | None = None


class PerTurn(_Data):
    """Tokens of one model reply."""

    turn: int
    input: int = Field(alias="in")
    output: int = Field(alias="out")


class RunEnd(_Data):
    """``run-end``: how it ended and what it used."""

    exit_path: ExitPath
    turns_used: int
    max_turns: int | None = None
    repair_cycles_used: int = 0
    max_repair_cycles: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    per_turn: list[PerTurn] = []
    duration_ms: int = 0


class RunRefused(_Data):
    """``run-refused``: the refusal's own words, the only text that counts as a citation."""

    summary: str


class Tool(_Data):
    """``tool``: one tool call and what it answered."""

    name: str
    args: Any = None
    result: str = ""


class RunCommitted(_Data):
    """``run-committed``: the agent's account of its commit (the harness reads git itself)."""

    commit: str
    files: list[str] = []
