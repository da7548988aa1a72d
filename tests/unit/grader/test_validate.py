"""Task validation: each fault is refused with its file, its place and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.validate import check_baseline, check_task, uncaught
from schema.assertions import Assertion
from schema.hashing import hash_folder
from schema.task import Solution
from tests.unit.grader.support import FIXTURE, assertions, netlist, task, tree

ITEMS: list[dict[str, Any]] = [
    {"id": "end", "type": "exit_path_in", "args": {"paths": ["done"]}, "weight": 1, "required": True},
    {"id": "net", "type": "net_present", "args": {"net": "A"}, "weight": 1, "required": True},
    {"id": "extra", "type": "no_secret", "weight": 1, "required": False},
]
GOLD = {"note": "x", "expect": {"verdict": "pass"}, "exitPath": "done", "summary": "x", "commits": 1}
WRONG = {**GOLD, "expect": {"verdict": "fail", "firstFailure": "net"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A valid task beside its fixture."""
    fixture = tmp_path / "fixtures" / "demo"
    (fixture / "tree").mkdir(parents=True)
    (fixture / "tree" / "demo.kicad_sch").write_text("(kicad_sch)")
    digest = hash_folder(fixture / "tree")
    write(fixture / "fixture.json", FIXTURE.model_copy(update={"sha256": digest}).to_json())
    root = tmp_path / "tasks" / "demo"
    write(root / "task.json", {**task().to_json(), "fixture": {"path": "fixtures/demo", "sha256": digest}})
    write(root / "assertions.json", ITEMS)
    (root / "README.md").write_text("Tests a rename.\n")
    write(root / "solutions" / "gold" / "solution.json", GOLD)
    write(root / "solutions" / "wrong-net" / "solution.json", WRONG)
    return root


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")


def change(name: str, **fields: Any) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / name
        write(path, {**json.loads(path.read_text()), **fields})

    return apply


def items(*more: dict[str, Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        write(
            folder / "assertions.json", [*ITEMS, *({"weight": 1, "required": True, **item} for item in more)]
        )

    return apply


def file(name: str, text: str = "x") -> Callable[[Path], None]:
    return lambda folder: write(folder / name, text)


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def test_a_valid_task_has_no_fault(folder: Path) -> None:
    assert check_task(folder) == []


Fault = tuple[Callable[[Path], object], str, str]


def one(kind: str, args: dict[str, Any], place: str, words: str) -> Fault:
    """One assertion too many, and where its fault is."""
    return items({"id": "a", "type": kind, "args": args}), place, words


def declared(name: str, expect: Any, words: str) -> Fault:
    """A solution's expectation, and what is wrong with it."""
    return change(f"solutions/{name}/solution.json", expect=expect), f"{name}/solution.json", words


def pinned(fixture: str, words: str) -> Fault:
    """A fixture reference, and what is wrong with it."""
    return change("task.json", fixture={"path": fixture, "sha256": "1" * 64}), "task.json", words


@pytest.mark.parametrize(
    ("spoil", "place", "words"),
    [
        (file("notes.txt"), "notes.txt", "stray"),
        (file("solutions/gold/patch.txt"), "solutions/gold/patch.txt", "stray"),
        (file("extra/x"), "extra/x", "stray"),
        (file("overlay/.git/config"), "overlay/.git/config", "overlay"),
        (file("overlay/.copperhead/config.json"), "config.json", "overlay"),
        (lambda f: (f / "link").symlink_to("README.md"), "link", "symlinks"),
        (without("README.md"), "README.md", "missing"),
        (file("README.md", " \n"), "README.md", "empty"),
        (without("task.json"), "task.json", "cannot read"),
        (without("assertions.json"), "assertions.json", "cannot read"),
        (file("task.json", "{"), "task.json", "JSON"),
        (file("assertions.json", '[{"id": "a", "id": "b"}]'), "assertions.json", "duplicate key"),
        (file("assertions.json", "[]"), "assertions.json", "required"),
        (change("task.json", id="other"), "task.json", "id"),
        (change("task.json", colour="red"), "task.json", "colour"),
        (change("task.json", variantOf="nothing"), "task.json", "variantOf"),
        pinned("fixtures/demo", "fixture.sha256"),
        pinned("fixtures/none", "fixture.path"),
        (change("task.json", mode="create", request="brief.md"), "brief.md", "missing"),
        (file("brief.md"), "brief.md", "create"),
        (lambda f: write(f.parent.parent / "fixtures/demo/tree/new", "x"), "task.json", "tree"),
        one("net_is_nice", {}, "assertions.json", "net_is_nice"),
        one("net_present", {"net": "A", "pin": 1}, "assertions.json", "3.net_present.args.pin"),
        one("net_present", {"net": ""}, "assertions.json", "args.net"),
        (items({"id": "a", "type": "net_present"}), "assertions.json", "args"),
        one("commit_count", {}, "assertions.json", "exactly one"),
        one("doc_contains", {"doc": "A.md", "pattern": "("}, "assertions.json", "RE2"),
        one("doc_contains", {"doc": "A.md", "pattern": "(?=x)"}, "assertions.json", "RE2"),
        one("file_unchanged", {"path": "../x"}, "assertions.json", "args.path"),
        (items({"id": "a", "type": "no_secret", "weight": 0}), "assertions.json", "weight"),
        (items({"id": "net", "type": "no_secret"}), "assertions.json", "duplicate id"),
        one("exit_path_in", {"paths": ["killed"]}, "3 (a, exit_path_in)", "killed"),
        one("refusal_cites_budget", {"budgetKey": "x"}, "3 (a, ", "no budget"),
        one("files_touched_subset", {"allowed": ["docs/"]}, "3 (a, ", "never match"),
        one("files_touched_subset", {"allowed": ["/docs"]}, "3 (a, ", "never match"),
        (lambda f: write(f / "assertions.json", ITEMS[1:]), "assertions.json", "how the run ended"),
        (lambda f: (f / "solutions/gold").rename(f / "solutions/good"), "solutions/gold", "missing"),
        (lambda f: (f / "solutions/wrong-net").rename(f / "solutions/bad"), "solutions/bad", "rename"),
        declared("gold", WRONG["expect"], "expect.verdict"),
        declared("wrong-net", GOLD["expect"], "expect.verdict"),
        declared("wrong-net", {"verdict": "fail", "firstFailure": "extra"}, "no required assertion"),
        declared("wrong-net", {"verdict": "fail", "firstFailure": "nothing"}, "no required assertion"),
        declared("wrong-net", {"verdict": "fail", "firstFailure": "net", "category": "bad-luck"}, "bad-luck"),
        (change("solutions/gold/solution.json", summary=""), "gold/solution.json", "summary"),
        (without("solutions/gold/solution.json"), "gold/solution.json", "cannot read"),
    ],
)
def test_a_fault_is_named_with_file_and_place(
    folder: Path, spoil: Callable[[Path], object], place: str, words: str
) -> None:
    spoil(folder)
    told = [str(fault) for fault in check_task(folder)]
    assert any(place in line and words in line for line in told), told
    assert all(len(line.splitlines()) == 1 for line in told)


def test_budgets_may_come_from_the_overlay(folder: Path) -> None:
    items({"id": "a", "type": "refusal_cites_budget", "args": {"budgetKey": "x"}})(folder)
    write(folder / "overlay/.copperhead/constraints.json", {"x": {"max": 1}})
    assert check_task(folder) == []
    write(folder / "overlay/.copperhead/constraints.json", [{"key": "x", "max": 1}])
    assert check_task(folder) == []


def test_required_assertions_that_no_solution_catches() -> None:
    solutions = [Solution.model_validate(GOLD), Solution.model_validate(WRONG)]
    assert uncaught(assertions(*({**item} for item in ITEMS)), solutions) == ["end"]


BASELINE = tree(
    {
        "docs/PINOUT.md": "| Refdes | Pin | Net |\n|---|---|---|\n| J1 | 1 | A |\n| J1 | 2 | B |\n",
        "docs/SPEC.md": b"\xff",
        "hw/a.kicad_sch": "x",
    }
)
NETS = netlist({"/A": ["J1.1"], "/s/B": ["J1.2"], "/t/B": ["J2.1"]})


@pytest.mark.parametrize(
    ("kind", "args", "words"),
    [
        ("net_present", {"net": "B"}, "ambiguous"),
        ("net_absent", {"net": "B"}, "ambiguous"),
        ("pin_net_equals", {"refdes": "J1", "pin": "2", "net": "B"}, "ambiguous"),
        ("net_present", {"net": "/s/B"}, None),
        ("net_present", {"net": "A"}, None),
        ("net_present", {"net": "NEW"}, None),
        ("doc_contains", {"doc": "docs/NONE.md", "pattern": "x"}, "no document"),
        ("doc_contains", {"doc": "SPEC.md", "pattern": "x"}, "UTF-8"),
        ("doc_contains", {"doc": "PINOUT.md", "pattern": "x"}, None),
        ("doc_row_matches", {"doc": "NONE.md", "key": "J1", "column": "Net", "pattern": "x"}, "no document"),
        ("doc_row_matches", {"doc": "PINOUT.md", "key": "J1", "column": "Net", "pattern": "x"}, "2 rows"),
        ("doc_row_matches", {"doc": "PINOUT.md", "key": "J2", "column": "Net", "pattern": "x"}, None),
        ("doc_row_matches", {"doc": "PINOUT.md", "key": "J1", "column": "Value", "pattern": "x"}, "no table"),
        (
            "doc_row_matches",
            {"doc": "PINOUT.md", "key": {"Refdes": "J1", "Pin": "1"}, "column": "Net", "pattern": "x"},
            None,
        ),
        ("file_unchanged", {"path": "hw/b.kicad_sch"}, "no hw/b.kicad_sch"),
        ("diff_ratio_max", {"path": "hw/b.kicad_sch", "ratio": 0.1}, "no hw/b.kicad_sch"),
        ("diff_ratio_max", {"path": "hw/a.kicad_sch", "ratio": 0.1}, None),
    ],
)
def test_faults_that_only_the_baseline_shows(kind: str, args: dict[str, Any], words: str | None) -> None:
    item: tuple[Assertion, ...] = assertions({"id": "a", "type": kind, "args": args})
    told = [str(fault) for fault in check_baseline(Path("tasks/demo"), task(), item, BASELINE, NETS)]
    if words is None:
        assert told == []
    else:
        assert len(told) == 1
        assert words in told[0]
        assert told[0].startswith(f"tasks/demo/assertions.json: 0 (a, {kind}): args.")


def test_documents_of_a_create_task_need_not_exist() -> None:
    item = assertions({"id": "a", "type": "doc_contains", "args": {"doc": "NONE.md", "pattern": "x"}})
    create = task(mode="create", request="brief.md")
    assert check_baseline(Path("tasks/demo"), create, item, BASELINE, NETS) == []
