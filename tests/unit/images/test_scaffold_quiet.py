"""Silencing violation types in a project file's text."""

import difflib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.images.sources import scaffold

quiet = scaffold("quiet")
Off = scaffold("errors").Off

PROJECT = """{
  "board": {
    "design_settings": {
      "rule_severities": {
        "clearance": "error",
        "copper_edge_clearance": "error",
        "unconnected_items": "error"
      }
    }
  },
  "erc": {
    "rule_severities": {
      "bus_to_net_conflict": "error",
      "lib_symbol_issues": "warning"
    }
  },
  "text_variables": {"clearance": "error"}
}
"""


def _changed(before: str, after: str) -> list[str]:
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line[0] in "+-"]


def test_a_listed_severity_changes_in_place() -> None:
    after = quiet.silence(PROJECT, [("drc", "copper_edge_clearance"), ("erc", "lib_symbol_issues")], "p")
    assert _changed(PROJECT, after) == [
        '-         "copper_edge_clearance": "error",',
        '+         "copper_edge_clearance": "ignore",',
        '-       "lib_symbol_issues": "warning"',
        '+       "lib_symbol_issues": "ignore"',
    ]


@pytest.mark.parametrize("kind", ["aaa", "footprint_link_issues", "zzz"])
def test_a_missing_severity_is_put_where_kicad_would_sort_it(kind: str) -> None:
    after = quiet.silence(PROJECT, [("erc", kind)], "p")
    severities = json.loads(after)["erc"]["rule_severities"]
    assert severities[kind] == "ignore"
    assert list(severities) == sorted(severities)
    assert len(after.splitlines()) == len(PROJECT.splitlines()) + 1


@pytest.mark.parametrize("source", ["drc", "unconnected", "parity"])
def test_all_that_drc_reports_has_its_severity_in_the_board_part(source: str) -> None:
    after = json.loads(quiet.silence(PROJECT, [(source, "unconnected_items")], "p"))
    assert after["board"]["design_settings"]["rule_severities"]["unconnected_items"] == "ignore"


@pytest.mark.parametrize(
    "project", ["{}", '{"erc": {}}', '{"erc":{"meta":{"version":0}}}', '{"a": {"erc": 1}}']
)
def test_missing_sections_are_made(project: str) -> None:
    after = json.loads(quiet.silence(project, [("erc", "pin_to_pin"), ("drc", "clearance")], "p"))
    assert after["erc"]["rule_severities"] == {"pin_to_pin": "ignore"}
    assert after["board"]["design_settings"]["rule_severities"] == {"clearance": "ignore"}


def test_line_ends_stay() -> None:
    before = PROJECT.replace("\n", "\r\n")
    assert quiet.silence(before, [("erc", "zzz")], "p") == quiet.silence(
        PROJECT, [("erc", "zzz")], "p"
    ).replace("\n", "\r\n")


def test_twice_is_once() -> None:
    wanted = [("erc", "zzz"), ("drc", "clearance"), ("erc", "zzz")]
    once = quiet.silence(PROJECT, wanted, "p")
    assert quiet.silence(once, wanted, "p") == once


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(
    rest=st.dictionaries(st.text(max_size=6).filter(lambda key: key != "erc"), _JSON, max_size=4),
    severities=st.dictionaries(st.from_regex("[a-z_]{1,8}", fullmatch=True), st.just("error"), max_size=5),
    kind=st.from_regex("[a-z_]{1,8}", fullmatch=True),
    indent=st.sampled_from([None, 2, 4]),
)
def test_only_that_severity_changes(
    rest: dict[str, Any], severities: dict[str, str], kind: str, indent: int | None
) -> None:
    project = {**rest, "erc": {"meta": rest, "rule_severities": severities}}
    after = json.loads(quiet.silence(json.dumps(project, indent=indent), [("erc", kind)], "p"))
    assert after == {**rest, "erc": {"meta": rest, "rule_severities": severities | {kind: "ignore"}}}


@pytest.mark.parametrize(
    ("project", "violation"),
    [
        ("[]", ("erc", "a")),
        ("{", ("erc", "a")),
        ("{}", ("spice", "a")),
        ("{}", ("erc", 'a"')),
        ('{"erc": 1}', ("erc", "a")),
    ],
)
def test_what_is_not_as_agreed_is_off(project: str, violation: tuple[str, str]) -> None:
    with pytest.raises(Off):
        quiet.silence(project, [violation], "p")
