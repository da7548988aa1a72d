"""Tables and documents."""

from typing import Any

import pytest

from tests.unit.images.sources import netlist as draw
from tests.unit.images.sources import scaffold

documents = scaffold("documents")
netlist = scaffold("netlist")
Pin = scaffold("endpoints").Pin


@pytest.fixture
def design(tmp_path: Any) -> Any:
    path = tmp_path / "netlist"
    path.write_text(
        draw(
            {
                "GND": ["R1.2", "J1.3"],
                "/sheet/SENSE": ["R1.1", "R2.2", "R10.1"],
                "Net-(J1-IN)": ["J1.1", "R10.2"],
                "/A{slash}B": ["R2.1"],
                "unconnected-(J1-X{slash}Y-Pad2)": ["J1.2"],
            },
            {"R10": "10k", "R2": "4k7", "R1": "1|2", "J1": "HDR"},
            R2="RC0402",
        )
    )
    return netlist.read(path)


def _pins(*pins: tuple[str, str, str, str]) -> list[Any]:
    return [Pin(*pin) for pin in pins]


def test_bare_names() -> None:
    assert [netlist.bare(n) for n in ("GND", "/a/B", "Net-(R1-Pad1)", "unconnected-(U1-A{slash}B-Pad2)")] == [
        "GND",
        "B",
        "",
        "",
    ]


def test_the_bom_has_a_row_for_each_part_in_natural_order(design: Any) -> None:
    page = documents.render(title="t", board=None, netlist=design, pins=[], registry={})["BOM.md"]
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert rows[0] == "| Refdes | Value | Footprint | MPN | Rationale |"
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| J1", "| R1", "| R2", "| R10"]
    assert rows[4] == "| R2 | 4k7 | fp:R | RC0402 | as drawn |"
    assert rows[5] == "| R10 | 10k | fp:R | UNVERIFIED | as drawn |"
    assert r"| 1\|2 |" in rows[3]


def test_pinout_holds_the_rows_that_both_readers_agree_on(design: Any) -> None:
    rows = documents.pin_rows(
        _pins(
            ("R10", "1", "~", "SENSE"),
            ("R2", "2", "~", "SENSE"),
            ("R1", "2", "", "GND"),
            ("J1", "1", "IN", ""),
            ("J1", "3", "X", "PWR_FLAG"),
            ("R1", "1", "~", ""),
            ("R9", "1", "~", ""),
        ),
        design,
    )
    assert rows == [
        ("J1", "1", "IN", "", ""),
        ("R1", "2", "~", "GND", ""),
        ("R2", "2", "~", "SENSE", ""),
        ("R10", "1", "~", "SENSE", ""),
    ]


def test_a_pin_has_no_row_when_one_of_its_readings_disagrees(design: Any) -> None:
    assert documents.pin_rows(_pins(("R1", "2", "~", "GND"), ("R1", "2", "~", "")), design) == []
    assert len(documents.pin_rows(_pins(("R1", "2", "~", "GND"), ("R1", "2", "~", "GND")), design)) == 1


@pytest.mark.parametrize("pin", [("R2", "1", "~", "A{slash}B"), ("R1", "2", "PA0|ADC", "GND")])
def test_a_pin_that_readers_would_write_differently_has_no_row(design: Any, pin: Any) -> None:
    assert documents.pin_rows(_pins(pin), design) == []


def test_a_net_that_kicad_made_up_is_empty_whatever_is_escaped_in_it(design: Any) -> None:
    assert documents.pin_rows(_pins(("J1", "2", "X", "")), design) == [("J1", "2", "X", "", "")]


def test_a_cell_stays_a_cell() -> None:
    assert documents.table(("A", "B"), [("1\n2", "x|y")]).splitlines()[2] == r"| 1 2 | x\|y |"


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ({"max": 25}, "- key: 25"),
        ({"min": 1, "max": 5}, "- key: min 1, max 5"),
        ({"min": 1}, "- key: min 1"),
        ({"value": "2x M3", "max": 1}, "- key: 2x M3"),
        ({"forbidden": ["VOUT"]}, "- key: forbidden VOUT"),
        ({"source": "brief"}, "- key: see .copperhead/constraints.json"),
        (7, "- key: 7"),
    ],
)
def test_spec_names_each_registered_key(design: Any, entry: Any, line: str) -> None:
    page = documents.render(title="t", board="b", netlist=design, pins=[], registry={"key": entry})["SPEC.md"]
    assert line in page.splitlines()


def test_every_document_ends_in_one_newline(design: Any) -> None:
    pages = documents.render(title="t", board="b.kicad_pcb", netlist=design, pins=[], registry={})
    assert sorted(pages) == sorted(
        f"{name}.md" for name in ("SPEC", "BOM", "PINOUT", "SUBSYSTEMS", "LAYOUT", "DECISIONS", "CHANGELOG")
    )
    assert all(text.endswith("\n") and not text.endswith("\n\n") for text in pages.values())
    assert "b.kicad_pcb" in pages["LAYOUT.md"]
