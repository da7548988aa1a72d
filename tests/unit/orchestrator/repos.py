"""Sandboxes' ``.git`` folders, made with real git, for tests."""

import hashlib
import os
import struct
import subprocess
import zlib
from pathlib import Path

from grader.evidence import Entry
from grader.git import CLEAN_ENVIRONMENT
from orchestrator.collect import GIT_PARTS, Collected

IDENTITY = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.invalid",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.invalid",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}


class Repo:
    """A work tree and its repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main", "--template=")

    def git(self, *arguments: str) -> str:
        """Run git in the work tree."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            env={**CLEAN_ENVIRONMENT, **IDENTITY},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, name: str, text: str) -> str:
        """Write a file, commit everything, return the commit id."""
        (self.root / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", text)
        return self.git("rev-parse", "HEAD")

    def collected(self) -> Collected:
        """Work tree and repository as the collector keeps them."""
        return collected(self.root)


def collected(root: Path) -> Collected:
    """A folder and the repository in it as the collector keeps them."""
    out = Collected(git_kind="folder")
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        if name.startswith(".git/"):
            inner = name.removeprefix(".git/")
            if path.is_file() and GIT_PARTS.fullmatch(inner):
                out.git[inner] = path.read_bytes()
        elif path.is_symlink():
            out.entries[name] = Entry(os.fsencode(path.readlink()), 0o777, "symlink")
        elif path.is_file():
            out.entries[name] = Entry(path.read_bytes(), path.stat().st_mode & 0o7777)
    return out


def loose(kind: str, body: bytes) -> tuple[str, str, bytes]:
    """An object that git need not have made: its id, its path below ``.git``, and a pack's entry of it."""
    raw = b"%s %d\0" % (kind.encode(), len(body)) + body
    name = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
    number = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}[kind]
    return name, f"objects/{name[:2]}/{name[2:]}", _header(number, len(body)) + zlib.compress(body)


def loose_file(kind: str, body: bytes) -> tuple[str, dict[str, bytes]]:
    """Id of such an object, and its file."""
    name, path, _ = loose(kind, body)
    return name, {path: zlib.compress(b"%s %d\0" % (kind.encode(), len(body)) + body)}


def pack(*entries: bytes) -> bytes:
    """A pack of entries."""
    data = b"PACK" + struct.pack(">II", 2, len(entries)) + b"".join(entries)
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


def bomb(size: int, count: int) -> bytes:
    """A small pack of ``count`` objects of ``size`` bytes each: copies of zeros, and a few bytes more."""
    base = bytes(size)
    name = hashlib.sha1(b"blob %d\0" % size + base, usedforsecurity=False).digest()
    entries = [_header(3, size) + zlib.compress(base, 9)]
    for number in range(count):
        tail = b"%06d" % number
        steps = b"".join(
            b"\xff" + struct.pack("<I", at) + struct.pack("<I", min(0xFFFFFF, size - at))[:3]
            for at in range(0, size, 0xFFFFFF)
        )
        delta = _number(size) + _number(size + len(tail)) + steps + bytes([len(tail)]) + tail
        entries.append(_header(7, len(delta)) + name + zlib.compress(delta))
    return pack(*entries)


def _header(kind: int, size: int) -> bytes:
    out = bytearray()
    byte, size = (kind << 4) | (size & 15), size >> 4
    while size:
        out.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    return bytes([*out, byte])


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    return bytes([*out, value])
