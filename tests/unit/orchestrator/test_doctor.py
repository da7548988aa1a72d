"""What doctor finds missing: only what keeps a run from working."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orchestrator import doctor
from orchestrator.project import Project

ROOT = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A checkout with one task, its board, and another board, neither of them fetched."""
    for part in ("tasks/rename-data-net", "fixtures/pdm-microphone-board", "fixtures/tycho"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("tree"))
    return Project(tmp_path)


def fixtures(project: Project) -> dict[str, str]:
    return {line.what.split()[1].rstrip(":"): line.state for line in doctor._fixtures(project)}


def test_a_board_that_no_task_uses_need_not_be_here(project: Project) -> None:
    """Naive: make bench fetches its suite's boards, and doctor fails right after it."""
    assert fixtures(project) == {"pdm-microphone-board": "missing", "tycho": "note"}


def test_other_bytes_than_pinned_are_missing_whoever_uses_them(project: Project) -> None:
    for name in ("pdm-microphone-board", "tycho"):
        tree = project.fixture_tree(name)
        tree.mkdir(parents=True)
        (tree / "x").write_bytes(b"")
    assert fixtures(project) == {"pdm-microphone-board": "missing", "tycho": "missing"}


def test_a_task_that_cannot_be_read_does_not_stop_doctor(project: Project) -> None:
    (project.root / "tasks/rename-data-net/task.json").write_text("{")
    assert fixtures(project) == {"pdm-microphone-board": "note", "tycho": "note"}
