"""A corpus of hard files, graded end to end by the grader image with the real kicad-cli (Standard §4).

Each case names the run's files, an assertion of the vocabulary, its outcome, and what a naive grader would
have answered. Designs are drawn by code from our own project; real boards are the pinned fixtures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from grader.evidence import Entry
from orchestrator.engine import Engine
from orchestrator.grading import GraderPool
from schema.run import RefusedEntry
from tests.integration.hard_files import (
    BOARD,
    CHANNEL,
    PROJECT,
    SHEET,
    Bench,
    Changes,
    Said,
    Start,
    asserts,
    changed,
    demo,
    fixture,
    judged,
    ours,
    start,
    symlink,
)
from tests.unit.grader import support
from tests.unit.grader.kicad import twins

S = twins.root_sheet()
NO_NEW = ("erc_no_new_violations", "drc_no_new_violations")
ABSENCES: tuple[Said, ...] = (
    asserts("net_absent", net="GONE"),
    asserts("symbol_absent", refdes="R99"),
    asserts("erc_no_new_violations"),
    asserts("drc_no_new_violations"),
    asserts("erc_clean"),
    asserts("drc_clean"),
    asserts("drift_clean"),
    asserts("check_clean"),
)
"""All that a design which cannot be read would pass vacuously."""


@pytest.fixture(scope="session")
def bench(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One grader for all cases: its cache makes equal inputs cheap."""
    pool = GraderPool(engine, 1, "hard files")
    yield Bench(pool, tmp_path_factory.mktemp("starts"))
    pool.close()


@dataclass(frozen=True)
class Case:
    """One assertion on one end state."""

    name: str
    naive: str
    """What a naive grader would answer, and why."""
    asked: Said
    passes: bool
    reason: str = ""
    """A regular expression that the reason holds."""
    end: Changes | Callable[[], Changes] = lambda: {}
    start: Callable[[], Start] = ours

    def run(self, bench: Bench) -> None:
        """Grade it and check the outcome."""
        end = self.end() if callable(self.end) else self.end
        outcome = bench.grade([self.asked], end, self.start()).only
        judged(outcome, self.passes, self.reason)


def cases(*rows: Case) -> pytest.MarkDecorator:
    """Parameters named by the cases."""
    return pytest.mark.parametrize("case", rows, ids=[row.name for row in rows])


def present(net: str) -> Said:
    return asserts("net_present", net=net)


def absent(net: str) -> Said:
    return asserts("net_absent", net=net)


def on(pin: str, net: str) -> Said:
    refdes, _, number = pin.partition(".")
    return asserts("pin_net_equals", refdes=refdes, pin=number, net=net)


def part(refdes: str, **more: str) -> Said:
    return asserts("symbol_present", refdes=refdes, **more)


def no_part(refdes: str) -> Said:
    return asserts("symbol_absent", refdes=refdes)


# --- connectivity on the plain project --------------------------------------------------------------------


@cases(
    Case("global-among-locals", "ambiguous: two channels have a DATA too", present("DATA"), True),
    Case("slash-is-exact", "passes: it strips the slash", present("/DATA"), False, "no net /DATA"),
    Case("local-by-path", "no such label text", present("/A/DATA"), True),
    Case("leaf-in-two-channels", "passes: the file holds SENSE", present("SENSE"), False, "ambiguous"),
    Case("ambiguous-leaf-is-not-absent", "passes: no net is called SENSE", absent("SENSE"), False, "exists"),
    Case("one-channel-by-path", "finds one SENSE label for both", present("/B/SENSE"), True),
    Case("no-third-channel", "passes: SENSE is a label", present("/C/SENSE"), False, "no net"),
    Case("slash-in-a-name", "fails: KiCad writes {slash}", present("TX/RX"), True),
    Case("slash-in-a-name-by-path", "fails: KiCad writes {slash}", present("/TX/RX"), True),
    Case("not-the-name-behind-a-slash", "passes: RX is the last path element", present("RX"), False),
    Case("nothing-behind-a-slash", "fails: it splits TX/RX", absent("RX"), True),
    Case("second-unit", "no pin 3: it reads unit A", on("U1.3", "DATA"), True),
    Case("power-unit", "no pin 5: it skips the unit without signals", on("U1.5", "VCC"), True),
    Case("power-symbol-names-a-net", "no label GND", on("U1.6", "GND"), True),
    Case("power-net", "no label VCC", present("VCC"), True),
    Case("power-symbol-is-no-part", "passes: the file holds #PWR01", part("#PWR01"), False),
    Case("power-symbol-is-absent", "fails: the file holds #PWR01", no_part("#PWR01"), True),
    Case("unnamed-net", "no label", on("R1.2", "Net-(R1-Pad2)"), True),
    Case("unnamed-net-other-end", "no label", on("R2.1", "Net-(R1-Pad2)"), True),
    Case("local-is-not-global", "passes: both labels read DATA", on("R11.1", "DATA"), False, "/A/DATA"),
    Case("first-channel", "one pin for two instances", on("R11.1", "/A/DATA"), True),
    Case("second-channel", "no R21 in any file's Reference", on("R21.1", "/B/DATA"), True),
    Case("not-the-other-channel", "passes: same file, same label", on("R21.1", "/A/DATA"), False, "/B/DATA"),
    Case("ambiguous-net-of-a-pin", "passes: the label reads SENSE", on("R11.2", "SENSE"), False, "ambiguous"),
    Case("through-the-hierarchy", "net IN of the sub-sheet", on("R10.1", "/D1"), True),
    Case("not-the-sheet-pin", "passes: R10 sits at label IN", on("R10.1", "IN"), False),
    Case("sheet-pin-is-a-name", "passes: no net is called IN", absent("IN"), False, "label still names"),
    Case("part-of-a-reused-sheet", "no R20 in any Reference", part("R20"), True),
    Case(
        "part-of-a-reused-sheet-is-there", "passes: no R20 in any Reference", no_part("R20"), False, "exists"
    ),
    Case("units-are-one-part", "three parts U1", part("U1", value="DUAL", footprint="own:GATE"), True),
    Case("other-value", "passes: it looks at the reference only", part("R1", value="1k"), False, "10k"),
    Case("prefix-of-a-reference", "fails: it finds R2 in R20", no_part("R"), True),
    Case("no-such-pin", "crashes", on("R1.3", "CLK"), False, "on no net"),
    Case("no-such-part", "crashes", on("R99.1", "CLK"), False, "no symbol R99"),
)
def test_vocabulary_connectivity(bench: Bench, case: Case) -> None:
    case.run(bench)


def bus(*points: tuple[float, float]) -> str:
    """A bus through points."""
    return twins.wire(*points).replace("(wire", "(bus", 1)


def lone_resistor(top: str, bottom: str) -> str:
    """R40 at the right edge with a label on either end."""
    return (
        twins.symbol("R", "R40", 220.98, 50.8, {twins.ROOT_PATH: "R40"}, fp="own:R")
        + twins.label("label", top, 220.98, 45.72)
        + twins.label("label", bottom, 220.98, 55.88)
    )


VECTOR = {
    SHEET: twins.root_sheet(
        bus((200.66, 20.32), (200.66, 60.96)),
        twins.label("label", "M[0..3]", 200.66, 20.32),
        lone_resistor("M2", "M3"),
    )
}
GROUP = {
    SHEET: twins.root_sheet(
        bus((200.66, 20.32), (200.66, 60.96)),
        twins.label("label", "USB{DP DM}", 200.66, 20.32),
        lone_resistor("USB.DP", "X"),
    )
}
ALIASED = {SHEET: twins.root_sheet(twins.label("label", "ALIAS", 106.68, 50.8))}
SWAPPED_CHANNELS = {
    CHANNEL: twins.channel_sheet()
    .replace(b'"R10"', b'"R_"')
    .replace(b'"R20"', b'"R10"')
    .replace(b'"R_"', b'"R20"')
}
R3 = twins.symbol("R", "R3", 76.2, 50.8, {twins.ROOT_PATH: "R3"}, value="10k", fp="own:R").encode()


def off_board(files: bytes, part: bytes) -> bytes:
    """A schematic with one thing kept off the board."""
    assert part in files
    return files.replace(part, part.replace(b"(on_board yes)", b"(on_board no)"))


@cases(
    Case("bus-member", "no net: the label is on a wire beside the bus", present("M2"), True, end=VECTOR),
    Case("bus-member-pin", "no net", on("R40.2", "/M3"), True, end=VECTOR),
    Case("bus-is-no-net", "passes: the label is there", present("M[0..3]"), False, end=VECTOR),
    Case("bus-still-names-it", "passes: no wire has M0", absent("M0"), False, "label", end=VECTOR),
    Case("beyond-the-bus", "fails: M is a prefix", absent("M4"), True, end=VECTOR),
    Case("group-member", "no net", present("USB.DP"), True, end=GROUP),
    Case("group-still-names-it", "passes: no wire has USB.DM", absent("USB.DM"), False, "label", end=GROUP),
    Case("group-member-needs-its-prefix", "fails: DP is in the text", absent("DP"), True, end=GROUP),
    Case("kept-name", "fails: the label on the pin is ALIAS", on("U1.2", "ALIAS"), True, end=ALIASED),
    Case(
        "lost-name-is-still-a-label",
        "passes: KiCad kept only one name of the net",
        absent("D1"),
        False,
        "label still names D1",
        end=ALIASED,
    ),
    Case(
        "instances-swapped",
        "unchanged: the order of the file's Reference fields",
        on("R20.1", "/D1"),
        True,
        end=SWAPPED_CHANNELS,
    ),
    Case(
        "off-the-board-is-not-removed",
        "passes: KiCad's netlist leaves the part out",
        no_part("R3"),
        False,
        "kept off the board",
        end={SHEET: off_board(S, R3)},
    ),
    Case(
        "sheet-off-the-board-is-not-removed",
        "passes: KiCad's netlist leaves its parts out",
        no_part("R10"),
        False,
        "kept off the board",
        end={SHEET: S.replace(b"(on_board yes) (dnp no) (stroke", b"(on_board no) (dnp no) (stroke")},
    ),
    Case(
        "off-the-board-names-its-net",
        "passes: the netlist has no pin on it",
        absent("TX/RX"),
        False,
        "label",
        end={SHEET: off_board(S, R3)},
    ),
    Case(
        "reference-field-lies",
        "no R3: it reads the Reference field, not the instance",
        part("R3"),
        True,
        end={SHEET: S.replace(b'"Reference" "R3"', b'"Reference" "R9"')},
    ),
    Case(
        "reference-field-names-nobody",
        "fails: the file holds R9",
        no_part("R9"),
        True,
        end={SHEET: S.replace(b'"Reference" "R3"', b'"Reference" "R9"')},
    ),
)
def test_vocabulary_connectivity_of_changed_designs(bench: Bench, case: Case) -> None:
    case.run(bench)


# --- sheets that one reader finds and the other does not --------------------------------------------------


def moved_sheet(written: str, stored: str) -> Changes:
    """The channel's file under another name: as the sheet symbol writes it, and as the tree has it."""
    root = S.replace(b"channel.kicad_sch", written.encode("utf-8", "surrogateescape"))
    return {SHEET: root, f"hw/{stored}": twins.channel_sheet(), CHANNEL: None}


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("chännel µ.kicad_sch", "chännel µ.kicad_sch"),
        ("\u202e.kicad_sch", "\u202e.kicad_sch"),
        ("nl\\nx.kicad_sch", "nl\nx.kicad_sch"),
        ('qu\\"o.kicad_sch', 'qu"o.kicad_sch'),
        ("-rf.kicad_sch", "-rf.kicad_sch"),
        ("$HOME %20.kicad_sch", "$HOME %20.kicad_sch"),
        ("star*?.kicad_sch", "star*?.kicad_sch"),
        ("sub\\\\x.kicad_sch", "sub/x.kicad_sch"),
        ("./sub//x.kicad_sch", "sub/x.kicad_sch"),
        ("../hw/x.kicad_sch", "x.kicad_sch"),
    ],
    ids=ascii,
)
def test_vocabulary_a_sheet_with_an_odd_name_is_read(bench: Bench, written: str, stored: str) -> None:
    """A naive reader of sheets splits, expands or quotes the name and finds nothing."""
    asked = [part("R20"), no_part("R20"), asserts("erc_no_new_violations", severity="warning")]
    found = bench.grade(asked, moved_sheet(written, stored)).verdict.assertions
    assert [outcome.passed for outcome in found] == [True, False, True], found


@pytest.mark.parametrize(
    ("written", "stored", "reason"),
    [
        ("ch\udcffnnel.kicad_sch", "ch\udcffnnel.kicad_sch", "did not read R1"),
        (" lead.kicad_sch", " lead.kicad_sch", "did not read R1"),
        ("chännel.kicad_sch", "cha\u0308nnel.kicad_sch", "missing"),
        ("channel.txt", "channel.txt", r"is no \.kicad_sch file"),
        ("channel.KICAD_SCH", "channel.KICAD_SCH", r"is no \.kicad_sch file"),
        ("Channel.kicad_sch", "channel2.kicad_sch", "missing"),
    ],
    ids=["not-utf-8", "leading-space", "other-normal-form", "other-suffix", "upper-case", "other-case"],
)
@pytest.mark.parametrize("asked", ABSENCES, ids=lambda item: item["type"])
def test_vocabulary_a_sheet_that_kicad_does_not_read_is_not_absent(
    bench: Bench, written: str, stored: str, reason: str, asked: Said
) -> None:
    """kicad-cli ends with 0 and six parts fewer; a naive grader finds them removed and nothing wrong."""
    judged(bench.grade([asked], moved_sheet(written, stored)).only, False, reason)


LEAVES = {
    "climbs": "../../etc/x.kicad_sch",
    "absolute": "/opt/copperbench/x.kicad_sch",
    "backslashes": "..\\\\..\\\\x.kicad_sch",
    "home": "~/x.kicad_sch",
    "uri": "file:///etc/x.kicad_sch",
    "drive": "C:/x.kicad_sch",
}


@pytest.mark.parametrize("target", LEAVES.values(), ids=LEAVES.keys())
def test_vocabulary_a_sheet_that_leaves_the_tree_is_tampering(bench: Bench, target: str) -> None:
    """kicad-cli follows it and ends with 0: the design graded is not the one in evidence."""
    end = {SHEET: twins.root_sheet(twins.sheet("X", target, 10, 10))}
    found = bench.grade(ABSENCES, end).verdict
    assert found.category == "evidence-tampered"
    assert not any(outcome.passed for outcome in found.assertions)


@pytest.mark.parametrize(
    "end",
    [
        {SHEET: twins.root_sheet(twins.sheet("X", "twins.kicad_sch", 10, 10))},
        {CHANNEL: twins.channel_sheet(twins.sheet("X", "./../hw/twins.kicad_sch", 10, 10))},
        {CHANNEL: twins.channel_sheet(twins.sheet("X", "channel.kicad_sch", 10, 10))},
    ],
    ids=["itself", "its-parent", "itself-below-the-root"],
)
def test_vocabulary_a_sheet_that_includes_itself_is_not_judged(bench: Bench, end: Changes) -> None:
    """A naive reader recurses for ever; kicad-cli asks a question that nobody answers."""
    for outcome in bench.grade(ABSENCES, end).verdict.assertions:
        judged(outcome, False, "includes itself")


def test_vocabulary_sheets_that_double_at_each_level_are_not_followed_for_ever(bench: Bench) -> None:
    """Twelve files place the next one twice each: a naive reader makes 8,191 sheets, or 2³² with more."""
    files: dict[str, bytes | Entry | None] = {
        SHEET: twins.root_sheet(twins.sheet("X", "l0.kicad_sch", 10, 10))
    }
    for level in range(12):
        two = [twins.sheet(f"{level} {n}", f"l{level + 1}.kicad_sch", 10 + 40 * n, 10) for n in range(2)]
        files[f"hw/l{level}.kicad_sch"] = twins.schematic(f"level {level}", *two)
    files["hw/l12.kicad_sch"] = twins.schematic("level 12")
    judged(bench.grade([absent("GONE")], files).only, False, "more than 2000 sheets")


# --- files that are broken or in another encoding ---------------------------------------------------------

BROKEN_SHEETS: dict[str, tuple[bytes | Entry | None, str]] = {
    "deleted": (None, "missing"),
    "truncated": (S[:-40], "ends inside"),
    "empty": (b"", "empty"),
    "blank": (b" \n\n", "empty"),
    "binary": (bytes(range(256)) * 20, "NUL"),
    "utf-16": (S.decode().encode("utf-16"), "UTF-16"),
    "utf-16-without-mark": (S.decode().encode("utf-16-le"), "NUL"),
    "byte-order-mark": (b"\xef\xbb\xbf" + S, "exit 3|exit 255"),
    "symlink": (symlink("channel.kicad_sch"), "symlink"),
    "a-board": (twins.board(), "not a KiCad schematic"),
    "two-lists": (S + S, "more than one"),
    "nested": (b"(" * 100_000, "nested deeper"),
    "of-the-future": (S.replace(b"20250114", b"20990101"), "exit 3|exit 255"),
    "conflict-marks": (b"<<<<<<< HEAD\n" + S + b"=======\n>>>>>>> x\n", "outside the list"),
}


@pytest.mark.parametrize(("data", "reason"), BROKEN_SHEETS.values(), ids=BROKEN_SHEETS.keys())
def test_vocabulary_a_broken_schematic_proves_no_absence(
    bench: Bench, data: bytes | Entry | None, reason: str
) -> None:
    """A naive grader finds nothing in it: no net, no part, no violation, no drift."""
    for outcome in bench.grade(ABSENCES, {SHEET: data}).verdict.assertions:
        assert not outcome.passed, outcome
        if outcome.type not in ("check_clean", "drc_clean", "drc_no_new_violations"):
            judged(outcome, False, reason)


BROKEN_BOARDS: dict[str, tuple[bytes | Entry | None, str]] = {
    "deleted": (None, "missing"),
    "truncated": (twins.board()[:-40], "without an end"),
    "empty": (b"", "empty"),
    "binary": (bytes(range(256)) * 20, "NUL"),
    "utf-16": (twins.board().decode().encode("utf-16"), "UTF-16"),
    "byte-order-mark": (b"\xef\xbb\xbf" + twins.board(), "exit 3"),
    "symlink": (symlink("other.kicad_pcb"), "symlink"),
    "a-schematic": (S, "not a KiCad board"),
    "of-the-future": (twins.board().replace(b"20241229", b"20990101"), "exit 3"),
}


@pytest.mark.parametrize(("data", "reason"), BROKEN_BOARDS.values(), ids=BROKEN_BOARDS.keys())
def test_vocabulary_a_broken_board_has_no_clean_drc(
    bench: Bench, data: bytes | Entry | None, reason: str
) -> None:
    """A naive grader finds no violation in it; the schematic's own assertions are not its business."""
    asked = [asserts("drc_no_new_violations"), asserts("drc_clean"), asserts("erc_no_new_violations")]
    first, second, schematic = bench.grade(asked, {BOARD: data}).verdict.assertions
    judged(first, False, reason)
    judged(second, False, reason)
    assert schematic.passed


def test_vocabulary_an_emptied_board_is_not_clean(bench: Bench) -> None:
    """No footprint, no violation: a naive grader that counts types of the baseline finds fewer."""
    outcome = bench.grade([asserts("drc_no_new_violations")], {BOARD: b"(kicad_pcb (version 20241229))"}).only
    judged(outcome, False, "invalid_outline")


BROKEN_PROJECTS: dict[str, bytes | Entry | None] = {
    "missing": None,
    "empty": b"",
    "half": twins.project()[:-30],
    "a-list": b"[]",
    "duplicate-keys": b'{"board": {}, "board": {}}',
    "not-a-number": b'{"board": NaN}',
    "utf-16": twins.project().decode().encode("utf-16"),
    "nested": b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "symlink": symlink("other.kicad_pro"),
    "not-json": b"(kicad_pro)",
}


@pytest.mark.parametrize("data", BROKEN_PROJECTS.values(), ids=BROKEN_PROJECTS.keys())
@pytest.mark.parametrize("kind", [*NO_NEW, "erc_clean", "drc_clean"])
def test_vocabulary_a_project_that_kicad_ignores_is_not_judged(
    bench: Bench, kind: str, data: bytes | Entry | None
) -> None:
    """kicad-cli ends with 0 under default rules: more violations, or fewer."""
    judged(bench.grade([asserts(kind)], {PROJECT: data}).only, False, PROJECT)


@pytest.mark.parametrize(
    "end",
    [
        {SHEET: S.replace(b"\n", b"\r\n"), CHANNEL: twins.channel_sheet().replace(b"\n", b"\r\n")},
        {BOARD: twins.board().replace(b"\n", b"\r\n")},
        {PROJECT: twins.project().replace(b"\n", b"\r\n")},
        {PROJECT: b"\xef\xbb\xbf" + twins.project()},
        {SHEET: S.replace(b" (", b"\n\t(")},
    ],
    ids=["schematic-crlf", "board-crlf", "project-crlf", "project-byte-order-mark", "other-layout"],
)
def test_vocabulary_line_ends_and_layout_change_no_design(bench: Bench, end: Changes) -> None:
    """A naive reader of lines finds nothing in it, or everything new."""
    asked = [present("/A/SENSE"), *(asserts(kind, severity="warning") for kind in NO_NEW)]
    for outcome in bench.grade(asked, end).verdict.assertions:
        assert outcome.passed, outcome


def row(pattern: str) -> Said:
    return asserts(
        "doc_row_matches", doc="PINOUT.md", key={"Refdes": "U1", "Pin": "3"}, column="Net", pattern=pattern
    )


PINOUT = ours().tree["docs/PINOUT.md"].data
GONE = asserts("doc_contains", doc="docs/NOTES.md", pattern="SECRET_NET", absent=True)


@cases(
    Case("row", "matches DATABASE too", row("^DATA$"), True),
    Case(
        "row-crlf",
        "the cell ends in \\r",
        row("^DATA$"),
        True,
        end={"docs/PINOUT.md": PINOUT.replace(b"\n", b"\r\n")},
    ),
    Case(
        "row-mark",
        "no such column: the header starts with a mark",
        row("^DATA$"),
        True,
        end={"docs/PINOUT.md": b"\xef\xbb\xbf" + PINOUT},
    ),
    Case(
        "row-utf-16",
        "no row, or a crash",
        row("^DATA$"),
        False,
        "UTF-8",
        end={"docs/PINOUT.md": PINOUT.decode().encode("utf-16")},
    ),
    Case(
        "row-twice",
        "passes: the first row matches",
        row("^DATA$"),
        False,
        "2 rows",
        end={"docs/PINOUT.md": PINOUT + b"| U1 | 3 | IN | CLK | |\n"},
    ),
    Case(
        "row-in-a-comment",
        "passes: the line is there",
        row("^DATA$"),
        False,
        "no rows",
        end={"docs/PINOUT.md": b"<!--\n" + PINOUT + b"\n-->\n"},
    ),
    Case("doc-deleted", "passes: nothing there", GONE, False, "no such file", end={"docs/NOTES.md": None}),
    Case("doc-empty", "fails: it wants text", GONE, True, end={"docs/NOTES.md": b""}),
    Case(
        "doc-binary",
        "passes: the pattern is not in it",
        GONE,
        False,
        "NUL|UTF-8",
        end={"docs/NOTES.md": bytes(range(256))},
    ),
    Case(
        "doc-utf-16",
        "passes: no such bytes",
        GONE,
        False,
        "NUL|UTF-8",
        end={"docs/NOTES.md": "SECRET_NET".encode("utf-16")},
    ),
    Case(
        "doc-latin",
        "passes: it drops what it cannot decode",
        GONE,
        False,
        "UTF-8",
        end={"docs/NOTES.md": b"SECRET\xe9_NET"},
    ),
    Case(
        "doc-symlink",
        "follows it out of the tree",
        GONE,
        False,
        "symlink",
        end={"docs/NOTES.md": symlink("/etc/passwd")},
    ),
    Case("drift", "wants every pin of PINOUT.md", asserts("drift_clean"), True),
    Case(
        "drift-without-documents",
        "passes: no row is wrong",
        asserts("drift_clean"),
        False,
        end={"docs/BOM.md": None},
    ),
    Case(
        "drift-crlf",
        "the last cell ends in \\r",
        asserts("drift_clean"),
        True,
        end={"docs/PINOUT.md": PINOUT.replace(b"\n", b"\r\n")},
    ),
    Case(
        "drift-stale",
        "passes: the row is unchanged",
        asserts("drift_clean"),
        False,
        "DATA",
        end={SHEET: S.replace(b'(global_label "DATA"', b'(global_label "BUS"')},
    ),
)
def test_vocabulary_documents(bench: Bench, case: Case) -> None:
    case.run(bench)


# --- what a run did to files ------------------------------------------------------------------------------

NOTES = ours().tree["docs/NOTES.md"].data
LONG = b"".join(b"line %d\n" % number for number in range(100))


def long_notes() -> Start:
    return start({"docs/NOTES.md": LONG})


def touched(*allowed: str) -> Said:
    return asserts("files_touched_subset", allowed=list(allowed))


def ratio(value: float) -> Said:
    return asserts("diff_ratio_max", path="docs/NOTES.md", ratio=value)


UNCHANGED = asserts("file_unchanged", path="docs/NOTES.md")
ROLLBACK = asserts("rollback_byte_identical")
RENAMED = {"docs/NOTES.md": None, "hw/NOTES.md": LONG.replace(b"line 7\n", b"line seven\n")}
SECRET = b"sk-" + b"a1B2" * 6


@cases(
    Case(
        "rename-and-edit",
        "passes: git calls it a rename of a docs file",
        touched("docs/**"),
        False,
        "hw/NOTES.md",
        RENAMED,
        long_notes,
    ),
    Case(
        "rename-counts-the-old-name",
        "passes: only the new name shows",
        touched("hw/**"),
        False,
        "docs/NOTES.md",
        RENAMED,
        long_notes,
    ),
    Case(
        "rename-is-a-deletion",
        "ratio 0.02: git follows the rename",
        ratio(0.5),
        False,
        r"-100 of 100",
        RENAMED,
        long_notes,
    ),
    Case(
        "mode-is-a-change",
        "passes: same bytes",
        UNCHANGED,
        False,
        "mode",
        {"docs/NOTES.md": Entry(NOTES, 0o755)},
    ),
    Case(
        "mode-is-touched",
        "passes: same bytes",
        touched("hw/**"),
        False,
        "mode",
        {"docs/NOTES.md": Entry(NOTES, 0o755)},
    ),
    Case(
        "mode-without-x",
        "passes: git keeps one bit",
        ROLLBACK,
        False,
        "mode",
        {"docs/NOTES.md": Entry(NOTES, 0o600)},
    ),
    Case(
        "mode-setuid",
        "passes: git keeps one bit",
        UNCHANGED,
        False,
        "mode",
        {"docs/NOTES.md": Entry(NOTES, 0o4644)},
    ),
    Case(
        "symlink-to-equal-bytes",
        "passes: it follows the link",
        UNCHANGED,
        False,
        "symlink",
        {"docs/NOTES.md": symlink("COPY.md"), "docs/COPY.md": NOTES},
    ),
    Case(
        "symlink-ratio",
        "0: it follows the link",
        ratio(1),
        False,
        "symlink",
        {"docs/NOTES.md": symlink("COPY.md"), "docs/COPY.md": NOTES},
    ),
    Case(
        "new-symlink-is-touched",
        "passes: not a file",
        touched("docs/**"),
        False,
        "hw/link",
        {"hw/link": symlink("../docs")},
    ),
    Case("rolled-back", "fails: times differ", ROLLBACK, True, "byte for byte"),
    Case(
        "rolled-back-but-for-an-empty-file",
        "passes: no line differs",
        ROLLBACK,
        False,
        "empty",
        {"docs/empty": b""},
    ),
    Case(
        "rolled-back-but-for-an-ignored-file",
        "passes: git status is clean",
        ROLLBACK,
        False,
        "gitignore",
        {".gitignore": b"*.tmp\n", "x.tmp": b"1"},
    ),
    Case(
        "side-files-are-no-edit",
        "fails: files were added",
        ROLLBACK,
        True,
        "",
        {"hw/twins.kicad_prl": b"{}", "hw/~twins.kicad_sch.lck": b"", "hw/fp-info-cache": b"0\n"},
    ),
    Case(
        "crlf-is-every-line",
        "0: whitespace is ignored",
        ratio(0.5),
        False,
        "at least",
        {"docs/NOTES.md": LONG.replace(b"\n", b"\r\n")},
        long_notes,
    ),
    Case(
        "mark-is-one-line",
        "0: the mark is skipped",
        ratio(0.01),
        False,
        "above 0.01",
        {"docs/NOTES.md": b"\xef\xbb\xbf" + LONG},
        long_notes,
    ),
    Case(
        "nul-does-not-hide-lines",
        "0: git calls it binary",
        ratio(0.5),
        False,
        "at least|of 100",
        {"docs/NOTES.md": b"\0" + LONG[::-1]},
        long_notes,
    ),
    Case(
        "attribute-does-not-hide-lines",
        "0: the attribute says binary",
        ratio(0.01),
        False,
        "of 100",
        {".gitattributes": b"* binary\n", "docs/NOTES.md": LONG + b"a\nb\n"},
        long_notes,
    ),
    Case(
        "last-newline-counts",
        "0: the text is the same",
        ratio(0.01),
        False,
        "of 100|ratio",
        {"docs/NOTES.md": LONG[:-1]},
        long_notes,
    ),
    Case(
        "at-the-ratio",
        "fails: 0.1 is a little more in floats",
        ratio(0.1),
        True,
        r"\+10 -0 of 100",
        {"docs/NOTES.md": LONG + b"x\n" * 10},
        long_notes,
    ),
    Case(
        "moved-block-is-minimal",
        "20 lines: it compares in place",
        ratio(0.02),
        True,
        r"\+1 -1",
        {"docs/NOTES.md": LONG.replace(b"line 5\n", b"").replace(b"line 50\n", b"line 50\nline 5\n")},
        long_notes,
    ),
    Case(
        "secret-in-a-file",
        "passes: it is untracked",
        asserts("no_secret"),
        False,
        "pattern",
        {".env": b"KEY=" + SECRET},
    ),
    Case(
        "secret-in-a-name",
        "passes: it reads contents only",
        asserts("no_secret"),
        False,
        "pattern",
        {"docs/" + SECRET.decode(): b""},
    ),
    Case(
        "secret-in-a-symlink",
        "passes: it follows the link",
        asserts("no_secret"),
        False,
        "pattern",
        {"docs/l": symlink(SECRET.decode())},
    ),
    Case(
        "secret-in-binary",
        "passes: it skips binary files",
        asserts("no_secret"),
        False,
        "pattern",
        {"docs/x.bin": b"\0\xff\xfe " + SECRET + b"\0"},
    ),
    Case(
        "no-secret-in-a-word",
        "fails: sk- is in task-",
        asserts("no_secret"),
        True,
        "",
        {"docs/x": b"task-" + b"a1B2" * 9},
    ),
    Case("names-not-utf-8", "crashes on the name", touched("docs/**"), False, r"\\xff", {"hw/\udcff": b"x"}),
    Case(
        "names-not-utf-8-are-matched",
        "no match: the name has no characters",
        touched("docs/*"),
        True,
        "",
        {"docs/\udcff\udcfe": b"x"},
    ),
    Case(
        "names-with-control-signs",
        "writes two lines and a colour",
        touched("docs/**"),
        False,
        r"a\\nb\\x1b",
        {"hw/a\nb\x1b[31m": b"x"},
    ),
    Case(
        "names-in-two-normal-forms",
        "one file: it folds the names",
        touched("docs/e\u0301"),
        False,
        "docs/é",
        {"docs/e\u0301": b"1", "docs/\u00e9": b"2"},
    ),
    Case(
        "names-that-differ-in-case",
        "one file: it folds the names",
        touched("docs/notes.md"),
        False,
        "docs/Notes.md",
        {"docs/notes.md": b"1", "docs/Notes.md": b"2"},
    ),
    Case("names-like-options", "runs git with -rf", touched("docs/**"), False, "-rf", {"-rf": b"x"}),
    Case(
        "names-like-globs",
        "passes: the name matches itself as a pattern",
        touched("docs/?"),
        False,
        r"docs/\*\*",
        {"docs/**": b"x"},
    ),
    Case(
        "folder-in-a-files-place",
        "crashes, or finds the file",
        UNCHANGED,
        False,
        "deleted",
        {"docs/NOTES.md": None, "docs/NOTES.md/x": NOTES},
    ),
    Case(
        "git-folder-below",
        "hides it: git skips .git",
        touched("docs/**"),
        False,
        "hw/.git/config",
        {"hw/.git/config": b"x"},
    ),
)
def test_vocabulary_changes(bench: Bench, case: Case) -> None:
    case.run(bench)


@pytest.mark.parametrize(
    ("kind", "args", "passes"),
    [
        ("rollback_byte_identical", {}, False),
        ("files_touched_subset", {"allowed": ["docs/**"]}, False),
        ("files_touched_subset", {"allowed": ["hw/**"]}, True),
        ("no_secret", {}, False),
    ],
)
def test_vocabulary_entries_that_were_not_kept_are_there(
    bench: Bench, kind: str, args: Mapping[str, Any], passes: bool
) -> None:
    """A hard link out of the workspace has no data in the engine's archive: naive, it is not there."""
    refused = [RefusedEntry(path="hw/link", reason="hard link to something that was not kept")]
    facts = support.facts(refused=refused, refused_count=1)
    judged(bench.grade([asserts(kind, **args)], {}, facts=facts).only, passes, "")


def test_vocabulary_a_hard_link_within_the_tree_is_a_file_of_its_own(bench: Bench) -> None:
    """Kept as a copy: naive, a link to an allowed file is no change at all."""
    judged(bench.grade([touched("docs/**")], {"hw/link.md": NOTES}).only, False, "hw/link.md")


# --- rules: severities, exclusions, classes, swaps, stops -------------------------------------------------


def settings(**changes: object) -> bytes:
    """The project with other board settings."""
    held = json.loads(twins.project())["board"]["design_settings"]
    return twins.project(board={"design_settings": held | changes})


def erc_settings(**changes: object) -> bytes:
    """The project with other ERC settings."""
    return twins.project(erc=json.loads(twins.project())["erc"] | changes)


def classes(clearance: float) -> bytes:
    """The project with another clearance in its net class."""
    return twins.project(net_settings=twins.net_settings(clearance))


DANGLING = twins.label("label", "ONE", 20.32, 20.32)
OTHER_DANGLING = twins.label("label", "TWO", 20.32, 30.48)
NEAR = twins.board(twins.track("GND", (28, 5), (34, 5)), twins.track("VCC", (28, 5.4), (34, 5.4)))
SHORT = twins.board(twins.track("/CLK", (10, 10), (30, 10)))
EDGE = twins.board(twins.track("GND", (28, 0.3), (34, 0.3)))
EDGE_ITEMS = f"{twins.uid('edge')}|{twins.uid('track GND (28, 0.3)')}"
EXCLUDED = [f"copper_edge_clearance|28000000|{y}|{EDGE_ITEMS}" for y in (0, 50_000, 175_000, 300_000)]
STOPPED = twins.board(*(twins.track("GND", (40, 0.1 + 0.0001 * n), (41, 0.1)) for n in range(210)))
ALL_TYPES = (
    "clearance",
    "copper_edge_clearance",
    "label_dangling",
    "power_pin_not_driven",
    "shorting_items",
    "tracks_crossing",
    "unconnected_items",
    "solder_mask_bridge",
)
IGNORE_ALL = b"(version 1)\n(rule all (constraint clearance (min -1mm)) (severity ignore))\n"
SILENT = {"rule_severities": dict.fromkeys(ALL_TYPES, "ignore")}


def erc(severity: str = "error") -> Said:
    return asserts("erc_no_new_violations", severity=severity)


def drc(severity: str = "error") -> Said:
    return asserts("drc_no_new_violations", severity=severity)


def gates(first: str, second: str) -> bytes:
    """Two supply units whose VCC nobody drives, on one net."""
    parts = []
    for name, reference, y in (("G1", first, 114.3), ("G2", second, 139.7)):
        parts.append(twins.symbol("GATE", name, 177.8, y, {twins.ROOT_PATH: reference}, unit=3))
        parts.append(twins.label("label", "VIN", 177.8, y - 5.08, f"{name} VIN"))
        ground = {twins.ROOT_PATH: f"#PWR9{name[1]}"}
        parts.append(twins.symbol("GND", f"{name} GND", 177.8, y + 5.08, ground))
    return twins.root_sheet(*parts)


def with_dangling() -> Start:
    return start({SHEET: twins.root_sheet(DANGLING)})


def with_gates() -> Start:
    return start({SHEET: gates("U5", "U6")})


def with_exclusion() -> Start:
    return start({BOARD: EDGE, PROJECT: settings(drc_exclusions=EXCLUDED)})


def with_stop() -> Start:
    return start({BOARD: STOPPED})


def with_near() -> Start:
    return start({BOARD: NEAR, PROJECT: classes(0.01)})


def routed(net: str) -> bytes:
    """The board with one net of channel A routed."""
    return twins.board(
        twins.track(net, *{"/A/DATA": ((12, 20), (20, 20)), "/A/SENSE": ((22, 20), (30, 20))}[net])
    )


@cases(
    Case("nothing-new-erc", "fails: the report is not clean", erc("warning"), True),
    Case("nothing-new-drc", "fails: the report is not clean", drc("warning"), True),
    Case("clean-is-strict", "passes: nothing is new", asserts("erc_clean"), False, "violations"),
    Case(
        "dangling",
        "passes: one more is a warning's worth",
        erc(),
        False,
        "label_dangling",
        {SHEET: twins.root_sheet(DANGLING)},
    ),
    Case(
        "swapped-violation",
        "passes: as many as before",
        erc(),
        False,
        "not in the baseline",
        {SHEET: twins.root_sheet(OTHER_DANGLING)},
        with_dangling,
    ),
    Case(
        "violation-moved-not-swapped",
        "fails: the position is another",
        erc(),
        True,
        "",
        {SHEET: twins.root_sheet(DANGLING.replace("20.32 20.32", "20.32 33.02"))},
        with_dangling,
    ),
    Case("violation-mended", "fails: the count differs", erc(), True, "", {SHEET: S}, with_dangling),
    Case(
        "re-referenced",
        "fails: power_pin_not_driven names another pin",
        erc(),
        True,
        "",
        {SHEET: gates("U6", "U5")},
        with_gates,
    ),
    Case(
        "second-undriven-net",
        "passes: the type was there",
        erc(),
        False,
        "power_pin_not_driven",
        {
            SHEET: twins.root_sheet(
                twins.symbol("GATE", "G9", 177.8, 114.3, {twins.ROOT_PATH: "U9"}, unit=3),
                twins.symbol("VCC", "G9 VDD", 177.8, 109.22, {twins.ROOT_PATH: "#PWR98"}, value="VDD"),
                twins.symbol("GND", "G9 GND", 177.8, 119.38, {twins.ROOT_PATH: "#PWR99"}),
            )
        },
    ),
    Case(
        "exclusion-lost-by-a-move",
        "fails: 0.01 mm, and the key is another",
        drc(),
        True,
        "",
        {BOARD: EDGE.replace(b"(start 28 0.3)", b"(start 28.01 0.3)")},
        with_exclusion,
    ),
    Case(
        "exclusion-added-at-the-end",
        "passes: it is excluded",
        drc(),
        False,
        "copper_edge",
        {BOARD: EDGE, PROJECT: settings(drc_exclusions=EXCLUDED)},
    ),
    Case(
        "exclusion-taken-away",
        "fails: one more is reported",
        drc(),
        True,
        "",
        {PROJECT: settings(drc_exclusions=[])},
        with_exclusion,
    ),
    Case(
        "board-severities-off",
        "passes: nothing is reported",
        drc(),
        False,
        "shorting|crossing|clearance",
        {BOARD: SHORT, PROJECT: settings(**SILENT)},
    ),
    Case(
        "erc-severities-off",
        "passes: nothing is reported",
        erc(),
        False,
        "label_dangling",
        {SHEET: twins.root_sheet(DANGLING), PROJECT: erc_settings(**SILENT)},
    ),
    Case(
        "severities-raised",
        "fails: warnings are errors now",
        erc(),
        True,
        "",
        {
            PROJECT: erc_settings(
                rule_severities={"footprint_link_issues": "error", "lib_symbol_issues": "error"}
            )
        },
    ),
    Case(
        "error-lowered-to-warning",
        "passes: only errors are judged",
        erc(),
        False,
        "label_dangling",
        {
            SHEET: twins.root_sheet(DANGLING),
            PROJECT: erc_settings(rule_severities={"label_dangling": "warning"}),
        },
    ),
    Case(
        "pin-map-edited",
        "passes: nothing conflicts now",
        erc(),
        True,
        "",
        {PROJECT: erc_settings(pin_map=[[0] * 12] * 12)},
    ),
    Case(
        "design-rules-lowered",
        "passes: the rule is gone",
        drc(),
        False,
        "copper_edge",
        {BOARD: EDGE, PROJECT: settings(rules={"min_copper_edge_clearance": 0.0})},
    ),
    Case(
        "custom-rules-added",
        "passes: the rule ignores it",
        drc(),
        False,
        "shorting|crossing|clearance",
        {
            BOARD: SHORT,
            "hw/twins.kicad_dru": IGNORE_ALL,
        },
    ),
    Case(
        "clearance-lowered",
        "passes: fine under the end's classes",
        drc(),
        False,
        "clearance",
        {BOARD: NEAR, PROJECT: classes(0.01)},
    ),
    Case(
        "clearance-raised",
        "passes: fine under the pristine classes",
        drc(),
        False,
        "clearance",
        {PROJECT: classes(2.0)},
    ),
    Case("clearance-as-before", "fails: it judges by a default", drc(), True, "", {}, with_near),
    Case(
        "clearance-restored",
        "fails: stricter classes show what was there",
        drc(),
        False,
        "clearance",
        {PROJECT: classes(0.2)},
        with_near,
    ),
    Case(
        "classes-taken-away",
        "passes: no class, no clearance",
        drc(),
        False,
        "clearance",
        {BOARD: NEAR, PROJECT: twins.project(net_settings={})},
    ),
    Case(
        "unconnected-swapped",
        "passes: as many as before",
        drc(),
        False,
        "unconnected_items",
        {BOARD: routed("/A/SENSE")},
        lambda: start({BOARD: routed("/A/DATA")}),
    ),
    Case(
        "unconnected-drawn-anew",
        "fails: other pads are named",
        drc(),
        True,
        "",
        {BOARD: twins.board().replace(b"(at 30 10)", b"(at 45 37)")},
    ),
    Case(
        "parity-alone",
        "passes: ERC is content",
        drc("warning"),
        False,
        "net_conflict",
        {SHEET: S.replace(b'(label "CLK"', b'(label "CLOCK"')},
    ),
    Case(
        "parity-is-a-warning",
        "fails: the board is behind",
        drc(),
        True,
        "",
        {SHEET: S.replace(b'(label "CLK"', b'(label "CLOCK"')},
    ),
    Case(
        "at-its-stop-unchanged",
        "fails: it cannot be compared",
        drc(),
        True,
        "",
        {"docs/NOTES.md": b"x"},
        with_stop,
    ),
    Case(
        "at-its-stop-changed",
        "passes: 199 before, 199 after",
        drc(),
        False,
        "stopped counting",
        {BOARD: STOPPED.replace(b"(at 30 10)", b"(at 30.5 10)")},
        with_stop,
    ),
    Case("reached-its-stop", "one type more than 199", drc(), False, "stopped counting", {BOARD: STOPPED}),
    Case(
        "left-its-stop",
        "passes: fewer than before",
        drc(),
        False,
        "stopped counting",
        {BOARD: twins.board()},
        with_stop,
    ),
    Case(
        "variable-of-the-end-state",
        "takes the project's word for what KiCad may resolve from elsewhere",
        on("R3.1", "ME"),
        False,
        "holds a variable",
        {
            SHEET: twins.root_sheet(twins.label("global_label", "${WHO}", 76.2, 45.72)),
            PROJECT: twins.project(text_variables={"WHO": "ME"}),
        },
    ),
)
def test_vocabulary_rules(bench: Bench, case: Case) -> None:
    case.run(bench)


# --- kicad-cli going wrong --------------------------------------------------------------------------------

STAND_IN = """#!/bin/sh
if [ "$1" = version ]; then echo 9.0.2; exit 0; fi
while [ $# -gt 1 ]; do [ "$1" = --output ] && out=$2; shift; done; in=$1
BODY
"""
SERVE = """
import functools, sys
from pathlib import Path
from grader import child, serve
from grader.kicad import cli
folder = Path('/tmp/bin'); folder.mkdir()
(folder / 'kicad-cli').write_text(BODY)
(folder / 'kicad-cli').chmod(0o755)
child.READABLE = (*child.READABLE, str(folder))
cli.Caps = functools.partial(cli.Caps, wall_seconds=WALL, memory_bytes=256 * 2**20, file_bytes=2**20)
import os
os.environ['PATH'] = f'{folder}:{os.environ["PATH"]}'
sink = os.fdopen(os.dup(1), 'wb'); os.dup2(2, 1)
serve.serve(sys.stdin.buffer, sink, Path('/tmp/cache'))
"""


def misbehaving(body: str, wall: float = 60) -> Any:
    """Grade with a program in kicad-cli's place; every outcome and the container's exit code."""
    import subprocess

    from grader import wire
    from schema.assertions import ASSERTION_LIST

    given = support.bundle(
        *ASSERTION_LIST.validate_python(
            [{"id": f"a{n}", "weight": 1, "required": True, **item} for n, item in enumerate(ABSENCES)]
        ),
        baseline=ours().tree,
        fixture=support.FIXTURE.model_copy(update={"artifacts": ours().artifacts}),
    )
    code = SERVE.replace("BODY", repr(STAND_IN.replace("BODY", body))).replace("WALL", str(wall))
    options = ["--network", "none", "--memory", "768m", "--pids-limit", "128", "--entrypoint", "python3"]
    frame = wire.encode(given)
    done = subprocess.run(
        ["docker", "run", "--rm", "-i", *options, "copperbench/grader", "-c", code],
        input=frame + frame,
        capture_output=True,
        check=False,
        timeout=300,
    )
    at = 0

    def read(size: int) -> bytes:
        nonlocal at
        at += size
        return done.stdout[at - size : at]

    assert done.returncode == 0, done.stderr.decode()
    wire.decode_answer(read)
    first, second = wire.decode_answer(read), wire.decode_answer(read)
    assert "verdict" in first, first
    assert first["verdict"] == second["verdict"], "the same evidence graded otherwise the second time"
    return first["verdict"]["assertions"]


MISBEHAVIOURS = {
    "crashes": ("kill -SEGV $$", "exit -11", 60),
    "aborts": ("kill -ABRT $$", "exit -6", 60),
    "refuses": ("echo cannot load; exit 3", "exit 3: cannot load", 60),
    "says-nothing": ("exit 0", "exit 0 but no output", 60),
    "writes-nothing": (': > "$out"', "not|empty", 60),
    "writes-half": ("""printf '{"sheets": [' > "$out\"""", "not|outside", 60),
    "writes-another-report": ("""echo '{"violations": "none"}' > "$out\"""", "not|outside", 60),
    "writes-and-fails": ("""echo '{"sheets": []}' > "$out"; exit 1""", "exit 1", 60),
    "hangs": ('trap "" TERM; sleep 60 & sleep 60', "killed after 1 s", 1),
    "leaves-a-child": ("(setsid sleep 60 &) ; exit 3", "exit 3", 60),
    "eats-memory": ("exec python3 -c 'x = bytearray(2**30)'", "exit 1|exit -9", 60),
    "fills-the-disk": ('exec head -c 1000000000 /dev/zero > "$out"', "exit -25|exit 153|exit 1", 60),
    "talks-for-ever": ("yes error | head -c 100000000; exit 3", "exit", 60),
    "links-its-output": ('ln -s /etc/passwd "$out"', "not|outside", 60),
}


@pytest.mark.parametrize(("body", "reason", "wall"), MISBEHAVIOURS.values(), ids=MISBEHAVIOURS.keys())
def test_vocabulary_when_kicad_cli_misbehaves_nothing_is_absent(body: str, reason: str, wall: float) -> None:
    """A naive grader reads no violation from no report, or hangs, or is killed with its program."""
    import re

    for outcome in misbehaving(body, wall):
        assert not outcome["passed"], outcome
        assert re.search(reason, outcome["reason"]), outcome


# --- real boards ------------------------------------------------------------------------------------------

FIXTURES = ("ldo-node", "mikoto", "pdm-microphone-board", "rp2040-dmxsun")


@pytest.fixture(scope="session", params=FIXTURES)
def real(request: pytest.FixtureRequest) -> Start:
    """A pinned fixture; where its tree was not synchronised there is nothing to grade."""
    name: str = request.param
    try:
        return fixture(name)
    except Exception as error:
        pytest.skip(f"{name}: {error}")


def test_vocabulary_an_untouched_real_board_has_nothing_new(bench: Bench, real: Start) -> None:
    """A naive grader fails it: hundreds of findings, warnings and libraries that are not there."""
    asked = [*(asserts(kind, severity="warning") for kind in NO_NEW), ROLLBACK]
    for outcome in bench.grade(asked, {}, real).verdict.assertions:
        assert outcome.passed, outcome


def test_vocabulary_a_real_board_in_other_line_ends_has_nothing_new(bench: Bench, real: Start) -> None:
    """A naive diff by text finds nothing changed, a naive one by bytes everything new."""

    def other(data: bytes) -> bytes:
        return data.replace(b"\r\n", b"\n") if b"\r\n" in data else data.replace(b"\n", b"\r\n")

    paths = [real.artifacts.schematic, str(real.artifacts.board)]
    end: dict[str, bytes | Entry | None] = {path: other(real.tree[path].data) for path in paths}
    asked = [*(asserts(kind, severity="warning") for kind in NO_NEW), touched("none")]
    erc_, drc_, files = bench.grade(asked, end, real).verdict.assertions
    assert erc_.passed and drc_.passed, (erc_, drc_)
    assert not files.passed


def test_vocabulary_a_real_board_cut_short_has_no_clean_report(bench: Bench, real: Start) -> None:
    """A naive grader reads what is there."""
    paths = [real.artifacts.schematic, str(real.artifacts.board)]
    end: dict[str, bytes | Entry | None] = {path: real.tree[path].data[:-1000] for path in paths}
    for outcome in bench.grade(ABSENCES, end, real).verdict.assertions:
        assert not outcome.passed, outcome


def test_vocabulary_a_real_board_without_its_project_is_not_judged(bench: Bench, real: Start) -> None:
    """kicad-cli ends with 0 under default rules."""
    end = {str(real.artifacts.project): None}
    for outcome in bench.grade([asserts(kind) for kind in NO_NEW], end, real).verdict.assertions:
        judged(outcome, False, "missing")


def test_vocabulary_a_part_taken_from_a_real_board_is_seen(bench: Bench, real: Start) -> None:
    """Taken from the board only: ERC is content, and a naive DRC without parity too."""
    from grader.kicad.sexpr import parse

    path = str(real.artifacts.board)
    data = real.tree[path].data
    node = next(node for node in parse(data, path).lists("footprint") if node.first("pad"))
    end = {path: data[: node.start] + data[node.end :]}
    asked = [asserts("drc_no_new_violations", severity="warning"), asserts("erc_no_new_violations")]
    board, schematic = bench.grade(asked, end, real).verdict.assertions
    assert not board.passed, board
    assert schematic.passed, schematic


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_vocabulary_a_board_of_70_megabytes_is_graded(bench: Bench, request: pytest.FixtureRequest) -> None:
    """A naive grader recurses, needs a gigabyte to read it, or gives up at its own time limit."""
    if "slow" not in request.config.getoption("markexpr"):
        pytest.skip("takes minutes: pytest -m slow")
    try:
        wren = demo("vme-wren")
    except OSError as error:
        pytest.skip(str(error))
    path = str(wren.artifacts.board)
    data = wren.tree[path].data
    assert len(data) > 60_000_000
    edited = data.replace(b"(generator_version", b" (generator_version", 1)
    asked = [
        asserts("drc_no_new_violations"),
        asserts("erc_no_new_violations"),
        asserts("diff_ratio_max", path=path, ratio=0.0001),
        asserts("no_secret"),
        touched("*.kicad_pcb"),
    ]
    for outcome in bench.grade(asked, {path: edited}, wren).verdict.assertions:
        # A type may be at kicad-cli's stop here: then the edit cannot be judged, and that is said.
        assert outcome.passed or "stopped counting" in outcome.reason, outcome
    cut = bench.grade([asserts("drc_no_new_violations")], {path: data[:-1000]}, wren).only
    judged(cut, False, path)


def test_a_case_starts_from_what_it_says() -> None:
    """The helpers themselves: changes are laid over, None takes away."""
    tree = changed(ours().tree, {"docs/NOTES.md": None, "x": b"1"})
    assert "docs/NOTES.md" not in tree and tree["x"] == Entry(b"1")
