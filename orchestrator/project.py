"""A checkout and what lies in it: tasks, suites, fixtures, agents, models. Reading only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from grader.evidence import Entry, Tree
from schema.agent import Agent, Models, Provider
from schema.assertions import Assertion, AssertionList
from schema.condition import apply
from schema.errors import UsageError
from schema.fixture import BaselineReport, Fixture
from schema.hashing import manifest_hash, walk_files
from schema.jsonfile import read_model
from schema.pricing import Pricing
from schema.task import Solution, Suite, Task

NOOP = "noop"


@dataclass(frozen=True)
class LoadedTask:
    """A task directory, read."""

    task: Task
    assertions: tuple[Assertion, ...]
    fixture: Fixture
    erc_baseline: BaselineReport
    drc_baseline: BaselineReport
    folder: Path
    manifest_sha256: str

    def under(self, condition: str) -> Self:
        """The task as a condition sets it.

        Raises:
            UsageError: it cannot be set so.
        """
        return replace(self, task=apply(self.task, condition))

    def solutions(self) -> list[str]:
        """Names of the shipped solutions: gold first, noop next, then the wrong ones by name."""
        names = sorted(path.parent.name for path in self.folder.glob("solutions/*/solution.json"))
        rank = {"gold": 0, NOOP: 1}
        return sorted(names, key=lambda name: (rank.get(name, 2), name))

    def solution(self, name: str) -> Solution:
        """A shipped solution.

        Raises:
            UsageError: the task ships none of that name.
        """
        path = self.folder / "solutions" / name / "solution.json"
        if not path.is_file():
            raise UsageError(
                f"no solution {name!r}",
                about=str(self.folder),
                fix=f"use one of {', '.join(self.solutions())}",
            )
        return read_model(path, Solution)


class Project:
    """A checkout of copperbench, or a folder laid out like one."""

    def __init__(self, root: Path, results: Path | None = None) -> None:
        self.root = root.resolve()
        self.results = (results or self.root / "results").resolve()
        self.cache = self.root / ".cache"

    @classmethod
    def find(cls, start: Path, results: Path | None = None) -> Project:
        """The checkout around ``start``.

        Raises:
            UsageError: none of its parents holds tasks and suites.
        """
        for folder in (start.resolve(), *start.resolve().parents):
            if (folder / "tasks").is_dir() and (folder / "suites").is_dir():
                return cls(folder, results)
        raise UsageError("not inside a copperbench checkout", about=str(start), fix="cd into your clone")

    def suite(self, name: str) -> Suite:
        """``suites/<name>.json``."""
        path = self.root / "suites" / f"{name}.json"
        if not path.is_file():
            known = ", ".join(sorted(p.stem for p in path.parent.glob("*.json")))
            raise UsageError(f"no suite {name!r}", fix=f"use one of {known}")
        return read_model(path, Suite)

    def task_ids(self) -> list[str]:
        """Every task of the checkout."""
        return sorted(path.parent.name for path in self.root.glob("tasks/*/task.json"))

    def task(self, name: str) -> LoadedTask:
        """A task with its assertions and fixture.

        Raises:
            UsageError: no such task, or a file that breaks its schema.
        """
        folder = self.root / "tasks" / name
        if not (folder / "task.json").is_file():
            raise UsageError(f"no task {name!r}", fix=f"use one of {', '.join(self.task_ids())}")
        task = read_model(folder / "task.json", Task)
        assertions = read_model(folder / "assertions.json", AssertionList)
        fixture = self.fixture(task.fixture.id)
        baseline = self.root / task.fixture.path / "baseline"
        return LoadedTask(
            task=task,
            assertions=tuple(assertions),
            fixture=fixture,
            erc_baseline=read_model(baseline / "erc.json", BaselineReport),
            drc_baseline=read_model(baseline / "drc.json", BaselineReport),
            folder=folder,
            manifest_sha256=manifest_hash(folder),
        )

    def fixture_ids(self) -> list[str]:
        """Every fixture of the checkout."""
        return sorted(path.parent.name for path in self.root.glob("fixtures/*/fixture.json"))

    def fixture(self, name: str) -> Fixture:
        """``fixtures/<name>/fixture.json``."""
        path = self.root / "fixtures" / name / "fixture.json"
        if not path.is_file():
            raise UsageError(f"no fixture {name!r}", fix=f"use one of {', '.join(self.fixture_ids())}")
        return read_model(path, Fixture)

    def fixture_tree(self, name: str) -> Path:
        """Where a fixture's tree lies once it is synchronised."""
        return self.root / "fixtures" / name / "tree"

    def agent(self, name: str) -> Agent:
        """``images/agents/<name>/agent.json``."""
        path = self.root / "images" / "agents" / name / "agent.json"
        if not path.is_file():
            known = ", ".join(sorted(p.parent.name for p in self.root.glob("images/agents/*/agent.json")))
            raise UsageError(f"no agent {name!r}", fix=f"use one of {known}")
        return read_model(path, Agent)

    def pricing(self) -> Pricing:
        """``pricing.json``."""
        return read_model(self.root / "pricing.json", Pricing)

    def provider(self, model: str) -> Provider:
        """How a model id is reached, by ``models.json``.

        Raises:
            UsageError: its prefix or its endpoint is not there.
        """
        prefix, colon, name = model.partition(":")
        models = read_model(self.root / "models.json", Models)
        providers = models.providers
        if prefix == "compat" and "@" in name and name.rpartition("@")[2] in models.endpoints:
            return models.endpoints[name.rpartition("@")[2]]
        if not colon or not name or prefix not in providers:
            endpoints = (f"compat:…@{endpoint}" for endpoint in sorted(models.endpoints))
            known = ", ".join([*(f"{p}:…" for p in sorted(providers)), *endpoints])
            raise UsageError(
                f"model id {model!r} has no known provider", about="models.json", fix=f"use {known}"
            )
        return providers[prefix]


def read_tree(root: Path) -> Tree:
    """A folder on disk as a tree.

    Raises:
        FixtureError: the folder is missing or holds anything but regular files.
    """
    return dict(_entries(root))


def _entries(root: Path) -> Iterator[tuple[str, Entry]]:
    for name, path in walk_files(root):
        mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
        yield name.decode("utf-8", "surrogateescape"), Entry(data=path.read_bytes(), mode=mode)
