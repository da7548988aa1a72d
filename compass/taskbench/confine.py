"""Start a command that can write only below given folders and open no TCP connection.

    python -I -S confine.py FOLDER... -- COMMAND...

Uses Linux's Landlock, which needs no privileges; where the kernel has none, the command starts as it is. A
file of its own that imports nothing of ours, so that the interpreter in front of each script starts fast.
Landlock does not cover changes of mode, owner or times, nor UDP.
"""

import ctypes
import os
import struct
import sys

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVS = 38
#: linux/landlock.h: the rights to change files, by the version that brought them.
_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_CHANGE_TREE = 0b1_1111_1111 << 4  # remove and make entries of every kind
_TCP, _SIGNALS_AND_SOCKETS = 0b11, 0b11
_SPARE = "/dev/null"


def version() -> int:
    """The kernel's Landlock version; 0 when it has none."""
    if not sys.platform.startswith("linux"):
        return 0
    found: int = ctypes.CDLL(None).syscall(_CREATE, None, ctypes.c_size_t(0), 1)
    return max(0, found)


def confine(folders: list[str]) -> bool:
    """Confine this process and all that it starts to ``folders``; False when the kernel cannot.

    Raises OSError if a folder is not there or the kernel refuses.
    """
    if not (abi := version()):
        return False
    # Moving between folders is a right of its own from version 2 on, truncating from version 3.
    files = _WRITE_FILE | (_TRUNCATE if abi >= 3 else 0)
    rights = files | _CHANGE_TREE | (_REFER if abi >= 2 else 0)
    attributes = struct.pack("=QQQ", rights, _TCP if abi >= 4 else 0, _SIGNALS_AND_SOCKETS if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    rules = _call(_CREATE, attributes, ctypes.c_size_t(size), 0)
    for path, allowed in [*((folder, rights) for folder in folders), (_SPARE, files)]:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        _call(_ADD, rules, 1, struct.pack("=Qi", allowed, beneath), 0)
        os.close(beneath)
    if ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    _call(_RESTRICT, rules, 0)
    os.close(rules)
    return True


def _call(number: int, *arguments: object) -> int:
    result: int = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "landlock")
    return result


if __name__ == "__main__":
    split = sys.argv.index("--")
    confine(sys.argv[1:split])
    os.execvp(sys.argv[split + 1], sys.argv[split + 1 :])  # noqa: S606 - a start without a shell is the point
