"""The constraint registry: strict, exact, and never more than unreadable."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader import constraints
from grader.constraints import REGISTRY, differences, read_registry, same
from grader.kicad.errors import Unjudgeable
from schema.assertions import ConstraintArgs
from tests.unit.grader.support import tree

NUMBERS = st.integers(-(10**15), 10**15) | st.floats(-1e300, 1e300)
LEAVES = st.none() | st.booleans() | NUMBERS | st.text(max_size=4)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=2), max_leaves=4)
FIELDS = st.sampled_from(["key", "value", "min", "max", "source", "affects", "forbidden", "other"])
ENTRIES = st.dictionaries(FIELDS, VALUES, max_size=4) | VALUES


@given(st.dictionaries(st.text(max_size=3), ENTRIES, max_size=3) | st.lists(ENTRIES, max_size=3) | VALUES)
def test_any_json_is_a_registry_or_unreadable(document: object) -> None:
    try:
        found = read_registry(tree({REGISTRY: json.dumps(document)}))
    except Unjudgeable as error:
        assert str(error).startswith(REGISTRY)
    else:
        assert all(key == constraint.key for key, constraint in found.items())


@given(st.dictionaries(st.text(max_size=3), st.fixed_dictionaries({"max": NUMBERS}), max_size=3))
def test_what_is_recorded_is_found_exactly(limits: dict[str, dict[str, float]]) -> None:
    found = read_registry(tree({REGISTRY: json.dumps(limits)}))
    for key, entry in limits.items():
        if key:
            assert differences(found[key], ConstraintArgs(key=key, max=entry["max"])) == []
            assert differences(found[key], ConstraintArgs(key=key, max=entry["max"] + 1 + abs(entry["max"])))


@given(NUMBERS, NUMBERS)
def test_numbers_are_the_same_when_they_are_equal(one: float, other: float) -> None:
    assert same(Decimal(str(one)), other) is (Decimal(str(one)) == Decimal(str(other)))
    assert same(str(one), one)
    assert not same(bool(one), one)
    assert not same(None, one)


@pytest.mark.parametrize(
    "text", ["25 uA", "", " ", "0x19", "2_5", "٢٥", "NaN", "Infinity", "+", "25.", ".5", "1e9999"]
)
def test_only_a_plain_number_in_quotes_is_a_number(text: str) -> None:
    """Python's ``float`` and ``int`` take underscores, other digits and ``nan``."""
    assert not any(same(text, number) for number in (25, 0.5, 0))
    assert same(text, text)


def test_entries_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = tree({REGISTRY: json.dumps({"a": {}, "b": {}})})
    monkeypatch.setattr(constraints, "ENTRIES", 2)
    assert len(read_registry(registry)) == 2
    monkeypatch.setattr(constraints, "ENTRIES", 1)
    with pytest.raises(Unjudgeable, match="more than 1"):
        read_registry(registry)
