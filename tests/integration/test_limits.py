"""Limits of sandbox and grader (docs/limits.md), each below, at and above, where they are enforced."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.engine import Engine, Limits
from orchestrator.sandbox import VolumeSize
from tests.integration.test_jail import inside
from tests.integration.test_sandbox import run

PYTHON = "exec python3 - <<'EOF'\nimport json, os\n{}\nEOF"


def measured(engine: Engine, code: str, **changes: object) -> Any:
    """What a Python program in a sandbox prints, as JSON."""
    _, out, _ = run(engine, PYTHON.format(code), **changes)
    return json.loads(out.strip().splitlines()[-1])


def test_a_process_opens_1024_files_and_no_more(engine: Engine) -> None:
    code = """
opened = []
try:
    while True: opened.append(os.open('/dev/null', os.O_RDONLY))
except OSError: pass
print(json.dumps(max(opened) + 1))
"""
    assert measured(engine, code) == 1024


def test_a_container_has_so_many_processes_and_no_more(engine: Engine) -> None:
    code = """
import signal
pids = []
try:
    while True:
        pid = os.fork()
        if pid == 0: signal.pause(); os._exit(0)
        pids.append(pid)
except OSError: pass
for pid in pids: os.kill(pid, signal.SIGKILL)
print(json.dumps(len(pids)))
"""
    limits = Limits(memory=2**29, cpus=1.0, pids=40)
    # PID 1 and the program itself count too.
    assert measured(engine, code, limits=limits) == 38


def test_a_file_has_so_many_bytes_and_no_more(engine: Engine) -> None:
    limits = Limits(memory=2**29, cpus=1.0, pids=40, fsize=2**20)
    code = """
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def attempt(size):
    with open('/workspace/big', 'wb', buffering=0) as f:
        try: return f.write(b'x' * size)
        except OSError as e: return -e.errno
at = 2 ** 20
found = [attempt(at - 1), attempt(at), attempt(at + 1), os.path.getsize('/workspace/big')]
print(json.dumps(found))
"""
    # A write across the limit is cut at it.
    assert measured(engine, code, limits=limits) == [2**20 - 1, 2**20, 2**20, 2**20]


@pytest.mark.parametrize("place", ["/workspace", "/tmp"])
def test_a_volume_has_so_many_bytes_and_no_more(engine: Engine, place: str) -> None:
    limits = Limits(memory=2**29, cpus=1.0, pids=40, tmp=4 * 2**20)
    code = f"""
import shutil
free = shutil.disk_usage('{place}').free
with open('{place}/fill', 'wb', buffering=0) as f:
    wrote = f.write(b'x' * free)
    try: more = f.write(b'x')
    except OSError as e: more = -e.errno
print(json.dumps([wrote - free, more, shutil.disk_usage('{place}').total]))
"""
    wrote, more, total = measured(engine, code, limits=limits, volume=VolumeSize(bytes=4 * 2**20, inodes=100))
    assert (wrote, more, total) == (0, -28, 4 * 2**20)


def test_a_volume_has_so_many_inodes_and_no_more(engine: Engine) -> None:
    code = """
left, made = os.statvfs('/workspace').f_favail, 0
try:
    while True:
        open(f'/workspace/n{made}', 'w').close(); made += 1
except OSError: pass
print(json.dumps([made == left, made < 100]))
"""
    assert measured(engine, code, volume=VolumeSize(bytes=2**20, inodes=100)) == [True, True]


@pytest.mark.parametrize(("megabytes", "lives"), [(96, True), (160, False)])
def test_memory_has_a_limit(engine: Engine, megabytes: int, lives: bool) -> None:
    limits = Limits(memory=128 * 2**20, cpus=1.0, pids=40)
    ended, _, _ = run(engine, f"exec python3 -c 'b = b\"x\" * ({megabytes} * 2**20)'", limits=limits)
    assert (ended.exit.code == 0) is lives
    assert ended.exit.oom_killed is not lives


def test_a_flood_of_output_is_kept_to_its_last_lines(engine: Engine) -> None:
    _, out, _ = run(engine, "seq 1 2000000")
    assert len(out) <= 65536
    assert out.rstrip().endswith("2000000")


# --- one grade's child, in the grader's image

CHILD = """
import json, os, resource, signal, time
from grader import child
from grader.kicad.cache import MemoryCache
from schema.verdict import Verdict
FINE = Verdict(verdict='pass', category=None, first_failure=None, credit=1, exit_path=None, assertions=[])
child.wire.decode = lambda frame: frame
cache = MemoryCache()
def grade(work):
    child.grade = lambda bundle, cli: work(cli) or FINE
    try:
        return child.grade_jailed(b'', '9.0.2', cache)[0].verdict
    except child.Lost as lost:
        return str(lost)
"""


def graded(code: str) -> Any:
    """What a program that grades in jailed children prints, as JSON."""
    return inside(CHILD + code, "--network", "none")


def test_a_grade_has_so_much_address_space() -> None:
    code = """
child.MEMORY = 2 ** 30
takes = lambda size: grade(lambda cli: bytearray(size) and None)
print(json.dumps([takes(2 ** 28), takes(2 ** 30)]))
"""
    below, above = graded(code)
    assert below == "pass" and "more than 1073741824 bytes" in above


def test_a_grade_has_so_much_wall_time() -> None:
    code = """
child.WALL_SECONDS = 4
print(json.dumps([grade(lambda cli: time.sleep(0.1)), grade(lambda cli: time.sleep(60))]))
"""
    below, above = graded(code)
    assert below == "pass" and "more than 4 s" in above


def test_a_grade_has_so_much_processor_time_by_the_kernels_count() -> None:
    code = """
def spin(cli):
    resource.setrlimit(resource.RLIMIT_CPU, (1, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    while True: pass
def ask(cli):
    assert resource.getrlimit(resource.RLIMIT_CPU) == (840, 840)
print(json.dumps([grade(ask), grade(spin)]))
"""
    asked, spun = graded(code)
    assert asked == "pass" and "signal 24" in spun


def test_an_answer_has_so_many_bytes() -> None:
    code = """
def answer(size):
    global FINE
    FINE = FINE.model_copy(update={'diagnostics': ['x' * size]})
    return grade(lambda cli: None)[:60]
child.ANSWER_BYTES = 10_000
empty = FINE.model_copy(update={'diagnostics': ['']}).to_json()
frame = len(json.dumps({'verdict': empty, 'kicadSeconds': 0.0}))
print(json.dumps([answer(10_000 - frame - 1), answer(10_000 - frame), answer(10_000 - frame + 1)]))
"""
    below, at, above = graded(code)
    assert (below, at) == ("pass", "pass") and "oversized" in above


def test_a_result_of_kicad_past_its_limit_is_not_kept() -> None:
    code = """
child.RESULT_BYTES = 100
keys = ['%064d' % n for n in range(3)]
def put(cli):
    for key, size in zip(keys, (99, 100, 101)):
        cli._cache.put(key, b'x' * size)
verdict = grade(put)
print(json.dumps([verdict, [cache.get(key) is not None for key in keys]]))
"""
    assert graded(code) == ["pass", [True, True, False]]


def test_a_child_that_dies_lies_or_leaves_children_is_lost_and_nothing_stays() -> None:
    code = """
def orphan(cli):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
from grader.serve import _adopt_orphans
_adopt_orphans()
said = [grade(lambda cli: os.kill(os.getpid(), signal.SIGSEGV)), grade(lambda cli: os._exit(0)),
        grade(lambda cli: cli._cache._stream.sendall(b'?' * 200)), grade(orphan), grade(lambda cli: None)]
left = open(f'/proc/self/task/{os.getpid()}/children').read().split()
print(json.dumps([said, left, [name for name in os.listdir('/tmp') if name.startswith('record-')]]))
"""
    said, left, scratch = graded(code)
    assert "signal" in said[0] and "without a verdict" in said[1] and "protocol" in said[2]
    assert said[3:] == ["pass", "pass"]
    assert left == [] and scratch == []
