"""The agent's commits, counted in a clean repository from a copy of its objects.

Nothing of the sandbox's configuration, hooks, alternates, grafts or indexes comes along; the git that reads
the objects runs without configuration, with limits, in a folder that holds only them.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from grader.git import CLEAN_ENVIRONMENT
from orchestrator.collect import Collected
from schema.run import History

_ID = re.compile(r"[0-9a-f]{40}")
_SYMREF = re.compile(r"ref: (refs/heads/[A-Za-z0-9._/-]{1,200})")
SECONDS = 20
MEMORY = 2 * 2**30
COMMITS = 1000
"""More commits than this are counted as this many and one."""


def read_history(collected: Collected, baseline: str) -> History:
    """Count the commits on top of ``baseline`` (a commit id) that the sandbox's HEAD has."""
    if collected.git_kind != "folder":
        return History(status="missing", detail=f".git is {collected.git_kind}")
    head = _head(collected.git)
    if head is None:
        return History(status="unreadable", detail="HEAD names no commit")
    if head == baseline:
        return History(status="ok", head=head)
    with tempfile.TemporaryDirectory(prefix="copperbench-history-") as folder:
        try:
            return _count(Path(folder), collected.git, head, baseline)
        except subprocess.TimeoutExpired:
            return History(status="unreadable", head=head, detail=f"git took more than {SECONDS} s")


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


def _count(folder: Path, git: Mapping[str, bytes], head: str, baseline: str) -> History:
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
    ancestor = _git(folder, "merge-base", "--is-ancestor", baseline, head)
    if ancestor.returncode == 1:
        return History(status="rewritten", head=head, detail="the baseline is not an ancestor of HEAD")
    listed = _git(folder, "rev-list", f"--max-count={COMMITS + 1}", head, f"^{baseline}")
    if ancestor.returncode or listed.returncode:
        return History(status="unreadable", head=head, detail="objects missing or damaged")
    return History(status="ok", head=head, commits=listed.stdout.decode("ascii").split())


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        # A hostile object may inflate to anything; prlimit bounds what reading it can take.
        ["prlimit", f"--as={MEMORY}", "--fsize=1073741824", "git", *arguments],
        cwd=folder,
        env={**CLEAN_ENVIRONMENT, "GIT_DIR": "."},
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
