"""Agents as data: templates, ablation switches, what a manifest may not say."""

from typing import Any

import pytest
from pydantic import ValidationError

from schema.agent import Agent
from schema.errors import UsageError
from schema.task import Mode

MANIFEST: dict[str, Any] = {
    "name": "a",
    "version": "1",
    "image": "i",
    "commands": {"do": ["run", "--n={maxTurns}", "--p={prompt}", "{request}"]},
    "environment": {"MODEL": "compat:{model}", "BRACES": "{other} {}"},
    "bookkeeping": {"always": []},
    "protocol": "openai-chat",
    "conditions": {"maxTurns": [], "prompt": ["long", "short"]},
}
DEFAULTS = {"maxTurns": "40", "maxRepairCycles": "5"}


def agent(**changes: Any) -> Agent:
    return Agent.model_validate({**MANIFEST, **changes})


def test_templates_are_filled_in_one_pass() -> None:
    values = agent().settle({}, DEFAULTS) | {"request": "{model} {maxTurns}", "model": "x"}
    assert agent().command(Mode.DO, values) == ["run", "--n=40", "--p=long", "{model} {maxTurns}"]
    assert agent().surroundings(values) == {"MODEL": "compat:x", "BRACES": "{other} {}"}


def test_a_condition_wins_over_the_tasks_value_and_the_first_listed() -> None:
    assert agent().settle({"maxTurns": "7", "prompt": "short"}, DEFAULTS) == {
        "maxTurns": "7",
        "maxRepairCycles": "5",
        "prompt": "short",
    }


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"tools": "x"}, "takes no condition 'tools'; use one of maxTurns, prompt"),
        ({"prompt": "medium"}, "condition prompt=medium is not known to agent a; use one of long, short"),
        (
            {"maxTurns": "many"},
            "condition maxTurns=many is not known to agent a; use one of the whole numbers",
        ),
        ({"maxTurns": "0007"}, "condition maxTurns=0007"),
        ({"maxTurns": "1001"}, "condition maxTurns=1001"),
    ],
)
def test_what_an_agent_does_not_take_is_a_usage_error(wanted: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        agent().settle(wanted, DEFAULTS)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"conditions": {"maxTurns": []}}, "{prompt} is used, and conditions does not say its values"),
        (
            {"conditions": {"prompt": ["a"], "tools": ["all"]}},
            "condition tools is taken, and no command or variable uses {tools}",
        ),
        ({"conditions": {"prompt": []}}, "prompt and tools list their values"),
        ({"conditions": {"prompt": ["a"], "maxTurns": ["3"]}}, "prompt and tools list their values"),
        ({"conditions": {"colour": ["a"]}}, "conditions.colour"),
        ({"package": "copperhead"}, "package"),
        ({"package": "copperhead@latest"}, "package"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        agent(**changes)
    assert said in str(caught.value)


@pytest.mark.parametrize("package", ["copperhead@0.9.0", "@some-one/agent@1.2.3-rc.1"])
def test_a_package_is_pinned_to_a_version(package: str) -> None:
    assert agent(package=package).package == package
