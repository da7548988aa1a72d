"""Which net a finding is about, for the types whose items KiCad picks anew (Standard §4).

Measured on kicad-cli 9.0.2 and 10.0.6: an ERC item's uuid is that of the pin of the placed symbol, or of the
label, and the sheet's uuid path tells which instance of a reused sheet it is on. A DRC item's uuid is that of
the pad, track, via or zone.
"""

from __future__ import annotations

from collections.abc import Iterable

from grader.kicad import names
from grader.kicad.board import Board
from grader.kicad.netlist import Netlist, Pin
from grader.kicad.reports import Finding
from grader.kicad.schematic import Hierarchy, SchematicFile, Symbol
from grader.kicad.violations import ALIKE, ANEW


def _spell(pins: Iterable[Pin]) -> list[str]:
    return sorted(f"{refdes}.{number}" for refdes, number in pins)


class SchematicNets:
    """Finds the net of an ERC item."""

    def __init__(self, hierarchy: Hierarchy, netlist: Netlist) -> None:
        self._netlist = netlist
        self._instances = {instance.path: instance for instance in hierarchy.instances}
        self._files = hierarchy.files
        self._pins: dict[str, tuple[SchematicFile, Symbol, str]] = {}
        self._labels: dict[str, tuple[str, str]] = {}
        for file in hierarchy.files.values():
            for symbol in file.symbols:
                for uuid, number in symbol.pins.items():
                    self._pins[uuid] = (file, symbol, number)
                if file.is_power(symbol):
                    self._labels[symbol.uuid] = ("power", symbol.value)
            for label in file.labels:
                self._labels[label.uuid] = (label.kind, label.text)

    def pins(self, finding: Finding) -> list[str] | None:
        """``REF.PIN`` of the affected net, sorted; None where it cannot be told or the type needs none."""
        if finding.type not in ANEW:
            return None
        nets = [net for uuid in finding.uuids if (net := self._net(uuid, finding.sheet_path)) is not None]
        if not nets:
            return None
        # All items of a finding are on its one net, unless it is about names that are alike.
        chosen = nets if finding.type in ALIKE else nets[:1]
        return _spell(set().union(*(self._netlist.nets[net] for net in chosen)))

    def _net(self, uuid: str, sheet_path: str) -> str | None:
        if uuid in self._pins:
            file, symbol, number = self._pins[uuid]
            if file.is_power(symbol):
                return self._known(names.decode(symbol.value))
            return self._netlist.net_of(symbol.reference(sheet_path), number)
        if uuid in self._labels:
            kind, text = self._labels[uuid]
            if kind in ("global", "power"):
                return self._known(names.decode(text))
            instance = self._instances.get(sheet_path)
            return self._known(names.decode(f"{instance.name}{text}")) if instance else None
        return None

    def _known(self, name: str) -> str | None:
        return name if name in self._netlist.nets else None


class BoardNets:
    """Finds the net of a DRC item."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def pins(self, finding: Finding) -> list[str] | None:
        """``REF.PIN`` of all pads of the affected net, sorted; None as in :meth:`SchematicNets.pins`."""
        if finding.type not in ANEW:
            return None
        for uuid in finding.uuids:
            net = self._board.net_of(uuid)
            if net in self._board.pads:
                return _spell(self._board.pads[net])
        return None
