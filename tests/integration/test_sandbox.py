"""The sandbox on a real engine: what an agent cannot do, and that it always ends."""

import io
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from grader.evidence import Entry
from orchestrator.collect import Budget, Collected, collect
from orchestrator.engine import Engine, Limits
from orchestrator.sandbox import Ended, Sandbox, SandboxSpec, VolumeSize, pack
from schema.errors import EngineError

NUMBER = count()
TREE = {"hello.txt": Entry(b"hello\n"), "sub/run.sh": Entry(b"#!/bin/sh\n", 0o755)}


def spec(script: str, **changes: object) -> SandboxSpec:
    """A sandbox whose agent is a shell script."""
    base: dict[str, object] = {
        "name": f"copperbench-test-{time.time_ns()}-{next(NUMBER)}",
        "image": "copperbench/agent-base",
        "command": ["sh", "-c", script],
        "wall_seconds": 60.0,
        "workspace": pack(TREE),
        "environment": {"HOME": "/tmp"},
    }
    return SandboxSpec(**{**base, **changes})  # type: ignore[arg-type]


@contextmanager
def ran(engine: Engine, script: str, **changes: object) -> Iterator[tuple[Sandbox, Ended]]:
    """A sandbox whose agent has ended."""
    with Sandbox(engine, spec(script, **changes)) as sandbox:
        yield sandbox, sandbox.watch(sandbox.start(), threading.Event())


def run(engine: Engine, script: str, **changes: object) -> tuple[Ended, str, Collected]:
    """Run a script; how it ended, what it printed, what it left."""
    with ran(engine, script, **changes) as (sandbox, ended):
        return ended, sandbox.output()[0], collect(sandbox.archive(), baseline={}, known={}, budget=Budget())


def test_the_workspace_goes_in_and_what_was_left_comes_out(engine: Engine) -> None:
    ended, _, got = run(engine, "echo more >> hello.txt; rm sub/run.sh; mkdir new; cp hello.txt new/; exit 3")
    assert ended.exit.code == 3 and ended.killed_by is None
    assert got.entries == {"hello.txt": Entry(b"hello\nmore\n"), "new/hello.txt": Entry(b"hello\nmore\n")}


def test_files_survive_a_kill(engine: Engine) -> None:
    """Naive: a tmpfs mount, which the engine silently reads from underneath."""
    ended, _, got = run(engine, "echo kept > kept.txt; sleep 600", wall_seconds=1.0)
    assert ended.killed_by == "wall-clock"
    assert got.entries["kept.txt"].data == b"kept\n"


@pytest.mark.parametrize(
    "script",
    [
        "trap '' TERM INT HUP; while :; do sleep 1; done",
        "(setsid sh -c 'trap \"\" TERM; sleep 600' &) ; trap '' TERM; sleep 600",
        "kill -STOP 1; kill -KILL 1; sleep 600",
        "while :; do (sleep 600 &); done",
    ],
    ids=["ignores TERM", "double fork in a session of its own", "attacks PID 1", "fork bomb"],
)
def test_the_wall_clock_ends_everything(engine: Engine, script: str) -> None:
    began = time.monotonic()
    with ran(engine, script, wall_seconds=1.5) as (sandbox, ended):
        assert ended.killed_by == "wall-clock"
        assert ended.seconds < 20
        state = engine.inspect(sandbox.agent)["State"]
        assert not state["Running"] and state["Pid"] == 0
    assert time.monotonic() - began < 40


def test_a_run_that_ends_by_itself_is_not_waited_for(engine: Engine) -> None:
    ended, _, _ = run(engine, "exit 0", wall_seconds=600.0)
    assert ended.seconds < 30 and ended.killed_by is None


def test_pid_1_ends_by_itself_when_nobody_watches(engine: Engine) -> None:
    """If we die, the container must not run for ever: its own limit is the cap and a grace."""
    with Sandbox(engine, spec("sleep 600", wall_seconds=5.0)) as sandbox:
        command = engine.inspect(sandbox.agent)["Config"]["Cmd"]
    assert command[:4] == ["timeout", "-s", "KILL", "36"]


def test_what_is_enforced_is_read_back(engine: Engine) -> None:
    with Sandbox(engine, spec("true")) as sandbox:
        found = sandbox.isolation()
    assert found.network == "none"
    assert found.user == "65534:65534"
    assert found.read_only_root
    assert found.cap_drop == ["ALL"]
    assert found.security_opt == ["no-new-privileges"]
    assert found.memory_bytes == found.memory_swap_bytes == 2 * 2**30
    assert found.pids_limit == 256
    assert found.ulimits["core"] == 0 and found.ulimits["nofile"] == 1024


def test_the_agent_sees_no_network_no_capability_no_writable_root_and_nothing_of_ours(engine: Engine) -> None:
    script = """
    ls /sys/class/net | tr '\\n' ' '; echo
    grep -E '^Cap(Prm|Eff|Bnd)|^NoNewPrivs|^Seccomp:' /proc/self/status | tr '\\n' ' '; echo
    touch /x 2>/dev/null && echo root-writable || echo root-read-only
    ls /var/run/docker.sock /run/docker.sock /input 2>/dev/null; echo
    env | cut -d= -f1 | sort | tr '\\n' ' '; echo
    id -u
    """
    _, out, _ = run(engine, script)
    net, caps, root, sockets, names, uid = out.strip("\n").split("\n")
    assert net.split() == ["lo"]
    assert caps.count("0000000000000000") == 3 and "NoNewPrivs:\t1" in caps and "Seccomp:\t2" in caps
    assert root == "root-read-only" and sockets == "" and uid == "65534"
    assert set(names.split()) <= {"HOME", "HOSTNAME", "LANG", "PATH", "PWD", "SHLVL", "_"}


def test_the_volume_has_a_hard_total_size_and_number_of_files(engine: Engine) -> None:
    """Naive: a per-file limit, and many files fill the disk."""
    small = VolumeSize(bytes=8 * 2**20, inodes=200)
    script = """
    for n in 1 2 3 4 5 6 7 8; do head -c 2000000 /dev/zero > big$n 2>/dev/null || echo full; done
    rm -f big*
    n=0; while [ $n -lt 400 ] && touch f$n 2>/dev/null; do n=$((n+1)); done; echo $n
    """
    _, out, got = run(engine, script, volume=small)
    assert "full" in out
    assert int(out.split()[-1]) < 200
    assert len(got.entries) < 200


def test_memory_is_capped(engine: Engine) -> None:
    limits = Limits(memory=64 * 2**20, cpus=1.0, pids=64)
    exits = [run(engine, "exec python3 -c 'b = bytearray(10**9)'", limits=limits)[0].exit for _ in range(3)]
    assert [each.code for each in exits] == [137] * 3
    # An engine may miss one, now and then, when it is busy (docs/limits.md): never all of them.
    assert any(each.oom_killed for each in exits)


def test_a_sparse_terabyte_stops_at_the_budget(engine: Engine) -> None:
    """The engine streams a hole in full, past the volume's size."""
    script = "python3 -c \"open('sparse','wb').truncate(250 * 2**20)\""
    with ran(engine, script) as (sandbox, _):
        got = collect(sandbox.archive(), baseline={}, known={}, budget=Budget(bytes=16 * 2**20))
    assert "bytes" in got.over_budget and got.entries == {}


def test_hard_links_pipes_and_symlinks_come_out_as_they_should(engine: Engine) -> None:
    script = "ln hello.txt twin; mkfifo pipe; ln -s /etc/passwd link; ln -s . loop; echo x > 'a\nb'"
    _, _, got = run(engine, script)
    assert got.entries["twin"].data == got.entries["hello.txt"].data == b"hello\n"
    assert got.entries["link"] == Entry(b"/etc/passwd", 0o777, "symlink")
    assert got.entries["a\nb"].data == b"x\n"
    assert [(r.path, r.reason) for r in got.refused] == [("pipe", "named pipe")]


def test_unreadable_modes_are_read(engine: Engine) -> None:
    _, _, got = run(engine, "echo s > hidden; chmod 0 hidden; mkdir d; echo t > d/f; chmod 0 d")
    assert got.entries["hidden"] == Entry(b"s\n", 0)
    assert got.entries["d/f"].data == b"t\n"


def test_a_second_start_under_the_same_name_is_refused_by_the_engine(engine: Engine) -> None:
    one = spec("sleep 30")
    with Sandbox(engine, one), pytest.raises(EngineError, match="exists"), Sandbox(engine, one):
        pass


def test_the_input_folder_is_there_only_when_asked_for(engine: Engine) -> None:
    _, out, _ = run(engine, "cat /input/q", inputs=pack({"q": Entry(b"data")}))
    assert out == "data"


def test_the_root_of_every_workspace_is_the_agents(engine: Engine) -> None:
    """The engine once gave it to root in one run of five (docs/decisions/003)."""
    for _ in range(8):
        ended, out, _ = run(engine, "mkdir made && stat -c %u .")
        assert (ended.exit.code, out.strip()) == (0, "65534")


def test_packing_is_deterministic() -> None:
    assert pack(dict(reversed(TREE.items()))) == pack(TREE)
    with tarfile.open(fileobj=io.BytesIO(pack(TREE))) as tar:
        assert {member.uid for member in tar} == {65534}


def test_a_transcript_is_copied_out_while_the_agent_lives(engine: Engine) -> None:
    """Naive: only what is there at the end is known, and the end is the agent's to write."""
    path = ".copperhead/runs/r/transcript.jsonl"
    script = f"mkdir -p $(dirname {path}); echo first > {path}; sleep 3; echo other > {path}"
    with ran(engine, script, transcripts=".copperhead/runs/*/transcript.jsonl") as (sandbox, _):
        capture = sandbox.captured()
        assert capture is not None and capture.size >= len("first\n")
        end = collect(sandbox.archive(), baseline={}, known={}, budget=Budget()).entries
    assert [tamper.kind for tamper in capture.tampering(end)] == ["transcript-rewritten"]
