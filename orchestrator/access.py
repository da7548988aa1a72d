"""An agent's way to its model: gateway, scripted provider, and what they tell while a run goes on.

A run is killed for one reason, the first; the gateway's thread finds it, the waiting thread learns of it by
the agent's end.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from orchestrator.budget import SuiteBudget
from orchestrator.engine import Engine, Mount
from orchestrator.gateway import Account, Gateway
from orchestrator.models import Route, gateway_config, require_price, route
from orchestrator.project import LoadedTask, Project
from orchestrator.scripted import SOCKET as SCRIPTED_SOCKET
from orchestrator.scripted import ScriptedProvider
from schema.agent import Agent
from schema.errors import EngineError, EnvironmentFault
from schema.gateway import SOCKET, Breach, GatewayConfig, GatewayEvent, ProviderLost
from schema.run import Cap, ModelAccess, Usage

SIGNALLED = frozenset({128 + signal.SIGKILL, 128 + signal.SIGTERM})
"""Exit codes of a gateway that was ended from outside, which no agent can do. One that had the time to heed
TERM says ``closed``, and that it was not asked to."""
FOR_ALL = frozenset({"credential", "quota"})
"""Faults of a provider that every other run of the model would meet too."""


class ProviderFault(EngineError):
    """The model's provider spoiled an attempt; it says nothing of the model."""


@dataclass(frozen=True)
class Way:
    """How one job's agent reaches its model."""

    route: Route
    config: GatewayConfig

    @property
    def is_scripted(self) -> bool:
        """Whether the scripted provider has to be started for it."""
        return self.config.upstream_socket == SCRIPTED_SOCKET

    def allotted(self, micro_usd: int | None) -> Way:
        """The same with its part of the suite's budget."""
        caps = self.config.caps.model_copy(update={"suite_micro_usd": micro_usd})
        return replace(self, config=self.config.model_copy(update={"caps": caps}))


@dataclass(frozen=True)
class Money:
    """What ``--max-usd`` and ``--keep-bodies`` ask for."""

    budget: SuiteBudget | None = None
    keep_bodies: bool = False


def way(project: Project, model: str, agent: Agent, loaded: LoadedTask, *, money: Money) -> Way | None:
    """How an agent reaches a model on a task; None for an agent that calls none.

    Raises:
        UsageError: no such model, no key, no price for a cap on USD, or a protocol that one of them lacks.
    """
    if agent.protocol == "none":
        return None
    found = route(project, model)
    if money.budget is not None:
        require_price(found)
    config = gateway_config(
        found, agent.protocol, loaded.task.caps, os.environ, keep_bodies=money.keep_bodies
    )
    return Way(found, config)


class Access:
    """A context that owns one attempt's gateway, and decides whether what happened there ends the run."""

    def __init__(
        self,
        engine: Engine,
        name: str,
        way: Way,
        *,
        script: Mapping[str, Any] | None,
        labels: Mapping[str, str],
        budget: SuiteBudget | None = None,
    ) -> None:
        """
        Args:
            script: what the scripted provider is told; None for any other.
            budget: what the way's part of the suite's budget is a part of.
        """
        self._engine = engine
        self._script = script
        self._name = name
        self._way = way
        self._labels = labels
        self._budget = budget or SuiteBudget(0, 1)
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._kill: Callable[[], None] = lambda: None
        self._over = False

    def __enter__(self) -> Self:
        """
        Raises:
            EngineError: gateway or scripted provider did not start.
        """
        with ExitStack() as stack:
            mounts: list[Mount] = []
            if self._script is not None:
                provider = ScriptedProvider(self._engine, self._name, self._script, self._labels)
                mounts.append(stack.enter_context(provider).mount)
            self._gateway = stack.enter_context(
                Gateway(
                    self._engine,
                    self._name,
                    self._way.config,
                    network=self._way.route.provider.network,
                    mounts=mounts,
                    labels=self._labels,
                    on_event=self._heed,
                    on_loss=self._end,
                )
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if value is not None:
            # What was spent is wanted, however the attempt ended.
            self._gateway.close()
        self._stack.close()

    @property
    def mount(self) -> Mount:
        """The socket's folder, for the agent."""
        return self._gateway.mount

    @property
    def account(self) -> Account:
        """What was counted so far."""
        return self._gateway.account

    def relayed(self, command: list[str]) -> list[str]:
        """A command with the model's endpoint on its own loopback."""
        return ["relay", SOCKET, *command]

    def spare(self) -> float:
        """Seconds that the provider's faults have cost so far, and the agent's wall clock is spared."""
        return self.account.excluded_seconds

    def guard(self, kill: Callable[[], None]) -> None:
        """From now on end the agent with ``kill`` as soon as it may not go on."""
        with self._lock:
            self._kill = kill
            over = self._over
        if over:
            kill()

    def close(self) -> Cap | None:
        """End the gateway once the agent is dead; the cap that the run was killed at, if it was.

        Raises:
            ProviderFault: the provider spoiled the attempt.
            EnvironmentFault: it refuses us altogether.
            InfrastructureLeft: the suite's budget is spent, or the run's part of it.
            EngineError: the gateway was lost, and not by the agent's doing.
        """
        account = self._gateway.close()
        if account.breach:
            if account.breach.scope == "suite":
                raise self._budget.spent(self._way.config.caps.suite_micro_usd or 0)
            return account.breach.cap
        if account.lost:
            if account.lost.kind in FOR_ALL:
                raise EnvironmentFault(
                    f"the provider refuses us ({account.lost.kind}, {account.lost.status})",
                    about=self._way.route.model,
                    fix="check key and account, then run the same command again",
                )
            raise ProviderFault(f"provider: {account.lost.kind} ({account.lost.status})")
        if account.closed and not account.closed.asked:
            raise EngineError("the gateway was ended from outside", about=self._name)
        exit_ = self._gateway.fate()
        if exit_ is None:
            return None
        if exit_.code in SIGNALLED and not exit_.oom_killed:
            raise EngineError(f"the gateway was lost (exit code {exit_.code})", about=self._name)
        # Out of memory, or broken by what it was sent: else breaking it would buy a new attempt.
        return "requests"

    def usage(self) -> Usage:
        """What the gateway counted; whole once it is closed."""
        return self.account.usage(self._way.route.table_version)

    @property
    def spent(self) -> float | None:
        """USD so far, 0 before any request; None when unknown."""
        return 0.0 if self.account.is_unused else self.usage().usd

    def facts(self) -> ModelAccess:
        """What the record keeps besides usage."""
        account = self.account
        return ModelAccess(
            answered=account.answered,
            comparable=account.is_comparable,
            retries=account.retries,
            refused_requests=account.closed.refused if account.closed else len(account.refusals),
            excluded_seconds=account.excluded_seconds,
        )

    def ledgers(self) -> dict[str, bytes]:
        """What becomes evidence beside the tree, a JSON line an event."""
        out = {"gateway.jsonl": _lines(self.account.told)}
        if self._way.config.keep_bodies:
            out["bodies.jsonl"] = _lines(self._gateway.bodies)
        return out

    def _heed(self, event: GatewayEvent) -> None:
        if isinstance(event, Breach | ProviderLost):
            self._end()

    def _end(self) -> None:
        with self._lock:
            self._over = True
            kill = self._kill
        kill()


def _lines(events: Sequence[GatewayEvent]) -> bytes:
    return b"".join(f"{event.model_dump_json(by_alias=True)}\n".encode() for event in events)
