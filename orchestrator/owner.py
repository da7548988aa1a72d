"""Who made something in the engine, told apart across pid reuse, reboots and hosts."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Owner:
    """The process that created something, in a way that survives pid reuse and reboots."""

    host: str
    boot: str
    pid: int
    started: int
    """Clock ticks after boot, from ``/proc/<pid>/stat``."""

    @classmethod
    def current(cls) -> Owner:
        """This process."""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        started = start_ticks(os.getpid()) or 0
        return cls(host=socket.gethostname(), boot=boot, pid=os.getpid(), started=started)

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """Read a label; None when it is not one of ours."""
        parts = text.split("|")
        try:
            host, boot, pid, started = parts
            return cls(host=host, boot=boot, pid=int(pid), started=int(started))
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.host}|{self.boot}|{self.pid}|{self.started}"

    def dead(self) -> bool:
        """Whether the owner provably no longer runs on this host. Another host's owner is never dead."""
        me = Owner.current()
        if self.host != me.host:
            return False
        return self.boot != me.boot or start_ticks(self.pid) != self.started


def start_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks after boot; None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command name may hold spaces and parentheses; fields are counted from the last one.
    return int(stat.rpartition(")")[2].split()[19])
