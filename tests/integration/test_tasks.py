"""Tasks beside the boards they stand on: nothing of a board is in the repository."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.project import Project
from tests.integration.conftest import ROOT

BOILERPLATE = 40
"""Shorter lines are KiCad's or a name that an anchor cannot do without."""


def lines(text: str) -> Iterator[str]:
    yield from (line.strip() for line in text.splitlines())


def texts(value: Any) -> Iterator[str]:
    """Every string of a JSON document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)


def written(path: Path) -> Iterator[str]:
    """A committed file's lines, those inside of JSON strings too."""
    text = path.read_text("utf-8")
    yield from lines(text)
    for inner in texts(json.loads(text)) if path.suffix == ".json" else ():
        yield from lines(inner)


@pytest.fixture(scope="module")
def theirs() -> frozenset[str]:
    """All longer lines of all boards that are not ours."""
    project = Project(ROOT)
    found: set[str] = set()
    for name in project.fixture_ids():
        if not project.fixture(name).vendored:
            before = len(found)
            for path in project.fixture_tree(name).rglob("*.kicad_*"):
                found.update(line for line in lines(path.read_text("utf-8")) if len(line) >= BOILERPLATE)
            assert len(found) > before, f"{name} is not here: run make fixtures"
    return frozenset(found)


def test_no_file_of_a_task_holds_a_line_of_a_board(theirs: frozenset[str]) -> None:
    held = [
        (path.relative_to(ROOT).as_posix(), line)
        for path in sorted((ROOT / "tasks").rglob("*"))
        if path.is_file()
        for line in written(path)
        if line in theirs
    ]
    assert held == []
