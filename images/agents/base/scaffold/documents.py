"""The documents a project starts with: what is there, in tables a program can check (Standard §10, §12)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from scaffold.endpoints import Pin
from scaffold.netlist import Netlist, Part, bare

_ESCAPED = re.compile(r"\{[a-z]+\}")
_DIGITS = re.compile(r"(\d+)")

Row = tuple[str, ...]


def render(
    *, title: str, board: str | None, netlist: Netlist, pins: Iterable[Pin], registry: Mapping[str, Any]
) -> dict[str, str]:
    """All documents by file name. ``registry`` is the content of ``.copperhead/constraints.json``."""
    parts = sorted(netlist.parts, key=lambda part: natural(part.refdes))
    return {
        "SPEC.md": _spec(title, registry),
        "BOM.md": _BOM + table(("Refdes", "Value", "Footprint", "MPN", "Rationale"), map(_bom_row, parts)),
        "PINOUT.md": _PINOUT + table(("Refdes", "Pin", "Name", "Net", "Notes"), pin_rows(pins, netlist)),
        "SUBSYSTEMS.md": "# Subsystems\n\nFunctional blocks of the schematic and what connects them.\n",
        "LAYOUT.md": "# Layout\n\n"
        + (f"Placement and routing notes for `{board}`.\n" if board else "No board yet.\n"),
        "DECISIONS.md": "# Decisions\n\nOne line a decision: what, why, and what it affects.\n",
        "CHANGELOG.md": "# Changelog\n\nNewest first.\n",
    }


_BOM = """# Bill of Materials

One row a part, as drawn: value and footprint are the symbol's own fields. An MPN that
no schematic field gives is UNVERIFIED.

"""

_PINOUT = """# Pinout

Pins and the nets they are on. An empty net is one without a name. Pins whose net is only
plain from KiCad's netlist have no row.

"""


def _spec(title: str, registry: Mapping[str, Any]) -> str:
    budgets = "".join(f"- {key}: {_bound(entry)}\n" for key, entry in sorted(registry.items()))
    return f"""# {title} — Specification

What the device is and the limits it must keep.

## Budgets

A plain number is a maximum; the key names the unit.

{budgets or "None recorded." + chr(10)}
## Assumptions

None recorded.
"""


def _bound(entry: Any) -> str:
    """A registry entry in words: ``25``, ``min 1, max 5``, ``2x M3``."""
    if not isinstance(entry, Mapping):
        return str(entry)
    if "value" in entry:
        return str(entry["value"])
    if "max" in entry and "min" not in entry:
        return str(entry["max"])
    said = [f"{word} {entry[word]}" for word in ("min", "max") if word in entry]
    if "forbidden" in entry:
        said.append("forbidden " + ", ".join(map(str, entry["forbidden"])))
    return ", ".join(said) or "see .copperhead/constraints.json"


def _bom_row(part: Part) -> Row:
    return part.refdes, part.value, part.footprint, part.mpn or "UNVERIFIED", "as drawn"


def pin_rows(pins: Iterable[Pin], netlist: Netlist) -> list[Row]:
    """Rows of the pins for which every naive reading says what KiCad says."""
    readings: dict[tuple[str, str], list[Pin]] = {}
    for pin in pins:
        readings.setdefault((pin.refdes, pin.number), []).append(pin)
    return [
        (*key, seen[0].name or "~", seen[0].net, "")
        for key, seen in sorted(readings.items(), key=lambda item: tuple(map(natural, item[0])))
        if key in netlist.nets and _agreed(seen, bare(netlist.nets[key]))
    ]


def _agreed(seen: list[Pin], net: str) -> bool:
    # Readers differ in whether they undo KiCad's escapes ("{slash}") and whether a "\|" splits a cell.
    plain = not _ESCAPED.search(net) and not any("|" in text for pin in seen for text in (pin.name, pin.net))
    return plain and all(pin.net == net for pin in seen)


def table(header: Row, rows: Iterable[Row]) -> str:
    """A markdown table; a ``|`` in a cell is escaped, a line break becomes a space."""
    lines = [header, ("---",) * len(header), *(tuple(map(_cell, row)) for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Sort key under which R2 comes before R10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(text))
