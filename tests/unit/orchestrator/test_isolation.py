"""What doctor says of an engine's isolation, and what is refused where it is not to be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from orchestrator import doctor
from orchestrator.engine import Engine
from orchestrator.execute import execute
from orchestrator.project import Project
from schema.errors import EnvironmentFault
from schema.run import Plan

BARE: dict[str, Any] = {"NCPU": 2, "MemTotal": 2**34, "Driver": "overlay2", "Runtimes": {"runc": {}}}


class Said:
    """An engine that says of itself what it is told to."""

    def __init__(self, **facts: Any) -> None:
        self._facts = {**BARE, **facts}

    def facts(self) -> dict[str, Any]:
        """What ``docker info`` holds."""
        return self._facts

    def version(self) -> str:
        """Of the engine."""
        return "20.10"

    def runtimes(self) -> list[str]:
        """Names of its OCI runtimes."""
        return sorted(self._facts["Runtimes"])


def lines(**facts: Any) -> dict[str, str]:
    """What doctor says → how bad it is."""
    return {line.what: line.state for line in doctor._engine(cast(Engine, Said(**facts)))}


def test_what_an_engine_offers_is_told() -> None:
    found = lines(
        SecurityOptions=["name=seccomp,profile=default", "name=apparmor", "name=userns"],
        Runtimes={"runc": {}, "runsc": {}},
        CgroupVersion="2",
    )
    for what in ("seccomp profile", "AppArmor", "userns-remap"):
        assert found[f"{what} in force"] == "ok"
    assert found["gVisor (runsc) is configured: --runtime runsc"] == "ok"
    assert any("cgroup v2" in text for text in found)


def test_what_it_does_not_offer_breaks_nothing() -> None:
    found = lines()
    for what in ("seccomp profile", "AppArmor", "userns-remap"):
        assert found[f"{what} not available on this engine"] == "note"
    assert found["gVisor (runsc) is not configured"] == "note"
    assert "missing" not in found.values()


@pytest.mark.parametrize("fact", ["MemoryLimit", "PidsLimit"])
def test_an_engine_that_cannot_hold_an_agent_is_no_engine(fact: str) -> None:
    assert "missing" in lines(**{fact: False}).values()


def test_a_runtime_that_is_not_there_is_one_line_before_anything_starts() -> None:
    engine, project = cast(Engine, Said()), Project(Path(__file__).parents[3])
    with pytest.raises(EnvironmentFault, match="no runtime 'runsc'"):
        execute(project, engine, cast(Plan, None), jobs=1, report=lambda _: None, runtime="runsc")
