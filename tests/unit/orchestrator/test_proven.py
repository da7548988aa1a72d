"""What was proven is kept by content, and a change shows."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.project import Project
from orchestrator.prove import PROVEN, keep, unproven
from schema.hashing import hash_folder
from schema.proven import ProvenTask

ROOT = Path(__file__).parents[3]
TASK = "rename-data-net"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A checkout with one task, and the proof of it."""
    for part in ("tasks/" + TASK, "fixtures/pdm-microphone-board", "suites"):
        ignore = shutil.ignore_patterns("tree")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignore if part.startswith("fixtures") else None)
    made = Project(tmp_path)
    assert keep(made, {TASK: proof(made)})
    return made


def proof(project: Project) -> ProvenTask:
    loaded = project.task(TASK)
    return ProvenTask(
        manifest_sha256=loaded.manifest_sha256,
        fixture_sha256=loaded.fixture.sha256,
        solutions_sha256=hash_folder(loaded.folder / "solutions"),
        kicad_version="9.0.2",
        solutions={"gold": "pass"},
    )


def test_an_unchanged_task_is_proven_and_the_file_stays_as_it_is(project: Project) -> None:
    assert list(unproven(project, [TASK])) == []
    before = (project.root / PROVEN).read_bytes()
    assert not keep(project, {TASK: proof(project)})
    assert (project.root / PROVEN).read_bytes() == before


def _request(folder: Path) -> None:
    value = json.loads((folder / "task.json").read_text())
    value["request"] += " Please."
    (folder / "task.json").write_text(json.dumps(value))


def _weight(folder: Path) -> None:
    value = json.loads((folder / "assertions.json").read_text())
    value[0]["weight"] += 1
    (folder / "assertions.json").write_text(json.dumps(value))


def _overlay(folder: Path) -> None:
    (folder / "overlay").mkdir(exist_ok=True)
    (folder / "overlay" / "note.md").write_text("planted")


def _solution(folder: Path) -> None:
    path = folder / "solutions" / "gold" / "solution.json"
    path.write_text(path.read_text() + "\n")


def _fewer_solutions(folder: Path) -> None:
    shutil.rmtree(folder / "solutions" / "noop")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_request, "the task changed"),
        (_weight, "the task changed"),
        (_overlay, "the task changed"),
        (_solution, "its solutions changed"),
        (_fewer_solutions, "its solutions changed"),
    ],
)
def test_any_change_shows(project: Project, change: Callable[[Path], None], says: str) -> None:
    change(project.root / "tasks" / TASK)
    (fault,) = unproven(project, [TASK])
    assert says in fault and fault.endswith(f"run copperbench prove {TASK}")


def test_the_readme_may_change(project: Project) -> None:
    readme = project.root / "tasks" / TASK / "README.md"
    readme.write_text(readme.read_text() + "More.\n")
    assert list(unproven(project, [TASK])) == []


def test_a_task_without_a_proof_and_a_proof_without_a_task_show(project: Project) -> None:
    path = project.root / PROVEN
    value = json.loads(path.read_text())
    value["tasks"]["gone"] = value["tasks"].pop(TASK)
    path.write_text(json.dumps(value))
    assert [fault.partition(";")[0] for fault in unproven(project, [TASK])] == [
        f"tasks/{TASK}: not proven",
        f"{PROVEN}: no task 'gone'",
    ]
    keep(project, {TASK: proof(project)})
    assert list(unproven(project, [TASK])) == []
