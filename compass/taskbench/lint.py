"""shellcheck over the tasks' scripts, where it is installed."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from compass.taskbench.tasks import Task

MISSING = "shellcheck is not installed, so the scripts were not linted (Debian: apt-get install shellcheck)"
_LINE = re.compile(r"(?P<task>[^/]+)/(?P<place>[^/]+\.sh:\d+):\d+: (?P<what>.*)")


def installed() -> bool:
    """Whether shellcheck is on PATH."""
    return shutil.which("shellcheck") is not None


def shellcheck(tasks: Iterable[Task]) -> dict[str, list[str]]:
    """The errors in each task's scripts by the task's name; one process for all."""
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="taskbench-") as folder:
        scripts = []
        for task in tasks:
            found[task.name] = []
            Path(folder, task.name).mkdir()
            for name, text in task.scripts.items():
                Path(folder, task.name, name).write_text(text, encoding="utf-8")
                scripts.append(f"{task.name}/{name}")
        done = subprocess.run(
            ["shellcheck", "--norc", "-S", "error", "-f", "gcc", *scripts],
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
    for line in done.stdout.splitlines():
        if match := _LINE.fullmatch(line):
            found[match["task"]].append(f"tasks/{match['task']}/{match['place']}: {match['what']}")
    if done.returncode not in {0, 1}:
        raise subprocess.CalledProcessError(done.returncode, "shellcheck", done.stdout, done.stderr)
    return found
