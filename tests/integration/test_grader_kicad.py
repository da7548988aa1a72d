"""The reading of designs with the real kicad-cli, in the grader's image, on our own project.

Each case says what a naive grader would have answered.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from grader.kicad.reports import Report
from grader.kicad.violations import new_violations
from schema.fixture import Violation
from tests.unit.grader.kicad import capture, twins
from tests.unit.grader.kicad.support import DATA

ROOT = Path(__file__).parents[2]
IMAGE = "copperbench/grader:latest"
SHEET, BOARD, PROJECT = "hw/twins.kicad_sch", "hw/twins.kicad_pcb", "hw/twins.kicad_pro"
Files = Mapping[str, bytes | None]


def docker(*arguments: str, mounts: Mapping[Path, str]) -> subprocess.CompletedProcess[str]:
    """Run our code, as it stands here, in the grader's image."""
    volumes = [part for host, inside in mounts.items() for part in ("-v", f"{host}:{inside}")]
    hardening = ("--network", "none", "--read-only", "--cap-drop", "ALL", "--tmpfs", "/tmp:nosuid,nodev")
    code = ("-v", f"{ROOT}:/bench:ro", "-w", "/bench", "-e", "PYTHONPATH=/bench:/opt/copperbench/site")
    command = ("docker", "run", "--rm", *hardening, *code, *volumes, "--entrypoint", "python3", IMAGE)
    return subprocess.run((*command, *arguments), capture_output=True, text=True, timeout=300, check=False)


class Bench:
    """Asks the grader about trees."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._trees = 0
        self.cache = folder / "cache"
        self.cache.mkdir()
        self.cache.chmod(0o777)

    def tree(self, changes: Files) -> Path:
        """Our project with changes, on disk."""
        self._trees += 1
        root = self._folder / f"tree {self._trees}"
        for path, data in {**twins.files(), **changes}.items():
            if data is not None:
                target = root / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        return root

    def ask(self, command: str, end: Files, pristine: Files | None = None) -> dict[str, Any]:
        """The answer about ``end``, under the rules of ``pristine``."""
        mounts = {self.tree(end): "/end:ro", self.tree(pristine or {}): "/pristine:ro", self.cache: "/cache"}
        names = ("--schematic", SHEET, "--board", BOARD, "--project", PROJECT)
        where = ("--pristine", "/pristine", "--cache", "/cache")
        done = docker("-m", "grader.kicad", command, "/end", *names, *where, mounts=mounts)
        assert done.returncode in (0, 1), done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        assert ("unjudgeable" in answer) == (done.returncode == 1)
        return answer

    def new(
        self, command: str, end: Files, pristine: Files | None = None, severity: str = "error"
    ) -> list[str]:
        """What is new in ``end`` against ``pristine``."""
        before = report(self.ask(command, pristine or {}, pristine))
        after = report(self.ask(command, end, pristine))
        judged: Any = severity
        return new_violations(before, after, severity=judged, file_unchanged=False)[0]


def report(answer: Mapping[str, Any]) -> Report:
    """An answer as a report."""
    violations = tuple(Violation.model_validate(entry) for entry in answer["violations"])
    return Report(violations, frozenset((source, kind) for source, kind in answer["stopped"]))


def kinds(answer: Mapping[str, Any]) -> Counter[str]:
    """Types of an answer's violations."""
    return Counter(entry["type"] for entry in answer["violations"])


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """One bench for all cases: equal inputs are measured once."""
    return Bench(tmp_path_factory.mktemp("kicad"))


def test_samples_are_what_kicad_says(tmp_path: Path) -> None:
    """The unit tests judge by these; a naive suite judges by what its author believed."""
    tmp_path.chmod(0o777)
    done = docker("-m", "tests.unit.grader.kicad.capture", "/out", mounts={tmp_path: "/out"})
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == len(twins.variants()) * len(capture.TARGETS)
    for name in names:
        fresh, kept = (folder / name for folder in (tmp_path, DATA))
        if name.endswith("-erc.json"):
            assert erc_facts(fresh.read_text()) == erc_facts(kept.read_text()), name
        else:
            assert sorted(fresh.read_text().split("\n")) == sorted(kept.read_text().split("\n")), name


def erc_facts(text: str) -> Counter[str]:
    """An ERC report without its order and without the one type whose items KiCad draws by lot."""
    sheets = json.loads(text)["sheets"]
    return Counter(
        json.dumps([sheet["path"], entry], sort_keys=True)
        for sheet in sheets
        for entry in sheet["violations"]
        if entry["type"] != "same_local_global_label"
    )


def test_nets_and_labels(bench: Bench) -> None:
    """A label scan sees one DATA and one SENSE."""
    answer = bench.ask("netlist", {})
    assert answer["nets"]["DATA"] == [["R2", "2"], ["U1", "3"]]
    assert answer["nets"]["/A/SENSE"] == [["R11", "2"], ["R12", "1"]]
    assert answer["nets"]["/TX/RX"] == [["R3", "1"]]
    assert {"DATA", "SENSE", "TX/RX", "IN"} <= set(answer["labels"])


def test_a_clean_end_has_nothing_new(bench: Bench) -> None:
    for command in ("erc", "drc"):
        assert bench.new(command, {"README.md": b"x"}, severity="warning") == []


def test_a_missing_sheet_is_not_judged(bench: Bench) -> None:
    """kicad-cli ends with 0 and four resistors fewer."""
    for command in ("netlist", "erc", "drc"):
        answer = bench.ask(command, {"hw/channel.kicad_sch": None})
        assert answer == {"unjudgeable": "hw/channel.kicad_sch: missing"}


@pytest.mark.parametrize("data", [None, b"", b"{", b"[]"])
def test_a_project_that_kicad_ignores_is_not_judged(bench: Bench, data: bytes | None) -> None:
    """kicad-cli ends with 0 under default rules."""
    assert PROJECT in bench.ask("erc", {PROJECT: data})["unjudgeable"]


@pytest.mark.parametrize(
    "cut",
    [twins.root_sheet()[:-60], b"", twins.root_sheet().decode().encode("utf-16"), b"(" * 100_000],
    ids=["truncated", "empty", "UTF-16", "nested"],
)
def test_a_broken_schematic_is_not_judged(bench: Bench, cut: bytes) -> None:
    assert SHEET in bench.ask("netlist", {SHEET: cut})["unjudgeable"]


def test_what_only_kicad_refuses_is_not_judged(bench: Bench) -> None:
    """Our reader is content; kicad-cli's exit code says that it is not."""
    broken = twins.root_sheet().replace(b"(paper ", b"(paper (no_such_token) ")
    assert "exit 3" in bench.ask("erc", {SHEET: broken})["unjudgeable"]


def test_a_sheet_outside_the_tree_is_never_opened(bench: Bench) -> None:
    """kicad-cli follows it and ends with 0."""
    outside = twins.root_sheet(twins.sheet("X", "/bench/tests/x.kicad_sch", 10, 10))
    answer = bench.ask("erc", {SHEET: outside})
    assert "leaves the tree" in answer["unjudgeable"]


def test_severities_of_the_end_state_do_not_count(bench: Bench) -> None:
    """Set to ignore, every finding is gone."""
    types = ("power_pin_not_driven", "label_dangling", "unconnected_items", "lib_footprint_issues")
    off: Any = {"rule_severities": dict.fromkeys(types, "ignore")}
    silent: Any = {"board": {"design_settings": off}, "erc": off}
    for command in ("erc", "drc"):
        plain = bench.ask(command, {})
        answer = bench.ask(command, {PROJECT: twins.project(**silent)})
        assert answer["violations"] == plain["violations"]
        assert answer["files"] == plain["files"]
        assert any("edited (no effect: pinned)" in line for line in answer["ruleChanges"])


def test_custom_rules_of_the_end_state_do_not_count(bench: Bench) -> None:
    """One custom rule switches every clearance off."""
    rules = b"(version 1)\n(rule all (constraint clearance (min -1mm)) (severity ignore))\n"
    short = {BOARD: twins.board(twins.track("/CLK", (10, 10), (30, 10)))}
    plain = bench.ask("drc", short)
    assert bench.ask("drc", {**short, "hw/twins.kicad_dru": rules})["violations"] == plain["violations"]


def classes(clearance: float) -> bytes:
    """The project with another clearance in its net class."""
    return twins.project(net_settings=twins.net_settings(clearance))


NEAR = {BOARD: twins.board(twins.track("GND", (28, 5), (34, 5)), twins.track("VCC", (28, 5.4), (34, 5.4)))}


def test_a_clearance_lowered_hides_nothing(bench: Bench) -> None:
    """A naive grader uses the end state's classes, under which the two tracks are fine."""
    answer = bench.ask("drc", {**NEAR, PROJECT: classes(0.01)})
    assert kinds(answer)["clearance"] == 1
    assert (
        kinds(bench.ask("drc", {**NEAR, PROJECT: classes(0.01)}, {PROJECT: classes(0.01)}))["clearance"] == 0
    )


def test_a_clearance_raised_shows_more(bench: Bench) -> None:
    """A naive grader uses the pristine classes, under which the pads are fine."""
    assert any("drc error clearance" in line for line in bench.new("drc", {PROJECT: classes(2.0)}))


def test_an_exclusion_is_not_lost_by_a_move(bench: Bench) -> None:
    """Its key holds positions: moved by 0.01 mm, a naive grader sees a new error."""
    board = twins.board(twins.track("GND", (28, 0.3), (34, 0.3)))
    items = f"{twins.uid('edge')}|{twins.uid('track GND (28, 0.3)')}"
    # Where KiCad puts its marker: at the track's start, on the edge's middle, or between.
    spots = [f"copper_edge_clearance|28000000|{y}|{items}" for y in (0, 50_000, 175_000, 300_000)]
    settings = json.loads(twins.project())["board"]["design_settings"] | {"drc_exclusions": spots}
    pristine: Files = {BOARD: board, PROJECT: twins.project(board={"design_settings": settings})}
    moved: Files = {**pristine, BOARD: board.replace(b"(start 28 0.3)", b"(start 28.01 0.3)")}
    naive = [bench.ask("measure", end)["counts"]["drc"]["errorTypes"] for end in (pristine, moved)]
    assert [types.get("copper_edge_clearance", 0) for types in naive] == [0, 1], "the case shows nothing"
    assert bench.new("drc", moved, pristine) == []


def test_a_swapped_violation_is_seen(bench: Bench) -> None:
    """One dangling label before, one after: a naive grader counts."""
    one = {SHEET: twins.root_sheet(twins.label("label", "ONE", 20.32, 20.32))}
    two = {SHEET: twins.root_sheet(twins.label("label", "TWO", 20.32, 30.48))}
    new = bench.new("erc", two, one)
    assert len(new) == 1
    assert "label_dangling: not in the baseline" in new[0]


def _two_gates(first: str, second: str) -> dict[str, bytes | None]:
    parts = []
    for name, reference, y in (("G1", first, 114.3), ("G2", second, 139.7)):
        parts.append(twins.symbol("GATE", name, 177.8, y, {twins.ROOT_PATH: reference}, unit=3))
        parts.append(twins.label("label", "VIN", 177.8, y - 5.08, f"{name} VIN"))
        parts.append(
            twins.symbol("GND", f"{name} GND", 177.8, y + 5.08, {twins.ROOT_PATH: f"#PWR9{name[1]}"})
        )
    return {SHEET: twins.root_sheet(*parts)}


def test_a_finding_that_jumps_to_another_pin_is_not_new(bench: Bench) -> None:
    """Re-referenced, KiCad names the other gate's pin; by items it looks like a swap."""
    before = report(bench.ask("erc", _two_gates("U5", "U6")))
    after = report(bench.ask("erc", _two_gates("U6", "U5")))
    undriven = [
        [violation for violation in found.violations if violation.type == "power_pin_not_driven"]
        for found in (before, after)
    ]
    assert [violation.pins for violation in undriven[0]] == [violation.pins for violation in undriven[1]]
    assert ["U5.5", "U6.5"] in [violation.pins for violation in undriven[0]]
    new, _ = new_violations(before, after, severity="error", file_unchanged=False)
    assert [line for line in new if "power_pin" in line] == []


def test_an_unconnected_net_swapped_for_another_is_seen(bench: Bench) -> None:
    """Route one net and break another: the count stays."""
    routes = {"/A/DATA": ((12, 20), (20, 20)), "/A/SENSE": ((22, 20), (30, 20))}
    one, two = ({BOARD: twins.board(twins.track(net, *ends))} for net, ends in routes.items())
    new = bench.new("drc", two, one)
    assert len(new) == 1
    assert new[0].startswith("unconnected error unconnected_items: not in the baseline")
    assert "R10.2, R11.1" in new[0]


def test_missing_links_drawn_anew_are_not_new(bench: Bench) -> None:
    """Ground has three missing links; which pads KiCad names changes with every move."""
    moved = {BOARD: twins.board().replace(b"(at 30 10)", b"(at 45 37)")}
    before, after = report(bench.ask("drc", {})), report(bench.ask("drc", moved))
    links = [
        {tuple(v.items) for v in found.violations if v.type == "unconnected_items"}
        for found in (before, after)
    ]
    assert links[0] != links[1], "KiCad drew the same links: the case shows nothing"
    new, _ = new_violations(before, after, severity="error", file_unchanged=False)
    assert [line for line in new if "unconnected" in line] == []


def test_parity_findings_are_their_own(bench: Bench) -> None:
    """Renamed in the schematic only: ERC is content, the board's pads are on the old net."""
    renamed = {SHEET: twins.root_sheet().replace(b'(label "CLK"', b'(label "CLOCK"')}
    new = bench.new("drc", renamed, severity="warning")
    assert new
    assert all(line.startswith("parity warning net_conflict") for line in new)


def test_equal_inputs_run_once(bench: Bench) -> None:
    first = bench.ask("drc", {})
    again = bench.ask("drc", {"docs/README.md": b"edited"})
    assert again["violations"] == first["violations"]
    assert again["kicadRuns"] == 1  # asked for its version only


def test_odd_file_names_do_no_harm(bench: Bench) -> None:
    odd = {"hw/é \n'\".kicad_sym": b"(kicad_symbol_lib (version 20241209) (generator x))"}
    assert bench.new("erc", odd, severity="warning") == []


def test_a_text_variable_of_the_end_state_is_resolved(bench: Bench) -> None:
    """Overlaying the whole pristine project loses it, and ERC finds an unresolved variable."""
    sheet = {SHEET: twins.root_sheet(twins.label("global_label", "${WHO}", 76.2, 45.72))}
    answer = bench.ask("netlist", sheet | {PROJECT: twins.project(text_variables={"WHO": "ME"})}, sheet)
    assert "ME" in answer["labels"]
    assert ["R3", "1"] in answer["nets"]["ME"]


NARROW = twins.board(twins.track("/CLK", (10, 12), (12, 12))).replace(b"(width 0.25)", b"(width 0.05)")


@pytest.mark.parametrize(
    "end",
    [
        {BOARD: NARROW.replace(b"(setup ", b"(setup (trace_min 0.01) ")},
        {BOARD: NARROW, PROJECT: twins.project(text_variables={"X": "\ud800"})},
        {BOARD: NARROW.replace(b"(attr smd)", b"(attr smd) # ")},
    ],
    ids=["setting of old", "half a character", "comment"],
)
def test_what_makes_kicad_drop_the_rules_is_not_judged(bench: Bench, end: Files) -> None:
    """With the first two kicad-cli ends with 0 and no longer finds the track too narrow."""
    assert "unjudgeable" in bench.ask("drc", end)


def test_a_comparison_that_kicad_left_out_is_no_clean_one(bench: Bench) -> None:
    """Its netlist has a line too long for its own reader: it ends with 0 and lists no parity finding."""
    field = (
        b'(property "' + b"N" * 600_000 + b'"\n"' + b"v" * 600_000 + b'" (at 0 0 0)) (property "Footprint"'
    )
    root = twins.root_sheet().replace(b'(property "Footprint"', field, 1)
    assert "a part of the report was left out" in bench.ask("drc", {SHEET: root})["unjudgeable"]


def test_an_exception_hides_nothing(bench: Bench) -> None:
    near = twins.board(twins.track("/D1", (9, 10.65), (13, 10.65)))
    assert near.count(b"(attr smd)") > 0
    excepted = near.replace(b"(attr smd)", b"(clearance 0.01) (attr smd)")
    assert any("clearance" in line for line in bench.new("drc", {BOARD: near}))
    assert any("clearance" in line for line in bench.new("drc", {BOARD: excepted}))


def test_leaving_out_uuids_hides_no_swap(bench: Bench) -> None:
    """KiCad draws uuids for pins without; a naive grader falls back on the count, which is the same."""
    flag = twins.symbol("FLAG", "FLG9", 101.6, 78.74, {twins.ROOT_PATH: "#FLG9"}, value="PWR_FLAG")
    gate = twins.symbol(
        "GATE", "U9 c", 177.8, 147.32, {twins.ROOT_PATH: "U9"}, unit=3, value="DUAL", fp="own:GATE"
    )
    ground = twins.symbol("GND", "PWR9", 177.8, 152.4, {twins.ROOT_PATH: "#PWR9"})
    supply = twins.label("label", "XVCC", 177.8, 142.24)
    bare = re.sub(r'\(pin "(\d)" \(uuid "[^"]*"\)\)', r'(pin "\1")', gate + supply + ground)
    for drawn in (gate + supply + ground, bare):
        found = bench.new("erc", {SHEET: twins.root_sheet(flag, drawn)})
        assert any("power_pin_not_driven" in line for line in found), drawn
