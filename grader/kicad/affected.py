"""Which net a finding is about, for the types whose items KiCad picks anew (Standard §4).

Measured on kicad-cli 9.0.2 and 10.0.6: an ERC item's uuid is that of the pin of the placed symbol, or of the
label, and the sheet's uuid path tells which instance of a reused sheet it is on. Where a file gives a pin or
a label no uuid KiCad draws one, and the item is told by its description. A DRC item's uuid is that of the
pad, track, via or zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from grader.kicad import names
from grader.kicad.board import Board
from grader.kicad.netlist import Netlist, Pin
from grader.kicad.reports import Finding
from grader.kicad.schematic import Hierarchy, SchematicFile, Symbol
from grader.kicad.violations import ALIKE, ANEW

_PIN = re.compile(r"Symbol (\S+) Pin (\S+) \[")
_LABEL = re.compile(r"(Global |Hierarchical |)Label '(.*)'", re.DOTALL)


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
        self._powers = {
            (instance.path, symbol.reference(instance.path)): symbol
            for instance in hierarchy.instances
            for symbol in hierarchy.files[instance.file].symbols
            if hierarchy.files[instance.file].is_power(symbol)
        }
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
        nets = [
            net
            for uuid, words in zip(finding.uuids, finding.descriptions, strict=True)
            if (net := self._net(uuid, finding.sheet_path) or self._told(words, finding.sheet_path))
        ]
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
            return self._named(text, sheet_path, is_global=kind in ("global", "power"))
        return None

    def _told(self, words: str, sheet_path: str) -> str | None:
        """By what KiCad calls the item."""
        if pin := _PIN.match(words):
            power = self._powers.get((sheet_path, pin[1]))
            return self._known(names.decode(power.value)) if power else self._netlist.net_of(pin[1], pin[2])
        if label := _LABEL.fullmatch(words):
            return self._named(label[2], sheet_path, is_global=label[1] == "Global ")
        return None

    def _named(self, text: str, sheet_path: str, *, is_global: bool) -> str | None:
        if is_global:
            return self._known(names.decode(text))
        instance = self._instances.get(sheet_path)
        return self._known(names.decode(f"{instance.name}{text}")) if instance else None

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
