"""One tree's design, on what kicad-cli said about our own project."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest

from grader.kicad.board import read_board
from grader.kicad.cli import Job, KicadCli
from grader.kicad.design import Design
from grader.kicad.errors import Unjudgeable
from grader.kicad.measure import measure
from grader.kicad.violations import new_violations
from schema.fixture import Artifacts
from tests.unit.grader.kicad import twins
from tests.unit.grader.kicad.support import Replay, design, sample

ROOT, BOARD, PROJECT = "hw/twins.kicad_sch", "hw/twins.kicad_pcb", "hw/twins.kicad_pro"


def pins(found: Design, kind: str, report: str = "erc") -> list[list[str] | None]:
    """Pin sets of a type's findings."""
    violations = (found.erc() if report == "erc" else found.drc()).violations
    return [violation.pins for violation in violations if violation.type == kind]


def test_every_answer_is_computed_once() -> None:
    cli = Replay()
    found = design(cli=cli)
    for _ in range(3):
        _ = found.netlist, found.labels, found.erc(), found.drc()
    assert sorted(job for job, _, _ in cli.given) == ["drc", "erc", "netlist"]


def test_an_undriven_supply_is_told_by_its_net() -> None:
    """KiCad names the power symbol, which is no component; the net's pin is the gate's."""
    assert pins(design(), "power_pin_not_driven") == [["U1.5"]]


def test_an_undriven_input_is_told_by_its_net() -> None:
    tree = twins.tree(twins.variants()["lone"])  # type: ignore[arg-type]
    assert pins(design(tree, Replay("lone")), "pin_not_driven") == [["U2.1", "U3.1"]]


def test_a_net_with_two_names_is_told_by_its_pins() -> None:
    tree = twins.tree(twins.variants()["alias"])  # type: ignore[arg-type]
    assert pins(design(tree, Replay("alias")), "multiple_net_names") == [["R10.1", "U1.2"]]


def test_unconnected_items_are_told_by_their_net() -> None:
    """KiCad draws the missing links anew after every edit: which pads it names says nothing."""
    found = pins(design(), "unconnected_items", "drc")
    assert len(found) == 12
    assert ["R11.2", "R12.1"] in found
    assert found.count(["R12.2", "R22.2", "R3.2", "U1.6"]) == 3


def test_names_that_are_alike_are_told_by_all_their_nets() -> None:
    """KiCad reports the two labels it meets first: another pair in some runs, on the same file."""
    found = design(twins.tree(), Replay())
    (alike,) = pins(found, "same_local_global_label")
    assert alike is not None
    assert {"R2.2", "U1.3"} <= set(alike)


def test_other_types_need_no_pins() -> None:
    known = ("unconnected_items", "power_pin_not_driven", "same_local_global_label")
    violations = (*design().erc().violations, *design().drc().violations)
    assert all(v.pins is None for v in violations if v.type not in known)


def test_reports_hold_nothing_new_against_themselves() -> None:
    for report in (design().erc(), design().drc()):
        assert new_violations(report, report, severity="warning", file_unchanged=False) == ([], [])


def test_a_short_is_new() -> None:
    before = design().drc()
    tree = twins.tree(twins.variants()["crossing"])  # type: ignore[arg-type]
    after = design(tree, Replay("crossing")).drc()
    new, _ = new_violations(before, after, severity="error", file_unchanged=False)
    assert [line.split(":")[0] for line in new] == [
        "drc error shorting_items",
        "drc error solder_mask_bridge",
    ]


def given(found: Design, cli: Replay, job: Job = "drc") -> Mapping[str, bytes]:
    """What kicad-cli was given for a job."""
    _ = found.drc() if job == "drc" else found.erc()
    return next(files for what, _, files in cli.given if what == job)


def test_severities_and_exclusions_of_the_end_state_are_not_used() -> None:
    """The cheapest clean report: set the type to ignore."""
    board = {
        "design_settings": {"rule_severities": {"courtyards_overlap": "ignore"}, "drc_exclusions": ["x"]}
    }
    cli = Replay()
    tree = twins.tree({PROJECT: twins.project(board=board, erc={}, text_variables={"REV": "2"})})
    used = json.loads(given(design(tree, cli), cli)[PROJECT])
    pristine = json.loads(twins.project())
    assert used["board"] == pristine["board"]
    assert used["erc"] == pristine["erc"]
    assert used["text_variables"] == {"REV": "2"}


def test_custom_rules_of_the_end_state_are_not_used() -> None:
    rules = {"hw/twins.kicad_dru": b"(version 1)"}
    cli = Replay()
    found = design(twins.tree(rules), cli)  # type: ignore[arg-type]
    assert "hw/twins.kicad_dru" not in given(found, cli)
    cli = Replay()
    found = design(twins.tree(), cli, pristine=twins.tree(rules))  # type: ignore[arg-type]
    assert given(found, cli)["hw/twins.kicad_dru"] == b"(version 1)"


def test_changed_net_classes_are_judged_under_both() -> None:
    """A larger clearance hides behind the old classes, a smaller one behind the new."""
    cli = Replay()
    classes = twins.net_settings(0.01)
    found = design(twins.tree({PROJECT: twins.project(net_settings=classes)}), cli)
    once, twice = design().drc(), found.drc()
    used = [json.loads(files[PROJECT])["net_settings"] for job, _, files in cli.given if job == "drc"]
    assert used == [classes, json.loads(twins.project())["net_settings"]]
    assert twice.violations == once.violations


class Two(Replay):
    """Says something else under the pristine classes."""

    def run(self, job: Job, target: str, files: Mapping[str, bytes]) -> bytes:
        """The short shows only under a clearance of 0.2."""
        self.variant = "crossing" if b'"clearance": 0.2' in files[PROJECT] else "plain"
        return super().run(job, target, files)


def test_a_finding_under_either_class_counts() -> None:
    classes = twins.net_settings(0.01)
    found = design(twins.tree({PROJECT: twins.project(net_settings=classes)}), Two())
    assert any(violation.type == "shorting_items" for violation in found.drc().violations)


@pytest.mark.parametrize("data", [None, b"", b"{", b"[1]"])
def test_without_its_project_nothing_is_judged(data: bytes | None) -> None:
    """KiCad would use default rules and say so nowhere."""
    found = design(twins.tree({PROJECT: data}))
    for ask in (found.erc, found.drc, lambda: found.netlist, lambda: found.labels):
        with pytest.raises(Unjudgeable, match=r"twins\.kicad_pro"):
            ask()


@pytest.mark.parametrize(
    "changes",
    [{ROOT: None}, {ROOT: b""}, {ROOT: twins.root_sheet()[:-50]}, {"hw/channel.kicad_sch": None}],
    ids=["missing", "empty", "truncated", "sheet missing"],
)
def test_a_broken_schematic_is_not_judged(changes: dict[str, bytes | None]) -> None:
    """The stand-in would answer as if all were well; it must not even be asked."""
    cli = Replay()
    found = design(twins.tree(changes), cli)
    for ask in (found.erc, found.drc, lambda: found.netlist, lambda: found.labels):
        with pytest.raises(Unjudgeable):
            ask()
    assert cli.given == []


@pytest.mark.parametrize("data", [None, b"", b"(kicad_pcb", b"(kicad_sch)"])
def test_a_broken_board_is_not_judged(data: bytes | None) -> None:
    found = design(twins.tree({BOARD: data}))
    with pytest.raises(Unjudgeable, match=r"twins\.kicad_pcb"):
        found.drc()
    assert found.netlist.nets


def test_a_path_that_leaves_the_tree_is_never_given_to_kicad() -> None:
    cli = Replay()
    tree = twins.tree({"hw/sym-lib-table": b'(sym_lib_table (lib (name x)(type KiCad)(uri "/etc/x")))'})
    found = design(tree, cli)
    with pytest.raises(Unjudgeable, match="leaves the tree"):
        found.erc()
    assert found.escapes
    assert cli.given == []


def test_a_file_that_only_kicad_could_read_is_never_given_to_it() -> None:
    """KiCad takes a NUL for a space; our path check saw nothing in that file."""
    cli = Replay()
    library = b'(kicad_symbol_lib\0(symbol "x" (property "Sim.Library" "/etc/x")))'
    found = design(twins.tree({"hw/x.kicad_sym": library}), cli)
    with pytest.raises(Unjudgeable, match="NUL"):
        found.erc()
    assert cli.given == []


def test_a_broken_file_of_the_fixture_itself_does_no_harm() -> None:
    tree = twins.tree({"hw/x.kicad_mod": b"(footprint"})
    assert design(tree, pristine=tree).erc().violations


def test_another_schematic_beside_the_board_is_checked_too() -> None:
    """Parity reads the schematic that is called like the board."""
    artifacts = Artifacts(schematic=ROOT, board="hw/other.kicad_pcb", project=PROJECT)
    changes = {"hw/other.kicad_pcb": twins.board(), "hw/other.kicad_sch": b"(kicad_sch"}
    tree = twins.tree(changes)  # type: ignore[arg-type]
    found = Design(tree, artifacts=artifacts, pristine=tree, cli=Replay())
    with pytest.raises(Unjudgeable, match=r"other\.kicad_sch"):
        found.drc()


def test_each_design_gets_its_project_under_its_name() -> None:
    artifacts = Artifacts(schematic=ROOT, board="hw/other.kicad_pcb", project=PROJECT)
    tree = twins.tree({"hw/other.kicad_pcb": twins.board()})
    cli = Replay()
    Design(tree, artifacts=artifacts, pristine=tree, cli=cli).drc()
    files = cli.given[0][2]
    assert files["hw/other.kicad_pro"] == files[PROJECT]


def test_a_fixture_without_a_project_needs_none() -> None:
    artifacts = Artifacts(schematic=ROOT)
    tree = twins.tree({PROJECT: None})
    found = Design(tree, artifacts=artifacts, pristine=tree, cli=Replay())
    assert found.erc().violations
    with pytest.raises(Unjudgeable, match="no board"):
        found.drc()


def test_unchanged_means_all_that_kicad_reads() -> None:
    assert design(twins.tree({"README.md": b"x"})).unchanged("drc")
    assert design(twins.tree({PROJECT: twins.project(erc={})})).unchanged("erc")
    assert not design(twins.tree({PROJECT: twins.project(text_variables={"A": "b"})})).unchanged("erc")
    assert not design(twins.tree({"hw/x.kicad_sym": b"(kicad_symbol_lib)"})).unchanged("drc")
    moved = twins.tree({BOARD: twins.board(twins.track("GND", (1, 1), (2, 2)))})
    assert not design(moved).unchanged("drc")
    assert design(moved).unchanged("erc")
    assert not design(twins.tree({BOARD: None})).unchanged("drc")


def test_rules_in_design_files_are_listed() -> None:
    """They cannot be pinned; a reader of the record should know."""
    root = twins.root_sheet(
        twins.symbol("FLAG", "FLG2", 101.6, 78.74, {twins.ROOT_PATH: "#FLG02"}),
        f'(no_connect (at 1 1) (uuid "{twins.uid("nc")}"))',
    ).replace(b"(pin power_in line (at 0 5.08 270)", b"(pin passive line (at 0 5.08 270)")
    tie = '(footprint "own:TIE" (net_tie_pad_groups "1, 2"))'
    changes = {
        ROOT: root,
        BOARD: twins.board(tie),
        PROJECT: twins.project(erc={}, net_settings={}),
        "hw/twins.kicad_dru": b"(version 1)",
    }
    text = "\n".join(design(twins.tree(changes)).rule_changes)  # type: ignore[arg-type]
    for what in ("power flags: 1 before, 2 after", "no-connects: 0 before, 1 after", "pin types of own:GATE"):
        assert what in text
    for what in (
        "net tie own:TIE",
        "erc.rule_severities edited",
        "net_settings edited",
        "custom rules edited",
    ):
        assert what in text
    assert design().rule_changes == []


def test_a_pin_placed_in_another_role_is_told() -> None:
    """Its type is the role's, and ERC judges it by that."""
    root = twins.tree()[ROOT].data
    at = root.index(b'(property "Reference" "R2"')
    edited = root[:at] + root[at:].replace(b'(pin "1" (uuid', b'(pin "1" (alternate "IO") (uuid', 1)
    found = design(twins.tree({ROOT: edited})).rule_changes
    assert found == [f"schematic: pin roles of R2 in {ROOT}: none before, 1:IO after"]


def test_rule_changes_of_a_broken_tree_do_not_raise() -> None:
    broken = twins.tree({ROOT: b"(", BOARD: b"(", PROJECT: b"{"})
    assert all(line.startswith("not compared: ") for line in design(broken).rule_changes)
    assert design({}).rule_changes


def test_measure() -> None:
    found = measure(twins.tree(), twins.ARTIFACTS, Replay())
    assert found.counts.erc.error_types == {"label_dangling": 1, "power_pin_not_driven": 1}
    assert found.counts.drc is not None
    assert found.counts.drc.unconnected_items == 12
    assert found.counts.drc.warning_types == {"lib_footprint_issues": 10}
    assert (found.scale.symbols, found.scale.sheets) == (10, 3)
    assert (found.scale.signal_nets, found.scale.power_nets) == (10, 2)
    assert found.escapes == []


def test_pads_and_items_of_a_board() -> None:
    board = read_board(twins.board(twins.track("GND", (1, 1), (2, 2))), BOARD)
    assert board.pads["GND"] == {("R3", "2"), ("U1", "6"), ("R12", "2"), ("R22", "2")}
    assert board.net_of(twins.uid("track GND (1, 1)")) == "GND"
    assert board.net_of(twins.uid("R3 pad 1")) == "/TX{slash}RX"
    assert board.net_of("nobody") == ""
    assert board.footprints == 10


def test_nets_by_name_alone() -> None:
    """KiCad 10 writes no net numbers."""
    pad = '(pad "1" smd rect (net "GND") (uuid "u"))'
    data = f'(kicad_pcb (footprint "x" (property "Reference" "R1") {pad}))'.encode()
    assert read_board(data, "b").pads == {"GND": {("R1", "1")}}
    assert read_board(data.replace(b"GND", b"0"), "b").pads == {"0": {("R1", "1")}}


def test_net_number_0_is_no_net() -> None:
    pad = '(pad "1" smd rect (net 0 "") (uuid "u"))'
    data = (
        f'(kicad_pcb (net 0 "") (footprint "x" (property "Reference" "R1") {pad}) (via (net 0) (uuid "v")))'
    )
    board = read_board(data.encode(), "b")
    assert board.pads == {} and board.net_of("v") == ""


def test_a_missing_kicad_is_not_the_evidence_s_fault() -> None:
    with pytest.raises(Exception, match="cannot be run"):
        design(cli=KicadCli(executable="/nonexistent/kicad-cli")).erc()


def test_samples_are_of_our_own_project() -> None:
    for variant in twins.variants():
        assert b"/hw/twins.kicad_sch" in sample(variant, "netlist")


def test_a_sheet_that_kicad_did_not_read_is_not_judged() -> None:
    """kicad-cli trims the file's name, does not find it, and ends with 0: its parts look removed."""

    class Skips(Replay):
        def run(self, job: Job, target: str, files: Mapping[str, bytes]) -> bytes:
            return super().run(job, target, files).replace(b'"R22"', b'"R_"')

    for read in (lambda found: found.netlist, Design.erc, Design.drc):
        with pytest.raises(Unjudgeable, match="did not read R22 of this sheet"):
            read(design(cli=Skips()))


@pytest.mark.parametrize(
    "changes",
    [
        {"text_variables": {"LAST": "999999999"}},
        {"schematic": {"bus_aliases": {"X": ["D[0..999999999]"]}}},
    ],
    ids=["variable", "alias"],
)
def test_a_bus_without_end_is_never_given_to_kicad(changes: Mapping[str, object]) -> None:
    """Naive: count buses in the schematic alone; the project holds the other half."""
    value = json.loads(twins.tree()[PROJECT].data) | changes
    root = twins.tree()[ROOT].data.rstrip()[:-1] + b'(label "D[0..${LAST}]" (at 0 0 0)))'
    if "schematic" in changes:
        root = twins.tree()[ROOT].data
    cli = Replay()
    found = design(twins.tree({ROOT: root, PROJECT: json.dumps(value).encode()}), cli)
    for ask in (lambda: found.netlist, found.erc, found.drc):
        with pytest.raises(Unjudgeable, match=r"buses of more than|holds a variable"):
            ask()
    assert cli.given == []


def test_a_finding_is_told_without_uuids_too() -> None:
    """KiCad draws a pin's uuid where the file has none; a naive grader then falls back on the count."""
    bare = {
        path: re.sub(rb'\(pin "([^"]*)" \(uuid "[^"]*"\)\)', rb'(pin "\1")', entry.data)
        for path, entry in twins.tree().items()
        if path.endswith(".kicad_sch")
    }
    assert pins(design(twins.tree(dict(bare))), "power_pin_not_driven") == [["U1.5"]]


@pytest.mark.parametrize(
    ("new", "own", "says"),
    [
        ("R1", 1, "two symbols are unit 1 of R1"),
        ("R1", 2, "two symbols are unit 1 of R1"),
        ("U1", 1, "two symbols are unit 1 of U1|units of U1 differ in their value"),
    ],
)
def test_two_symbols_of_one_reference_are_not_judged(new: str, own: int, says: str) -> None:
    """KiCad lists them as one part, with either's value; it goes by the place's unit, not the symbol's."""
    root = twins.tree()[ROOT].data.decode()
    at = root.index('(property "Reference" "R2"')
    start = root.rindex("(symbol (lib_id", 0, at)
    end = root.index("\n", at)
    symbol = root[start:end].replace('(reference "R2")', f'(reference "{new}")')
    symbol = symbol.replace("(unit 1)", f"(unit {own})", 1)
    with pytest.raises(Unjudgeable, match=says):
        _ = design(twins.tree({ROOT: (root[:start] + symbol + root[end:]).encode()})).netlist


def test_units_whose_value_is_a_variable_are_not_judged() -> None:
    """Each symbol may mean a field of its own by it."""
    root = twins.tree()[ROOT].data
    assert root.count(b'"DUAL"') == 3
    with pytest.raises(Unjudgeable, match="units of U1 differ"):
        _ = design(twins.tree({ROOT: root.replace(b'"DUAL"', b'"${V}"')})).netlist


def test_a_part_drawn_with_a_power_symbol_is_a_reference() -> None:
    """KiCad's netlist does not list it; the part is there."""
    root = twins.tree()[ROOT].data.replace(b'(reference "#PWR01")', b'(reference "R99")')
    assert "R99" in design(twins.tree({ROOT: root})).references
