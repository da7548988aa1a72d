"""A deliberately naive reader of schematics.

It joins wires, pins, labels and power symbols only where their *end points* coincide, one sheet at a time, as
small agents' own readers do. KiCad also joins in the middle of a wire, across sheets and through buses.
PINOUT.md holds only what both readers say: a row that only KiCad can confirm would make an agent's own drift
check fail on an untouched project.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from scaffold.errors import Off
from scaffold.sexpr import Node, atom, atoms, child, children, head, parse, properties

Point = tuple[int, int]
"""Position on the sheet in 0.1 µm, y downwards."""

_LABELS = frozenset({"label", "global_label", "hierarchical_label"})


@dataclass(frozen=True)
class Pin:
    """One pin of a placed symbol, as a naive reader may see it."""

    refdes: str
    number: str
    name: str
    net: str
    """Name at an end of the pin's wire chain; empty for none."""


@dataclass(frozen=True)
class Reading:
    """What naive readers see in a whole design."""

    refdes: frozenset[str]
    """Parts, without power symbols, as the sheet files name them."""
    pins: tuple[Pin, ...]
    """In file order. A pin that readers may place differently is there once for each place."""


@dataclass(frozen=True)
class _LibPin:
    number: str
    name: str
    at: Point


@dataclass(frozen=True)
class _LibSymbol:
    power: bool
    pins: tuple[_LibPin, ...]
    """Of all units and body styles: naive readers take each placed unit for the whole part."""


@dataclass
class _Sheet:
    """Groups of joined points (a union-find) and the names given to them."""

    parent: dict[Point, Point] = field(default_factory=dict)
    names: list[tuple[Point, str]] = field(default_factory=list)
    pins: list[tuple[Point, str, _LibPin]] = field(default_factory=list)

    def group(self, point: Point) -> Point:
        while (above := self.parent.get(point, point)) != point:
            point = above
        return point

    def join(self, one: Point, other: Point) -> None:
        self.parent[self.group(one)] = self.group(other)

    def read_out(self) -> Iterator[Pin]:
        # The last name wins: that is how the readers we stand in for resolve several names of one group.
        named = {self.group(point): name for point, name in self.names}
        for point, refdes, pin in self.pins:
            yield Pin(refdes, pin.number, pin.name, named.get(self.group(point), ""))


def read(root: Path, top: Path) -> Reading:
    """Read the design that starts at a root schematic and lies in the folder ``top``.

    Raises:
        Off: a sheet is missing, unreadable, or lies outside of ``top``.
    """
    uses: Counter[Path] = Counter()
    refdes: set[str] = set()
    pins: list[Pin] = []
    trees: dict[Path, Node] = {}
    for path in _walk(root.resolve(), top.resolve(), trees):
        uses[path] += 1
    for path, count in uses.items():
        parts, sheet = _read_sheet(trees[path])
        refdes.update(parts)
        # A sheet drawn twice gives each symbol two references; naive readers know only the one in the file.
        if count == 1:
            pins.extend(sheet.read_out())
    return Reading(frozenset(refdes), tuple(pins))


def _walk(path: Path, top: Path, trees: dict[Path, Node], above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Every use of a sheet, root first, depth first; their contents go into ``trees``."""
    if path in above:
        raise Off(f"{path.name}: the sheet contains itself")
    if path not in trees:
        trees[path] = _load(path)
    yield path
    for sheet in children(trees[path], "sheet"):
        named = properties(sheet)
        name = named.get("Sheetfile") or named.get("Sheet file") or ""
        below = (path.parent / name).resolve()
        if not name or not below.is_relative_to(top):
            raise Off(f"{path.name}: sheet file {name!r} is not inside the project")
        yield from _walk(below, top, trees, (*above, path))


def _load(path: Path) -> Node:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Off(f"{path.name}: cannot be read: {error.__class__.__name__}") from None
    tree = parse(text, path.name)
    if head(tree) != "kicad_sch":
        raise Off(f"{path.name}: not a KiCad schematic")
    return tree


def _read_sheet(tree: Node) -> tuple[set[str], _Sheet]:
    library = dict(_library(tree))
    sheet = _Sheet()
    parts: set[str] = set()
    for item in children(tree):
        kind = head(item)
        if kind == "wire":
            ends = [_point(atoms(xy)) for xy in children(child(item, "pts") or [], "xy")]
            for one, other in pairwise(ends):
                sheet.join(one, other)
        elif kind in _LABELS:
            sheet.names.append((_point(atoms(child(item, "at"))), atoms(item)[0]))
        elif kind == "symbol":
            parts.update(_place(item, library, sheet))
    return parts, sheet


def _place(item: Node, library: dict[str, _LibSymbol], sheet: _Sheet) -> set[str]:
    """Add a placed symbol's pins, or the name a power symbol gives; return its reference unless power."""
    symbol = library.get(atom(item, "lib_name") or atom(item, "lib_id"), _LibSymbol(power=False, pins=()))
    refdes = properties(item).get("Reference", "")
    at = atoms(child(item, "at"))
    origin, turn = _point(at), round(float(at[2])) % 360 if len(at) > 2 else 0
    mirror = atom(item, "mirror")
    if symbol.power or refdes.startswith("#"):
        name = properties(item).get("Value", "")
        sheet.names.extend(
            (locate(pin.at, origin, turn, mirror, mirror_first=True), name) for pin in symbol.pins
        )
        return set()
    for pin in symbol.pins:
        for point in dict.fromkeys(
            locate(pin.at, origin, turn, mirror, mirror_first=order) for order in (True, False)
        ):
            sheet.pins.append((point, refdes, pin))
    return {refdes}


def locate(pin: Point, origin: Point, turn: int, mirror: str, *, mirror_first: bool = False) -> Point:
    """Where a pin of a placed symbol ends.

    ``pin`` is as in the symbol library (y upwards), ``turn`` in degrees counter-clockwise (multiples of 90),
    ``mirror`` one of ``x`` (top and bottom swap), ``y`` (left and right swap) or empty. KiCad turns, then
    mirrors; naive readers do it the other way round, which differs for a quarter turn.
    """
    x, y = pin[0], -pin[1]
    if mirror_first:
        x, y = _turned(_mirrored((x, y), mirror), turn)
    else:
        x, y = _mirrored(_turned((x, y), turn), mirror)
    return origin[0] + x, origin[1] + y


def _turned(point: Point, turn: int) -> Point:
    x, y = point
    for _ in range(turn // 90):
        x, y = y, -x
    return x, y


def _mirrored(point: Point, mirror: str) -> Point:
    x, y = point
    return (-x if mirror == "y" else x), (-y if mirror == "x" else y)


def _library(tree: Node) -> Iterator[tuple[str, _LibSymbol]]:
    for symbol in children(child(tree, "lib_symbols") or [], "symbol"):
        pins = tuple(
            _LibPin(atom(pin, "number"), atom(pin, "name"), _point(atoms(child(pin, "at"))))
            for body in children(symbol, "symbol")
            for pin in children(body, "pin")
        )
        yield atoms(symbol)[0], _LibSymbol(child(symbol, "power") is not None, pins)


def _point(values: list[str]) -> Point:
    return round(float(values[0]) * 10_000), round(float(values[1]) * 10_000)
