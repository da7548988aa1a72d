"""Agents and models as data (DESIGN §4)."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from schema.base import Model
from schema.errors import UsageError
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


Condition = Literal["maxTurns", "maxRepairCycles", "prompt", "tools"]
"""An ablation switch: what ``--condition`` may set for an agent that takes it."""

_PLACEHOLDER = re.compile(r"\{(request|model|maxTurns|maxRepairCycles|prompt|tools|brief)\}")
_WHOLE = re.compile(r"0|[1-9][0-9]{0,2}|1000")


class Agent(Model):
    """``images/agents/<name>/agent.json``."""

    name: TaskId
    version: str
    commit: str | None = None
    """Upstream commit of the version, where upstream says it; else the package's ``gitHead``, if any."""
    image: str
    """Tag the image is built as."""
    package: Annotated[str, Field(pattern=r"^(@[a-z0-9._-]+/)?[a-z0-9._-]+@[0-9][A-Za-z0-9.+-]*$")] | None = (
        None
    )
    """npm package ``name@version`` that the image holds, downloaded on the host and laid into the build as
    ``node_modules``. ``<NAME>_SPEC`` in the environment (``COPPERHEAD_SPEC``) names another version or a
    tarball. Where it cannot be had, the image is not built and all others are."""
    commands: dict[Mode, list[str]]
    """Mode → argument vector. ``{request}``, ``{model}`` (the id that the provider knows), ``{maxTurns}``,
    ``{maxRepairCycles}``, ``{prompt}``, ``{tools}`` and ``{brief}`` are replaced."""
    environment: dict[str, str] = {}
    """The whole environment of the agent; nothing is inherited. Placeholders as in ``commands``."""
    conditions: dict[Condition, list[str]] = {}
    """Ablation switches it takes → the values it knows, the default first. An empty list takes any whole
    number up to 1000; its default is the task's."""
    prompts: str | None = None
    """Folder beside this file with one text for each value of the ``prompt`` condition, ``<value>.md``: data
    whose hash belongs into the stamp."""
    inputs: list[Literal["solution"]] = []
    """What is mounted read-write at ``/input`` beside the workspace: the solution agent's data."""
    transcripts: str = ".copperhead/runs/*/transcript.jsonl"
    """Glob of the transcript in the workspace."""
    bookkeeping: Bookkeeping
    exit_codes: dict[str, ExitPath] = {}
    """Process exit code → exit path, for ``sync`` and ``check`` runs that leave no transcript by contract."""
    protocol: WireProtocol | Literal["none"]
    """What the agent speaks to its model."""
    own_scaffold: bool = False
    """True: it insists on its own ``init``; its records compare only among themselves."""

    @model_validator(mode="after")
    def _switches(self) -> Self:
        used = {name for part in self._templates() for name in _PLACEHOLDER.findall(part)}
        for name, values in self.conditions.items():
            if name not in used:
                raise ValueError(f"condition {name} is taken, and no command or variable uses {{{name}}}")
            if (name in {"prompt", "tools"}) is not bool(values):
                raise ValueError(f"condition {name}: prompt and tools list their values, numbers don't")
        if missing := (used & {"maxRepairCycles", "prompt", "tools"}) - self.conditions.keys():
            raise ValueError(f"{{{min(missing)}}} is used, and conditions does not say its values")
        return self

    def _templates(self) -> list[str]:
        return [part for command in self.commands.values() for part in command] + list(
            self.environment.values()
        )

    def settle(self, wanted: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
        """The value of every condition the agent takes.

        Args:
            wanted: as given with ``--condition``.
            defaults: the task's values of ``maxTurns`` and ``maxRepairCycles``.

        Raises:
            UsageError: the agent does not take a condition, or not that value.
        """
        for key, value in wanted.items():
            values = next((known for name, known in self.conditions.items() if name == key), None)
            if values is None:
                raise UsageError(
                    f"agent {self.name} takes no condition {key!r}",
                    fix=f"use one of {', '.join(self.conditions) or 'none'}",
                )
            if value not in values if values else not _WHOLE.fullmatch(value):
                raise UsageError(
                    f"condition {key}={value} is not known to agent {self.name}",
                    fix=f"use one of {', '.join(values) or 'the whole numbers up to 1000'}",
                )
        listed: dict[str, str] = {name: values[0] for name, values in self.conditions.items() if values}
        return {**defaults, **listed, **wanted}

    def command(self, mode: Mode, values: Mapping[str, str]) -> list[str]:
        """The argument vector of a mode. Braces inside a value, such as a request's, stay as they are."""
        return [_fill(part, values) for part in self.commands[mode]]

    def surroundings(self, values: Mapping[str, str]) -> dict[str, str]:
        """The environment, filled in as :meth:`command` is."""
        return {name: _fill(text, values) for name, text in self.environment.items()}


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Replace placeholders in one pass."""
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


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
    segments: dict[str, Segment] = {}
    """Beginning of a name → its segment instead, likewise; of two that fit, the longer one's."""
    pinning: Pinning
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What its chat completions call the limit on a reply."""

    def segment_of(self, name: str) -> Segment:
        """The segment of a model without a row, by the provider's own name for it."""
        fits = [prefix for prefix in self.segments if name.startswith(prefix)]
        return self.segments[max(fits, key=len)] if fits else self.segment

    @property
    def network(self) -> Literal["none", "host", "bridge"]:
        """The least network from which it can be reached: a socket's, this host's own, or the world's."""
        url = self.base_url or "unix:"
        if url.startswith("unix:"):
            return "none"
        return "host" if urlsplit(url).hostname in {"127.0.0.1", "localhost", "::1"} else "bridge"


def provided_name(model: str) -> str:
    """What its provider calls a model: ``gpt-5`` for ``openai:gpt-5``, ``x/y`` for ``compat:x/y@groq``."""
    prefix, _, name = model.partition(":")
    return name.rpartition("@")[0] if prefix == "compat" else name


class Models(Model):
    """``models.json``: how the models of an id's prefix are reached."""

    providers: dict[Annotated[str, Field(pattern=r"^[a-z]+$")], Provider]
    """``openai`` for ``openai:<name>``."""
    endpoints: dict[TaskId, Provider] = {}
    """Named OpenAI-compatible servers: ``groq`` for ``compat:<name>@groq``."""
