"""Connectivity as KiCad computes it: a ``kicadsexpr`` netlist, read (Standard §4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from grader.kicad import names, nested
from grader.kicad.errors import Unjudgeable
from grader.kicad.sexpr import Nested, Node, parse

Pin = tuple[str, str]
"""(reference, pin number)."""
NUMBERED_FUNCTIONS = 10
"""From this major on KiCad appends a pin's number to its name, ``VCC_8`` for pin 8. Seen on ten boards."""


@dataclass(frozen=True, slots=True)
class Component:
    """One part: all units of a symbol together. Power symbols are not components."""

    refdes: str
    value: str
    footprint: str
    library_id: str
    """``library:symbol``."""
    dnp: bool = False
    in_bom: bool = True
    on_board: bool = True
    fields: Mapping[str, str] = field(default_factory=dict)
    sheet: str = "/"
    """Human-readable path of the sheet that holds its first unit."""
    uuids: tuple[str, ...] = ()
    """Symbol uuids, one a unit."""


@dataclass(frozen=True)
class Netlist:
    """Nets and components of one design."""

    nets: Mapping[str, frozenset[Pin]]
    """Full net name, ``{slash}`` decoded → its pins. A net without a pin is not in it."""
    components: Mapping[str, Component]
    """Reference → component."""
    pin_names: Mapping[Pin, str] = field(default_factory=dict)
    """(reference, pin number) → the pin's name in its symbol; absent where it has none."""
    pin_types: Mapping[Pin, str] = field(default_factory=dict)
    """(reference, pin number) → electrical type as KiCad names it, ``+no_connect`` suffix included."""
    leaves: Mapping[str, str] = field(default_factory=dict)
    """Full net name → its last path element, decoded."""

    def match(self, argument: str) -> list[str]:
        """Full names of the nets that an assertion's argument means, sorted; several mean it is ambiguous.

        An argument that starts with ``/``, or that is a full net name, is exact. Any other means every net
        whose last path element it is.
        """
        if argument.startswith("/") or argument in self.nets:
            return [argument] if argument in self.nets else []
        return list(self._by_leaf.get(argument, ()))

    def net_of(self, refdes: str, pin: str) -> str | None:
        """Full name of the net that a pin is on; None if there is no such pin."""
        return self._by_pin.get((refdes, pin))

    @cached_property
    def _by_leaf(self) -> Mapping[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for name in sorted(self.nets):
            found[self.leaves.get(name, name.rpartition("/")[2])].append(name)
        return found

    @cached_property
    def _by_pin(self) -> Mapping[Pin, str]:
        return {pin: name for name, pins in self.nets.items() for pin in pins}


def read_netlist(data: bytes, about: str = "netlist") -> Netlist:
    """Read ``kicad-cli sch export netlist --format kicadsexpr``.

    Raises:
        Unjudgeable: not a netlist, two nets decode to one name, two parts have one reference, or a pin is on
            two nets: which of them an assertion means cannot be told.
    """
    root = parse(data, about)
    tree = root.tree()
    parts, wires = nested.first(tree, "components"), nested.first(tree, "nets")
    if root.name != "export" or parts is None or wires is None:
        raise Unjudgeable(f"{about}: not a KiCad netlist")
    numbered = _major(root) >= NUMBERED_FUNCTIONS
    components: dict[str, Component] = {}
    for part in map(_component, nested.lists(parts, "comp")):
        if part.refdes in components:
            raise Unjudgeable(f"{about}: two parts are called {part.refdes!r}")
        components[part.refdes] = part
    net_of: dict[Pin, str] = {}
    nets: dict[str, frozenset[Pin]] = {}
    leaves: dict[str, str] = {}
    pin_names: dict[Pin, str] = {}
    pin_types: dict[Pin, str] = {}
    for net in nested.lists(wires, "net"):
        raw = nested.value(net, "name")
        pins = set()
        for node in nested.lists(net, "node"):
            pin = (nested.value(node, "ref"), nested.value(node, "pin"))
            pins.add(pin)
            pin_types[pin] = nested.value(node, "pintype")
            if function := nested.value(node, "pinfunction"):
                pin_names[pin] = function.removesuffix(f"_{pin[1]}") if numbered else function
        if not pins:
            continue
        name = names.decode(raw)
        if name.startswith("/") and not raw.startswith("/"):
            # Once decoded it looks like a net of the root sheet.
            raise Unjudgeable(f"{about}: a net is called {raw!r}, with a slash that is no path's")
        if name in nets:
            raise Unjudgeable(f"{about}: two nets are called {name!r} once their names are decoded")
        for pin in pins:
            if (other := net_of.setdefault(pin, name)) != name:
                raise Unjudgeable(f"{about}: {'.'.join(pin)} is on two nets, {other!r} and {name!r}")
        nets[name] = frozenset(pins)
        leaves[name] = names.leaf(raw)
    return Netlist(nets, components, pin_names, pin_types, leaves)


def _major(root: Node) -> int:
    """``10`` of ``(design … (tool "Eeschema 10.0.6+dfsg-1"))``; 0 where it is not said."""
    number = root.get("design", "tool").rpartition(" ")[2].partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _component(comp: Nested) -> Component:
    flags = {nested.value(prop, "name") for prop in nested.lists(comp, "property")}
    source = nested.first(comp, "libsource")
    library = f"{nested.value(source, 'lib')}:{nested.value(source, 'part')}" if source else ""
    fields: dict[str, str] = {}
    for item in nested.lists(nested.first(comp, "fields") or [], "field"):
        texts = nested.texts(item)
        fields[nested.value(item, "name")] = texts[1] if len(texts) > 1 else ""
    sheet = nested.first(comp, "sheetpath")
    return Component(
        refdes=nested.value(comp, "ref"),
        value=nested.value(comp, "value"),
        footprint=nested.value(comp, "footprint"),
        library_id=library,
        dnp="dnp" in flags,
        in_bom="exclude_from_bom" not in flags,
        on_board="exclude_from_board" not in flags,
        fields=fields,
        sheet=(nested.value(sheet, "names") if sheet else "") or "/",
        uuids=tuple(nested.texts(nested.first(comp, "tstamps") or [])[1:]),
    )
