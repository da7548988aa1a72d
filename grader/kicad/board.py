"""What the grader needs of a board: nets, pads and which net an item is on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from grader.kicad.errors import Unjudgeable
from grader.kicad.sexpr import Node, parse

_CONNECTED = ("segment", "arc", "via", "zone")


@dataclass(frozen=True)
class Board:
    """One ``.kicad_pcb``."""

    pads: Mapping[str, frozenset[tuple[str, str]]]
    """Net name, as the board writes it → (reference, pad number)."""
    net_of_item: Mapping[str, str]
    """Uuid of a pad, track, arc, via or zone → its net's name."""
    footprints: int
    lines: int


def read_board(data: bytes, path: str) -> Board:
    """Read one board.

    Raises:
        Unjudgeable: not a board within the reader's limits.
    """
    root = parse(data, path)
    if root.name != "kicad_pcb":
        raise Unjudgeable(f"{path}: not a KiCad board")
    numbers: dict[str, str] = {}
    pads: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    items: dict[str, str] = {}
    footprints = 0
    for node in root.lists("net", "footprint", "module", *_CONNECTED):
        name = node.name
        if name == "net":
            texts = node.texts()
            if len(texts) > 2:
                numbers[texts[1]] = texts[2]
        elif name in _CONNECTED:
            items[_uuid(node)] = _net(node, numbers)
        else:
            footprints += 1
            reference = _reference(node)
            for pad in node.lists("pad"):
                net = _net(pad, numbers)
                items[_uuid(pad)] = net
                if net:
                    pads[net].add((reference, pad.value))
    return Board(
        {net: frozenset(members) for net, members in pads.items()},
        items,
        footprints,
        data.count(b"\n") + (not data.endswith(b"\n") and bool(data)),
    )


def _uuid(node: Node) -> str:
    return node.get("uuid") or node.get("tstamp")


def _net(node: Node, numbers: Mapping[str, str]) -> str:
    """Net of a pad, track or zone: by number and name, by number alone, or (KiCad 10) by name alone."""
    net = node.first("net")
    if net is None:
        return ""
    texts = net.texts()[1:]
    if len(texts) > 1:
        return texts[1]
    return numbers.get(texts[0], texts[0]) if texts and texts[0] != "0" else ""


def _reference(footprint: Node) -> str:
    for item in footprint.lists("property", "fp_text"):
        texts = item.texts()
        if len(texts) > 2 and texts[1].lower() == "reference":
            return texts[2]
    return ""
