"""The shipped tasks as data, and what the loader says about others."""

import subprocess
import sys
from pathlib import Path

import pytest

from compass.taskbench import tasks
from schema.errors import EnvironmentFault, UsageError
from tests.unit.compass.taskbench_data import FILES, NAME, make

SHIPPED = tasks.names(tasks.shipped())


def test_the_five_shipped_kinds() -> None:
    assert SHIPPED == [
        "01-off-by-one",
        "02-unhandled-error",
        "03-regex",
        "04-refactor",
        "05-path-traversal",
    ]
    assert [tasks.structure(tasks.shipped(), name) for name in SHIPPED] == [[]] * 5


def test_the_tasks_are_found_from_any_folder(tmp_path: Path) -> None:
    code = (
        "from compass.taskbench.tasks import load, names, shipped; "
        "print(len([load(shipped(), name) for name in names(shipped())]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "5\n"


@pytest.mark.parametrize("name", SHIPPED)
def test_oracles_name_no_place_of_the_machine(name: str) -> None:
    # An oracle runs the seeded bug: whatever it asks for may happen.
    task = tasks.load(tasks.shipped(), name)
    for text in task.scripts.values():
        for place in ('"/', "'/", " /etc", " /tmp", "$HOME", "~/"):
            assert place not in text, place


def test_selection_keeps_the_tasks_order_and_refuses_unknown_names(tmp_path: Path) -> None:
    root = tasks.shipped()
    assert tasks.select(root, []) == SHIPPED
    assert tasks.select(root, ["03-regex", "01-off-by-one", "03-regex"]) == ["01-off-by-one", "03-regex"]
    with pytest.raises(UsageError, match=r"no task '09-none'; there are: 01-off-by-one"):
        tasks.select(root, ["09-none"])
    with pytest.raises(UsageError, match="no task here"):
        tasks.names(tmp_path)


@pytest.mark.parametrize("path", sorted(FILES))
def test_each_file_is_needed(tmp_path: Path, path: str) -> None:
    root = make(tmp_path)
    assert tasks.structure(root, NAME) == []
    (root / path).write_text(" \n", encoding="utf-8")
    assert "is empty" in tasks.structure(root, NAME)[0]
    (root / path).write_bytes(b"\xff")
    assert "cannot be read as UTF-8" in tasks.structure(root, NAME)[0]
    (root / path).unlink()
    wrong = tasks.structure(root, NAME)
    assert len(wrong) == 1
    assert "is missing" in wrong[0]


def test_nothing_else_belongs_in_a_task(tmp_path: Path) -> None:
    root = make(tmp_path)
    (root / "tasks" / NAME / "notes.txt").write_text("x", encoding="utf-8")
    assert tasks.structure(root, NAME) == [f"tasks/{NAME}/notes.txt does not belong here"]
    (root / "tasks" / NAME).rename(root / "tasks" / "Small")
    assert "name it NN-name" in tasks.structure(root, "Small")[0]


def test_a_task_that_cannot_be_read_names_the_file(tmp_path: Path) -> None:
    root = make(tmp_path)
    (root / "tasks" / NAME / "check.sh").unlink()
    with pytest.raises(EnvironmentFault, match=r"check\.sh.*taskbench validate"):
        tasks.load(root, NAME)
