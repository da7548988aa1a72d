"""Rules come from the pristine project, key by key; the rest from the end state."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.kicad import project
from grader.kicad.errors import Unjudgeable
from tests.unit.grader.kicad import twins

PRISTINE: dict[str, Any] = json.loads(twins.project())


def edited(*path: str, to: object) -> dict[str, Any]:
    """The pristine project with one key changed."""
    value: dict[str, Any] = json.loads(twins.project())
    holder = value
    for key in path[:-1]:
        holder = holder.setdefault(key, {})
    holder[path[-1]] = to
    return value


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("board", "design_settings", "rule_severities", "courtyards_overlap"), "ignore"),
        (("board", "design_settings", "rule_severities"), {}),
        (("board", "design_settings", "rules", "min_copper_edge_clearance"), 0.0),
        (("board", "design_settings", "drc_exclusions"), ["courtyards_overlap|1|2|a|b"]),
        (("board", "design_settings"), {}),
        (("board",), None),
        (("erc", "rule_severities", "pin_not_connected"), "ignore"),
        (("erc", "erc_exclusions"), ["x"]),
        (("erc", "pin_map"), [[0]]),
        (("erc",), {}),
        (("component_class_settings",), {"assignments": [1]}),
        (("meta", "version"), 1),
        (("schematic", "connection_grid_size"), 1.0),
        (("schematic", "meta", "version"), 99),
        (("schematic", "top_level_sheets"), [{"filename": "/etc/x.kicad_sch"}]),
    ],
)
def test_an_edited_rule_has_no_effect(path: tuple[str, ...], to: object) -> None:
    """The cheapest way to a clean report is to turn the rule off; a naive grader runs the agent's file."""
    assert project.pin(PRISTINE, edited(*path, to=to)) == project.pin(PRISTINE, PRISTINE)


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("text_variables", "REV"), "2"),
        (("schematic", "drawing"), {"x": 1}),
        (("sheets",), [["a", "b"]]),
        (("net_settings", "classes"), []),
        (("pcbnew", "page_layout_descr_file"), "mine.kicad_wks"),
    ],
)
def test_an_edited_design_setting_counts(path: tuple[str, ...], to: object) -> None:
    """A naive grader lays the whole pristine file over the end state, and text variables go unresolved."""
    assert project.pin(PRISTINE, edited(*path, to=to)) != project.pin(PRISTINE, PRISTINE)


def test_a_removed_design_setting_is_removed() -> None:
    end = json.loads(twins.project(text_variables={"A": "1"}))
    assert "text_variables" not in project.pin(end, {})


def test_exclusions_are_dropped_unless_asked_for() -> None:
    """An exclusion holds positions: moved by 0.01 mm, the part's old finding would look new."""
    pristine = edited("board", "design_settings", "drc_exclusions", to=["x"])
    pristine["erc"]["erc_exclusions"] = ["y"]
    dropped, kept = project.pin(pristine, {}), project.pin(pristine, {}, exclusions=True)
    assert dropped["board"]["design_settings"]["drc_exclusions"] == []
    assert dropped["erc"]["erc_exclusions"] == []
    assert kept["board"]["design_settings"]["drc_exclusions"] == ["x"]
    assert kept["erc"]["erc_exclusions"] == ["y"]


def test_net_classes_can_be_replaced() -> None:
    assert project.pin(PRISTINE, PRISTINE, net_settings={"classes": 1})["net_settings"] == {"classes": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
)
SECTIONS = st.sampled_from(
    ["board", "erc", "schematic", "pcbnew", "net_settings", "text_variables", "sheets"]
)


@given(st.dictionaries(SECTIONS, JSON), st.dictionaries(SECTIONS, JSON))
def test_any_shape_is_pinned_without_an_error(pristine: dict[str, Any], end: dict[str, Any]) -> None:
    before = json.dumps([pristine, end])
    pinned = project.pin(pristine, end)
    assert project.dump(pinned) == project.dump(project.pin(pristine, end))
    assert project.rule_edits(pristine, pristine) == []
    project.rule_edits(pristine, end)
    assert json.dumps([pristine, end]) == before
    for key in ("board", "erc"):
        assert (key in pinned) == (key in pristine)


def test_edits_of_rules_are_listed() -> None:
    end = edited("board", "design_settings", "rule_severities", "silk_overlap", to="ignore")
    end["erc"]["rule_severities"] = {}
    assert project.rule_edits(PRISTINE, end) == [
        "board.design_settings.rule_severities.silk_overlap",
        "erc.rule_severities",
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"a": 1, "a": 2}', "occurs twice"),
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": 1} // x', "not JSON"),
        (b'{"a": 1e999}', "out of range"),
        (b'{"a": ' + b"9" * 400 + b"}", "out of range"),
        (b"\xff{}", "not UTF-8"),
        ("{}".encode("utf-16"), "not UTF-8"),
        (b"[" * 200_000, "nested deeper"),
        (b'{"a":"' + b"x" * project.MAX_BYTES + b'"}', "more than the"),
    ],
    ids=range(12),
)
def test_a_project_kicad_might_not_read_is_refused(data: bytes, reason: str) -> None:
    """KiCad falls back to default rules in silence: 18 findings become 105, or none."""
    with pytest.raises(Unjudgeable, match=r"^p\.kicad_pro: ") as error:
        project.read_project(data, "p.kicad_pro")
    assert reason in str(error.value)


def test_a_byte_order_mark_is_skipped() -> None:
    assert project.read_project(b"\xef\xbb\xbf{}", "p") == {}


@pytest.mark.parametrize(
    "text",
    [
        rb'{"text_variables": {"x": "\ud800"}}',
        rb'{"text_variables": {"\udfff": "x"}}',
        rb'{"a": [{"b": ["\ud83d"]}]}',
        b'{"a": 1' + b"0" * 309 + b"}",
        b'{"a": -1' + b"0" * 309 + b"}",
    ],
)
def test_what_kicads_own_reader_refuses_is_refused(text: bytes) -> None:
    """KiCad then takes its defaults for the whole project, every pinned rule among it, without a word."""
    with pytest.raises(Unjudgeable):
        project.read_project(text, "p")


def test_whole_characters_in_escapes_are_taken() -> None:
    assert project.read_project(rb'{"x": "\ud83d\ude00"}', "p") == {"x": "\U0001f600"}
