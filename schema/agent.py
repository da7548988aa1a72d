"""Agents and models as data (DESIGN §4)."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field

from schema.base import Model
from schema.gateway import WireProtocol
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

    base_url: Annotated[str, Field(pattern=r"^(https?://[^/\s]+(/\S*)?|unix:/\S+)$")] | None
    """Without the endpoint; ``unix:/path`` for a server on a socket; null where no model is called."""
    protocols: list[WireProtocol] = []
    """What it speaks; an agent must speak one of them."""
    key_variable: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")] | None
    """Name of the environment variable that holds the key; never the key."""
    segment: Segment
    """Where ``pricing.json`` has no row for the model."""
    pinning: Pinning
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What its chat completions call the limit on a reply."""

    @property
    def network(self) -> Literal["none", "host", "bridge"]:
        """The least network from which it can be reached: a socket's, this host's own, or the world's."""
        url = self.base_url or "unix:"
        if url.startswith("unix:"):
            return "none"
        return "host" if urlsplit(url).hostname in {"127.0.0.1", "localhost", "::1"} else "bridge"


class Models(Model):
    """``models.json``: how the models of an id's prefix are reached."""

    providers: dict[Annotated[str, Field(pattern=r"^[a-z]+$")], Provider]
    """``openai`` for ``openai:<name>``."""
    endpoints: dict[TaskId, Provider] = {}
    """Named OpenAI-compatible servers: ``groq`` for ``compat:<name>@groq``."""
