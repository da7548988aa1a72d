"""The agent's commits, counted and searched for credentials in a clean repository from a copy of its objects.

Nothing of the sandbox's configuration, hooks, alternates, grafts or indexes comes along; the git that reads
the objects runs without configuration, with limits, in a folder that holds only them.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from grader.git import CLEAN_ENVIRONMENT
from orchestrator.collect import Collected
from schema.credentials import SecretFinding, scan
from schema.run import History

_ID = re.compile(r"[0-9a-f]{40}")
_SYMREF = re.compile(r"ref: (refs/heads/[A-Za-z0-9._/-]{1,200})")
SECONDS = 20
MEMORY = 2 * 2**30
COMMITS = 1000
"""More commits than this are counted as this many and one."""
OBJECT_BYTES = 384 * 2**20
"""Most bytes of objects, inflated, that are searched: as much as a whole workspace may stream."""


@dataclass(frozen=True)
class Read:
    """What a repository says."""

    history: History
    secret: SecretFinding | None = None
    """A credential in any object, also one that no longer belongs to anything. Its path is the object's."""


class _Unreadable(Exception):
    """The objects cannot be read within limits; the text says why."""


def read_history(collected: Collected, baseline: str, known: Collection[str] = ()) -> Read:
    """Count the commits that the sandbox's HEAD has on top of ``baseline`` (a commit id); search all objects.

    A file that was committed and deleted again is in no end tree, and would be public with the repository.

    Args:
        collected: what came out of the sandbox.
        baseline: the baseline's commit id.
        known: blob ids of content that is ours and needs no search.
    """
    if collected.git_kind != "folder":
        return Read(History(status="missing", detail=f".git is {collected.git_kind}"))
    head = _head(collected.git)
    with tempfile.TemporaryDirectory(prefix="copperbench-history-") as name:
        folder = Path(name)
        try:
            _copy(folder, collected.git)
            if secret := _leak(folder, known):
                return Read(
                    History(status="missing", head=head, detail="an object holds a credential"), secret
                )
            return Read(_count(folder, head, baseline))
        except subprocess.TimeoutExpired:
            reason = f"git took more than {SECONDS} s"
        except _Unreadable as error:
            reason = str(error)
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


def _copy(folder: Path, git: Mapping[str, bytes]) -> None:
    """A repository of our own that holds the sandbox's objects and nothing else of it."""
    _git(folder, "init", "-q", "--bare", "--template=", "--object-format=sha1", ".")
    for name, data in git.items():
        if not name.startswith("objects/"):
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if name.endswith(".pack"):
            # The agent's own index could point anywhere: make ours from the pack.
            _git(folder, "index-pack", str(path))


def _leak(folder: Path, known: Collection[str]) -> SecretFinding | None:
    listed = _git(
        folder, "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname) %(objectsize)"
    )
    if listed.returncode:
        raise _Unreadable("objects missing or damaged")
    sizes = dict(line.split() for line in listed.stdout.decode("ascii").splitlines())
    names = [name for name in sizes if name not in known]
    if sum(int(sizes[name]) for name in names) > OBJECT_BYTES:
        raise _Unreadable(f"objects of more than {OBJECT_BYTES} bytes")
    # Into a file, not into memory: the objects are the agent's, and there may be several runs at a time.
    with tempfile.TemporaryFile(dir=folder) as out:
        wanted = "".join(f"{name}\n" for name in names).encode()
        done = _git(folder, "cat-file", "--batch", "--buffer", stdin=wanted, stdout=out)
        if done.returncode:
            raise _Unreadable("objects missing or damaged")
        out.seek(0)
        return next((found for found in map(_scan, _objects(out)) if found), None)


def _objects(stream: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """(id, content) of each answer of ``git cat-file --batch``.

    Raises:
        _Unreadable: an answer is not an object.
    """
    while header := stream.readline():
        fields = header.split()
        if len(fields) != 3 or not fields[2].isdigit():
            raise _Unreadable("objects missing or damaged")
        data = stream.read(int(fields[2]))
        stream.read(1)
        yield fields[0].decode("ascii"), data


def _scan(item: tuple[str, bytes]) -> SecretFinding | None:
    name, data = item
    return scan(f".git/objects/{name[:2]}/{name[2:]}".encode(), data)


def _count(folder: Path, head: str | None, baseline: str) -> History:
    if head is None:
        return History(status="unreadable", detail="HEAD names no commit")
    if head == baseline:
        return History(status="ok", head=head)
    ancestor = _git(folder, "merge-base", "--is-ancestor", baseline, head)
    if ancestor.returncode == 1:
        return History(status="rewritten", head=head, detail="the baseline is not an ancestor of HEAD")
    listed = _git(folder, "rev-list", f"--max-count={COMMITS + 1}", head, f"^{baseline}")
    if ancestor.returncode or listed.returncode:
        return History(status="unreadable", head=head, detail="objects missing or damaged")
    return History(status="ok", head=head, commits=listed.stdout.decode("ascii").split())


def _git(
    folder: Path, *arguments: str, stdin: bytes = b"", stdout: IO[bytes] | int = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        # A hostile object may inflate to anything; prlimit bounds what reading it can take.
        ["prlimit", f"--as={MEMORY}", "--fsize=1073741824", "git", *arguments],
        cwd=folder,
        env={**CLEAN_ENVIRONMENT, "GIT_DIR": "."},
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=SECONDS,
        check=False,
    )
