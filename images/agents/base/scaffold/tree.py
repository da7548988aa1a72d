"""The workspace's files: checked, laid over, committed."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from scaffold.errors import Off

_RESERVED = (".copperhead/config.json", ".copperhead/runs", ".copperhead/llm-cache")
_DATE = "2026-01-01T00:00:00Z"
# Nothing of the machine may reach the commit: no configuration but this, no clock, no name.
_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "copperbench",
    "GIT_AUTHOR_EMAIL": "baseline@copperbench.invalid",
    "GIT_AUTHOR_DATE": _DATE,
    "GIT_COMMITTER_NAME": "copperbench",
    "GIT_COMMITTER_EMAIL": "baseline@copperbench.invalid",
    "GIT_COMMITTER_DATE": _DATE,
}
_SETTINGS = {"core.autocrlf": "false", "core.filemode": "true", "gc.auto": "0"}


def files(root: Path) -> Iterator[str]:
    """Tree-relative POSIX paths of all files, sorted.

    Raises:
        Off: a symlink, a special file, or something of git's.
    """
    for folder, names, found in os.walk(root):
        names.sort()
        for name in sorted([*names, *found]):
            path = Path(folder) / name
            relative = path.relative_to(root).as_posix()
            if name.lower() == ".git":
                raise Off(f"{relative}: a workspace starts without git")
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise Off(f"{relative}: neither a regular file nor a folder")
            if stat.S_ISREG(mode):
                yield relative


def write(workspace: Path, name: str, text: str) -> None:
    """Write a text file of ours, with ``\\n`` whatever the platform."""
    path = workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def lay_over(overlay: Path, workspace: Path) -> None:
    """Copy the task's own files into the workspace; they win.

    Raises:
        Off: a file that is not the task's to give, or that would replace a folder.
    """
    for name in files(overlay):
        if any(name == reserved or name.startswith(reserved + "/") for reserved in _RESERVED):
            raise Off(f"overlay/{name}: not the task's to give; use config in task.json")
        target = workspace / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(overlay / name, target)
        except OSError as error:
            raise Off(f"overlay/{name}: {error.strerror}") from None


def commit(workspace: Path) -> str:
    """Make the workspace a repository with one commit of everything; return its id.

    The same files give the same id whatever the machine, the user, the clock or git's version.
    """
    plain_modes(workspace)
    _git(workspace, "init", "-q", "--template=", "-b", "main", "--object-format=sha1")
    for key, value in _SETTINGS.items():
        _git(workspace, "config", key, value)
    # Attributes in the tree could convert line ends or run filters; these come first.
    write(workspace / ".git", "info/attributes", "* -text -filter -ident\n")
    _git(workspace, "add", "-A", "-f")
    _git(workspace, "commit", "-q", "--no-verify", "--no-gpg-sign", "--allow-empty", "-m", "baseline")
    # An index without times and inode numbers: the folder is the same to the byte each time it is made.
    _git(workspace, "read-tree", "--reset", "HEAD")
    (workspace / ".git/index").unlink()
    _git(workspace, "read-tree", "HEAD")
    return _git(workspace, "rev-parse", "HEAD")


def plain_modes(workspace: Path) -> None:
    """Modes are no part of a fixture: they depend on how it came to this machine."""
    for folder, _, names in os.walk(workspace):
        Path(folder).chmod(0o755)
        for name in names:
            (Path(folder) / name).chmod(0o644)


def _git(workspace: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", *arguments],
        cwd=workspace,
        env=_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
        raise Off(f"git {arguments[0]}: {said[-1]}")
    return done.stdout.strip()
