"""Evidence out of a stopped agent: one tar stream, parsed with budgets, nothing trusted but the engine.

Kept: regular files, symlinks as text, hard links as copies of an earlier entry. Everything else is refused
and recorded. ``.git`` is set apart: only what counting commits needs is kept, in memory.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from grader.evidence import Entry
from schema.credentials import SecretFinding, scan
from schema.hashing import git_blob_id
from schema.paths import encode_path
from schema.run import RefusedEntry
from schema.text import plain

GIT_PARTS = re.compile(
    r"HEAD|packed-refs|refs/[^\0]+|objects/[0-9a-f]{2}/[0-9a-f]{38}|objects/pack/pack-[0-9a-f]{40}\.pack"
)
"""What of the sandbox's ``.git`` is data worth copying: no configuration, hooks, indexes or alternates."""


@dataclass(frozen=True)
class Budget:
    """Limits of one collection. Past any of them the stream stops and the run is ``evidence-over-budget``."""

    bytes: int = 384 * 2**20
    """Of the tar stream: a sparse file streams in full past the volume's size."""
    entries: int = 50_000
    depth: int = 64
    """Path elements."""
    name: int = 1024
    """Bytes of a whole path."""
    refusals: int = 200
    """How many refused entries are listed one by one; the rest are counted."""


UNREADABLE = (tarfile.TarError, ValueError, LookupError, ArithmeticError, EOFError, RecursionError)
"""What Python's tar reader raises on headers that no engine writes; it documents the first only."""


class OverBudget(Exception):
    """A budget ran out; the text says which."""


@dataclass
class Collected:
    """What came out of a workspace."""

    entries: dict[str, Entry] = field(default_factory=dict)
    git: dict[str, bytes] = field(default_factory=dict)
    git_kind: Literal["folder", "other", "missing"] = "missing"
    refused: list[RefusedEntry] = field(default_factory=list)
    refused_count: int = 0
    secret: SecretFinding | None = None
    stream_bytes: int = 0
    file_bytes: int = 0
    over_budget: str = ""


class _Meter(io.RawIOBase):
    """A readable stream over chunks that stops at a byte budget."""

    def __init__(self, chunks: Iterator[bytes], budget: int) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")
        self._budget = budget
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: object) -> int:
        if not self._rest:
            self._rest = memoryview(next(self._chunks, b""))
            self.count += len(self._rest)
            if self.count > self._budget:
                raise OverBudget(f"more than {self._budget} bytes")
        view = memoryview(target)  # type: ignore[arg-type]  # RawIOBase hands a writable buffer
        size = min(len(view), len(self._rest))
        view[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def collect(
    chunks: Iterator[bytes], *, baseline: Mapping[str, Entry], known: Mapping[str, str], budget: Budget
) -> Collected:
    """Parse a workspace's tar stream.

    Args:
        chunks: the engine's tar of the workspace folder, its own name as first path element.
        baseline: the baseline tree.
        known: git blob id → path in ``baseline``: content we hold is not kept twice and needs no scan.
        budget: see :class:`Budget`.

    A budget that runs out or a credential ends the parse; the result says so and keeps no entries.
    """
    meter = _Meter(chunks, budget.bytes)
    collector = _Collector(baseline, known, budget)
    out = collector.out
    try:
        # The engine writes the archive; surrogateescape keeps names that are not UTF-8.
        with tarfile.open(
            fileobj=io.BufferedReader(meter, 2**20), mode="r|", encoding="utf-8", errors="surrogateescape"
        ) as tar:
            collector.read(tar)
    except OverBudget as error:
        out.over_budget = str(error)
    except UNREADABLE as error:
        out.over_budget = f"archive cannot be read ({plain(str(error))[:200]})"
    out.stream_bytes = meter.count
    if out.over_budget or out.secret:
        out.entries.clear()
        out.git.clear()
    return out


class _SecretFound(Exception):
    """A credential lies in a name or in content: the run's evidence ends here."""

    def __init__(self, finding: SecretFinding) -> None:
        super().__init__(finding.pattern)
        self.finding = finding


class _Collector:
    def __init__(self, baseline: Mapping[str, Entry], known: Mapping[str, str], budget: Budget) -> None:
        self.out = Collected()
        self._baseline = baseline
        self._known = known
        self._budget = budget

    def read(self, tar: tarfile.TarFile) -> None:
        try:
            for count, member in enumerate(tar, 1):
                if member.sparse is not None:
                    # Its size is the header's word for bytes that are nowhere in the stream.
                    raise OverBudget("a sparse entry, which the engine never writes")
                _, _, path = member.name.partition("/")
                if path:
                    self._within_budget(count, path)
                    self._sort(tar, member, path)
        except _SecretFound as found:
            self.out.secret = found.finding

    def _within_budget(self, count: int, path: str) -> None:
        if count > self._budget.entries:
            raise OverBudget(f"more than {self._budget.entries} entries")
        if len(_raw(path)) > self._budget.name:
            raise OverBudget(f"a path of {len(_raw(path))} bytes")
        if path.count("/") >= self._budget.depth:
            raise OverBudget(f"more than {self._budget.depth} folders deep")

    def _sort(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        if path == ".git":
            self.out.git_kind = "folder" if member.isdir() else "other"
        elif path.startswith(".git/"):
            inner = path.removeprefix(".git/")
            if member.isreg() and GIT_PARTS.fullmatch(inner):
                self.out.git[inner] = _content(tar, member)
        else:
            self._scan(path, b"")
            if not member.isdir():
                self._keep(tar, member, path)

    def _keep(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        mode = member.mode & 0o7777
        if any(part in {"", ".", ".."} for part in path.split("/")):
            self._refuse(path, "path with empty, '.' or '..' elements")
        elif path in self.out.entries:
            self._refuse(path, "second entry of the same name")
        elif member.isreg():
            self.out.entries[path] = Entry(data=self._data(tar, member, path), mode=mode)
        elif member.issym():
            target = _raw(member.linkname)
            self._scan(path, target)
            self.out.entries[path] = Entry(data=target, mode=0o777, kind="symlink")
        elif member.islnk():
            self._keep_hard_link(path, member.linkname.partition("/")[2])
        else:
            self._refuse(path, _KINDS.get(member.type, "special file"))

    def _data(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> bytes:
        data = _content(tar, member)
        self.out.file_bytes += len(data)
        if same := self._known.get(git_blob_id(data)):
            return self._baseline[same].data
        self._scan(path, data)
        return data

    def _keep_hard_link(self, path: str, target: str) -> None:
        # A hard link's tar entry has no data: dropping it would report the file deleted.
        entry = self.out.entries.get(target)
        if entry is None or entry.kind != "file":
            self._refuse(path, "hard link to something that was not kept")
        else:
            self.out.entries[path] = Entry(data=entry.data, mode=entry.mode)

    def _scan(self, path: str, data: bytes) -> None:
        if found := scan(_raw(path), data):
            raise _SecretFound(found)

    def _refuse(self, path: str, reason: str) -> None:
        self.out.refused_count += 1
        if len(self.out.refused) < self._budget.refusals:
            self.out.refused.append(RefusedEntry(path=encode_path(path), reason=reason))


_KINDS = {
    tarfile.FIFOTYPE: "named pipe",
    tarfile.CHRTYPE: "character device",
    tarfile.BLKTYPE: "block device",
}


def _raw(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member)
    return stream.read() if stream else b""
