"""Only what belongs to a provably dead owner of this host is removed."""

import dataclasses
import subprocess
import sys

import pytest

from orchestrator.engine import ContainerSpec, Engine, Limits
from orchestrator.owner import Owner, start_ticks
from orchestrator.reap import reap

pytestmark = pytest.mark.alone

LIMITS = Limits(memory=16 * 2**20, cpus=0.1, pids=8)


def owned_by(owner: Owner) -> Engine:
    engine = Engine.connect()
    engine.owner = owner
    return engine


def make(engine: Engine, name: str) -> tuple[str, str]:
    """A container and a volume."""
    engine.create_tmpfs_volume(f"{name}-v", size=2**20, inodes=100, labels={})
    return engine.create(
        ContainerSpec(name=name, image="copperbench/holder", command=["sleep", "60"], limits=LIMITS)
    ), f"{name}-v"


def present(engine: Engine) -> set[str]:
    return {name for _, name, _ in engine.ours()}


@pytest.fixture
def dead() -> Owner:
    """An owner that was a process of this host and is one no more."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    ticks = start_ticks(process.pid)
    process.communicate(b"\n")
    return dataclasses.replace(Owner.current(), pid=process.pid, started=ticks or 0)


def test_a_dead_owners_leavings_go_and_a_live_or_foreign_owners_stay(engine: Engine, dead: Owner) -> None:
    me = Owner.current()
    owners = {
        "dead": dead,
        "reused-pid": dataclasses.replace(me, started=me.started - 1),
        "live": me,
        "other-host": dataclasses.replace(dead, host="elsewhere"),
    }
    made = {name: make(owned_by(owner), f"copperbench-test-reap-{name}") for name, owner in owners.items()}
    try:
        removed = reap(engine)
        left = present(engine)
        assert len(removed) == 4
        for name, (container, volume) in made.items():
            gone = name in {"dead", "reused-pid"}
            assert (container not in left, volume not in left) == (gone, gone), name
    finally:
        for container, volume in made.values():
            engine.remove(container)
            engine.remove_volume(volume)


def test_what_carries_no_label_of_ours_is_never_touched(engine: Engine) -> None:
    stranger = subprocess.run(
        [
            sys.executable,
            "-c",
            "import docker; c = docker.APIClient(); "
            "print(c.create_container('copperbench/holder', name='a-strangers-container')['Id'])",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    try:
        reap(engine)
        assert engine.inspect(stranger)["Id"] == stranger
    finally:
        engine.remove(stranger)


def test_this_process_is_alive_by_its_own_account() -> None:
    assert not Owner.current().dead()
    assert Owner.parse(str(Owner.current())) == Owner.current()
    assert Owner.parse("nonsense") is None
    assert start_ticks(2**22 + 1) is None
