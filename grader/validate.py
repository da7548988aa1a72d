"""Static checks of a task: what can be wrong with it before anything runs (Standard §1, §2, §9).

Every fault is an :class:`~schema.errors.InvalidFile` that names file, place and mend in one line. Checks that
need the prepared baseline take its tree and netlist; nothing here prepares one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from grader.documents import Table, locate, read_tables, read_text
from grader.evidence import Tree
from grader.kicad.errors import Unjudgeable
from grader.taxonomy import OWN_ENDS
from grader.vocabulary.context import Netlist
from schema.assertions import (
    Assertion,
    AssertionList,
    DiffRatioMax,
    DocContains,
    DocRowArgs,
    DocRowMatches,
    ExitPathIn,
    FilesTouchedSubset,
    FileUnchanged,
    NetAbsent,
    NetPresent,
    PinNetEquals,
    RefusalCitesBudget,
)
from schema.errors import CopperbenchError, InvalidFile
from schema.fixture import Fixture
from schema.hashing import hash_folder, walk_files
from schema.jsonfile import parse_json, read_bytes, read_model
from schema.task import Mode, Solution, Task
from schema.verdict import Category

REQUIRED = ("task.json", "assertions.json", "README.md")
FOLDERS = ("overlay", "solutions")
SOLUTION_PARTS = ("solution.json", "change.diff", "files")
RESERVED = (".git", ".copperhead/config.json", ".copperhead/runs")
"""What an overlay may not hold: the harness writes it, or the agent does."""

T = TypeVar("T")


def check_task(folder: Path) -> list[InvalidFile]:
    """Every fault of one task directory that can be seen without its baseline.

    Args:
        folder: ``tasks/<id>`` in a checkout; its fixture is looked for beside ``tasks``.
    """
    faults = list(_files(folder))
    task = _kept(faults, lambda: read_model(folder / "task.json", Task))
    items = _kept(faults, lambda: read_model(folder / "assertions.json", AssertionList))
    if task is not None:
        faults += _task(folder, task)
    if task is not None and items is not None:
        faults += _assertions(folder, task, items)
    if items is not None:
        faults += _solutions(folder, items)
    return faults


def check_baseline(
    folder: Path, task: Task, items: Sequence[Assertion], baseline: Tree, netlist: Netlist
) -> list[InvalidFile]:
    """Faults that only the prepared baseline shows: ambiguous nets, missing documents, rows and files.

    Args:
        folder: the task's, for the faults' text.
        task: its ``task.json``.
        items: its assertions.
        baseline: the tree every run starts from.
        netlist: KiCad's, of that tree.
    """
    faults: list[InvalidFile] = []
    for index, item in enumerate(items):
        about = _place(folder, index, item)
        for what, fix in _against(item, task, baseline, netlist):
            faults.append(InvalidFile(what, about=about, fix=fix))
    return faults


def uncaught(items: Sequence[Assertion], solutions: Iterable[Solution]) -> list[str]:
    """Ids of required assertions that no shipped solution declares as its first failure (Standard §9)."""
    declared = {solution.expect.first_failure for solution in solutions}
    return [item.id for item in items if item.required and item.id not in declared]


def _kept(faults: list[InvalidFile], read: Callable[[], T]) -> T | None:
    """What ``read`` gives, or None after its fault was added to the list."""
    try:
        return read()
    except CopperbenchError as error:
        fault = error if isinstance(error, InvalidFile) else _from(error)
        faults.append(fault)
        return None


def _from(error: CopperbenchError) -> InvalidFile:
    return InvalidFile(error.what, about=error.about, fix=error.fix)


def _files(folder: Path) -> Iterator[InvalidFile]:
    """Missing and stray files. Symlinks and special files are strays everywhere."""
    try:
        paths = sorted(name.decode("utf-8", "backslashreplace") for name, _ in walk_files(folder))
    except CopperbenchError as error:
        yield _from(error)
        return
    for name in REQUIRED:
        # The two JSON files report themselves when they are read.
        if name.endswith(".md") and name not in paths:
            yield InvalidFile(
                "missing", about=f"{folder}/{name}", fix="say what the task tests, and its trap"
            )
    if (folder / "README.md").is_file() and not (folder / "README.md").read_bytes().strip():
        yield InvalidFile(
            "is empty", about=f"{folder}/README.md", fix="say what the task tests, and its trap"
        )
    for path in paths:
        if reason := _stray(path):
            yield InvalidFile(reason, about=f"{folder}/{path}", fix="remove it")


def _stray(path: str) -> str | None:
    first, _, rest = path.partition("/")
    if not rest:
        return None if first in {*REQUIRED, "brief.md"} else "stray file in a task"
    if first == "overlay":
        held = [name for name in RESERVED if rest == name or rest.startswith(f"{name}/")]
        return f"an overlay may not hold {held[0]}" if held else None
    if first == "solutions":
        _, _, part = rest.partition("/")
        return None if part.split("/")[0] in SOLUTION_PARTS else "stray file in a solution"
    return "stray file in a task"


def _task(folder: Path, task: Task) -> Iterator[InvalidFile]:
    about = f"{folder}/task.json"
    if task.id != folder.resolve().name:
        yield InvalidFile(
            f"id: {task.id!r} is not the name of the folder", about=about, fix="make them the same"
        )
    brief = folder / "brief.md"
    if (task.mode is Mode.CREATE) != brief.is_file():
        what = "missing" if task.mode is Mode.CREATE else "only a create task has a brief"
        yield InvalidFile(what, about=str(brief), fix="mend mode or brief")
    if (
        task.variant_of is not None
        and not (folder.resolve().parent / task.variant_of / "task.json").is_file()
    ):
        yield InvalidFile(f"variantOf: no task {task.variant_of!r}", about=about, fix="name an existing task")
    yield from _fixture(folder, task, about)


def _fixture(folder: Path, task: Task, about: str) -> Iterator[InvalidFile]:
    root = folder.resolve().parent.parent / task.fixture.path
    if not (root / "fixture.json").is_file():
        yield InvalidFile(
            f"fixture.path: no {task.fixture.path}/fixture.json", about=about, fix="name a fixture"
        )
        return
    faults: list[InvalidFile] = []
    fixture = _kept(faults, lambda: read_model(root / "fixture.json", Fixture))
    tree = _kept(faults, lambda: hash_folder(root / "tree")) if (root / "tree").is_dir() else None
    yield from faults
    if fixture is not None and fixture.sha256 != task.fixture.sha256:
        yield InvalidFile(
            f"fixture.sha256: {task.fixture.sha256[:12]}… is not the fixture's {fixture.sha256[:12]}…",
            about=about,
            fix="copy the hash from fixture.json",
        )
    if tree is not None and tree != task.fixture.sha256:
        yield InvalidFile(
            f"fixture.sha256: {task.fixture.sha256[:12]}… is not the tree's {tree[:12]}…",
            about=about,
            fix="run copperbench fixtures sync",
        )


def _assertions(folder: Path, task: Task, items: Sequence[Assertion]) -> Iterator[InvalidFile]:
    for index, item in enumerate(items):
        about = _place(folder, index, item)
        for what, fix in _alone(folder, task, item):
            yield InvalidFile(what, about=about, fix=fix)
    if not any(item.required and isinstance(item, ExitPathIn | RefusalCitesBudget) for item in items):
        # A run that was killed, crashed or gave up must fail (Standard §7), whatever it left behind.
        yield InvalidFile(
            "no required assertion reads how the run ended",
            about=f"{folder}/assertions.json",
            fix="add a required exit_path_in",
        )


def _alone(folder: Path, task: Task, item: Assertion) -> Iterator[tuple[str, str]]:
    """Faults of one assertion that need nothing but the task: (what, fix)."""
    if isinstance(item, ExitPathIn) and item.required and (odd := set(item.args.paths) - OWN_ENDS):
        names = ", ".join(sorted(odd))
        yield f"args.paths: a run that ended {names} cannot pass", "keep done, refused and flagged"
    if isinstance(item, RefusalCitesBudget) and item.args.budget_key not in _keys(folder, task):
        key = item.args.budget_key
        yield (
            f"args.budgetKey: no budget {key!r}",
            "name a key of config.budgets or of the overlay's constraints",
        )
    if isinstance(item, FilesTouchedSubset):
        for glob in item.args.allowed:
            if any(part in {"", ".", ".."} for part in glob.split("/")):
                yield (
                    f"args.allowed: {glob!r} can never match",
                    "give a tree-relative glob, ** for a whole folder",
                )


def _keys(folder: Path, task: Task) -> set[str]:
    keys = set(task.config.budgets)
    path = folder / "overlay" / ".copperhead" / "constraints.json"
    if path.is_file():
        try:
            registry = parse_json(read_bytes(path), str(path))
        except InvalidFile:
            return keys
        entries = registry if isinstance(registry, list) else []
        keys |= registry.keys() if isinstance(registry, dict) else set()
        keys |= {entry["key"] for entry in entries if isinstance(entry, dict) and "key" in entry}
    return keys


def _solutions(folder: Path, items: Sequence[Assertion]) -> Iterator[InvalidFile]:
    root = folder / "solutions"
    if not (root / "gold").is_dir():
        yield InvalidFile("missing", about=f"{root}/gold", fix="ship a solution that passes")
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        if path.is_dir():
            yield from _solution(path, items)


def _solution(path: Path, items: Sequence[Assertion]) -> Iterator[InvalidFile]:
    about = f"{path}/solution.json"
    if path.name not in {"gold", "noop"} and not path.name.startswith("wrong-"):
        yield InvalidFile("is called neither gold, noop nor wrong-…", about=str(path), fix="rename it")
    faults: list[InvalidFile] = []
    solution = _kept(faults, lambda: read_model(path / "solution.json", Solution))
    yield from faults
    if solution is None:
        return
    expect = solution.expect
    if (path.name == "gold") != (expect.verdict == "pass"):
        yield InvalidFile(
            f"expect.verdict: {expect.verdict}", about=about, fix="gold passes, and nothing but gold"
        )
    required = [item.id for item in items if item.required]
    if expect.first_failure is not None and expect.first_failure not in required:
        yield InvalidFile(
            f"expect.firstFailure: {expect.first_failure!r} is no required assertion",
            about=about,
            fix=f"use one of {', '.join(required)}",
        )
    if expect.category is not None and expect.category not in set(Category):
        yield InvalidFile(
            f"expect.category: no category {expect.category!r}", about=about, fix="see the Standard, §6"
        )


def _against(item: Assertion, task: Task, baseline: Tree, netlist: Netlist) -> Iterator[tuple[str, str]]:
    """Faults of one assertion against the baseline: (what, fix)."""
    if isinstance(item, NetPresent | NetAbsent | PinNetEquals):
        found = netlist.match(item.args.net)
        if len(found) > 1:
            yield (
                f"args.net: {item.args.net!r} is ambiguous in the baseline",
                f"use one of {', '.join(found)}",
            )
    if isinstance(item, FileUnchanged | DiffRatioMax) and item.args.path not in baseline:
        yield f"args.path: no {item.args.path} in the baseline", "name a file that every run starts from"
    if isinstance(item, DocRowMatches | DocContains) and task.mode is not Mode.CREATE:
        path = locate(item.args.doc, baseline=baseline, end=baseline)
        if path is None:
            yield (
                f"args.doc: no document {item.args.doc} in the baseline",
                "name one, or lay it in the overlay",
            )
            return
        try:
            if isinstance(item, DocRowMatches):
                yield from _row(item.args, read_tables(baseline, path))
            else:
                read_text(baseline, path)
        except Unjudgeable as error:
            yield f"args.doc: {error}", "mend the document"


def _row(args: DocRowArgs, found: Sequence[Table]) -> Iterator[tuple[str, str]]:
    keys = args.key if isinstance(args.key, dict) else {}
    fitting = [table for table in found if table.columns([*keys, args.column]) is not None]
    if not fitting:
        names = ", ".join([*keys, args.column])
        yield f"args.column: no table has the columns {names}", "use the header's names"
        return
    count = 0
    for table in fitting:
        at = table.columns(keys) if keys else [0]
        wanted = list(keys.values()) if keys else [args.key]
        count += sum([row[index] for index in at or []] == wanted for row in table.rows)
    if count > 1:
        yield (
            f"args.key: {count} rows of the baseline have it",
            "give an object of columns that picks one row",
        )


def _place(folder: Path, index: int, item: Assertion) -> str:
    return f"{folder}/assertions.json: {index} ({item.id}, {item.type})"
