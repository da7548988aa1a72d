"""Connectivity from KiCad's netlist, never from label text."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.kicad import buses, names
from grader.kicad.errors import Unjudgeable
from grader.kicad.netlist import Netlist, read_netlist
from tests.fuzz.targets import quoted
from tests.unit.grader.kicad.support import sample


@pytest.fixture(scope="module")
def netlist() -> Netlist:
    """Our project's netlist."""
    return read_netlist(sample("plain", "netlist"))


def test_global_and_local_twins_are_different_nets(netlist: Netlist) -> None:
    """A label scan finds one DATA; there are three nets of that last element."""
    assert netlist.match("DATA") == ["DATA"]
    assert netlist.match("/A/DATA") == ["/A/DATA"]
    assert netlist.nets["DATA"].isdisjoint(netlist.nets["/A/DATA"])


def test_a_leaf_in_a_reused_sheet_is_ambiguous(netlist: Netlist) -> None:
    """A naive grader takes the first hit: the file is one, the nets are two."""
    assert netlist.match("SENSE") == ["/A/SENSE", "/B/SENSE"]


def test_a_leaf_that_is_unique_means_its_net(netlist: Netlist) -> None:
    assert netlist.match("CLK") == ["/CLK"]


def test_a_leading_slash_is_exact(netlist: Netlist) -> None:
    """A naive grader compares the ends and finds /A/SENSE for /SENSE."""
    assert netlist.match("/SENSE") == []
    assert netlist.match("/CLK") == ["/CLK"]


def test_a_slash_in_a_name_is_no_path(netlist: Netlist) -> None:
    """KiCad writes {slash}; a naive grader asks for ``TX/RX`` and finds nothing, or ``RX`` and finds it."""
    assert netlist.match("TX/RX") == ["/TX/RX"]
    assert netlist.match("/TX/RX") == ["/TX/RX"]
    assert netlist.match("RX") == []
    assert netlist.match("N") == []


def test_units_of_one_symbol_are_one_component(netlist: Netlist) -> None:
    """A symbol scan counts three gates."""
    assert netlist.components["U1"].library_id == "own:GATE"
    assert len(netlist.components["U1"].uuids) == 3
    assert {netlist.net_of("U1", pin) for pin in "123456"} == {"/CLK", "/D1", "DATA", "/Q/N", "VCC", "GND"}


def test_power_symbols_are_no_components(netlist: Netlist) -> None:
    assert not any(name.startswith("#") for name in netlist.components)
    assert netlist.match("GND") == ["GND"]


def test_instances_of_a_reused_sheet_have_their_own_references(netlist: Netlist) -> None:
    """A file scan knows R10 only; R20 is the same symbol on the other sheet."""
    assert netlist.net_of("R10", "2") == "/A/DATA"
    assert netlist.net_of("R20", "2") == "/B/DATA"
    assert netlist.components["R20"].sheet == "/B/"


def test_a_net_nobody_named_is_found_by_its_pins(netlist: Netlist) -> None:
    name = netlist.net_of("R1", "2")
    assert name is not None
    assert netlist.nets[name] == {("R1", "2"), ("R2", "1")}


def test_unknown_pins_have_no_net(netlist: Netlist) -> None:
    assert netlist.net_of("R1", "3") is None
    assert netlist.net_of("R99", "1") is None


def test_pin_types_and_names(netlist: Netlist) -> None:
    assert netlist.pin_names["U1", "5"] == "VCC"
    assert netlist.pin_types["U1", "5"] == "power_in"
    assert ("R1", "1") not in netlist.pin_names


def test_a_net_without_a_pin_is_not_present() -> None:
    """A naive grader finds the name in the list of nets and is content."""
    text = (
        b'(export (components) (nets (net (code "1") (name "/X")) (net (name "/Y") (node (ref R1) (pin 1)))))'
    )
    assert read_netlist(text).match("X") == []
    assert read_netlist(text).match("Y") == ["/Y"]


def test_two_names_that_decode_to_one_are_refused() -> None:
    nets = b'(net (name "/a{slash}b") (node (ref R1) (pin 1))) (net (name "/a/b") (node (ref R2) (pin 1)))'
    with pytest.raises(Unjudgeable, match="two nets"):
        read_netlist(b"(export (components) (nets " + nets + b"))")


def test_flags_of_a_component() -> None:
    comp = b'(comp (ref R1) (value "1k") (property (name "dnp")) (property (name "exclude_from_bom")))'
    part = read_netlist(b"(export (components " + comp + b") (nets))").components["R1"]
    assert (part.dnp, part.in_bom, part.on_board) == (True, False, True)


@pytest.mark.parametrize(
    "data", [b"", b"(export)", b"(kicad_sch (components) (nets))", b"(export (components)"]
)
def test_what_is_no_netlist_is_refused(data: bytes) -> None:
    """A naive grader reads no nets from it, and every net_absent passes."""
    with pytest.raises(Unjudgeable):
        read_netlist(data)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a{slash}b", "a/b"),
        ("{brace}slash}", "{slash}"),
        ("{quote}{dblquote}{lt}{gt}{colon}{comma}{dollar}{bar}{space}{backslash}", "'\"<>:,$| \\"),
        ("~{RESET}", "~{RESET}"),
        ("{unknown}", "{unknown}"),
        ("plain", "plain"),
    ],
)
def test_kicad_escapes_in_names(written: str, meant: str) -> None:
    assert names.decode(written) == meant


@pytest.mark.parametrize(
    ("label", "members"),
    [
        ("D[0..2]", ["D[0..2]", "D0", "D1", "D2"]),
        ("D[2..0]_P", ["D[2..0]_P", "D0_P", "D1_P", "D2_P"]),
        ("USB{DP DM}", ["USB{DP DM}", "USB.DP", "USB.DM"]),
        ("{SDA SCL}", ["{SDA SCL}", "SDA", "SCL"]),
        ("M{A[0..1] CK}", ["M{A[0..1] CK}", "M.A0", "M.A1", "M.CK"]),
        ("~{RESET}", ["~{RESET}"]),
        ("TX{slash}RX", ["TX{slash}RX"]),
        ("plain", ["plain"]),
    ],
)
def test_bus_labels_name_their_members(label: str, members: list[str]) -> None:
    """A naive net_absent for D1 passes while ``D[0..7]`` still stands there."""
    assert buses.expand(label) == members


def test_a_huge_bus_is_bounded() -> None:
    assert len(buses.expand("D[0..999999]")) <= buses.MAX_MEMBERS + 2


@pytest.mark.parametrize(
    ("tool", "written", "name"),
    [
        ("Eeschema 9.0.2+dfsg-1", "IO", "IO"),
        ("Eeschema 9.0.2+dfsg-1", "IO_3", "IO_3"),
        ("Eeschema 10.0.6+dfsg-1", "IO_3", "IO"),
        ("Eeschema 10.0.6+dfsg-1", "IO_3_3", "IO_3"),
        ("Eeschema 11.0.0", "IO_3", "IO"),
        ("", "IO_3", "IO_3"),
    ],
)
def test_a_pins_name_is_its_symbols_whichever_kicad_wrote_it(tool: str, written: str, name: str) -> None:
    """KiCad 10 appends the number: a naive grader finds no pin of a forbidden name, and passes."""
    text = (
        f'(export (version "E") (design (tool "{tool}")) (components) (nets (net (code "1") (name "N")'
        f' (node (ref "U1") (pin "3") (pinfunction "{written}") (pintype "input")))))'
    )
    assert read_netlist(text.encode()).pin_names == {("U1", "3"): name}


ONE_PART = '(comp (ref "R1") (value "1k"))'
NODE = '(node (ref "R1") (pin "1"))'


@pytest.mark.parametrize(
    ("parts", "nets", "says"),
    [
        (ONE_PART, f'(net (name "A") {NODE}) (net (name "B") {NODE})', "R1.1 is on two nets, 'A' and 'B'"),
        (ONE_PART * 2, f'(net (name "A") {NODE})', "two parts are called 'R1'"),
    ],
)
def test_a_part_or_pin_that_is_there_twice_is_not_judged(parts: str, nets: str, says: str) -> None:
    """Naive: the last one wins, and a second symbol of the same name answers for the first."""
    with pytest.raises(Unjudgeable, match=says):
        read_netlist(f"(export (components {parts}) (nets {nets}))".encode())


def test_a_pin_twice_on_one_net_is_one() -> None:
    nets = f'(net (name "A") {NODE} {NODE})'
    found = read_netlist(f"(export (components {ONE_PART}) (nets {nets}))".encode())
    assert found.nets == {"A": frozenset({("R1", "1")})}


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
PINS = st.tuples(TEXTS, TEXTS)
Nets = dict[str, list[tuple[str, str]]]


def apart(nets: Nets) -> Nets:
    """The same without the pins that another net has already."""
    taken: set[tuple[str, str]] = set()
    found: Nets = {}
    for name, pins in nets.items():
        found[name] = [pin for pin in pins if pin not in taken]
        taken.update(pins)
    return found


# An escaped slash in front is refused: a test of its own.
NAMES = TEXTS.filter(lambda name: not name.startswith("/"))
NETS = st.dictionaries(NAMES, st.lists(PINS, max_size=4, unique=True), max_size=5).map(apart)
PARTS = st.dictionaries(TEXTS, st.tuples(TEXTS, TEXTS), max_size=4)
"""Reference → value, footprint."""


def escaped(name: str) -> str:
    """A net's name as KiCad writes it, so that no brace and no slash of it means anything."""
    return name.replace("{", "{brace}").replace("/", "{slash}")


def text(value: str) -> bytes:
    """A text in quotes."""
    return quoted([value])[2:-2]


def written(nets: Mapping[str, list[tuple[str, str]]], parts: Mapping[str, tuple[str, str]]) -> bytes:
    """A netlist as kicad-cli has them."""
    comps = b"".join(
        b"(comp (ref %s) (value %s) (footprint %s))" % (text(ref), text(value), text(footprint))
        for ref, (value, footprint) in parts.items()
    )
    wires = b"".join(
        b"(net (name %s)%s)"
        % (text(name), b"".join(b"(node (ref %s) (pin %s))" % (text(r), text(p)) for r, p in pins))
        for name, pins in nets.items()
    )
    return b"(export (components %s) (nets %s))" % (comps, wires)


@given(NETS, PARTS)
def test_any_netlist_reads_back(nets: Nets, parts: dict[str, tuple[str, str]]) -> None:
    found = read_netlist(written({escaped(name): pins for name, pins in nets.items()}, parts))
    assert found.nets == {name: frozenset(pins) for name, pins in nets.items() if pins}
    assert {ref: (part.value, part.footprint) for ref, part in found.components.items()} == parts


@given(NETS)
def test_a_pin_is_on_a_net_that_lists_it_and_on_none_that_does_not(
    nets: Nets,
) -> None:
    found = read_netlist(written({escaped(name): pins for name, pins in nets.items()}, {}))
    listed = {pin for pins in nets.values() for pin in pins}
    for pin in listed:
        name = found.net_of(*pin)
        assert name is not None and pin in found.nets[name]
    assert found.net_of("no such part", "1") is None


@given(NETS)
def test_a_leaf_means_every_net_that_ends_in_it_and_a_full_name_one(
    nets: Nets,
) -> None:
    """A naive grader takes the first hit."""
    paths = {
        f"/{sheet}/{escaped(name)}": [(f"{sheet}{part}", pin) for part, pin in pins]
        for sheet in "AB"
        for name, pins in nets.items()
    }
    found = read_netlist(written(paths, {}))
    for name, pins in nets.items():
        there = [f"/{sheet}/{name}" for sheet in "AB"] if pins else []
        assert [found.match(full) for full in there] == [[full] for full in there]
        assert found.match(name) == there


@given(NETS, st.data())
def test_the_order_of_nets_says_nothing(nets: Nets, data: st.DataObject) -> None:
    named = {escaped(name): pins for name, pins in nets.items()}
    shuffled = dict(data.draw(st.permutations(list(named.items()))))
    one, other = read_netlist(written(named, {})), read_netlist(written(shuffled, {}))
    assert one.nets == other.nets
    assert all(one.net_of(*pin) == other.net_of(*pin) for pins in nets.values() for pin in pins)


@given(NETS, PARTS, st.data())
def test_a_netlist_cut_anywhere_is_refused(
    nets: Nets, parts: dict[str, tuple[str, str]], data: st.DataObject
) -> None:
    """A naive grader reads the nets that are left, and net_absent passes."""
    whole = written(nets, parts)
    with pytest.raises(Unjudgeable):
        read_netlist(whole[: data.draw(st.integers(0, len(whole) - 1))])


def test_an_escaped_slash_is_no_path() -> None:
    """Decoded, the global net is called like one of the root sheet."""
    with pytest.raises(Unjudgeable, match="a slash that is no path's"):
        read_netlist(f'(export (components {ONE_PART}) (nets (net (name "{{slash}}A") {NODE})))'.encode())
