"""Schematic files: every reachable sheet, every net-naming text, and nothing KiCad would drop in silence."""

from __future__ import annotations

import pytest

from grader.evidence import Entry
from grader.kicad.errors import Unjudgeable
from grader.kicad.schematic import check_buses, net_texts, read_hierarchy, read_schematic, resolve
from tests.unit.grader.kicad import twins

ROOT = twins.ARTIFACTS.schematic


def test_a_reused_sheet_has_two_instances() -> None:
    """A file scan counts two sheets; the design has three."""
    hierarchy = read_hierarchy(twins.tree(), ROOT)
    assert [instance.name for instance in hierarchy.instances] == ["/", "/A/", "/B/"]
    assert len(hierarchy.files) == 2
    assert [instance.path for instance in hierarchy.instances][1:] == list(twins.CHANNELS.values())


def test_references_differ_by_instance() -> None:
    symbol = next(s for s in read_schematic(twins.channel_sheet(), "c").symbols if s.value == "1k")
    assert [symbol.reference(path) for path in twins.CHANNELS.values()] == ["R10", "R20"]
    assert symbol.reference("/elsewhere") == "R10"


def test_units_pins_and_power() -> None:
    file = read_schematic(twins.root_sheet(), "r")
    gates = [symbol for symbol in file.symbols if symbol.library == "own:GATE"]
    assert [gate.unit for gate in gates] == [1, 2, 3]
    assert sorted(number for gate in gates for number in gate.pins.values()) == list("123456")
    assert {symbol.value for symbol in file.symbols if file.is_power(symbol)} == {"GND", "VCC", "PWR_FLAG"}


def test_every_name_of_a_net_is_a_label() -> None:
    """KiCad's netlist keeps one name of a net that has several; a second label would go unseen."""
    tree = twins.tree(twins.variants()["alias"])  # type: ignore[arg-type]
    found = net_texts(read_hierarchy(tree, ROOT), {})
    assert {"ALIAS", "D1", "DATA", "SENSE", "TX/RX", "Q/N", "IN", "GND", "VCC"} <= found


@pytest.mark.parametrize(
    "extra",
    [
        twins.label("label", "SECRET", 10, 10),
        twins.label("global_label", "SECRET", 10, 10),
        twins.label("hierarchical_label", "SECRET", 10, 10),
        twins.symbol("VCC", "p", 10, 10, {twins.ROOT_PATH: "#PWR9"}, value="SECRET"),
        twins.sheet("C", "channel.kicad_sch", 10, 10, twins.sheet_pin("SECRET", 10, 10, "C")),
        twins.label("label", "SE\\x43RET", 10, 10),
        twins.label("label", "${S}RET", 10, 10),
        twins.label("label", "X{SECRET B}", 10, 10).replace("X{", "{"),
    ],
    ids=["local", "global", "hierarchical", "power", "sheet pin", "escaped", "variable", "bus"],
)
def test_each_way_to_name_a_net(extra: str) -> None:
    """A scan for ``(label "SECRET"`` finds one of these."""
    tree = twins.tree({ROOT: twins.root_sheet(extra)})
    assert "SECRET" in net_texts(read_hierarchy(tree, ROOT), {"S": "SEC"})


def test_a_hidden_power_pin_names_its_net() -> None:
    """Old libraries join supplies by invisible pins; no label or symbol shows the name."""
    hidden = twins.root_sheet().replace(
        b'(length 2.54) (name "VCC"', b'(length 2.54) (hide yes) (name "SECRET"'
    )
    assert hidden != twins.root_sheet()
    assert "SECRET" in net_texts(read_hierarchy(twins.tree({ROOT: hidden}), ROOT), {})


def test_a_label_with_an_unknown_variable_is_not_judged() -> None:
    """A naive grader compares the text ``${WHO}`` and finds the net absent."""
    tree = twins.tree({ROOT: twins.root_sheet(twins.label("label", "${WHO}", 10, 10))})
    with pytest.raises(Unjudgeable, match="WHO"):
        net_texts(read_hierarchy(tree, ROOT), {})


@pytest.mark.parametrize("text", ["${#}", "${FILENAME}", "N${OWN}", "@{1+1}"])
def test_a_new_label_holds_no_variable(text: str) -> None:
    """KiCad asks sheet and symbol before the project, so a variable of the project shows us another name."""
    tree = twins.tree({ROOT: twins.root_sheet(twins.label("label", text, 10, 10))})
    with pytest.raises(Unjudgeable, match="holds a variable"):
        check_buses(
            read_hierarchy(tree, ROOT),
            {"#": "X", "FILENAME": "X", "OWN": "X"},
            read_hierarchy(twins.tree(), ROOT),
        )


def test_variables_that_grow_are_bounded() -> None:
    tree = twins.tree({ROOT: twins.root_sheet(twins.label("label", "${A}", 10, 10))})
    with pytest.raises(Unjudgeable):
        net_texts(read_hierarchy(tree, ROOT), {"A": "${A}${A}${A}${A}"})


def test_a_missing_sheet_is_not_judged() -> None:
    """kicad-cli drops the sheet and ends with 0: every net in it is absent, every finding gone."""
    with pytest.raises(Unjudgeable, match=r"hw/channel.kicad_sch: missing"):
        read_hierarchy(twins.tree({"hw/channel.kicad_sch": None}), ROOT)


def test_a_sheet_that_includes_itself_is_not_judged() -> None:
    """kicad-cli drops the inner one and ends with 0."""
    loop = twins.channel_sheet(twins.sheet("loop", "channel.kicad_sch", 100, 100))
    with pytest.raises(Unjudgeable, match="includes itself"):
        read_hierarchy(twins.tree({"hw/channel.kicad_sch": loop}), ROOT)


def test_a_sheet_that_includes_its_parent_is_not_judged() -> None:
    loop = twins.channel_sheet(twins.sheet("loop", "twins.kicad_sch", 100, 100))
    with pytest.raises(Unjudgeable, match="includes itself"):
        read_hierarchy(twins.tree({"hw/channel.kicad_sch": loop}), ROOT)


def test_a_symlinked_sheet_is_not_judged() -> None:
    tree = {**twins.tree(), "hw/channel.kicad_sch": Entry(b"twins.kicad_sch", kind="symlink")}
    with pytest.raises(Unjudgeable, match="a symlink"):
        read_hierarchy(tree, ROOT)


def test_sheets_that_double_at_every_level_are_bounded() -> None:
    """Thirty small files make a billion sheets."""
    changes: dict[str, bytes | None] = {
        f"hw/s{level}.kicad_sch": twins.schematic(
            f"s{level}", *(twins.sheet(f"{level}{side}", f"s{level + 1}.kicad_sch", 10, 10) for side in "ab")
        )
        for level in range(30)
    }
    changes["hw/s30.kicad_sch"] = twins.schematic("s30")
    changes[ROOT] = twins.schematic("root", twins.sheet("s", "s0.kicad_sch", 10, 10))
    with pytest.raises(Unjudgeable, match="more than 2000 sheets"):
        read_hierarchy(twins.tree(changes), ROOT)


def test_nesting_of_sheets_is_bounded() -> None:
    changes: dict[str, bytes | None] = {
        f"hw/s{level}.kicad_sch": twins.schematic(
            f"s{level}", twins.sheet(f"{level}", f"s{level + 1}.kicad_sch", 10, 10)
        )
        for level in range(40)
    }
    changes[ROOT] = twins.schematic("root", twins.sheet("s", "s0.kicad_sch", 10, 10))
    with pytest.raises(Unjudgeable, match="nested deeper"):
        read_hierarchy(twins.tree(changes), ROOT)


SHEET = twins.sheet("A", "channel.kicad_sch", 10, 10)


@pytest.mark.parametrize(
    "written",
    [
        SHEET.replace('"Sheetfile"', '"Other"'),
        SHEET.replace('"Sheetname"', '"Sheetfile"'),
        SHEET.replace('(property "Sheetname"', '(property "Sheetfile" "x.kicad_sch") (property "Sheetname"'),
        SHEET.replace("(instances", '(property "sheetFILE" "x.kicad_sch") (instances'),
    ],
    ids=["renamed", "file first", "twice, first", "twice, last"],
)
def test_a_sheet_whose_file_is_a_matter_of_opinion_is_not_judged(written: str) -> None:
    """KiCad goes by the order of properties, a naive reader by their names: they open different files."""
    with pytest.raises(Unjudgeable, match="a sheet without name and file"):
        read_schematic(twins.schematic("x", written), "x")


def test_older_spelling_of_sheet_properties() -> None:
    written = SHEET.replace('"Sheetname"', '"Sheet name"').replace('"Sheetfile"', '"Sheet file"')
    assert read_schematic(twins.schematic("x", written), "x").sheets[0].file == "channel.kicad_sch"


@pytest.mark.parametrize(
    ("base", "written", "path"),
    [
        ("hw/a.kicad_sch", "b.kicad_sch", "hw/b.kicad_sch"),
        ("hw/sub/a.kicad_sch", "b.kicad_sch", "hw/sub/b.kicad_sch"),
        ("hw/sub/a.kicad_sch", "../b.kicad_sch", "hw/b.kicad_sch"),
        ("hw/a.kicad_sch", "sub\\b.kicad_sch", "hw/sub/b.kicad_sch"),
        ("a.kicad_sch", "./b.kicad_sch", "b.kicad_sch"),
        ("hw/a.kicad_sch", "../../b.kicad_sch", None),
        ("hw/a.kicad_sch", "/b.kicad_sch", None),
        ("hw/a.kicad_sch", "~/b.kicad_sch", None),
        ("hw/a.kicad_sch", "C:\\b.kicad_sch", None),
        ("hw/a.kicad_sch", "file:///b.kicad_sch", None),
        ("hw/a.kicad_sch", "..", None),
        ("a.kicad_sch", "x/../..", None),
    ],
)
def test_sheet_files_resolve_against_the_file_that_names_them(
    base: str, written: str, path: str | None
) -> None:
    """A naive reader resolves against the root's folder and grades another file than KiCad opens."""
    assert resolve(base, written) == path


@pytest.mark.parametrize(
    "data", [b"", b"(kicad_pcb)", b"(kicad_sch", twins.root_sheet().replace(b"\n", b"\0")]
)
def test_what_is_no_schematic_is_refused(data: bytes) -> None:
    with pytest.raises(Unjudgeable):
        read_schematic(data, "x")


@pytest.mark.parametrize("written", ["channel.txt", "channel.KICAD_SCH", "channel"])
def test_a_sheet_that_is_not_called_a_schematic_is_refused(written: str) -> None:
    """kicad-cli is not given it, and ends with 0 on the rest: a naive grader finds its parts removed."""
    root = twins.root_sheet().replace(b"channel.kicad_sch", written.encode())
    tree = twins.tree({ROOT: root, f"hw/{written}": twins.channel_sheet()})
    with pytest.raises(Unjudgeable, match=r"is no \.kicad_sch file"):
        read_hierarchy(tree, ROOT)


def test_parts_kept_off_the_board_have_references_too() -> None:
    """KiCad's netlist leaves them out."""
    root = twins.root_sheet().replace(b"(on_board yes)", b"(on_board no)")
    hierarchy = read_hierarchy(twins.tree({ROOT: root}), ROOT)
    assert {"R1", "R10", "R22", "U1"} <= hierarchy.references()
    assert not any(reference.startswith("#") for reference in hierarchy.references())


def test_parts_that_the_netlist_must_hold_are_those_on_the_board() -> None:
    off = twins.root_sheet().replace(b"(on_board yes) (dnp no) (stroke", b"(on_board no) (dnp no) (stroke")
    for root, expected in ((twins.root_sheet(), [True, True, True]), (off, [True, False, False])):
        hierarchy = read_hierarchy(twins.tree({ROOT: root}), ROOT)
        assert [instance.on_board for instance in hierarchy.instances] == expected
        uuids = {symbol.uuid for _, symbol in hierarchy.parts()}
        assert twins.uid("U1 c") in uuids and twins.uid("PWR2") not in uuids


def bus(first: int, last: int) -> bytes:
    label = f'(label "D[{first}..{last}]" (at 0 0 0) (uuid "1"))'
    return f'(kicad_sch (version 20250114) (uuid "0") {label})'.encode()


@pytest.mark.parametrize(("last", "fits"), [(65_534, True), (65_535, True), (65_536, False)])
def test_buses_of_a_file_have_a_limit(last: int, fits: bool) -> None:
    """Naive: hand ``D[0..999999999]`` to kicad-cli, which takes gigabytes and minutes to spell it out."""
    for data in (bus(0, last), bus(last, 0)):
        if fits:
            assert len(read_schematic(data, "r").labels) == 1
        else:
            with pytest.raises(Unjudgeable, match="buses of more than"):
                read_schematic(data, "r")


@pytest.mark.parametrize(
    "text",
    [
        '(label "M{A[0..99999999] B}" (at 0 0 0))',
        '(hierarchical_label "D[ 0 .. 99999999 ]" (at 0 0 0))',
        '(global_label "D[0..99999999999999999999999999]" (at 0 0 0))',
        '(bus_alias "X" (members "a" "D[0..99999999]"))',
        '(sheet (property "Sheetname" "s") (property "Sheetfile" "a.kicad_sch") (pin "D[0..9999999]" input))',
        "".join(f'(label "D[0..{n}]" (at 0 0 0))' for n in range(400)),
    ],
)
def test_the_limit_holds_wherever_a_bus_is_named(text: str) -> None:
    with pytest.raises(Unjudgeable, match="buses of more than"):
        read_schematic(f"(kicad_sch {text})".encode(), "r")


def chain(depth: int, *, wide: int = 1) -> dict[str, Entry]:
    """So many files; each but the last holds the next one ``wide`` times."""
    files = {}
    for level in range(depth):
        sheets = "".join(
            f'(sheet (uuid "{level}-{n}") (property "Sheetname" "s{n}")'
            f' (property "Sheetfile" "{level + 1}.kicad_sch"))'
            for n in range(wide if level < depth - 1 else 0)
        )
        files[f"{level}.kicad_sch"] = Entry(f'(kicad_sch (uuid "{level}") {sheets})'.encode())
    return files


@pytest.mark.parametrize(("depth", "fits"), [(31, True), (32, True), (33, False)])
def test_sheets_are_nested_up_to_a_limit(depth: int, fits: bool) -> None:
    if fits:
        assert len(read_hierarchy(chain(depth), "0.kicad_sch").files) == depth
    else:
        with pytest.raises(Unjudgeable, match="nested deeper than 32"):
            read_hierarchy(chain(depth), "0.kicad_sch")


@pytest.mark.parametrize(("wide", "fits"), [(1998, True), (1999, True), (2000, False)])
def test_a_design_has_a_limit_of_sheets(wide: int, fits: bool) -> None:
    """Naive: follow twenty files that hold each other twice, a million sheets."""
    if fits:
        assert len(read_hierarchy(chain(2, wide=wide), "0.kicad_sch").instances) == wide + 1
    else:
        with pytest.raises(Unjudgeable, match="more than 2000 sheets"):
            read_hierarchy(chain(2, wide=wide), "0.kicad_sch")
    with pytest.raises(Unjudgeable, match="more than 2000 sheets"):
        read_hierarchy(chain(20, wide=2), "0.kicad_sch")


def labelled(text: str) -> dict[str, Entry]:
    return {"r.kicad_sch": Entry(f'(kicad_sch (uuid "0") (label "{text}" (at 0 0 0)))'.encode())}


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("D[0..${N}]", {"N": "99999999"}),
        ("D${R}", {"R": "[0..99999999]"}),
        ("D[0.${A}", {"A": "${B}", "B": ".99999999]"}),
        ("D${COMMENT1}", {}),
        ("D[0..${N}]", {}),
    ],
)
def test_a_bus_that_a_variable_makes_is_refused(text: str, variables: dict[str, str]) -> None:
    """Naive: read the label as written; KiCad resolves it first, and dies of the bus."""
    found = read_hierarchy(labelled(text), "r.kicad_sch")
    with pytest.raises(Unjudgeable, match="holds a variable"):
        check_buses(found, variables, None)
    if len(variables):
        with pytest.raises(Unjudgeable, match="buses of more than"):
            check_buses(found, variables, found)


def test_labels_that_the_fixture_has_may_hold_what_only_kicad_resolves() -> None:
    found = read_hierarchy(labelled("N_${SHEETNAME}"), "r.kicad_sch")
    check_buses(found, {}, found)
    found = read_hierarchy(labelled("D[0..${N}]"), "r.kicad_sch")
    check_buses(found, {"N": "7"}, found)
    with pytest.raises(Unjudgeable, match="a bus alias holds a variable"):
        read_schematic(b'(kicad_sch (bus_alias "X" (members "D${N}")))', "r")
