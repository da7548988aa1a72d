"""Conditions have one spelling, and only what a task and an agent can carry out is accepted."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.condition import DEFAULT, apply, parse, settings
from schema.errors import UsageError
from tests.unit.samples import task

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "maxTurns": st.integers(0, 9999).map(str),
        "maxRepairCycles": st.integers(0, 9999).map(str),
        "prompt": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,20}", fullmatch=True),
        "tools": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,20}", fullmatch=True),
    },
)


@given(OPTIONS, st.randoms())
def test_order_does_not_matter_and_nothing_is_lost(values: dict[str, str], order: random.Random) -> None:
    pairs = [f"{key}={value}" for key, value in values.items()]
    order.shuffle(pairs)
    name = parse(pairs)
    assert settings(name) == values
    assert parse(sorted(pairs)) == name
    assert (name == DEFAULT) == (not values)


@pytest.mark.parametrize(
    "options",
    [
        ["turns=3"],
        ["maxTurns"],
        ["maxTurns="],
        ["maxTurns=-1"],
        ["maxTurns=1e3"],
        ["maxTurns=007"],
        ["maxTurns=3", "maxTurns=4"],
        ["prompt=a,b"],
        ["prompt=../x"],
        ["prompt=a/b"],
        ["tools=a b"],
        ["prompt=" + "x" * 65],
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        parse(options)
    assert "\n" not in str(error.value) and error.value.fix


def test_a_condition_changes_the_configuration_and_nothing_else() -> None:
    one = task(caps={"turns": 50, "wallClockSec": 60})
    other = apply(one, "maxRepairCycles=0,maxTurns=7")
    assert (other.config.max_turns, other.config.max_repair_cycles) == (7, 0)
    assert other.model_copy(update={"config": one.config}) == one
    assert apply(one, DEFAULT) == one


@pytest.mark.parametrize("turns", ["0", "51"])
def test_turns_stay_within_the_hard_cap(turns: str) -> None:
    with pytest.raises(UsageError, match="hard cap"):
        apply(task(caps={"turns": 50, "wallClockSec": 60}), f"maxTurns={turns}")
