"""The grader's locks, in the grader image, as a plain ``docker run`` starts it."""

import json
import subprocess
from typing import Any

import pytest

RUN = ["docker", "run", "--rm", "-i", "--entrypoint", "python3"]


def inside(code: str, *options: str) -> Any:
    """Run code in the grader image with a network; its last line of output as JSON."""
    done = subprocess.run(
        [*RUN, *options, "copperbench/grader", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


TRY = """
import json, os, socket, subprocess, sys
def attempt(f):
    try:
        f(); return 'done'
    except OSError as e:
        return type(e).__name__
"""


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK"])
def test_no_socket_but_local_ones_opens_even_with_a_network(family: str) -> None:
    code = f"""{TRY}
from grader.jail import deny_network
before = attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).close())
deny_network()
kind = socket.SOCK_RAW if '{family}' in ('AF_NETLINK', 'AF_PACKET') else socket.SOCK_STREAM
after = attempt(lambda: socket.socket(socket.{family}, kind).close())
local = attempt(lambda: socket.socketpair())
child = subprocess.run([sys.executable, '-c', 'import socket; socket.socket()'], stderr=subprocess.DEVNULL)
print(json.dumps([before, after, local, child.returncode != 0]))
"""
    assert inside(code) == ["done", "PermissionError", "done", True]


def test_io_uring_is_not_there() -> None:
    code = f"""{TRY}
import ctypes
from grader.jail import deny_network
deny_network()
libc = ctypes.CDLL(None, use_errno=True)
print(json.dumps([libc.syscall(425, 1, None), ctypes.get_errno()]))
"""
    assert inside(code) == [-1, 38]


def test_kicad_runs_behind_the_locks() -> None:
    code = """
import json, subprocess
from pathlib import Path
from grader.jail import confine, deny_network
deny_network()
Path('/tmp/mine').mkdir()
confine(readable=map(Path, ('/usr', '/lib', '/bin', '/lib64', '/etc', '/opt', '/proc', '/sys')),
        writable=(Path('/tmp/mine'), Path('/dev/null'), Path('/dev/urandom')))
done = subprocess.run(['kicad-cli', 'version'], capture_output=True, text=True,
                      env={'HOME': '/tmp/mine', 'TMPDIR': '/tmp/mine', 'PATH': '/usr/bin:/bin'})
print(json.dumps(done.stdout.strip()))
"""
    assert inside(code).startswith("9.")


def test_a_jailed_record_reads_only_its_own_scratch() -> None:
    """Naive: one process grades all, and one record's broken kicad-cli reads or writes another's files."""
    code = f"""{TRY}
from pathlib import Path
from grader.jail import confine, landlock_abi
for name in ('mine', 'other'):
    Path('/tmp', name).mkdir(); Path('/tmp', name, 'f').write_text('x')
system = map(Path, ('/usr', '/lib', '/bin', '/lib64', '/etc', '/opt'))
held = confine(readable=system, writable=(Path('/tmp/mine'),))
print(json.dumps([
    held, landlock_abi() > 0,
    attempt(lambda: Path('/tmp/mine/f').write_text('y')),
    attempt(lambda: Path('/tmp/other/f').read_text()),
    attempt(lambda: Path('/tmp/other/f').write_text('y')),
    attempt(lambda: os.listdir('/tmp')),
    attempt(lambda: os.rename('/tmp/mine/f', '/tmp/other/g')),
]))
"""
    held, there, mine, read, write, listing, move = inside(code, "--network", "none")
    if not there:
        pytest.skip("this kernel has no Landlock")
    assert held
    assert mine == "done"
    assert {read, write, listing} == {"PermissionError"}
    assert move in {"PermissionError", "OSError"}


def test_without_its_seccomp_binding_the_grader_does_not_start() -> None:
    code = """
import json, sys
sys.modules['seccomp'] = None
from grader.jail import JailError, deny_network
try:
    deny_network(); print(json.dumps('started'))
except JailError as error:
    print(json.dumps(str(error)))
"""
    assert "no seccomp binding" in inside(code)


def test_no_solution_key_or_engine_socket_is_in_the_image() -> None:
    code = """
import json, os
from pathlib import Path
found = [str(p) for p in Path('/opt/copperbench').rglob('solution.json')]
found += [p for p in ('/var/run/docker.sock', '/run/docker.sock') if os.path.exists(p)]
found += [k for k in os.environ if 'KEY' in k or 'TOKEN' in k]
print(json.dumps(found))
"""
    done = subprocess.run(
        [*RUN, "copperbench-grader", "-c", code], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []
