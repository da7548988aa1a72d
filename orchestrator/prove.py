"""Proving tasks: gold passes, the rest fail as declared, every required assertion catches something.

What was proven is kept by content in ``tasks/PROVEN.json``: a task that was changed since shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.project import LoadedTask, Project
from orchestrator.records import Finished
from orchestrator.solutions import PROVIDER, solution_name
from schema.hashing import hash_folder
from schema.jsonfile import pretty, read_model
from schema.proven import Proven, ProvenTask
from schema.task import Solution

AGENT = "solution"
PROVEN = "tasks/PROVEN.json"


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

    proven: dict[str, ProvenTask]
    """The tasks that are."""

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
    proof = Proof([], [], {})
    for loaded in tasks:
        runs = by_task.get(loaded.task.id, [])
        rows, gaps = [_row(loaded, item) for item in runs], _gaps(loaded, runs)
        proof.rows.extend(rows)
        proof.gaps.extend(gaps)
        if not gaps and all(row.as_declared for row in rows):
            proof.proven[loaded.task.id] = _proven(loaded, rows, runs)
    return proof


def keep(project: Project, proven: Mapping[str, ProvenTask]) -> bool:
    """Write down what was proven; what is known of other tasks stays. Returns whether the file changed."""
    path = project.root / PROVEN
    before = read_model(path, Proven).tasks if path.is_file() else {}
    tasks = {name: task for name, task in before.items() if name in project.task_ids()}
    tasks.update(proven)
    text = pretty(Proven(tasks={name: tasks[name] for name in sorted(tasks)}).to_json())
    if path.is_file() and path.read_text("utf-8") == text:
        return False
    path.write_text(text, "utf-8")
    return True


def unproven(project: Project, names: Iterable[str]) -> Iterator[str]:
    """Tasks that are not what was proven last, a line each.

    Raises:
        UsageError: a task or the file breaks its schema.
    """
    path = project.root / PROVEN
    known = read_model(path, Proven).tasks if path.is_file() else {}
    for name in names:
        loaded = project.task(name)
        again = f"run copperbench prove {name}"
        if name not in known:
            yield f"tasks/{name}: not proven; {again}"
        elif changed := " and ".join(_changed(loaded, known[name])):
            yield f"tasks/{name}: {changed} changed since it was proven; {again}"
    yield from (f"{PROVEN}: no task {name!r}; remove it" for name in known if name not in project.task_ids())


def _changed(loaded: LoadedTask, known: ProvenTask) -> Iterator[str]:
    if loaded.manifest_sha256 != known.manifest_sha256:
        yield "the task"
    if loaded.fixture.sha256 != known.fixture_sha256:
        yield "its fixture"
    if hash_folder(loaded.folder / "solutions") != known.solutions_sha256:
        yield "its solutions"


def _proven(loaded: LoadedTask, rows: Iterable[Row], runs: Sequence[Finished]) -> ProvenTask:
    return ProvenTask(
        manifest_sha256=loaded.manifest_sha256,
        fixture_sha256=loaded.fixture.sha256,
        solutions_sha256=hash_folder(loaded.folder / "solutions"),
        kicad_version=runs[0].record.stamp.kicad_version,
        solutions={row.solution: row.got for row in rows},
    )


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
