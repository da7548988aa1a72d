"""What ends a run when its gateway is gone: whose doing it was."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator import access
from orchestrator.access import Access, ProviderFault, Way
from orchestrator.budget import SuiteBudget
from orchestrator.engine import Exit
from orchestrator.gateway import Account
from orchestrator.models import Route
from schema.agent import Provider
from schema.errors import EngineError, EnvironmentFault, InfrastructureLeft
from schema.gateway import Breach, Closed, GatewayConfig, GatewayEvent, ProviderLost

CLOSED = Closed(at=9, refused=0, unfinished=0, excluded_seconds=0)


def closing(
    monkeypatch: pytest.MonkeyPatch,
    exit_: Exit | None,
    *events: GatewayEvent,
    budget: SuiteBudget | None = None,
) -> Any:
    """Close an attempt whose gateway told these events and ended so."""

    class Gone:
        def __init__(self, *_: object, **__: object) -> None:
            self.account = Account("m")
            for event in events:
                self.account.add(event)

        def __enter__(self) -> Gone:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def close(self) -> Account:
            return self.account

        def fate(self) -> Exit | None:
            return exit_

    monkeypatch.setattr(access, "Gateway", Gone)
    provider = Provider(base_url="http://127.0.0.1:1/v1", key_variable=None, segment="api", pinning="strong")
    config = GatewayConfig(model="m", protocols=["openai-chat"], base_url="http://127.0.0.1:1/v1")
    way = Way(Route("openai:m", "m", provider, None, "1"), config)
    engine: Any = None
    way = way.allotted(budget.take(None) if budget else None)
    with Access(engine, "name", way, script=None, labels={}, budget=budget) as opened:
        return opened.close()


@pytest.mark.parametrize("code", [0, 1, 2, 134, 139])
def test_a_gateway_that_broke_counts_against_the_run(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Naive: whatever ends the gateway is our fault, and breaking it buys another attempt."""
    assert closing(monkeypatch, Exit(code, oom_killed=False)) == "requests"


def test_so_does_one_that_ran_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert closing(monkeypatch, Exit(137, oom_killed=True)) == "requests"


@pytest.mark.parametrize(
    ("exit_", "events"),
    [
        (Exit(137, oom_killed=False), []),
        (Exit(143, oom_killed=False), []),
        (None, [CLOSED.model_copy(update={"asked": False})]),
    ],
)
def test_one_ended_from_outside_does_not(
    monkeypatch: pytest.MonkeyPatch, exit_: Exit | None, events: list[GatewayEvent]
) -> None:
    """Whether the agent was quicker to end than we to see it says nothing: only what the gateway knows."""
    with pytest.raises(EngineError, match="gateway was"):
        closing(monkeypatch, exit_, *events)


def test_what_it_told_goes_before_how_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    breach = Breach(at=1, cap="turns", reason="")
    assert closing(monkeypatch, Exit(137, oom_killed=False), breach) == "turns"
    with pytest.raises(ProviderFault, match="stalled"):
        closing(monkeypatch, None, ProviderLost(at=1, seq=1, kind="stalled", status=None, excluded_seconds=0))


@pytest.mark.parametrize("kind", ["credential", "quota"])
def test_what_every_run_would_meet_is_no_attempt(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    lost = ProviderLost(at=1, seq=1, kind=kind, status=401, excluded_seconds=0)
    with pytest.raises(EnvironmentFault) as told:
        closing(monkeypatch, None, lost)
    assert not isinstance(told.value, EngineError) and told.value.exit_code == 3


@pytest.mark.parametrize(("jobs", "said"), [(1, "the budget of --max-usd is spent"), (2, "this run's part")])
def test_the_suites_budget_ends_no_run(monkeypatch: pytest.MonkeyPatch, jobs: int, said: str) -> None:
    budget = SuiteBudget(100, jobs)
    breach = Breach(at=1, cap="usd", scope="suite", reason="")
    with pytest.raises(InfrastructureLeft, match=said):
        closing(monkeypatch, None, breach, CLOSED, budget=budget)


def test_a_run_under_way_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    assert closing(monkeypatch, None, CLOSED) is None
