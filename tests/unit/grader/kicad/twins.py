"""A small KiCad project of our own, drawn by code: the awkward cases of connectivity in one page.

Two levels; ``channel.kicad_sch`` placed twice (A and B); ``DATA`` as a global net and as a local net of each
channel; ``SENSE`` in both channels and nowhere else; a net with a slash in its name; a three-unit gate; power
symbols, one undriven; a net nobody named. Every uuid follows from its label, so the bytes never change.
"""

from __future__ import annotations

import json
import uuid as uuids
from collections.abc import Iterator

from grader.evidence import Entry, Tree
from schema.fixture import Artifacts

ARTIFACTS = Artifacts(
    schematic="hw/twins.kicad_sch", board="hw/twins.kicad_pcb", project="hw/twins.kicad_pro"
)
_SPACE = uuids.UUID("5ca1ab1e-0000-4000-8000-000000000000")


def uid(label: str) -> str:
    """The uuid that belongs to a label."""
    return str(uuids.uuid5(_SPACE, label))


ROOT = uid("root")
SHEETS = {"A": uid("sheet A"), "B": uid("sheet B")}


def _pin(  # noqa: PLR0917  # a table of pins reads better without names
    kind: str, x: float, y: float, angle: int, name: str, number: str, *, hide: bool = False
) -> str:
    hidden = " (hide yes)" if hide else ""
    return (
        f"(pin {kind} line (at {x} {y} {angle}) (length 2.54){hidden}"
        f' (name "{name}" (effects (font (size 1 1))))'
        f' (number "{number}" (effects (font (size 1 1)))))'
    )


def _library_symbol(name: str, units: list[str], *, power: bool = False, reference: str = "U") -> str:
    bare = name.split(":")[1]
    body = "".join(f'(symbol "{bare}_{number}_1" {pins})' for number, pins in enumerate(units, 1))
    return (
        f'(symbol "{name}" {"(power)" if power else ""} (exclude_from_sim no) (in_bom yes) (on_board yes)'
        f' (property "Reference" "{reference}" (at 0 0 0) (effects (font (size 1.27 1.27))))'
        f' (property "Value" "{bare}" (at 0 0 0) (effects (font (size 1.27 1.27)))) {body})'
    )


LIBRARY = "".join(
    (
        _library_symbol(
            "own:R",
            [_pin("passive", 0, 5.08, 270, "", "1") + _pin("passive", 0, -5.08, 90, "", "2")],
            reference="R",
        ),
        _library_symbol(
            "own:GATE",
            [
                _pin("input", -5.08, 0, 0, "IN", "1") + _pin("output", 5.08, 0, 180, "OUT", "2"),
                _pin("input", -5.08, 0, 0, "IN", "3") + _pin("output", 5.08, 0, 180, "OUT", "4"),
                _pin("power_in", 0, 5.08, 270, "VCC", "5") + _pin("power_in", 0, -5.08, 90, "GND", "6"),
            ],
        ),
        _library_symbol("own:GND", [_pin("power_in", 0, 0, 270, "", "1")], power=True, reference="#PWR"),
        _library_symbol("own:VCC", [_pin("power_in", 0, 0, 90, "", "1")], power=True, reference="#PWR"),
        _library_symbol("own:FLAG", [_pin("power_out", 0, 0, 90, "", "1")], power=True, reference="#FLG"),
    )
)
_PINS = {"R": ["12"], "GATE": ["12", "34", "56"], "GND": ["1"], "VCC": ["1"], "FLAG": ["1"]}


def symbol(
    kind: str,
    label: str,
    x: float,
    y: float,
    paths: dict[str, str],
    *,
    unit: int = 1,
    value: str = "",
    fp: str = "",
) -> str:
    """A placed unit. ``paths``: sheet instance path → reference there."""
    reference = next(iter(paths.values()))
    pins = "".join(f'(pin "{n}" (uuid "{uid(f"{label} pin {n}")}"))' for n in _PINS[kind][unit - 1])
    where = "".join(f'(path "{path}" (reference "{ref}") (unit {unit}))' for path, ref in paths.items())
    return (
        f'(symbol (lib_id "own:{kind}") (at {x} {y} 0) (unit {unit}) (exclude_from_sim no) (in_bom yes)'
        f' (on_board yes) (dnp no) (uuid "{uid(label)}")'
        f' (property "Reference" "{reference}" (at {x} {y} 0) (effects (font (size 1.27 1.27))))'
        f' (property "Value" "{value or kind}" (at {x} {y} 0) (effects (font (size 1.27 1.27))))'
        f' (property "Footprint" "{fp}" (at {x} {y} 0) (effects (font (size 1.27 1.27)) (hide yes)))'
        f' {pins} (instances (project "twins" {where})))\n'
    )


def label(kind: str, text: str, x: float, y: float, name: str = "") -> str:
    """A label of any kind at a point."""
    shape = "" if kind == "label" else " (shape bidirectional)"
    return (
        f'({kind} "{text}"{shape} (at {x} {y} 0) (effects (font (size 1.27 1.27)) (justify left))'
        f' (uuid "{uid(name or f"{kind} {text} {x} {y}")}"))\n'
    )


def wire(*points: tuple[float, float]) -> str:
    """A wire through points."""
    spots = " ".join(f"(xy {x} {y})" for x, y in points)
    return f'(wire (pts {spots}) (stroke (width 0) (type default)) (uuid "{uid(f"wire {spots}")}"))\n'


def schematic(label_: str, *body: str) -> bytes:
    """A schematic file."""
    return (
        '(kicad_sch (version 20250114) (generator "eeschema") (generator_version "9.0")'
        f' (uuid "{uid(label_)}") (paper "A4")\n(lib_symbols {LIBRARY})\n{"".join(body)}'
        '(sheet_instances (path "/" (page "1"))) (embedded_fonts no))\n'
    ).encode()


def sheet(name: str, file: str, x: float, y: float, pins: str = "") -> str:
    """A sheet symbol."""
    return (
        f"(sheet (at {x} {y}) (size 25.4 25.4) (exclude_from_sim no) (in_bom yes) (on_board yes) (dnp no)"
        f' (stroke (width 0.1) (type solid)) (fill (color 0 0 0 0)) (uuid "{uid(f"sheet {name}")}")'
        f' (property "Sheetname" "{name}" (at {x} {y} 0) (effects (font (size 1.27 1.27))))'
        f' (property "Sheetfile" "{file}" (at {x} {y} 0) (effects (font (size 1.27 1.27)))) {pins}'
        f' (instances (project "twins" (path "/{ROOT}" (page "2")))))\n'
    )


def sheet_pin(name: str, x: float, y: float, tag: str) -> str:
    """A pin of a sheet symbol."""
    return (
        f'(pin "{name}" input (at {x} {y} 180) (uuid "{uid(f"sheet pin {tag}")}")'
        " (effects (font (size 1.27 1.27)) (justify left)))"
    )


ROOT_PATH = f"/{ROOT}"
CHANNELS = {name: f"{ROOT_PATH}/{path}" for name, path in SHEETS.items()}


def _resistor(number: int, x: float, y: float, top: str, bottom: str) -> Iterator[str]:
    yield symbol("R", f"R{number}", x, y, {ROOT_PATH: f"R{number}"}, value="10k", fp="own:R")
    yield top
    yield bottom


def root_sheet(*extra: str) -> bytes:
    """``hw/twins.kicad_sch``."""
    parts: list[str] = []
    # R1 and R2 in series: a named net, an unnamed one, the global DATA.
    parts += _resistor(1, 50.8, 50.8, label("label", "CLK", 50.8, 45.72), "")
    parts += _resistor(2, 50.8, 63.5, wire((50.8, 55.88), (50.8, 58.42)), "")
    parts.append(label("global_label", "DATA", 50.8, 68.58))
    # R3: a slash in a net's name, and ground.
    parts += _resistor(3, 76.2, 50.8, label("label", "TX{slash}RX", 76.2, 45.72), "")
    parts.append(symbol("GND", "PWR1", 76.2, 55.88, {ROOT_PATH: "#PWR01"}))
    # U1: three units. VCC is driven by nothing, GND by a flag.
    at_root = {ROOT_PATH: "U1"}
    parts.append(symbol("GATE", "U1 a", 101.6, 50.8, at_root, unit=1, value="DUAL", fp="own:GATE"))
    parts.append(symbol("GATE", "U1 b", 101.6, 63.5, at_root, unit=2, value="DUAL", fp="own:GATE"))
    parts.append(symbol("GATE", "U1 c", 101.6, 83.82, at_root, unit=3, value="DUAL", fp="own:GATE"))
    parts.append(label("label", "CLK", 96.52, 50.8))
    parts.append(label("global_label", "DATA", 96.52, 63.5))
    parts.append(label("label", "D1", 106.68, 50.8))
    parts.append(label("label", "Q{slash}N", 106.68, 63.5))
    parts.append(symbol("VCC", "PWR2", 101.6, 78.74, {ROOT_PATH: "#PWR02"}))
    parts.append(symbol("GND", "PWR3", 101.6, 88.9, {ROOT_PATH: "#PWR03"}))
    parts.append(symbol("GND", "PWR4", 127.0, 88.9, {ROOT_PATH: "#PWR04"}))
    parts.append(symbol("FLAG", "FLG1", 127.0, 88.9, {ROOT_PATH: "#FLG01"}, value="PWR_FLAG"))
    for offset, (name, net) in enumerate((("A", "D1"), ("B", "Q{slash}N"))):
        x, y = 152.4, 50.8 + 38.1 * offset
        parts.append(sheet(name, "channel.kicad_sch", x, y, sheet_pin("IN", x, y + 10.16, name)))
        parts.append(label("label", net, x, y + 10.16))
    return schematic("root", *parts, *extra)


def channel_sheet(*extra: str) -> bytes:
    """``hw/channel.kicad_sch``: R10 to R12 of channel A are R20 to R22 of channel B."""
    first = {CHANNELS["A"]: "R10", CHANNELS["B"]: "R20"}
    second = {CHANNELS["A"]: "R11", CHANNELS["B"]: "R21"}
    third = {CHANNELS["A"]: "R12", CHANNELS["B"]: "R22"}
    return schematic(
        "channel",
        symbol("R", "chan R10", 50.8, 50.8, first, value="1k", fp="own:R"),
        symbol("R", "chan R11", 50.8, 76.2, second, value="1k", fp="own:R"),
        symbol("R", "chan R12", 76.2, 50.8, third, value="1k", fp="own:R"),
        label("hierarchical_label", "IN", 50.8, 45.72),
        label("label", "DATA", 50.8, 55.88),
        label("label", "DATA", 50.8, 71.12),
        label("label", "SENSE", 50.8, 81.28),
        label("label", "SENSE", 76.2, 45.72),
        symbol("GND", "chan PWR", 76.2, 55.88, {CHANNELS["A"]: "#PWR05", CHANNELS["B"]: "#PWR06"}),
        *extra,
    )


def net_settings(clearance: float) -> dict[str, object]:
    """Net classes with one clearance, in mm. KiCad takes no class that lacks a field."""
    default = {
        "bus_width": 12,
        "clearance": clearance,
        "diff_pair_gap": 0.25,
        "diff_pair_via_gap": 0.25,
        "diff_pair_width": 0.2,
        "line_style": 0,
        "microvia_diameter": 0.3,
        "microvia_drill": 0.1,
        "name": "Default",
        "pcb_color": "rgba(0, 0, 0, 0.000)",
        "priority": 2147483647,
        "schematic_color": "rgba(0, 0, 0, 0.000)",
        "track_width": 0.2,
        "via_diameter": 0.6,
        "via_drill": 0.3,
        "wire_width": 6,
    }
    return {"classes": [default], "meta": {"version": 4}, "netclass_patterns": []}


def project(**overrides: object) -> bytes:
    """``hw/twins.kicad_pro``; ``overrides`` replace top-level keys."""
    value: dict[str, object] = {
        "board": {
            "design_settings": {
                "drc_exclusions": [],
                "meta": {"version": 2},
                "rule_severities": {"courtyards_overlap": "error", "silk_overlap": "warning"},
                "rules": {"min_clearance": 0.0, "min_copper_edge_clearance": 0.5},
            }
        },
        "erc": {
            "erc_exclusions": [],
            "meta": {"version": 0},
            "rule_severities": {"pin_not_connected": "error"},
        },
        "meta": {"filename": "twins.kicad_pro", "version": 3},
        "net_settings": net_settings(0.2),
        "pcbnew": {"page_layout_descr_file": ""},
        "schematic": {"meta": {"version": 1}},
        "sheets": [[ROOT, "Root"]],
        "text_variables": {},
    }
    return json.dumps(value | overrides, indent=2).encode()


# (reference, symbol label, sheet instance path, x, y, pad number → net)
PARTS: list[tuple[str, str, str, float, float, dict[str, str]]] = [
    ("R1", "R1", "", 10, 10, {"1": "/CLK", "2": "Net-(R1-Pad2)"}),
    ("R2", "R2", "", 20, 10, {"1": "Net-(R1-Pad2)", "2": "DATA"}),
    ("R3", "R3", "", 30, 10, {"1": "/TX{slash}RX", "2": "GND"}),
    (
        "U1",
        "U1 a",
        "",
        10,
        35,
        {"1": "/CLK", "2": "/D1", "3": "DATA", "4": "/Q{slash}N", "5": "VCC", "6": "GND"},
    ),
    ("R10", "chan R10", "A", 10, 20, {"1": "/D1", "2": "/A/DATA"}),
    ("R11", "chan R11", "A", 20, 20, {"1": "/A/DATA", "2": "/A/SENSE"}),
    ("R12", "chan R12", "A", 30, 20, {"1": "/A/SENSE", "2": "GND"}),
    ("R20", "chan R10", "B", 10, 28, {"1": "/Q{slash}N", "2": "/B/DATA"}),
    ("R21", "chan R11", "B", 20, 28, {"1": "/B/DATA", "2": "/B/SENSE"}),
    ("R22", "chan R12", "B", 30, 28, {"1": "/B/SENSE", "2": "GND"}),
]


def footprint(  # noqa: PLR0917  # as in PARTS
    reference: str, symbol_label: str, channel: str, x: float, y: float, pads: dict[str, str]
) -> str:
    """A footprint with its pads in a row, 2 mm apart."""
    nets = _net_numbers()
    kind, value = ("GATE", "DUAL") if reference == "U1" else ("R", "10k" if not channel else "1k")
    sheet_path = f"/{SHEETS[channel]}" if channel else ""
    file = "channel.kicad_sch" if channel else "twins.kicad_sch"
    drawn = "".join(
        f'(pad "{number}" smd rect (at {2 * place} 0) (size 1 1) (layers "F.Cu" "F.Mask" "F.Paste")'
        f' (net {nets[net]} "{net}") (uuid "{uid(f"{reference} pad {number}")}"))'
        for place, (number, net) in enumerate(pads.items())
    )
    return (
        f'(footprint "own:{kind}" (layer "F.Cu") (uuid "{uid(f"footprint {reference}")}") (at {x} {y})'
        f' (property "Reference" "{reference}" (at 0 -2 0) (layer "F.SilkS")'
        f' (uuid "{uid(f"{reference} ref")}")'
        f" (effects (font (size 1 1) (thickness 0.15))))"
        f' (property "Value" "{value}" (at 0 2 0) (layer "F.Fab") (uuid "{uid(f"{reference} val")}")'
        f" (effects (font (size 1 1) (thickness 0.15))))"
        f' (path "{sheet_path}/{uid(symbol_label)}") (sheetname "/{channel}") (sheetfile "{file}") (attr smd)'
        f" {drawn} (embedded_fonts no))\n"
    )


def _net_numbers() -> dict[str, int]:
    names = sorted({net for part in PARTS for net in part[5].values()})
    return {name: number for number, name in enumerate(names, 1)}


def board(*extra: str) -> bytes:
    """``hw/twins.kicad_pcb``: placed, not routed."""
    nets = "".join(f'(net {number} "{name}")' for name, number in _net_numbers().items())
    edge = (
        f'(gr_rect (start 0 0) (end 50 40) (stroke (width 0.1) (type default)) (fill no) (layer "Edge.Cuts")'
        f' (uuid "{uid("edge")}"))\n'
    )
    layers = (
        '(layers (0 "F.Cu" signal) (2 "B.Cu" signal) (5 "F.SilkS" user "F.Silkscreen") (1 "F.Mask" user)'
        ' (13 "F.Paste" user) (25 "Edge.Cuts" user) (31 "F.CrtYd" user "F.Courtyard") (35 "F.Fab" user))'
    )
    return (
        '(kicad_pcb (version 20241229) (generator "pcbnew") (generator_version "9.0")'
        ' (general (thickness 1.6) (legacy_teardrops no)) (paper "A4")'
        f' {layers} (setup (pad_to_mask_clearance 0)) (net 0 "") {nets}\n'
        f"{''.join(footprint(*part) for part in PARTS)}{edge}{''.join(extra)}(embedded_fonts no))\n"
    ).encode()


def track(net: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    """A track on the front."""
    return (
        f'(segment (start {start[0]} {start[1]}) (end {end[0]} {end[1]}) (width 0.25) (layer "F.Cu")'
        f' (net {_net_numbers()[net]}) (uuid "{uid(f"track {net} {start}")}"))\n'
    )


def files() -> dict[str, bytes]:
    """The project as path → content."""
    return {
        "hw/twins.kicad_sch": root_sheet(),
        "hw/channel.kicad_sch": channel_sheet(),
        "hw/twins.kicad_pcb": board(),
        "hw/twins.kicad_pro": project(),
    }


def tree(changes: dict[str, bytes | None] | None = None) -> Tree:
    """The project as a tree, with some files replaced (or, with None, left out)."""
    merged: dict[str, bytes | None] = {**files(), **(changes or {})}
    return {path: Entry(data) for path, data in merged.items() if data is not None}


def variants() -> dict[str, dict[str, bytes]]:
    """Changed copies whose reports hold what the plain one does not."""
    alias = label("label", "ALIAS", 106.68, 50.8)
    lone = "".join(
        symbol("GATE", f"{ref} a", 101.6, y, {ROOT_PATH: ref}, value="DUAL")
        + label("label", "LONE", 96.52, y)
        for ref, y in (("U2", 114.3), ("U3", 127.0))
    )
    crossing = track("/CLK", (10, 10), (30, 10))
    return {
        "plain": files(),
        "alias": {**files(), "hw/twins.kicad_sch": root_sheet(alias)},
        "lone": {**files(), "hw/twins.kicad_sch": root_sheet(lone)},
        "crossing": {**files(), "hw/twins.kicad_pcb": board(crossing)},
    }


if __name__ == "__main__":
    import sys
    from pathlib import Path

    for name, data in variants()[sys.argv[2] if len(sys.argv) > 2 else "plain"].items():
        target = Path(sys.argv[1]) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
