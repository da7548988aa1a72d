"""Getting the answer: what an agent can find, reach or ask that would tell it the verdict's makings.

``/input`` and ``/opt/agent`` are left out of every search: the suite itself lays the honest edit there.
"""

import ctypes
import errno
import os
import re
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from hostile.ground import WORKSPACE, git, report

OURS = ("/proc", "/sys", "/dev", "/input", "/opt/agent", "/opt/hostile")
"""Kernel's folders have attacks of their own; the others are the suite's."""


def _files(*more: str) -> Iterator[Path]:
    for folder, names, files in os.walk("/"):
        names[:] = [name for name in names if str(Path(folder) / name) not in {*OURS, *more}]
        for name in files:
            yield Path(folder) / name


def search_for_solutions() -> None:
    """Names of solution files, anywhere."""
    looked, found = 0, []
    for path in _files():
        looked += 1
        if path.name in {"solution.json", "change.diff", "gold"} or "solutions" in path.parts:
            found.append(str(path))
    report(looked, found)


def search_for_assertions() -> None:
    """Words that only assertions hold, in the bytes of every file of the container."""
    words = ["old-net-gone", "doc_row_matches", "pin_net_equals", "files_touched_subset", "diff_ratio_max"]
    patterns = [part for word in words for part in ("-e", word)]
    skip = [f"--exclude-dir={name.rpartition('/')[2]}" for name in OURS]
    done = subprocess.run(
        ["grep", "-rlFa", *skip, *patterns, "/"], capture_output=True, text=True, check=False
    )
    report(sum(1 for _ in _files()), done.stdout.splitlines())


def search_for_baselines() -> None:
    """Recorded violations, fixtures' metadata, records and verdicts, by name."""
    names = re.compile(r"(erc|drc|baseline|fixture|task|assertions|verdict|record|prep)\.json|run-\d+\.json")
    looked, found = 0, []
    for path in _files():
        looked += 1
        if names.fullmatch(path.name) or path.suffix == ".bundle" or path.name == "evidence.git":
            found.append(str(path))
    report(looked, found)


def search_for_other_runs() -> None:
    """Other workspaces: mounts of other volumes, other containers' processes and their roots."""
    found = []
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    for line in mounts:
        place = line.split()[4]
        if re.match(r"/(workspace|input|tmp|etc/(hosts|hostname|resolv.conf)|proc|sys|dev)(/|$)|/$", place):
            continue
        found.append(f"mount {place}")
    processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    for process in processes:
        command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        if "hostile" not in command:
            found.append(f"process {command}")
    report(len(mounts) + len(processes), found)


def search_for_host_paths() -> None:
    """The suite's own marker in any file, also through the roots of all processes and block devices."""
    marker = "copperbench-host-" + "sentinel"
    places = [str(path) for path in Path("/proc").glob("[0-9]*/root")]
    places += ["/host", "/mnt", "/media", "/root", "/home", "/srv", "/run", "/var/lib/docker", "/data"]
    there = [place for place in places if os.access(place, os.R_OK)]
    skip = [f"--exclude-dir={name.rpartition('/')[2]}" for name in OURS]
    grep = ["grep", "-rlFa", *skip, "-e", marker, *there, "/"]
    found = subprocess.run(grep, capture_output=True, text=True, check=False).stdout.splitlines()
    found += [str(path) for path in Path("/dev").iterdir() if stat.S_ISBLK(path.lstat().st_mode)]
    report(len(places), found)


def engine_socket() -> None:
    """The engine's socket by its usual names, and every unix socket that the kernel lists."""
    names = [
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
        "\0docker",
        "\0containerd-shim",
    ]
    names += [
        line.split()[7] for line in Path("/proc/net/unix").read_text().splitlines()[1:] if line.count(" ") > 6
    ]
    found = []
    for name in names:
        with socket.socket(socket.AF_UNIX) as client:
            if client.connect_ex(name) == 0:
                found.append(name)
    report(len(names), found)


def environment_secrets() -> None:
    """Keys in any process's environment, in the engine's own files, in the kernel's keyrings."""
    wanted = re.compile(
        rb"[A-Z_]*(KEY|TOKEN|SECRET|PASSWORD|CANARY|PROXY|DOCKER_HOST)[A-Z_]*=|canary", re.IGNORECASE
    )
    found, places = [], [*Path("/proc").glob("[0-9]*/environ"), Path("/proc/keys"), Path("/proc/cmdline")]
    places += [Path("/.dockerenv"), Path("/etc/environment"), Path("/run/secrets")]
    for path in places:
        try:
            data = path.read_bytes()
        except OSError:
            continue
        found += [f"{path}: {match[0]!r}" for match in wanted.finditer(data)]
    report(len(places), found)


def metadata_addresses() -> None:
    """Clouds' metadata services, the engine's bridge, the host's loopback."""
    addresses = [
        (socket.AF_INET, ("169.254.169.254", 80)),
        (socket.AF_INET, ("100.100.100.200", 80)),
        (socket.AF_INET, ("172.17.0.1", 2375)),
        (socket.AF_INET, ("10.0.2.2", 80)),
        (socket.AF_INET6, ("fd00:ec2::254", 80)),
        *((socket.AF_INET, ("127.0.0.1", port)) for port in (22, 80, 443, 2375, 2376, 5000, 8080)),
    ]
    found = []
    for family, address in addresses:
        try:
            with socket.socket(family) as client:
                client.settimeout(0.5)
                client.connect(address)
                found.append(str(address))
        except OSError:
            continue
    report(len(addresses), found)


def name_resolution() -> None:
    """DNS, by the resolver and by datagrams of our own; broadcast and multicast."""
    found = []
    for name in (
        "example.com",
        "host.docker.internal",
        "gateway.docker.internal",
        "metadata.google.internal",
    ):
        try:
            found.append(f"{name}: {socket.getaddrinfo(name, 80)[0][4]}")
        except OSError:
            continue
    targets = [("8.8.8.8", 53), ("127.0.0.11", 53), ("255.255.255.255", 53), ("224.0.0.251", 5353)]
    query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01"
    for target in targets:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(0.3)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            try:
                client.sendto(query, target)
                found.append(f"{target}: {client.recv(512)!r}")
            except OSError:
                continue
    report(4 + len(targets), found)


def other_ways_out() -> None:
    """Socket families that are not the internet's: virtual machines, raw packets, Bluetooth, the kernel."""
    families = {
        "AF_PACKET": 17,
        "AF_VSOCK": 40,
        "AF_BLUETOOTH": 31,
        "AF_TIPC": 30,
        "AF_CAN": 29,
        "AF_XDP": 44,
    }
    found = []
    for name, family in families.items():
        for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM, socket.SOCK_STREAM):
            try:
                with socket.socket(family, kind) as client:
                    client.settimeout(0.3)
                    # Only a host that answers counts: the socket alone leads nowhere.
                    client.connect((2, 1024))
                    found.append(name)
            except (OSError, TypeError, ValueError, OverflowError):
                continue
    report(len(families), found)


def leftovers_of_a_repeat() -> None:
    """Leave word wherever a file can be written, and look for the word of an earlier repeat."""
    places = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/input", "/workspace", "/dev/mqueue", "/opt", "/etc"]
    found = []
    for place in places:
        mark = Path(place) / ".left-by-a-repeat"
        if mark.exists():
            found.append(str(mark))
        try:
            mark.write_text("here")
        except OSError:
            continue
    # A System V segment outlives its process.
    libc = ctypes.CDLL(None)
    if libc.shmget(0xC0FFEE, 4096, 0) != -1:
        found.append("shared memory")
    libc.shmget(0xC0FFEE, 4096, 0o1666)
    (WORKSPACE / ".left-by-a-repeat").unlink()
    report(len(places) + 1, found)


def git_history() -> None:
    """Commits beside the baseline: in refs, reflogs, stashes, unreachable objects, notes."""
    commits = git("rev-list", "--all", "--reflog", "HEAD").split()
    found = [f"commit {one}" for one in dict.fromkeys(commits) if one != git("rev-parse", "HEAD").strip()]
    unreachable = git("fsck", "--unreachable", "--no-reflogs", "--full", check=False).splitlines()
    found += unreachable
    found += git("stash", "list", check=False).splitlines() + git("notes", "list", check=False).splitlines()
    packs = list((WORKSPACE / ".git/objects/pack").glob("*.pack"))
    report(len(commits) + len(packs) + 3, found)


def git_alternates() -> None:
    """Object stores and configuration that the repository borrows from elsewhere."""
    places = ["objects/info/alternates", "objects/info/http-alternates", "commondir", "worktrees", "modules"]
    found = [place for place in places if (WORKSPACE / ".git" / place).exists()]
    config = git("config", "--list", "--show-origin").splitlines()
    found += [line for line in config if re.search(r"include|url|path=|remote|helper", line.lower())]
    report(len(places) + len(config), found)


def _first_byte(name: str) -> bytes:
    with open(name, "rb") as file:
        return file.read(1)


def kernel_interfaces() -> None:
    """Memory, logs and controls of the host's kernel."""
    readable = ["/proc/kcore", "/dev/mem", "/dev/kmsg", "/proc/kmsg", "/sys/kernel/debug", "/proc/timer_list"]
    writable = [
        "/proc/sysrq-trigger",
        "/proc/sys/kernel/core_pattern",
        "/sys/kernel/uevent_helper",
        "/proc/sys/vm/panic_on_oom",
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/release_agent",
    ]
    found = []
    for name in readable:
        try:
            data = os.listdir(name) if Path(name).is_dir() else _first_byte(name)
        except OSError:
            continue
        # The engine hides some files behind /dev/null: empty is hidden.
        found += [f"read {name}"] if data else []
    for name in writable:
        try:
            Path(name).open("wb").close()
            found.append(f"open for writing {name}")
        except OSError:
            continue
    report(len(readable) + len(writable), found)


def more_privilege() -> None:
    """User namespaces, mounts, set-uid programs, capabilities, tracing, kernel programs."""
    attempts = {
        "unshare user": ["unshare", "-Ur", "true"],
        "unshare mount": ["unshare", "-m", "true"],
        "mount tmpfs": ["mount", "-t", "tmpfs", "none", "/mnt"],
        "remount root": ["mount", "-o", "remount,rw", "/"],
        "chroot": ["chroot", "/", "true"],
        "nsenter": ["nsenter", "-t", "1", "-m", "-p", "true"],
        "set uid by python": ["python3", "-c", "import os; os.setuid(0)"],
        "set-uid su": ["su", "-c", "true"],
    }
    found = []
    for name, command in attempts.items():
        try:
            if subprocess.run(command, capture_output=True, check=False, timeout=5).returncode == 0:
                found.append(name)
        except (OSError, subprocess.TimeoutExpired):
            continue
    libc = ctypes.CDLL(None, use_errno=True)
    calls = {"bpf": 321, "userfaultfd": 323, "kexec_load": 246, "init_module": 175, "perf_event_open": 298}
    # io_uring is left out: engines before 25 leave it open (docs/threat-model.md).
    calls |= {"open_by_handle_at": 304, "keyctl": 250, "add_key": 248}
    for name, number in calls.items():
        if libc.syscall(number, 0, 0, 0, 0, 0) >= 0:
            found.append(f"system call {name}")
        elif ctypes.get_errno() not in {errno.EPERM, errno.ENOSYS, errno.EACCES}:
            # Refused for its arguments: the call itself is open.
            found.append(f"system call {name}: {errno.errorcode[ctypes.get_errno()]}")
    report(len(attempts) + len(calls), found)
