"""Resources and time: using up the machine, outliving the cap, ending in ways that buy another attempt."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from hostile.ground import SCHEMATIC, WORKSPACE, honest, lines, run_folder, write_lines

CAP = 25
"""Seconds of the wall-clock cap that the suite sets."""


def fork_bomb() -> None:
    """Processes that start processes."""
    while True:
        with suppress(OSError):
            os.fork()


def memory_hog() -> None:
    """All memory there is."""
    hoard = []
    while True:
        hoard.append(bytearray(os.urandom(64)) * 2**20)


def disk_filler() -> None:
    """Many files of a size that each may have, until the volume is full; the work is never ended."""
    folder = run_folder()
    with suppress(OSError):
        for number in range(1000):
            with (folder / f"part{number}").open("wb") as file:
                file.write(os.urandom(2**20) * 8)
    # To the last page.
    with suppress(OSError), (folder / "rest").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def inode_filler() -> None:
    """Folders without a file in them, until there is no room for one more."""
    with suppress(OSError):
        for number in range(1_000_000):
            os.mkdir(WORKSPACE / f"d{number}")


def temporary_filler() -> None:
    """The temporary folder full, then the honest work."""
    with suppress(OSError):
        for number in range(1000):
            Path(f"/tmp/fill{number}").write_bytes(b"x" * 2**20)
    for path in Path("/tmp").glob("fill*"):
        path.unlink()
    honest()


def log_flood() -> None:
    """Two hundred megabytes of standard output."""
    honest()
    block = (b"x" * 99 + b"\n") * 10_000
    for _ in range(200):
        os.write(1, block)


def ignores_term() -> None:
    """Deaf to every signal that can be ignored."""
    for number in range(1, signal.NSIG):
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)


def double_forked_child() -> None:
    """A child in a session of its own that would change the schematic after the end."""
    honest()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(2)
            SCHEMATIC.write_text("changed after the end")
        os._exit(0)


def setsid_at_the_cap() -> None:
    """Children of their own sessions hold on past the cap."""
    for _ in range(20):
        subprocess.Popen(["setsid", "sh", "-c", "trap '' TERM HUP INT; sleep 600"])
    time.sleep(600)


def pid_1_stopped() -> None:
    """PID 1 stopped and killed, so that nobody enforces anything inside."""
    for number in (signal.SIGSTOP, signal.SIGKILL, signal.SIGTSTP):
        with suppress(OSError):
            os.kill(1, number)
    time.sleep(600)


def pid_1_terminated() -> None:
    """PID 1 told to end before the work is done: a death that looks like the engine's."""
    os.kill(1, signal.SIGTERM)
    time.sleep(600)


def pid_1_hung_up() -> None:
    """The same with every signal that PID 1 may have left at its default."""
    for number in (
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGALRM,
        signal.SIGTERM,
    ):
        with suppress(OSError):
            os.kill(1, number)
    time.sleep(600)


def writes_during_collection() -> None:
    """A child that goes on writing while its parent ends."""
    honest()
    if os.fork() == 0:
        os.setsid()
        while True:
            (run_folder() / "busy").write_text(str(time.time()))
    time.sleep(0.3)


def clock_changes() -> None:
    """The clock set forward, and a transcript from another century."""
    honest()
    subprocess.run(["date", "-s", "2099-01-01"], capture_output=True, check=False)
    libc = ctypes.CDLL(None)
    libc.settimeofday((ctypes.c_long * 2)(4_000_000_000, 0), None)
    write_lines(line.replace('{"ts":"2', '{"ts":"9') for line in lines())
    os.utime(SCHEMATIC, (0, 0))


def ends_just_before_the_cap() -> None:
    """Waits almost to the cap, and ends in time: nothing wrong with that."""
    began = time.monotonic()
    honest()
    time.sleep(max(0.0, CAP - 4 - (time.monotonic() - began)))


def socket_flood() -> None:
    """As many connections as descriptors allow, over and over, before the honest work."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(4096)
        for _ in range(5):
            clients = []
            with suppress(OSError):
                while True:
                    client = socket.socket()
                    clients.append(client)
                    client.setblocking(False)
                    client.connect_ex(server.getsockname())
            for client in clients:
                client.close()
    honest()


def zombies() -> None:
    """The process table full of the dead, then the honest work."""
    pids = []
    with suppress(OSError):
        while True:
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    honest()


def crashes_on_purpose() -> int:
    """Ends at once with an error, in the hope of another attempt."""
    return 1


def crashes_by_signal() -> None:
    """A segmentation fault."""
    os.kill(os.getpid(), signal.SIGSEGV)


def exits_like_the_engine() -> int:
    """The exit code by which engines say that they could not start a container."""
    return 125


def exits_like_a_kill() -> int:
    """The exit code of a container killed for memory, or at a cap."""
    return 137


def breaks_its_own_harness() -> int:
    """An end after a good start: files there, no account, the exit code of success."""
    (WORKSPACE / "docs/half.md").write_text("half")
    sys.stdout.write("done\n")
    return 0
