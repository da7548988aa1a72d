"""Proof that the tasks are sound, without an agent: the bug is there, the oracle sees it, accepts a right fix
and refuses wrong ones, and nothing happens outside a temporary folder."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from compass.guardrail import danger_reason
from compass.taskbench import lint, sandbox, tasks
from compass.taskbench.process import Ended
from compass.taskbench.sandbox import Sandbox
from compass.taskbench.tasks import Fixes, Task

#: A line of a fix shorter than this says too little to give the fix away (``return`` or a bracket).
_TELLING = 12


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold for a task; ``detail`` says what is wrong, where, and what to do."""

    task: str
    name: str
    ok: bool
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """The check as plain data."""
        return {"task": self.task, "check": self.name, "ok": self.ok, "detail": self.detail}


class _BrokenError(Exception):
    """A script did not do its part, so that a probe says nothing; the message is the check's detail."""


def validate(root: Traversable, names: Iterable[str]) -> Iterator[Check]:
    """All checks of the tasks called ``names``, as they are made."""
    sound = []
    for name in names:
        wrong = tasks.structure(root, name)
        yield Check(name, "structure", not wrong, "; ".join(wrong))
        if not wrong:
            sound.append(tasks.load(root, name))
    if sound and lint.installed():
        for name, errors in lint.shellcheck(sound).items():
            yield Check(name, "shellcheck", not errors, "; ".join(errors))
    for task in sound:
        fixes = tasks.load_fixes(root, task.name)
        yield _prompt(task, fixes)
        guardrail = _guardrail(task)
        yield guardrail
        if not guardrail.ok:
            continue  # what the guardrail refuses is not run
        for name, probe in _probes(task, fixes):
            try:
                detail = probe()
            except _BrokenError as error:
                detail = str(error)
            yield Check(task.name, name, not detail, detail)


def _prompt(task: Task, fixes: Fixes) -> Check:
    """The prompt must not contain a line of the fix."""
    added = [
        line[1:].strip() for line in fixes.right.splitlines() if line.startswith("+") and line[1:2] != "+"
    ]
    told = [line for line in added if len(line) >= _TELLING and line in task.prompt]
    detail = f"tasks/{task.name}/task.md gives the fix away: {told[0]}" if told else ""
    return Check(task.name, "prompt", not told, detail)


def _guardrail(task: Task) -> Check:
    found = [
        f"tasks/{task.name}/{name}: {why}"
        for name, text in task.scripts.items()
        if (why := danger_reason(text))
    ]
    return Check(task.name, "guardrail", not found, "; ".join(found))


def _probes(task: Task, fixes: Fixes) -> Iterator[tuple[str, Callable[[], str]]]:
    """The checks that run the scripts: each gives what is wrong, or nothing."""
    yield "setup", partial(_setup_is_clean, task)
    yield "pre-fix", partial(_refused, task, "the seeded bug")
    yield "post-fix", partial(_accepted, task, fixes.right)
    for name, patch in fixes.wrong.items():
        yield name, partial(_refused, task, f"fixes/{task.name}/{name}.patch", patch)
    yield "empty", partial(_refused, task, "an empty repository", change=_empty)
    yield "hollow", partial(_refused, task, "programs that do nothing", change=_hollow)
    yield "untested", partial(_refused, task, "deleted tests", change=_untest)
    yield (
        "fixed-untested",
        partial(_refused, task, "a right fix with the tests deleted", fixes.right, _untest),
    )


@contextmanager
def _prepared(task: Task, patch: str = "") -> Iterator[Sandbox]:
    """A sandbox with the task's repository, patched."""
    with sandbox.opened() as box:
        _succeed(f"tasks/{task.name}/setup.sh", box.run("setup.sh", task.setup))
        if patch:
            _succeed(f"a patch of fixes/{task.name} does not apply: git", box.git("apply", "-", stdin=patch))
        yield box


def _succeed(what: str, ended: Ended) -> None:
    if ended.code != 0:
        raise _BrokenError(f"{what} failed: {ended.tail()}")


def _setup_is_clean(task: Task) -> str:
    """Setup makes a committed repository with tests, the same each time, and leaves nothing else behind."""
    setup, seen = f"tasks/{task.name}/setup.sh", []
    for _ in range(2):
        with _prepared(task) as box:
            if strays := box.strays():
                return f"{setup} leaves {strays[0]} outside the repository"
            head = box.git("rev-parse", "HEAD")
            _succeed(f"{setup} makes no commit: git", head)
            seen.append(head.tail())
            status = box.git("status", "--porcelain")
            if status.log.stat().st_size:
                return f"{setup} leaves changes uncommitted: {status.tail()}"
            if not _tests(box.repo):
                return f"{setup} makes no tests: the repository needs some, in a folder tests"
    return "" if seen[0] == seen[1] else f"{setup} makes another commit each time: fix its dates and identity"


def _refused(task: Task, what: str, patch: str = "", change: Callable[[Path], None] | None = None) -> str:
    """The oracle must say no, and say it itself: not killed, not out of time, not without its programs."""
    with _prepared(task, patch) as box:
        if change is not None:
            change(box.repo)
        ended = box.run("check.sh", task.check)
    check = f"tasks/{task.name}/check.sh"
    if ended.code == 0:
        return f"{check} accepts {what}: add an assertion that fails on it"
    # 126 and up: the shell could not run something, or a signal ended it.
    return (
        "" if ended.code is not None and 0 < ended.code < 126 else f"{check} breaks on {what}: {_how(ended)}"
    )


def _accepted(task: Task, patch: str) -> str:
    """The oracle must accept the reference fix, leave the repository as it is and nothing elsewhere."""
    check = f"tasks/{task.name}/check.sh"
    with _prepared(task, patch) as box:
        before = sandbox.snapshot(box.repo)
        ended = box.run("check.sh", task.check)
        if ended.code != 0:
            return f"{check} refuses fixes/{task.name}/{tasks.FIX}: {ended.tail()}"
        if strays := box.strays():
            return f"{check} leaves {strays[0]} behind"
        return (
            "" if sandbox.snapshot(box.repo) == before else f"{check} changes the repository that it judges"
        )


def _how(ended: Ended) -> str:
    return "it ran into the time limit" if ended.code is None else f"exit {ended.code}"


def _tests(repo: Path) -> list[Path]:
    """The repository's own tests: what lies in a folder for tests, or is named as one."""
    return [
        path
        for path in repo.rglob("*")
        if path.is_file()
        and ".git" not in path.relative_to(repo).parts
        and ({"test", "tests"} & set(path.relative_to(repo).parts[:-1]) or path.name.startswith("test_"))
    ]


def _untest(repo: Path) -> None:
    for path in _tests(repo):
        path.unlink()


def _empty(repo: Path) -> None:
    shutil.rmtree(repo)
    repo.mkdir()


def _hollow(repo: Path) -> None:
    """Empty every program: it still starts, prints nothing and exits with 0."""
    tests = set(_tests(repo))
    for path in [*repo.rglob("*.py"), *repo.rglob("*.sh")]:
        if path not in tests:
            path.write_text("", encoding="utf-8")
