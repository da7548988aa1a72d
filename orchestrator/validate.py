"""``copperbench validate``: tasks, suites and fixtures against the schemas and against each other."""

from __future__ import annotations

import threading
from pathlib import Path

from grader.evidence import Entry
from grader.validate import check_task
from orchestrator.engine import Engine
from orchestrator.fixtures import artifact_options, check
from orchestrator.grading import IMAGE, LIMITS
from orchestrator.project import LoadedTask, Project, read_tree
from orchestrator.prove import unproven
from orchestrator.sandbox import INPUT, WORKSPACE, Sandbox, SandboxSpec, pack
from orchestrator.vet import planted_orders
from orchestrator.workspace import Baselines, load_pristine
from schema.errors import CopperbenchError
from schema.hashing import MANIFEST_PARTS, sha256
from schema.jsonfile import parse_json

SECONDS = 300


def static_faults(project: Project, names: list[str]) -> list[str]:
    """Everything that files alone show, a line each."""
    faults = []
    for name in names:
        faults += [relative(project, str(fault)) for fault in check_task(project.root / "tasks" / name)]
    faults += _suite_faults(project)
    for name in project.fixture_ids():
        faults += check(project, name)
    if not faults:
        faults += planted_orders(project, names)
        faults += unproven(project, names)
    return faults


def baseline_faults(project: Project, engine: Engine, names: list[str]) -> list[str]:
    """What only a task's prepared baseline shows: ambiguous nets, missing documents and rows."""
    baselines = Baselines(project, engine)
    faults = []
    for name in names:
        try:
            faults += _against_baseline(project, engine, baselines, project.task(name))
        except CopperbenchError as error:
            faults.append(str(error))
    return faults


def relative(project: Project, text: str) -> str:
    """A fault's text with paths as seen from the checkout."""
    return text.replace(f"{project.root}/", "")


def _suite_faults(project: Project) -> list[str]:
    known = set(project.task_ids())
    faults = []
    for path in sorted((project.root / "suites").glob("*.json")):
        about = f"suites/{path.name}"
        try:
            suite = project.suite(path.stem)
        except CopperbenchError as error:
            faults.append(relative(project, str(error)))
            continue
        if suite.id != path.stem:
            faults.append(f"{about}: id is {suite.id!r}; make it the file's name")
        faults += [f"{about}: tasks: no task {name!r}" for name in suite.tasks if name not in known]
    return faults


def _against_baseline(
    project: Project, engine: Engine, baselines: Baselines, loaded: LoadedTask
) -> list[str]:
    baseline = baselines.get(loaded, load_pristine(project, loaded))
    name = loaded.task.id
    spec = SandboxSpec(
        name=f"copperbench-validate-{sha256(f'{project.root}|{name}'.encode())[:16]}",
        image=IMAGE,
        command=[
            "python3",
            "-m",
            "grader.validate_baseline",
            f"{INPUT}/{name}",
            WORKSPACE,
            *artifact_options(loaded.fixture),
        ],
        wall_seconds=SECONDS,
        workspace=pack(baseline.tree),
        inputs=pack(_task_files(loaded.folder), prefix=f"{name}/"),
        environment={"HOME": "/tmp"},  # noqa: S108  # in the container
        labels={"role": "validate", "task": name},
        limits=LIMITS,
    )
    with Sandbox(engine, spec) as sandbox:
        ended = sandbox.watch(sandbox.start(), threading.Event())
        out, err = sandbox.output()
    if ended.exit.code:
        said = (err.strip().splitlines() or ["no output"])[-1]
        return [f"tasks/{name}: cannot be checked against its baseline ({said})"]
    answer = parse_json(out.strip().splitlines()[-1], f"validation of {name}")
    return [str(fault).replace(f"{INPUT}/", "tasks/") for fault in answer["faults"]]


def _task_files(folder: Path) -> dict[str, Entry]:
    """The task without its solutions."""
    return {path: entry for path, entry in read_tree(folder).items() if path.split("/")[0] in MANIFEST_PARTS}
