"""The agent's folder: no path leads out of it, and every change can be taken back."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from reference.errors import CommitFailed, ToolError

_HIDDEN = ((".copperhead", "runs"), (".copperhead", "llm-cache"))
_IDENTITY = "reference agent", "reference@copperbench.invalid"
_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": _IDENTITY[0],
    "GIT_AUTHOR_EMAIL": _IDENTITY[1],
    "GIT_COMMITTER_NAME": _IDENTITY[0],
    "GIT_COMMITTER_EMAIL": _IDENTITY[1],
}


class Workspace:
    """Files below one folder, and what they held before the first change."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._before: dict[str, bytes | None] = {}

    @property
    def originals(self) -> Mapping[str, bytes | None]:
        """Changed path → its first content; None for a file that was not there."""
        return self._before

    @property
    def touched(self) -> list[str]:
        """Paths whose content is not what it was, in the order they were first changed."""
        return [name for name, data in self._before.items() if self._content(name) != data]

    def name(self, path: str) -> str:
        """The tree-relative POSIX name that a path means, symlinks resolved.

        Raises:
            ToolError: it leaves the workspace, or is git's or the transcript's.
        """
        try:
            real = (self.root / path).resolve()
            real.as_posix().encode()
            # Says so when the system takes no such name.
            real.is_file()
        except (OSError, RuntimeError, ValueError) as error:
            raise ToolError(f"{path!r:.200} is not a path ({error.__class__.__name__})") from None
        if not real.is_relative_to(self.root):
            raise ToolError(f"path leaves the workspace: {path:.200}")
        parts = real.relative_to(self.root).parts
        folded = tuple(part.casefold() for part in parts)
        if ".git" in folded or folded[:2] in _HIDDEN:
            raise ToolError(f"path is out of reach: {path:.200}")
        return "/".join(parts)

    def read(self, path: str) -> bytes:
        """A regular file's bytes."""
        name = self.name(path)
        data = self._content(name)
        if data is None:
            raise ToolError(f"no file {name:.200}; list_files shows what there is")
        return data

    def exists(self, path: str) -> bool:
        """Whether there is a regular file of that name."""
        return (self.root / self.name(path)).is_file()

    def write(self, path: str, data: bytes) -> str:
        """Write a file whole; returns its name."""
        name = self.name(path)
        target = self.root / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_dir():
                raise ToolError(f"{name:.200} is a folder")
            # From here on there is something to put back; a place that no file can have is not.
            self._before.setdefault(name, self._content(name))
            target.write_bytes(data)
        except OSError as error:
            raise ToolError(f"{name:.200}: {error.strerror}") from None
        return name

    def put_back(self, path: str, data: bytes | None) -> None:
        """Give a file the content it had; None removes it and the folders that only it needed."""
        target = self.root / path
        if data is not None:
            target.write_bytes(data)
            return
        target.unlink(missing_ok=True)
        for folder in target.parents:
            if folder == self.root or any(folder.iterdir()):
                return
            folder.rmdir()

    def restore(self) -> None:
        """Take every change back."""
        for name, data in self._before.items():
            self.put_back(name, data)

    def files(self, folder: str = "") -> Iterator[str]:
        """Names of the regular files below a folder, sorted; none of git's or the transcript's."""
        top = self.root / self.name(folder)
        for place, names, found in os.walk(top):
            names[:] = sorted(name for name in names if self._reachable(Path(place) / name))
            for name in sorted(found):
                path = Path(place) / name
                if path.is_file() and self._reachable(path):
                    yield path.relative_to(self.root).as_posix()

    def commit(self, message: str) -> str:
        """Commit what was changed; returns the commit's id.

        Raises:
            CommitFailed: git says why.
        """
        self.git("add", "-f", "--", *self.touched)
        self.git("commit", "-q", "--no-verify", "--no-gpg-sign", "-F", "-", text=message)
        return self.git("rev-parse", "HEAD")

    def git(self, *arguments: str, text: str = "") -> str:
        """Run git here, deaf to hooks and to the machine's configuration."""
        settings = ("safe.directory=*", f"core.hooksPath={os.devnull}", "core.fsmonitor=false")
        try:
            done = subprocess.run(
                ["git", *(part for setting in settings for part in ("-c", setting)), *arguments],
                cwd=self.root,
                env=_ENVIRONMENT,
                input=text.encode("utf-8", "replace"),
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise CommitFailed(f"git cannot be run: {error.strerror}") from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise CommitFailed(f"git {arguments[0]}: {said[-1] if said else f'exit {done.returncode}'}")
        return done.stdout.decode("utf-8", "replace").strip()

    def _content(self, name: str) -> bytes | None:
        path = self.root / name
        return path.read_bytes() if path.is_file() else None

    def _reachable(self, path: Path) -> bool:
        try:
            path.name.encode()
            self.name(str(path))
        except (ToolError, UnicodeEncodeError):
            return False
        return True
