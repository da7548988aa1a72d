"""Sandboxes' ``.git`` folders, made with real git, for tests."""

import subprocess
from pathlib import Path

from grader.git import CLEAN_ENVIRONMENT
from orchestrator.collect import Collected

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
        """The repository as the collector keeps it."""
        from orchestrator.collect import GIT_PARTS

        out = Collected(git_kind="folder")
        for path in (self.root / ".git").rglob("*"):
            name = path.relative_to(self.root / ".git").as_posix()
            if path.is_file() and GIT_PARTS.fullmatch(name):
                out.git[name] = path.read_bytes()
        return out
