"""The agent's commits, counted and searched for credentials in a clean repository from a copy of its objects.

Nothing of the sandbox's configuration, hooks, alternates, grafts or indexes comes along; the git that reads
the objects runs without configuration, with limits, in a folder that holds only them.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from grader.diff import is_side_file
from grader.evidence import Entry, Tree, printable
from grader.globs import matches_any
from orchestrator.collect import Budget, Collected
from orchestrator.objects import Objects, Unreadable
from schema.credentials import SecretFinding, scan
from schema.errors import CopperbenchError, EnvironmentFault
from schema.hashing import git_blob_id
from schema.run import History

_ID = re.compile(r"[0-9a-f]{40}")
_SYMREF = re.compile(r"ref: (refs/heads/[A-Za-z0-9._/-]{1,200})")
COMMITS = 1000
"""More commits than this are counted as this many and one."""
OBJECTS = 200_000
"""Most objects of a repository that are looked at."""
OBJECT_BYTES = 384 * 2**20
"""Most bytes of objects, inflated, that are searched: as much as a whole workspace may stream."""
FILES = Budget().entries
"""Most files of a commit: as many as an end tree may have."""
ITEM = 4096
"""Longest line of a commit's listing: more than the longest path of an end tree."""


@dataclass(frozen=True)
class Read:
    """What a repository says."""

    history: History
    secret: SecretFinding | None = None
    """A credential in any object, also one that no longer belongs to anything. Its path is the object's."""


def read_history(
    collected: Collected, baseline: str, known: Collection[str] = (), *, aside: Sequence[str] | None = None
) -> Read:
    """Count the commits that the sandbox's HEAD has on top of ``baseline`` (a commit id); search all objects.

    A file that was committed and deleted again is in no end tree, and would be public with the repository.
    Every counted commit must be whole, and the last one must hold the end state: else an empty one would do.
    Whatever a repository holds, it is read or it is ``unreadable``: no agent may end a plan with it.

    Args:
        collected: what came out of the sandbox.
        baseline: the baseline's commit id.
        known: blob ids of content that is ours and needs no search.
        aside: globs of the agent's bookkeeping, which no commit need hold; None: the end state is not held
            against the commits.

    Raises:
        EnvironmentFault: this host cannot write, or has no git. No repository brings that about: names and
            bytes of what is written are bounded before, and what git says of them is not asked.
    """
    if collected.git_kind != "folder":
        return Read(History(status="missing", detail=f".git is {collected.git_kind}"))
    head = _head(collected.git)
    try:
        with tempfile.TemporaryDirectory(prefix="copperbench-history-") as name:
            objects = Objects(Path(name), collected.git)
            if secret := _leak(objects, known):
                found = History(status="missing", head=head, detail="an object holds a credential")
                return Read(found, secret)
            history = _count(objects, head, baseline)
            if aside is not None and history.commits and head:
                history = _with_end(objects, head, history, collected.entries, aside)
            return Read(history)
    except Unreadable as error:
        reason = str(error)
    except OSError as error:
        raise EnvironmentFault(
            f"a run's history cannot be read ({error.strerror})", fix="check the disk and git"
        ) from error
    except CopperbenchError:
        raise
    except Exception as error:  # what no reader foresaw came of what it read
        reason = f"cannot be read ({type(error).__name__})"
    return Read(History(status="unreadable", head=head, detail=reason))


def _head(git: Mapping[str, bytes]) -> str | None:
    """The commit HEAD names, following one symbolic ref by our own rules."""
    text = _text(git.get("HEAD", b""))
    if match := _SYMREF.fullmatch(text):
        name = match[1]
        text = _text(git.get(name, b"")) or _packed(git.get("packed-refs", b""), name)
    return text if _ID.fullmatch(text) else None


def _packed(data: bytes, name: str) -> str:
    for line in data.decode("ascii", "replace").splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _text(data: bytes) -> str:
    return data[:512].decode("ascii", "replace").strip()


def _leak(objects: Objects, known: Collection[str]) -> SecretFinding | None:
    # Names go into a file and contents come one by one: the agent says how many, and runs go on side by side.
    with tempfile.TemporaryFile(dir=objects.folder) as wanted:
        _list(objects, known, wanted)
        wanted.seek(0)
        with objects.reading("cat-file", "--batch", "--buffer", stdin=wanted) as answers:
            return next((found for found in map(_scan, _objects(answers)) if found), None)


def _list(objects: Objects, known: Collection[str], wanted: IO[bytes]) -> None:
    """Write the ids of all objects but the known ones, as far as the limits allow."""
    total = 0
    check = ("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname) %(objectsize)")
    with objects.reading(*check) as answers:
        for count, line in enumerate(answers, 1):
            if count > OBJECTS:
                raise Unreadable(f"more than {OBJECTS} objects")
            name, _, size = line.strip().partition(b" ")
            # Of a damaged object git says "missing" where the size should be, and goes on.
            if not size.isdigit():
                raise Unreadable("objects missing or damaged")
            if name.decode("ascii") in known:
                continue
            total += int(size)
            if total > OBJECT_BYTES:
                raise Unreadable(f"objects of more than {OBJECT_BYTES} bytes")
            wanted.write(name + b"\n")


def _objects(stream: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """(id, content) of each answer of ``git cat-file --batch``.

    Raises:
        Unreadable: an answer is not an object.
    """
    while header := stream.readline():
        fields = header.split()
        if len(fields) != 3 or not fields[2].isdigit():
            raise Unreadable("objects missing or damaged")
        data = stream.read(int(fields[2]))
        stream.read(1)
        yield fields[0].decode("ascii"), data


def _scan(item: tuple[str, bytes]) -> SecretFinding | None:
    name, data = item
    return scan(f".git/objects/{name[:2]}/{name[2:]}".encode(), data)


def _count(objects: Objects, head: str | None, baseline: str) -> History:
    if head is None:
        return History(status="unreadable", detail="HEAD names no commit")
    if head == baseline:
        return History(status="ok", head=head)
    ancestor = objects.run("merge-base", "--is-ancestor", baseline, head)
    if ancestor.returncode == 1:
        return History(status="rewritten", head=head, detail="the baseline is not an ancestor of HEAD")
    listed = objects.run("rev-list", f"--max-count={COMMITS + 1}", head, f"^{baseline}")
    if ancestor.returncode or listed.returncode:
        raise objects.damaged()
    # That the commits are there does not say that their trees and files are.
    if objects.run("rev-list", "--objects", "--quiet", head, f"^{baseline}").returncode:
        raise objects.damaged()
    return History(status="ok", head=head, commits=listed.stdout.decode("ascii").split())


def _with_end(objects: Objects, head: str, history: History, end: Tree, aside: Sequence[str]) -> History:
    """The history, ``uncommitted`` where the commit ``head`` is not the end state."""
    path = _uncommitted(objects, head, end, aside)
    if path is None:
        return history
    detail = f"HEAD does not hold {printable(path)} as the run left it"
    return history.model_copy(update={"status": "uncommitted", "detail": detail})


def _uncommitted(objects: Objects, head: str, end: Tree, aside: Sequence[str]) -> str | None:
    """A path that commit and end tree do not have alike; permission bits, of which git keeps one, aside."""

    def counts(path: str) -> bool:
        return not matches_any(aside, path) and not is_side_file(path, end.get(path))

    left = set(filter(counts, end))
    with objects.reading("ls-tree", "-r", "-z", "--full-tree", head) as listing:
        for count, (path, mode, blob) in enumerate(_files(listing), 1):
            if count > FILES:
                raise Unreadable(f"a commit of more than {FILES} files")
            if not _same(end.get(path), mode, blob) and counts(path):
                return path
            left.discard(path)
    return min(left, default=None)


def _files(listing: IO[bytes]) -> Iterator[tuple[str, bytes, str]]:
    """(path, mode, object id) of each entry of ``git ls-tree -r -z``.

    Raises:
        Unreadable: an entry is longer than any path that is kept.
    """
    rest = b""
    # A tree may hold itself many times over, under names as long as it likes.
    while piece := listing.read(ITEM):
        *whole, rest = (rest + piece).split(b"\0")
        if max(map(len, (*whole, rest))) > ITEM:
            raise Unreadable("a commit with a path too long to be kept")
        for item in whole:
            fields, _, name = item.partition(b"\t")
            mode, _, blob = fields.split(b" ")
            yield name.decode("utf-8", "surrogateescape"), mode, blob.decode("ascii")


def _same(entry: Entry | None, mode: bytes, blob: str) -> bool:
    if entry is None:
        return False
    kind = {b"120000": "symlink", b"100644": "file", b"100755": "file"}.get(mode)
    return entry.kind == kind and git_blob_id(entry.data) == blob
