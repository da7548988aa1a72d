"""What the documents claim and the schematic does not hold (Standard §12)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from scaffold.netlist import Netlist, bare

BOM, PINOUT = "BOM.md", "PINOUT.md"
_CELLS = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[\s|:]*-[\s|:-]*")


@dataclass(frozen=True)
class Mismatch:
    """A row, or a document, that is not as the schematic is."""

    subject: str
    claim: str
    actual: str

    def __str__(self) -> str:
        return f"{self.subject}: claims {self.claim!r}, is {self.actual!r}"


def mismatches(bom: str | None, pinout: str | None, netlist: Netlist) -> list[Mismatch]:
    """Every disagreement. BOM is compared both ways, PINOUT only in the rows it has."""
    return [*_bom(rows(bom, "Refdes", "Value", "Footprint"), netlist), *_pinout(pinout, netlist)]


def rows(text: str | None, *columns: str) -> list[list[str]] | None:
    """The cells under these columns, of every table that has them; None without such a table."""
    found: list[list[str]] | None = None
    at: list[int] | None = None
    previous: list[str] = []
    fenced = ruled = False
    for line in (text or "").splitlines():
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        if fenced or not line.lstrip().startswith("|"):
            at, previous, ruled = None, [], False
            continue
        cells = _cells(line)
        if _RULE.fullmatch(line) and previous and not ruled:
            ruled = True
            names = [cell.casefold() for cell in previous]
            wanted = [column.casefold() for column in columns]
            at = [names.index(name) for name in wanted] if set(wanted) <= set(names) else None
            found = found if at is None else found or []
        elif at is not None and found is not None:
            found.append([cells[index] if index < len(cells) else "" for index in at])
        previous = cells
    return found


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith(r"\|") else inner
    return [cell.strip().replace(r"\|", "|") for cell in _CELLS.split(inner)]


def _bom(listed: list[list[str]] | None, netlist: Netlist) -> Iterator[Mismatch]:
    if listed is None:
        yield Mismatch(BOM, "", "no table with the columns Refdes, Value, Footprint")
        return
    parts = {part.refdes: part for part in netlist.parts}
    for refdes, value, footprint in listed:
        part = parts.get(refdes)
        if part is None:
            yield Mismatch(f"{BOM} {refdes}", "a part", "no such symbol")
            continue
        if _fold(value) != _fold(part.value):
            yield Mismatch(f"{BOM} {refdes} value", value, part.value)
        if footprint != part.footprint:
            yield Mismatch(f"{BOM} {refdes} footprint", footprint, part.footprint)
    for refdes in sorted(parts.keys() - {row[0] for row in listed}):
        yield Mismatch(f"{BOM} {refdes}", "no row", parts[refdes].value)


def _pinout(text: str | None, netlist: Netlist) -> Iterator[Mismatch]:
    listed = rows(text, "Refdes", "Pin", "Net")
    if listed is None:
        yield Mismatch(PINOUT, "", "no table with the columns Refdes, Pin, Net")
        return
    for refdes, pin, net in listed:
        actual = netlist.nets.get((refdes, pin))
        if actual is None:
            yield Mismatch(f"{PINOUT} {refdes}.{pin}", net, "no such pin")
        elif net not in {plain(bare(actual)), plain(actual)}:
            yield Mismatch(f"{PINOUT} {refdes}.{pin}", net, plain(actual))


def plain(net: str) -> str:
    """A net's name as it is drawn: KiCad writes a slash inside of a name as ``{slash}``."""
    return net.replace("{slash}", "/")


def _fold(text: str) -> str:
    folded = "".join(unicodedata.normalize("NFKC", text).casefold().split())
    return "" if folded == "~" else folded.replace("ω", "ohm").replace("μ", "u")
