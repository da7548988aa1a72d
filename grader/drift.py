"""Drift: what the documents claim and the schematic does not hold (Standard §12).

``BOM.md`` is checked both ways: each row's part exists with that value and footprint, each part has a row.
``PINOUT.md`` is checked one way: each row's pin is on that net; a pin without a row is fine.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from grader.documents import read_tables
from grader.evidence import Tree
from grader.kicad.errors import Unjudgeable
from grader.vocabulary.context import Netlist

BOM = "BOM.md"
BOM_COLUMNS = ("Refdes", "Value", "Footprint")
PINOUT = "PINOUT.md"
PINOUT_COLUMNS = ("Refdes", "Pin", "Net")

AUTOMATIC = ("Net-(", "unconnected-(")
"""How KiCad begins the names it makes up for nets that nobody named."""


@dataclass(frozen=True)
class Mismatch:
    """One disagreement: document, row, what it claims and what is."""

    doc: str
    subject: str
    """``R1 symbol``, ``R1 row``, ``R1 value``, ``R1 footprint``, ``J1.5``; ``""`` for the document itself."""
    claim: str
    actual: str
    row: bool = True
    """False for a document that is missing or holds no such table: never excused by ``newOnly``."""

    @property
    def place(self) -> tuple[str, str]:
        """What stays the same when claim or schematic change."""
        return self.doc, self.subject

    def __str__(self) -> str:
        if not self.row:
            return self.actual
        return f"{self.doc}: {self.subject[:100]} claims {self.claim[:100]!r}, is {self.actual[:100]!r}"


def mismatches(tree: Tree, docs: str, netlist: Netlist) -> list[Mismatch]:
    """Every disagreement between a tree's documents and a netlist, in document order.

    Args:
        docs: the documents folder, without a closing slash; ``""`` is the root.
        netlist: of the same tree's schematic.
    """
    return [
        *_document(tree, docs, BOM, BOM_COLUMNS, netlist),
        *_document(tree, docs, PINOUT, PINOUT_COLUMNS, netlist),
    ]


def _document(
    tree: Tree, docs: str, name: str, columns: tuple[str, ...], netlist: Netlist
) -> Iterator[Mismatch]:
    path = f"{docs}/{name}" if docs else name
    try:
        found = [
            (table, at) for table in read_tables(tree, path) if (at := table.columns(columns)) is not None
        ]
    except Unjudgeable as error:
        yield Mismatch(name, "", "", str(error), row=False)
        return
    if not found:
        reason = f"no table with the columns {', '.join(columns)}"
        yield Mismatch(name, "", "", reason, row=False)
        return
    rows = [[row[index] for index in at] for table, at in found for row in table.rows]
    yield from (_bom(rows, netlist) if name == BOM else _pinout(rows, netlist))


def _bom(rows: list[list[str]], netlist: Netlist) -> Iterator[Mismatch]:
    components = netlist.components
    for refdes, value, footprint in rows:
        component = components.get(refdes)
        if component is None:
            yield Mismatch(BOM, f"{refdes} symbol", "a part", "no such symbol")
            continue
        if fold_value(value) != fold_value(component.value):
            yield Mismatch(BOM, f"{refdes} value", value, component.value)
        if footprint != component.footprint:
            yield Mismatch(BOM, f"{refdes} footprint", footprint, component.footprint)
    listed = {row[0] for row in rows}
    for refdes in sorted(components.keys() - listed):
        yield Mismatch(BOM, f"{refdes} row", "no row", components[refdes].value)


def _pinout(rows: list[list[str]], netlist: Netlist) -> Iterator[Mismatch]:
    for refdes, pin, net in rows:
        actual = netlist.net_of(refdes, pin)
        if actual is None:
            known = refdes in netlist.components
            yield Mismatch(PINOUT, f"{refdes}.{pin}", net, "no such pin" if known else "no such symbol")
        elif not _on(net, actual, netlist):
            yield Mismatch(PINOUT, f"{refdes}.{pin}", net, actual)


def _on(claim: str, actual: str, netlist: Netlist) -> bool:
    """Whether a Net cell means the net the pin is on; an empty one means a net that nobody named."""
    return actual in netlist.match(claim) if claim else actual.startswith(AUTOMATIC)


def fold_value(text: str) -> str:
    """A component value as it is compared: NFKC, no spaces, no case, Ω as ohm and µ as u.

    KiCad's ``~`` for an empty value is empty; KiCad 10 writes it for a blank one too, which 9 keeps.
    """
    folded = "".join(unicodedata.normalize("NFKC", text).casefold().split())
    return "" if folded == "~" else folded.replace("ω", "ohm").replace("μ", "u")
