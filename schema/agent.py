"""Agents and models as data (DESIGN §4)."""

from typing import Annotated, Literal

from pydantic import Field

from schema.base import Model
from schema.pricing import Pinning, Segment
from schema.task import Mode, TaskId
from schema.transcript import ExitPath


class Bookkeeping(Model):
    """Globs of what an honest run writes besides its work; declared once, not in each task (Standard §4)."""

    always: list[str]
    """Written by every run, a refusal too. Left out of every diff assertion."""
    committed: list[str] = []
    """Written by a run that finishes its work. Left out of ``files_touched_subset``."""


class Agent(Model):
    """``images/agents/<name>/agent.json``."""

    name: TaskId
    version: str
    image: str
    """Tag the image is built as."""
    commands: dict[Mode, list[str]]
    """Mode → argument vector; ``{request}``, ``{model}``, ``{maxTurns}`` and ``{brief}`` are replaced."""
    environment: dict[str, str] = {}
    """The whole environment of the agent; nothing is inherited."""
    inputs: list[Literal["solution"]] = []
    """What is mounted read-write at ``/input`` beside the workspace: the solution agent's data."""
    transcripts: str = ".copperhead/runs/*/transcript.jsonl"
    """Glob of the transcript in the workspace."""
    bookkeeping: Bookkeeping
    exit_codes: dict[str, ExitPath] = {}
    """Process exit code → exit path, for runs that leave no transcript by contract."""
    protocol: Literal["openai-chat", "anthropic-messages", "none"]
    """What the agent speaks to its model."""
    own_scaffold: bool = False
    """True: it insists on its own ``init``; its records compare only among themselves."""


class Provider(Model):
    """How a model id's prefix is reached."""

    base_url: str | None
    protocol: Literal["openai-chat", "openai-responses", "anthropic-messages", "none"]
    key_variable: str | None
    """Name of the environment variable that holds the key; never the key."""
    segment: Segment
    pinning: Pinning


class Models(Model):
    """``models.json``: provider prefix → how to reach it."""

    providers: dict[Annotated[str, Field(pattern=r"^[a-z]+$")], Provider]
