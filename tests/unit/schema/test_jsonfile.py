"""Strict JSON and its one-line errors."""

import pytest

from schema.errors import InvalidFile
from schema.jsonfile import canonical, parse_json, validate_as
from schema.task import Suite


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "a": 2}', "duplicate key"),
        ("[NaN]", "NaN"),
        ("[Infinity]", "Infinity"),
        ("{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        ("[" * 100_000, "JSON"),
        ("", "not valid JSON"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_the_file_named(text: str | bytes, says: str) -> None:
    with pytest.raises(InvalidFile, match=says) as caught:
        parse_json(text, "tasks/x/task.json")
    assert str(caught.value).startswith("tasks/x/task.json: ")
    assert "\n" not in str(caught.value)


def test_a_schema_fault_names_file_and_field() -> None:
    with pytest.raises(InvalidFile, match=r"s\.json: tasks: "):
        validate_as(Suite, {"id": "s", "title": "t", "tasks": []}, "s.json")
    with pytest.raises(InvalidFile, match="unheard"):
        validate_as(Suite, {"id": "s", "title": "t", "tasks": ["a"], "unheard": 1}, "s.json")


def test_canonical_bytes_do_not_depend_on_key_order() -> None:
    assert (
        canonical({"b": [1, "µ"], "a": None})
        == canonical({"a": None, "b": [1, "µ"]})
        == '{"a":null,"b":[1,"µ"]}'.encode()
    )
