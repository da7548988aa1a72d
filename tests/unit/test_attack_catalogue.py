"""The attack suite's data and the hostile agent's functions are the same list."""

import ast
from pathlib import Path

import pytest

from orchestrator.project import Project
from schema.agent import Agent
from schema.errors import UsageError
from schema.jsonfile import read_model
from tests.attacks import table
from tests.attacks.families import ATTACKS, FAMILIES
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "tests/attacks/agent"
MODULES = ("answers", "results", "repository", "evidence", "resources", "leaks", "gateway")


def functions() -> list[str]:
    """Public functions of the agent's modules, which are its attacks."""
    trees = [ast.parse((AGENT / "hostile" / f"{name}.py").read_text()) for name in MODULES]
    defined = [node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [name.replace("_", "-") for name in defined if not name.startswith("_")]


def test_every_attack_is_declared_once_and_can_be_performed() -> None:
    assert sorted(ATTACKS) == sorted(functions())
    assert len(ATTACKS) == sum(map(len, FAMILIES.values()))


def test_every_attack_says_what_a_naive_harness_does_and_what_ours_does() -> None:
    assert [attack.name for attack in ATTACKS.values() if not (attack.naive and attack.defence)] == []


def test_the_threat_models_tables_are_those_of_the_suite() -> None:
    """Run ``python -m tests.attacks.table`` when this fails."""
    document = table.DOCUMENT.read_text("utf-8")
    assert table.spliced(document) == document


def test_the_threat_model_names_every_fuzzing_target() -> None:
    document = table.DOCUMENT.read_text("utf-8")
    assert [name for name in TARGETS if f"`{name}`" not in document] == []


def test_the_agent_is_none_that_people_can_run() -> None:
    project = Project(ROOT)
    assert read_model(AGENT / "agent.json", Agent).name == "hostile"
    with pytest.raises(UsageError):
        project.agent("hostile")
    with pytest.raises(UsageError):
        project.provider("hostile:hooks")
