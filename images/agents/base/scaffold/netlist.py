"""Parts and nets as KiCad itself sees them."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from scaffold.errors import Off
from scaffold.sexpr import Node, atom, atoms, child, children, head, parse

_UNNAMED = re.compile(r"(?:Net|unconnected)-\(")


@dataclass(frozen=True)
class Part:
    """One component of the netlist (power symbols are none)."""

    refdes: str
    value: str
    footprint: str
    mpn: str
    """The part's ``MPN`` field, or empty."""


@dataclass(frozen=True)
class Netlist:
    """A whole design."""

    parts: tuple[Part, ...]
    nets: dict[tuple[str, str], str]
    """(reference, pin number) → full net name, still escaped as KiCad writes it."""
    pin_names: dict[tuple[str, str], str] = field(default_factory=dict)
    """(reference, pin number) → the pin's name, for pins that have one."""


def read(path: Path) -> Netlist:
    """Read a netlist that ``kicad-cli sch export netlist --format kicadsexpr`` wrote.

    Raises:
        Off: not such a file.
    """
    tree = parse(path.read_text(encoding="utf-8"), "netlist")
    components, nets = child(tree, "components"), child(tree, "nets")
    if head(tree) != "export" or components is None or nets is None:
        raise Off("netlist: kicad-cli wrote something else")
    nodes = [(net, node) for net in children(nets, "net") for node in children(net, "node")]
    return Netlist(
        tuple(_part(comp) for comp in children(components, "comp")),
        {(atom(node, "ref"), atom(node, "pin")): atom(net, "name") for net, node in nodes},
        {
            (atom(node, "ref"), atom(node, "pin")): name
            for _, node in nodes
            if (name := atom(node, "pinfunction"))
        },
    )


def _part(comp: Node) -> Part:
    fields = {
        atom(item, "name"): next(iter(atoms(item)), "")
        for item in children(child(comp, "fields") or [], "field")
    }
    return Part(atom(comp, "ref"), atom(comp, "value"), atom(comp, "footprint"), fields.get("MPN", ""))


def bare(net: str) -> str:
    """The last path element of a net name; empty for a name that KiCad made up."""
    return "" if _UNNAMED.match(net) else net.rsplit("/", 1)[-1]
