"""What the grader needs of a board: which pads a net has, and which net an item is on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property, lru_cache

from grader.kicad.errors import Unjudgeable
from grader.kicad.sexpr import KEPT, Node, parse

Pad = tuple[str, str]
"""(reference, pad number)."""
_COPPER = ("segment", "arc", "via", "zone")
_OF_ITEM = ("net", "uuid", "tstamp")


class Board:
    """One ``.kicad_pcb``; tracks and zones are read only when one is asked for."""

    def __init__(self, root: Node, lines: int) -> None:
        self._root = root
        self.lines = lines

    @property
    def pads(self) -> Mapping[str, frozenset[Pad]]:
        """Net name, as the board writes it → its pads."""
        return self._pads[0]

    @cached_property
    def footprints(self) -> int:
        """Placed footprints."""
        return sum(1 for _ in self._root.lists("footprint", "module"))

    def net_of(self, uuid: str) -> str:
        """Net of a pad, track, arc, via or zone; empty if it has none or is not there."""
        return self._pads[1].get(uuid) or self._copper.get(uuid, "")

    @cached_property
    def _pads(self) -> tuple[dict[str, frozenset[Pad]], dict[str, str]]:
        nets: defaultdict[str, set[Pad]] = defaultdict(set)
        items: dict[str, str] = {}
        for footprint in self._root.lists("footprint", "module"):
            part = reference(footprint)
            for pad in footprint.lists("pad"):
                net, uuid = self._item(pad)
                items[uuid] = net
                if net:
                    nets[net].add((part, pad.value))
        return {net: frozenset(pads) for net, pads in nets.items()}, items

    @cached_property
    def _copper(self) -> dict[str, str]:
        found = {}
        for item in self._root.lists(*_COPPER):
            net, uuid = self._item(item)
            found[uuid] = net
        return found

    @cached_property
    def _numbers(self) -> dict[str, str]:
        """Net number → name; 0 is no net. KiCad 10 writes no numbers, and a net may be called 0 there."""
        declared = (net.texts() for net in self._root.lists("net"))
        return {texts[1]: texts[2] for texts in declared if len(texts) > 2}

    def _item(self, node: Node) -> tuple[str, str]:
        net = uuid = ""
        for part in node.lists(*_OF_ITEM):
            texts = part.texts()
            if texts[0] != "net":
                uuid = uuid or "".join(texts[1:2])
            elif len(texts) > 2:
                net = texts[2]
            elif len(texts) == 2:
                net = self._numbers.get(texts[1], texts[1])
        return net, uuid


@lru_cache(maxsize=KEPT)
def read_board(data: bytes, path: str) -> Board:
    """Check one board, whole; what it holds is read when asked for.

    Raises:
        Unjudgeable: not a board within the reader's limits.
    """
    root = parse(data, path)
    if root.name != "kicad_pcb":
        raise Unjudgeable(f"{path}: not a KiCad board")
    return Board(root, data.count(b"\n") + (not data.endswith(b"\n") and bool(data)))


def reference(footprint: Node) -> str:
    """The reference of a footprint; empty if it has none."""
    for item in footprint.lists("property", "fp_text"):
        texts = item.texts()
        # Older boards have it as a text. A field may be called REFERENCE, and means nothing.
        if len(texts) > 2 and texts[:2] in (["property", "Reference"], ["fp_text", "reference"]):
            return texts[2]
    return ""
