"""Proving tasks: gold passes, the rest fail as declared, every required assertion catches something."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.project import LoadedTask
from orchestrator.records import Finished
from orchestrator.solutions import PROVIDER, solution_name
from schema.task import Solution

AGENT = "solution"


@dataclass(frozen=True)
class Row:
    """One solution's run held against its declaration."""

    task: str
    solution: str
    expected: str
    got: str
    as_declared: bool
    reason: str
    """What the first failed assertion said."""

    def to_json(self) -> dict[str, object]:
        """The row as a JSON object."""
        return {
            "task": self.task,
            "solution": self.solution,
            "expected": self.expected,
            "got": self.got,
            "asDeclared": self.as_declared,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Proof:
    """What was shown, and what is missing for the tasks to count as proven."""

    rows: list[Row]
    gaps: list[str]

    @property
    def holds(self) -> bool:
        """Whether every task is proven."""
        return not self.gaps and all(row.as_declared for row in self.rows)


def models(loaded: LoadedTask) -> list[str]:
    """Model ids of a task's shipped solutions."""
    return [f"{PROVIDER}:{name}" for name in loaded.solutions()]


def judge(tasks: Iterable[LoadedTask], finished: Iterable[Finished]) -> Proof:
    """Hold every run against its solution's declaration, and the declarations against §9."""
    by_task: dict[str, list[Finished]] = {}
    for item in finished:
        by_task.setdefault(item.spec.run.task, []).append(item)
    rows: list[Row] = []
    gaps: list[str] = []
    for loaded in tasks:
        runs = by_task.get(loaded.task.id, [])
        rows += [_row(loaded, item) for item in runs]
        gaps += _gaps(loaded, runs)
    return Proof(rows, gaps)


def _row(loaded: LoadedTask, item: Finished) -> Row:
    name = solution_name(item.spec.run.model)
    solution = loaded.solution(name)
    verdict = item.record.verdict
    failed = next((a for a in verdict.assertions if a.id == verdict.first_failure), None)
    return Row(
        task=loaded.task.id,
        solution=name,
        expected=_words(solution.expect.verdict, solution.expect.first_failure, solution.expect.category),
        got=_words(verdict.verdict, verdict.first_failure, verdict.category),
        as_declared=_as_declared(solution, item),
        reason=failed.reason if failed else "; ".join(verdict.diagnostics[:1]),
    )


def _as_declared(solution: Solution, item: Finished) -> bool:
    verdict, expect = item.record.verdict, solution.expect
    return (
        verdict.verdict == expect.verdict
        and verdict.first_failure == expect.first_failure
        and expect.category in {None, verdict.category}
    )


def _words(verdict: str, first_failure: str | None, category: str | None) -> str:
    if verdict == "pass":
        return "pass"
    return f"fail at {first_failure}" + (f" ({category})" if category else "")


def _gaps(loaded: LoadedTask, runs: Iterable[Finished]) -> list[str]:
    """What §9 asks of a task and its solutions do not show."""
    task = loaded.task.id
    names = set(loaded.solutions())
    gaps = [f"{task}: ships no solution {name!r}" for name in ("gold", "noop") if name not in names]
    caught = {item.record.verdict.first_failure for item in runs}
    gaps += [
        f"{task}: required assertion {assertion.id!r} is the first failure of no shipped solution"
        for assertion in loaded.assertions
        if assertion.required and assertion.id not in caught
    ]
    return gaps
