"""What the stock agent is given to play a shipped solution (Standard §9)."""

from __future__ import annotations

from grader.evidence import Entry, Tree
from orchestrator.project import LoadedTask, read_tree
from schema.jsonfile import pretty
from schema.run import RunId

PROVIDER = "solution"


def solution_name(model: str) -> str:
    """``solution:gold`` → ``gold``."""
    return model.partition(":")[2]


def solution_inputs(loaded: LoadedTask, run: RunId) -> Tree:
    """The ``/input`` folder: the solution's data and what the run was asked.

    Raises:
        UsageError: the task ships no such solution.
    """
    name = solution_name(run.model)
    loaded.solution(name)
    task = loaded.task
    asked = {
        "request": task.request,
        "runId": str(run),
        "model": run.model,
        "maxTurns": task.config.max_turns,
        "config": task.config.to_json(),
    }
    tree = dict(read_tree(loaded.folder / "solutions" / name))
    tree["run.json"] = Entry(pretty(asked).encode())
    return tree
