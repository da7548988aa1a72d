"""What the stamp says of an agent's Node and commit: read off its image, and null for all others."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator import images
from orchestrator.grading import GraderFacts
from orchestrator.images import COMMIT_LABEL, build, specs
from orchestrator.project import Project
from orchestrator.stamp import stamp
from orchestrator.versions import node_version, python_version
from schema.errors import EnvironmentFault
from schema.record import Stamp
from tests.unit.samples import run_id

PROJECT = Project(Path(__file__).parents[3])
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Fake:
    """An engine in which every container prints one thing."""

    def __init__(self, said: str = "", code: int | None = 0, labels: dict[str, str] | None = None) -> None:
        self.said, self.code, self.labels = said, code, labels
        self.owner, self.asked, self.removed = "me", list[str](), list[str]()
        self.built: list[dict[str, str]] = []

    def digest(self, image: str) -> str:
        return f"sha256:{image.replace('/', '-')}"

    def create(self, spec: Any) -> str:
        self.asked.append(spec.image)
        return str(spec.name)

    def start(self, _container: str) -> None:
        pass

    def wait(self, _container: str, _seconds: float) -> int | None:
        return self.code

    def output(self, _container: str) -> tuple[str, str]:
        return f"{self.said}\n", ""

    def remove(self, container: str) -> None:
        self.removed.append(container)

    def platform(self) -> str:
        return "linux/amd64"

    def image_labels(self, _image: str) -> dict[str, str] | None:
        return self.labels

    def image_bytes(self, _image: str) -> int:
        return 1

    def build(self, *_: Any, labels: dict[str, str], **__: Any) -> list[str]:
        self.labels = labels
        self.built.append(labels)
        return []


def stamped(tmp_path: Path, agent: str, engine: Fake) -> Stamp:
    """The stamp of a run of a shipped agent."""
    project = Project(PROJECT.root)
    project.cache = tmp_path
    said = GraderFacts("9.0.2", "2.47.2", "3.13.5", "0.1.0", "0.1.0", 6, "0" * 64)
    return stamp(
        project,
        cast("Any", engine),
        said,
        run=run_id(agent=agent),
        loaded=PROJECT.task("refuse-fast-cable"),
        agent=PROJECT.agent(agent),
        baseline=cast("Any", SimpleNamespace(facts=SimpleNamespace(scaffolder_version="2"))),
        runtime=None,
    )


def test_the_stamp_of_an_npm_package_holds_its_node_and_its_commit(tmp_path: Path) -> None:
    engine = Fake("v20.19.2", labels={COMMIT_LABEL: COMMIT})
    for _ in range(2):
        made = stamped(tmp_path, "copperhead", engine)
        assert (made.node_version, made.agent_commit) == ("20.19.2", COMMIT)
    assert engine.asked == ["copperbench/agent-copperhead"] and len(engine.removed) == 1


@pytest.mark.parametrize("agent", ["reference", "solution"])
def test_the_stamp_of_any_other_agent_stays_as_it_was(tmp_path: Path, agent: str) -> None:
    """Naive: Node of whatever image has one; records that are kept would be run again."""
    engine = Fake("v20.19.2", labels={})
    made = stamped(tmp_path, agent, engine)
    assert (made.node_version, made.agent_commit, engine.asked) == (None, None, [])


def test_a_package_without_node_or_commit_leaves_both_unknown(tmp_path: Path) -> None:
    made = stamped(tmp_path, "copperhead", Fake(""))
    assert (made.node_version, made.agent_commit) == (None, None)


@pytest.mark.parametrize(("said", "code"), [("v20", 0), ("v20.19.2", None), ("v20.19.2", 137), ("", 1)])
def test_what_did_not_end_in_order_is_not_taken_for_no_node(
    tmp_path: Path, said: str, code: int | None
) -> None:
    """Naive: null, and another stamp than that of the run before."""
    project = Project(tmp_path)
    engine = Fake(said, code)
    with pytest.raises(EnvironmentFault, match="Node does not say its version"):
        node_version(project, cast("Any", engine), PROJECT.agent("copperhead"))
    assert len(engine.removed) == 1


def test_a_python_is_asked_for_likewise(tmp_path: Path) -> None:
    engine = cast("Any", Fake("3.13"))
    assert [python_version(Project(tmp_path), engine, "i") for _ in range(2)] == ["3.13", "3.13"]
    assert engine.asked == ["i"]


@pytest.mark.parametrize(
    ("head", "label"), [(COMMIT, COMMIT), (None, None), ("main", None), (7, None), (f"{COMMIT}\n", None)]
)
def test_the_label_is_the_packages_git_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: object, label: str | None
) -> None:
    package = {"version": "0.9.0"} | ({} if head is None else {"gitHead": head})
    modules = {"node_modules/copperhead/package.json": json.dumps(package).encode()}
    monkeypatch.setattr(images, "_node_modules", lambda *_: modules)
    (spec,) = (each for each in specs(PROJECT) if each.package)
    engine = Fake()
    for _ in range(2):
        build(PROJECT, cast("Any", engine), spec, lambda _: None)
    (labels,) = engine.built
    assert labels.get(COMMIT_LABEL) == label
