"""How long an agent is waited for, and what it was killed at."""

import threading
from typing import Any

import pytest

from orchestrator.engine import Exit
from orchestrator.sandbox import Ended, Sandbox, SandboxSpec


class Endless:
    """An engine whose container ends only when it is killed. Its waits are all the time that goes by."""

    def __init__(self) -> None:
        self.now = 0.0
        self.killed = False

    def wait(self, _: str, seconds: float) -> int | None:
        self.now += max(seconds, 0.05)
        return 137 if self.killed else None

    def kill(self, _: str) -> None:
        self.killed, self.at = True, self.now

    def exit(self, _: str) -> Exit:
        return Exit(137, oom_killed=False)


@pytest.mark.parametrize(("taken_back", "end"), [(1e9, 700.0), (150.0, 155.0)])
def test_spared_time_that_is_taken_back_is_over_at_once(
    monkeypatch: pytest.MonkeyPatch, taken_back: float, end: float
) -> None:
    """Naive: the wait goes on for what was spared when it began."""
    engine: Any = Endless()
    monkeypatch.setattr("orchestrator.sandbox.time.monotonic", lambda: engine.now)
    box = Sandbox(engine, SandboxSpec(name="x", image="i", command=[], wall_seconds=100, workspace=b""))
    ended = box.watch(0, threading.Event(), lambda: 600.0 if engine.now < taken_back else 0.0)
    assert ended.killed_by == "wall-clock" and engine.at == pytest.approx(end, abs=5)


def test_an_agent_was_killed_at_the_first_cap() -> None:
    """Naive: what is told while replies in flight are waited for is taken for the reason."""
    exit_ = Exit(137, oom_killed=False)
    assert Ended(exit_, "wall-clock", 1).at("turns").killed_by == "wall-clock"
    assert Ended(exit_, None, 1).at("turns").killed_by == "turns"
    assert Ended(exit_, None, 1).at(None).killed_by is None
