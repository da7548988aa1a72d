"""What a grading process may still do after it has locked itself in.

Two locks, both inherited by everything it starts and neither removable: a seccomp filter that denies sockets
other than local ones, io_uring (which could open sockets around the filter) and foreign architectures; and,
where the kernel has it, Landlock rules that leave only named folders readable.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from collections.abc import Iterable
from pathlib import Path

from schema.errors import EnvironmentFault

# From linux/landlock.h; system call numbers are the same on every architecture since 5.13.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_RIGHTS_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_RIGHTS = (1 << 16) - 1
"""Every right of ABI 5 and later."""
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_SET_NO_NEW_PRIVS = 38

_LOCAL = {socket.AF_UNIX, socket.AF_UNSPEC}
_HIGHEST_FAMILY = 64
"""Above AF_MAX of every kernel so far."""


class JailError(EnvironmentFault):
    """A lock did not hold; grading must not start."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def deny_network() -> None:
    """Install the seccomp filter and try it.

    Raises:
        JailError: it cannot be installed, or a socket opens all the same.
    """
    try:
        # Debian's own binding of libseccomp; only the grader image has it.
        import seccomp
    except ImportError:
        raise JailError("no seccomp binding here", fix="grade in the grader image") from None
    filter_ = seccomp.SyscallFilter(defaction=seccomp.ALLOW)
    try:
        for family in range(1, _HIGHEST_FAMILY):
            if family not in _LOCAL:
                filter_.add_rule(seccomp.ERRNO(errno.EACCES), "socket", seccomp.Arg(0, seccomp.EQ, family))
        filter_.add_rule(seccomp.ERRNO(errno.EACCES), "socket", seccomp.Arg(0, seccomp.GE, _HIGHEST_FAMILY))
        for call in ("io_uring_setup", "io_uring_enter", "io_uring_register"):
            filter_.add_rule(seccomp.ERRNO(errno.ENOSYS), call)
        filter_.load()
    except (OSError, RuntimeError) as error:
        raise JailError(f"the seccomp filter cannot be loaded ({error})") from None
    _expect_no_socket()


def _expect_no_socket() -> None:
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
        try:
            socket.socket(family, socket.SOCK_DGRAM).close()
        except PermissionError:
            continue
        except OSError:
            # The kernel has no such family at all.
            continue
        raise JailError("the seccomp filter does not hold: a network socket opened")


def landlock_abi() -> int:
    """Version of Landlock in this kernel; 0 where there is none."""
    version: int = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(version, 0)


def confine(*, readable: Iterable[Path], writable: Iterable[Path]) -> bool:
    """Leave this process and its children only these places; False where the kernel cannot.

    Args:
        readable: files and folders to read and execute; missing ones are passed over.
        writable: files and folders for everything.

    Raises:
        JailError: the kernel has Landlock and refuses the rules.
    """
    abi = landlock_abi()
    if abi == 0:
        return False
    handled = _RIGHTS_OF_ABI.get(abi, _RIGHTS)
    libc = _libc()
    ruleset = _Ruleset(handled)
    handle = libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(ctypes.sizeof(ruleset)), 0)
    if handle < 0:
        raise JailError(f"no Landlock ruleset ({os.strerror(ctypes.get_errno())})")
    try:
        for paths, rights in ((readable, _READ), (writable, handled)):
            for path in paths:
                _allow(libc, handle, path, rights & handled)
        if libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(_RESTRICT_SELF, handle, 0):
            raise JailError(f"Landlock refuses ({os.strerror(ctypes.get_errno())})")
    finally:
        os.close(handle)
    return True


def _allow(libc: ctypes.CDLL, handle: int, path: Path, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rule = _PathBeneath(rights if path.is_dir() else rights & _FILE_RIGHTS, place)
        if libc.syscall(_ADD_RULE, handle, _PATH_BENEATH, ctypes.byref(rule), 0):
            raise JailError(f"Landlock refuses {path} ({os.strerror(ctypes.get_errno())})")
    finally:
        os.close(place)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
