"""The naive reader: geometry, wire chains, names."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.images.sources import label, scaffold, schematic, sheet, symbol, wire

endpoints = scaffold("endpoints")
Off = scaffold("errors").Off

Read = Callable[..., dict[tuple[str, str], set[str]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a root schematic made of items: (reference, pin) → the names seen."""

    def run(*items: str, **sheets: str) -> dict[tuple[str, str], set[str]]:
        (tmp_path / "root.kicad_sch").write_text(schematic(*items))
        for name, text in sheets.items():
            (tmp_path / f"{name}.kicad_sch").write_text(text)
        seen: dict[tuple[str, str], set[str]] = {}
        for pin in endpoints.read(tmp_path / "root.kicad_sch", tmp_path).pins:
            seen.setdefault((pin.refdes, pin.number), set()).add(pin.net)
        return seen

    return run


# As KiCad 9 places the pins of a part with pins at (0, 0) and (5.08, 2.54) in the library.
@pytest.mark.parametrize(
    ("turn", "mirror", "expected"),
    [
        (0, "", (50_800, -25_400)),
        (90, "", (-25_400, -50_800)),
        (180, "", (-50_800, 25_400)),
        (270, "", (25_400, 50_800)),
        (0, "x", (50_800, 25_400)),
        (0, "y", (-50_800, -25_400)),
        (180, "x", (-50_800, -25_400)),
        (180, "y", (50_800, 25_400)),
        (90, "x", (-25_400, 50_800)),
        (90, "y", (25_400, -50_800)),
        (270, "x", (25_400, -50_800)),
        (270, "y", (-25_400, 50_800)),
    ],
)
def test_a_pin_lies_where_kicad_puts_it(turn: int, mirror: str, expected: tuple[int, int]) -> None:
    assert endpoints.locate((50_800, 25_400), (0, 0), turn, mirror) == expected


@given(
    pin=st.tuples(st.integers(-10, 10), st.integers(-10, 10)),
    turn=st.sampled_from([0, 90, 180, 270]),
    mirror=st.sampled_from(["", "x", "y"]),
)
def test_the_orders_differ_only_for_a_mirrored_quarter_turn(
    pin: tuple[int, int], turn: int, mirror: str
) -> None:
    first, last = (endpoints.locate(pin, (0, 0), turn, mirror, mirror_first=order) for order in (True, False))
    if not (mirror and turn in {90, 270}):
        assert first == last
    else:
        assert first == (-last[0], -last[1])


def test_a_label_on_the_pin_or_at_the_end_of_its_wires_names_it(read: Read) -> None:
    seen = read(
        symbol("R", "R1", "100 100 0"),
        label("TOP", "100 96.19"),
        wire("100 103.81", "100 110"),
        wire("100 110", "120 110"),
        label("BOTTOM", "120 110", "global_label"),
    )
    assert seen == {("R1", "1"): {"TOP"}, ("R1", "2"): {"BOTTOM"}}


def test_a_label_in_the_middle_of_a_wire_is_not_seen(read: Read) -> None:
    seen = read(symbol("R", "R1", "100 100 0"), wire("100 103.81", "120 103.81"), label("MID", "110 103.81"))
    assert seen["R1", "2"] == {""}


def test_a_wire_that_ends_on_another_wire_does_not_join_it_even_with_a_junction(read: Read) -> None:
    seen = read(
        symbol("R", "R1", "100 100 0"),
        wire("100 103.81", "120 103.81"),
        wire("110 103.81", "110 120"),
        "(junction (at 110 103.81))",
        label("BRANCH", "110 120"),
    )
    assert seen["R1", "2"] == {""}


def test_wires_split_at_a_junction_are_one_chain(read: Read) -> None:
    seen = read(
        symbol("R", "R1", "100 100 0"),
        wire("100 103.81", "110 103.81"),
        wire("110 103.81", "120 103.81"),
        wire("110 103.81", "110 120"),
        "(junction (at 110 103.81))",
        label("BRANCH", "110 120"),
    )
    assert seen["R1", "2"] == {"BRANCH"}


def test_a_power_symbol_names_by_its_value_and_is_no_part(read: Read, tmp_path: Path) -> None:
    seen = read(
        symbol("R", "R1", "100 100 0"),
        wire("100 103.81", "100 110"),
        symbol("GND", "#PWR01", "100 110 0", value="AGND"),
    )
    assert seen["R1", "2"] == {"AGND"}
    assert endpoints.read(tmp_path / "root.kicad_sch", tmp_path).refdes == {"R1"}


def test_the_last_name_of_a_group_wins(read: Read) -> None:
    seen = read(
        symbol("R", "R1", "100 100 0"),
        label("FIRST", "100 103.81"),
        label("LAST", "100 103.81"),
        symbol("R", "R2", "150 100 0"),
        symbol("GND", "#FLG1", "150 103.81 0", value="PWR_FLAG"),
    )
    assert (seen["R1", "2"], seen["R2", "2"]) == ({"LAST"}, {"PWR_FLAG"})


def test_a_mirrored_quarter_turn_gives_both_places_unless_they_coincide(read: Read) -> None:
    seen = read(
        symbol("L", "L1", "100 100 90", extra="(mirror x)"),
        label("AT_ORIGIN", "100 100"),
        label("WHERE_KICAD_PUTS_IT", "97.46 105.08"),
    )
    assert seen["L1", "1"] == {"AT_ORIGIN"}
    assert seen["L1", "2"] == {"WHERE_KICAD_PUTS_IT", ""}


def test_each_placed_unit_is_taken_for_the_whole_part(read: Read) -> None:
    seen = read(
        symbol("DUAL", "U1", "100 100 0", extra="(unit 1)"),
        symbol("DUAL", "U1", "150 100 0", extra="(unit 2)"),
        label("A", "100 97.46"),
        label("B", "150 102.54"),
    )
    assert seen == {("U1", "1"): {"A", ""}, ("U1", "2"): {"B", ""}}


def test_names_do_not_cross_sheets_and_a_sheet_used_twice_is_left_out(read: Read) -> None:
    once = schematic(symbol("R", "R1", "100 100 0"))
    twice = schematic(symbol("R", "R2", "100 100 0"))
    seen = read(
        label("TOP", "100 96.19"),
        sheet("once.kicad_sch", "a"),
        sheet("twice.kicad_sch", "b"),
        sheet("twice.kicad_sch", "c"),
        once=once,
        twice=twice,
    )
    assert seen == {("R1", "1"): {""}, ("R1", "2"): {""}}


@pytest.mark.parametrize(
    "file", ["../outside.kicad_sch", "/etc/passwd", "", "missing.kicad_sch", "root.kicad_sch"]
)
def test_a_sheet_that_is_not_in_the_project_is_off(read: Read, file: str) -> None:
    with pytest.raises(Off):
        read(sheet(file, "a"))


def test_a_symbol_without_its_library_part_has_no_pins(read: Read) -> None:
    assert read(symbol("UNKNOWN", "X1", "100 100 0")) == {}
