"""Live runs: set a task up, let the agent work, ask the oracle, write the result down."""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from compass.taskbench import agent, process, sandbox, tasks
from compass.taskbench.process import Ended
from compass.taskbench.tasks import Task
from schema.errors import EnvironmentFault

COLUMNS = ("task", "result", "cost_usd", "run_dir")


@dataclass(frozen=True, slots=True)
class Result:
    """One task's result."""

    task: str
    passed: bool
    #: As the agent reported it; None when it did not.
    cost_usd: float | None
    run_dir: Path
    seconds: float
    #: The agent's exit code; None when the time limit ended it.
    agent_exit: int | None
    over_budget: bool
    note: str = ""

    def row(self) -> tuple[str, str, str, str]:
        """The result as a row of the results file."""
        cost = "unknown" if self.cost_usd is None else f"{self.cost_usd:.6f}".rstrip("0").rstrip(".")
        return self.task, "PASS" if self.passed else "FAIL", cost, str(self.run_dir)

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain data; an unknown cost is the word, as in the results file."""
        return {
            **dict(zip(COLUMNS, self.row(), strict=True)),
            "cost_usd": "unknown" if self.cost_usd is None else self.cost_usd,
            "seconds": round(self.seconds, 2),
            "agent_exit": self.agent_exit,
            "over_budget": self.over_budget,
            "note": self.note,
        }


def run(
    root: Traversable,
    names: Iterable[str],
    words: list[str],
    *,
    budget: float,
    limit: float,
    runs: Path | None = None,
) -> Iterator[Result]:
    """Run the agent ``words`` on each task, at most ``limit`` seconds each, in a new folder below ``runs``.

    ``budget`` (USD a task) is handed to the agent; keeping to it is the agent's part.

    Raises EnvironmentFault.
    """
    for task in [tasks.load(root, name) for name in names]:
        folder = Path(tempfile.mkdtemp(prefix=f"taskbench-{task.name}-", dir=runs)).resolve()
        yield _one(task, folder, words, budget, limit)


def _one(task: Task, folder: Path, words: list[str], budget: float, limit: float) -> Result:
    # The repository has a folder to itself: scripts may write there, and nothing of ours lies in their reach.
    repo = folder / "work" / "repo"
    for each in (repo.parent, folder / "tmp"):
        each.mkdir()
    with sandbox.opened(repo) as box:
        ended = box.run("setup.sh", task.setup)
        if ended.code != 0:
            raise EnvironmentFault(
                f"tasks/{task.name}/setup.sh failed: {ended.tail()}; try `compass taskbench validate`"
            )
    worked = _agent(task, folder, words, budget, limit)
    cost = agent.cost(folder / "cost_usd")
    if worked.code is None:
        passed, note = False, f"the agent ran into the time limit of {limit:g} s"
    else:
        passed, note = _judge(task, folder, repo)
    over = cost is not None and cost > budget
    return Result(task.name, passed, cost, folder, worked.seconds, worked.code, over, note)


def _agent(task: Task, folder: Path, words: list[str], budget: float, limit: float) -> Ended:
    prompt = folder / "prompt.md"
    prompt.write_text(task.prompt, encoding="utf-8")
    try:
        return process.run(
            agent.fill(words, task.prompt),
            cwd=folder / "work" / "repo",
            env=agent.environment(budget, folder / "cost_usd", folder / "tmp"),
            limit=limit,
            log=folder / "agent.log",
            stdin=None if agent.takes_prompt(words) else prompt,
        )
    except OSError as error:
        raise EnvironmentFault(
            f"cannot start the agent {words[0]!r}: {error.strerror}; give its full path"
        ) from error


def _judge(task: Task, folder: Path, repo: Path) -> tuple[bool, str]:
    """The oracle's answer; its words are kept in the run's folder."""
    # Links would lead the oracle, and what it may write, to another place.
    if not repo.is_dir() or repo.is_symlink() or repo.parent.is_symlink():
        return False, "the agent removed the repository or put a link in its place"
    with sandbox.opened(repo) as box:
        ended = box.run("check.sh", task.check)
        (folder / "check.log").write_bytes(ended.log.read_bytes())
        return ended.code == 0, "" if ended.code == 0 else ended.tail()


def append(results: Path, result: Result) -> None:
    """Add a row to the results file; the first one writes the heading. Done after each task, for it was paid
    for."""
    new = not results.exists() or not results.stat().st_size
    with results.open("a", encoding="utf-8") as file:
        if new:
            file.write("\t".join(COLUMNS) + "\n")
        file.write("\t".join(result.row()) + "\n")
