"""A place where a task's scripts run: a fresh folder, an environment of nothing but what they need, no way to
write elsewhere."""

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compass.taskbench import confine, process
from compass.taskbench.process import Ended
from schema.errors import EnvironmentFault

#: Seconds that a task's script may take.
LIMIT = 120.0
#: What the tasks' scripts need on the machine.
NEEDED = ("sh", "git")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A folder for scripts, with a home and a temporary folder of their own, and the repository."""

    root: Path
    repo: Path

    def run(self, name: str, text: str, limit: float = LIMIT) -> Ended:
        """Run a task's script on the repository.

        Its text lies in the sandbox only while it is needed: never in the repository, and not beside it while
        an agent works there.
        """
        script = self.root / "scripts" / name
        script.write_text(text, encoding="utf-8")
        confined = [sys.executable, "-I", "-S", confine.__file__, str(self.root), str(self.repo.parent), "--"]
        return process.run(
            [*confined, "sh", str(script), str(self.repo)],
            cwd=self.root / "cwd",
            env=environment(self.root),
            limit=limit,
            log=self.root / "scripts" / f"{name}.log",
        )

    def git(self, *arguments: str, stdin: str = "") -> Ended:
        """Run git in the repository."""
        text = self.root / "scripts" / "stdin"
        text.write_text(stdin, encoding="utf-8")
        return process.run(
            ["git", *arguments],
            cwd=self.repo,
            env=environment(self.root),
            limit=LIMIT,
            log=self.root / "scripts" / "git.log",
            stdin=text,
        )

    def strays(self) -> list[str]:
        """What scripts left in their home, temporary folder or current folder, or beside the repository."""
        left = [
            str(path.relative_to(self.root))
            for folder in ("home", "tmp", "cwd")
            for path in sorted((self.root / folder).iterdir())
        ]
        return left + [path.name for path in sorted(self.repo.parent.iterdir()) if path != self.repo]


def environment(root: Path) -> dict[str, str]:
    """Nothing of the caller's environment but PATH, with this interpreter in front: tasks say ``python3``."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "HOME": str(root / "home"),
        "TMPDIR": str(root / "tmp"),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }


@contextmanager
def opened(repo: Path | None = None) -> Iterator[Sandbox]:
    """A new sandbox, removed afterwards; the repository lies in it unless it is given."""
    root = Path(tempfile.mkdtemp(prefix="taskbench-")).resolve()
    try:
        for folder in ("scripts", "home", "tmp", "cwd", "work"):
            (root / folder).mkdir()
        yield Sandbox(root, repo or root / "work" / "repo")
    finally:
        shutil.rmtree(root, ignore_errors=True)


def need_tools() -> None:
    """Raise EnvironmentFault when a program is missing that every task needs."""
    for tool in NEEDED:
        if shutil.which(tool) is None:
            raise EnvironmentFault(f"{tool} is not on PATH; the tasks' scripts need it: install it")


def snapshot(folder: Path) -> dict[str, str]:
    """Every entry below ``folder`` but git's own, with what it holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] == ".git":
            continue
        if path.is_symlink():
            found[str(name)] = f"link to {path.readlink()}"
        elif path.is_file():
            found[str(name)] = f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        else:
            found[str(name)] = "folder"
    return found
