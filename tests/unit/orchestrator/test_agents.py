"""The agents that ship, and those that the documents show: manifests that hold."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator import images
from orchestrator.images import ImageSpec, PackageMissing, _must_be, specs
from orchestrator.project import Project
from orchestrator.vet import vet_agent
from schema.agent import Agent
from schema.task import Mode
from schema.transcript import ExitPath

ROOT = Path(__file__).parents[3]
PROJECT = Project(ROOT)
RECIPES = re.findall(r"```json\n(.*?)```", (ROOT / "docs/add-an-agent.md").read_text(), re.DOTALL)


def test_the_documents_show_three_recipes() -> None:
    names = [json.loads(text)["name"] for text in RECIPES]
    assert names == ["claude-code", "codex", "mini-swe-agent"]


@pytest.mark.parametrize("text", RECIPES, ids=lambda text: json.loads(text)["name"])
def test_a_recipe_is_a_manifest_with_the_model_behind_the_gateway(text: str) -> None:
    agent = Agent.model_validate_json(text.replace("VERSION", "1.0.0"))
    vet_agent(agent)
    values = agent.settle({}, {"maxTurns": "40", "maxRepairCycles": "5"}) | {"request": "r", "model": "m"}
    told = [*agent.command(Mode.DO, values), *agent.surroundings(values).values()]
    assert "r" in told and any("127.0.0.1:8080" in part for part in told)
    assert not any("{" in part for part in told)


@pytest.mark.parametrize("name", ["solution", "reference", "copperhead"])
def test_a_shipped_agent_is_what_its_folder_says(name: str) -> None:
    agent = PROJECT.agent(name)
    vet_agent(agent)
    assert agent.name == name and agent.image == f"copperbench/agent-{name}"


def test_copperheads_model_is_the_gateways_and_its_key_nobodys() -> None:
    agent = PROJECT.agent("copperhead")
    values = agent.settle({"maxTurns": "9"}, {}) | {"request": "-- {model}", "model": "some/model"}
    assert agent.command(Mode.DO, values) == ["copperhead", "do", "-- {model}", "--max-turns", "9"]
    environment = agent.surroundings(values)
    assert environment["COPPERHEAD_MODEL"] == "compat:some/model"
    assert environment["COPPERHEAD_API_KEY_ENV"] not in environment
    assert not [name for name in environment if name.endswith("_KEY")]
    assert agent.exit_codes == {"0": ExitPath.DONE, "2": ExitPath.FLAGGED}


def test_a_package_can_come_from_a_tarball() -> None:
    (spec,) = (spec for spec in specs(PROJECT) if spec.package)
    assert (spec.tag, spec.package) == ("copperbench/agent-copperhead", "copperhead@0.9.0")
    assert spec.package_variable == "COPPERHEAD_SPEC"


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"version": "0.9.1"}'])
def test_only_the_version_of_the_manifest_is_built(tmp_path: Path, text: str | None) -> None:
    spec = ImageSpec("t", "d", "p", package="@scope/name@0.9.0")
    file = tmp_path / "node_modules/@scope/name/package.json"
    file.parent.mkdir(parents=True)
    if text is not None:
        file.write_text(text)
    with pytest.raises(PackageMissing) as caught:
        _must_be(tmp_path, spec)
    assert "agent.json says 0.9.0" in str(caught.value)
    file.write_text('{"version": "0.9.0"}')
    _must_be(tmp_path, spec)


def test_an_image_whose_package_cannot_be_had_is_said_in_one_line_and_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[str] = []
    said: list[str] = []

    def build(_project: Project, _engine: Any, spec: ImageSpec, _say: Any) -> None:
        if spec.package:
            raise PackageMissing("npm cannot get it", fix="name a tarball")
        built.append(spec.tag)

    monkeypatch.setattr(images, "build", build)
    monkeypatch.setattr(images, "_ensure_base", lambda *_: None)
    monkeypatch.setattr(images, "bake", lambda *_: None)
    images.build_all(PROJECT, cast("Any", SimpleNamespace()), said.append)
    assert said == ["copperbench/agent-copperhead: not built: npm cannot get it; name a tarball"]
    assert built == [spec.tag for spec in specs(PROJECT) if not spec.package]


def test_the_prompts_know_no_task() -> None:
    """A prompt that names a task's budget, board or part would give the answer away."""
    prompts = " ".join(path.read_text() for path in ROOT.glob("images/agents/reference/prompts/*.md"))
    assert prompts
    for name in PROJECT.task_ids():
        task = PROJECT.task(name).task
        words = [
            *task.config.budgets,
            task.fixture.id,
            *re.findall(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b", task.request),
        ]
        assert [word for word in words if word in prompts] == []
