"""Nets, symbols, documents and constraints of the final files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grader.evidence import Entry
from grader.kicad.errors import Unjudgeable
from tests.unit.grader.support import FakeDesign, assertion, netlist, outcome_of, symlink, tree

UNREADABLE = Unjudgeable("demo.kicad_sch: truncated")


def design(nets: dict[str, list[str]], *labels: str, **parts: str) -> FakeDesign:
    return FakeDesign(netlist(nets, parts), frozenset(labels))


LOCAL = design({"/DATA": ["MK1.1", "J1.5"], "GND": ["J1.1"]}, "DATA", "GND")
TWINS = design({"/DATA": ["R1.1"], "/sub/DATA": ["R2.1"]}, "DATA")
GLOBAL_AND_LOCAL = design({"DATA": ["R1.1"], "/sub/DATA": ["R2.1"]}, "DATA")


# --- nets -----------------------------------------------------------------------------------------------


def test_net_present_means_the_last_path_element() -> None:
    """KiCad names the local net ``/DATA``: a naive grader compares whole names and finds no ``DATA``."""
    assert outcome_of(assertion("net_present", net="DATA"), LOCAL).passed


def test_net_present_takes_a_leading_slash_as_exact() -> None:
    """A naive grader strips the slash, and takes the net of another sheet."""
    assert outcome_of(assertion("net_present", net="/DATA"), LOCAL).passed
    assert not outcome_of(assertion("net_present", net="/sub/DATA"), LOCAL).passed


def test_net_present_takes_a_whole_name_as_exact() -> None:
    """A naive grader calls ``DATA`` ambiguous, though one net is called just that."""
    assert outcome_of(assertion("net_present", net="DATA"), GLOBAL_AND_LOCAL).passed


def test_net_present_fails_for_an_ambiguous_name() -> None:
    """A naive grader takes the first net that fits."""
    outcome = outcome_of(assertion("net_present", net="DATA"), TWINS)
    assert not outcome.passed
    assert "ambiguous" in outcome.reason


def test_net_present_is_not_met_by_a_label_without_a_pin() -> None:
    """A naive grader greps the schematic for the label; a net with no pin is not present."""
    assert not outcome_of(assertion("net_present", net="PDM_DATA"), design({}, "PDM_DATA")).passed


def test_net_present_is_not_met_by_part_of_a_name() -> None:
    """A naive grader searches for the text and finds ``DATA`` in ``PDM_DATA``."""
    assert not outcome_of(assertion("net_present", net="DATA"), design({"/PDM_DATA": ["R1.1"]})).passed


def test_net_absent_passes_when_neither_net_nor_label_is_left() -> None:
    """A naive grader that greps the file fails here: a pin is *named* DATA, and a text note says DATA."""
    assert outcome_of(
        assertion("net_absent", net="DATA"), design({"/PDM_DATA": ["MK1.1"]}, "PDM_DATA")
    ).passed


def test_net_absent_fails_when_any_match_has_a_pin() -> None:
    """A naive grader sees an ambiguous name and answers that there is no such net."""
    assert not outcome_of(assertion("net_absent", net="DATA"), TWINS).passed


def test_net_absent_sees_the_name_that_kicad_hides() -> None:
    """Two labels on one net: the netlist shows one name, and a naive grader calls the other absent."""
    outcome = outcome_of(
        assertion("net_absent", net="DATA"), design({"/PDM_DATA": ["MK1.1"]}, "PDM_DATA", "DATA")
    )
    assert not outcome.passed
    assert "label" in outcome.reason


def test_net_absent_with_a_path_is_not_disturbed_by_another_sheets_net() -> None:
    """A naive grader finds the label of ``/b/DATA`` and says that ``/a/DATA`` is still there."""
    assert outcome_of(assertion("net_absent", net="/a/DATA"), design({"/b/DATA": ["R1.1"]}, "DATA")).passed


def test_net_absent_with_a_path_sees_a_hidden_label() -> None:
    """No net explains the label: it can only be the old name, hidden behind a second one."""
    assert not outcome_of(
        assertion("net_absent", net="/a/DATA"), design({"/a/X": ["R1.1"]}, "X", "DATA")
    ).passed


def test_net_absent_with_a_path_sees_a_hidden_label_that_holds_a_slash() -> None:
    """KiCad writes ``{slash}`` in the file: a naive grader takes only what stands after the last slash."""
    assert not outcome_of(
        assertion("net_absent", net="/a/IN/OUT"), design({"/a/X": ["R1.1"]}, "IN/OUT")
    ).passed


def test_net_absent_fails_when_labels_cannot_be_read() -> None:
    """A naive grader is content with the netlist, and the hidden name stays hidden."""
    assert not outcome_of(assertion("net_absent", net="DATA"), FakeDesign(netlist({}), UNREADABLE)).passed


def test_net_absent_fails_when_the_netlist_cannot_be_read() -> None:
    """A truncated schematic has no nets at all: a naive grader passes."""
    outcome = outcome_of(assertion("net_absent", net="DATA"), FakeDesign(UNREADABLE))
    assert not outcome.passed
    assert "truncated" in outcome.reason


@pytest.mark.parametrize(
    ("refdes", "pin", "net", "holds"),
    [
        ("J1", "5", "DATA", True),
        ("J1", "5", "/DATA", True),
        ("J1", "5", "GND", False),
        ("J1", "1", "GND", True),
        ("J1", "9", "GND", False),
        ("J9", "1", "GND", False),
        ("J1", "5", "/sub/DATA", False),
        ("J1", "5", "data", False),
    ],
)
def test_pin_net_equals(refdes: str, pin: str, net: str, holds: bool) -> None:
    """A naive grader looks for the label nearest to the pin, which found 3 of 6 names on a real board."""
    assert outcome_of(assertion("pin_net_equals", refdes=refdes, pin=pin, net=net), LOCAL).passed is holds


def test_pin_net_equals_fails_for_an_ambiguous_name_even_on_one_of_the_nets() -> None:
    """A naive grader compares last elements and passes for the pin of either sheet."""
    assert not outcome_of(assertion("pin_net_equals", refdes="R1", pin="1", net="DATA"), TWINS).passed


def test_pin_net_equals_tells_an_automatic_name() -> None:
    """A pin that lost its net is on ``unconnected-(…)``: a naive grader that only looks for pins finds it."""
    lost = design({"unconnected-(J1-Pin_5-Pad5)": ["J1.5"], "/DATA": ["MK1.1"]})
    assert not outcome_of(assertion("pin_net_equals", refdes="J1", pin="5", net="DATA"), lost).passed


# --- symbols --------------------------------------------------------------------------------------------

PARTS = design({"/A": ["R1.1"]}, R1="4k7")


@pytest.mark.parametrize(
    ("args", "holds"),
    [
        ({"refdes": "R1"}, True),
        ({"refdes": "R1", "value": "4k7"}, True),
        ({"refdes": "R1", "value": "4K7"}, False),
        ({"refdes": "R1", "value": "10k"}, False),
        ({"refdes": "R1", "footprint": "lib:R_0402"}, True),
        ({"refdes": "R1", "footprint": "R_0402"}, False),
        ({"refdes": "R1", "value": "4k7", "footprint": "lib:R_0603"}, False),
        ({"refdes": "R"}, False),
        ({"refdes": "R2"}, False),
        ({"refdes": "R1", "value": ""}, False),
    ],
)
def test_symbol_present_compares_every_given_argument(args: dict[str, str], holds: bool) -> None:
    """A naive grader stops at the reference."""
    assert outcome_of(assertion("symbol_present", **args), PARTS).passed is holds


def test_symbol_absent() -> None:
    """A naive grader searches for the text ``R1``, and finds it in ``R10``."""
    tenth = design({"/A": ["R10.1"]})
    assert outcome_of(assertion("symbol_absent", refdes="R1"), tenth).passed
    assert not outcome_of(assertion("symbol_absent", refdes="R10"), tenth).passed


def test_symbol_absent_sees_a_part_that_is_kept_off_the_board() -> None:
    """KiCad's netlist leaves it out: a naive grader takes it for removed."""
    hidden = FakeDesign(given_netlist=netlist({"/A": ["R10.1"]}), references=frozenset({"R1", "R10"}))
    outcome = outcome_of(assertion("symbol_absent", refdes="R1"), hidden)
    assert not outcome.passed and "off the board" in outcome.reason


# --- documents ------------------------------------------------------------------------------------------

PINOUT = """# Pinout

| Refdes | Pin | Name | Net | Notes |
|---|---|---|---|---|
| MK1 | 1 | DATA | PDM_DATA | |
| J1 | 1 | ~ | GND | |
| J1 | 5 | ~ | PDM_DATA | was DATA |
"""


def row(key: Any, column: str, pattern: str, text: str | bytes = PINOUT, **more: Any) -> bool:
    item = assertion("doc_row_matches", doc="docs/PINOUT.md", key=key, column=column, pattern=pattern)
    return outcome_of(item, end=tree({"docs/PINOUT.md": text}), **more).passed


J1_5 = {"Refdes": "J1", "Pin": "5"}


def test_doc_row_matches_by_first_column() -> None:
    """A naive grader searches the document, and finds the pattern in any row."""
    assert row("MK1", "Net", "^PDM_DATA$")
    assert not row("MK1", "Net", "^DATA$")


def test_doc_row_matches_by_several_columns() -> None:
    """J1 has several rows: a naive grader takes the first, whose net is GND."""
    assert row(J1_5, "Net", "^PDM_DATA$")
    assert row({"Pin": "5", "Refdes": "J1"}, "Net", "^PDM_DATA$")


def test_doc_row_matches_fails_when_several_rows_have_the_key() -> None:
    """A naive grader takes the first row, or is content when any matches."""
    assert not row("J1", "Net", "PDM_DATA|GND")


def test_doc_row_matches_fails_when_no_row_has_the_key() -> None:
    """A naive grader finds nothing wrong with a row that is not there."""
    assert not row("J2", "Net", ".*")


def test_doc_row_matches_looks_at_one_column_only() -> None:
    """The pin's *name* is still DATA: a naive grader that matches the whole row cannot tell."""
    assert not row("MK1", "Net", "^DATA")
    assert row("MK1", "Name", "^DATA$")


def test_doc_row_matches_finds_columns_by_name_not_place() -> None:
    """A naive grader counts columns; another order is still the same table."""
    moved = "| Pin | Refdes | net |\n|--:|:-:|---|\n| 5 | J1 | PDM_DATA |\n"
    assert row(J1_5, "Net", "^PDM_DATA$", moved)


@pytest.mark.parametrize(
    "text",
    [
        PINOUT.replace("\n", "\r\n"),
        "\ufeff" + PINOUT,
        PINOUT.replace("| J1 | 5 |", "|   J1|5   |"),
        PINOUT.replace("| J1 | 5 |", "| `J1` | `5` |"),
        PINOUT.replace("| J1 | 5 | ~ | PDM_DATA | was DATA |", "| J1 | 5 | ~ | PDM_DATA"),
        PINOUT.replace("| J1 | 5 |", "J1 | 5 |"),
        PINOUT.replace("was DATA", "a \\| b"),
    ],
    ids=["crlf", "bom", "spaces", "code spans", "ragged", "no leading pipe", "escaped pipe"],
)
def test_doc_row_matches_reads_tables_as_people_write_them(text: str) -> None:
    """A naive grader splits at every pipe and compares with the line end still there."""
    assert row(J1_5, "Net", "^PDM_DATA$", text)


@pytest.mark.parametrize(
    "text",
    [
        "```\n" + PINOUT + "```\n",
        "~~~~md\n" + PINOUT,
        "<!--\n" + PINOUT.replace("\n\n", "\n") + "-->\n",
        "\n".join("    " + line for line in PINOUT.splitlines()),
    ],
    ids=["fence", "open fence", "comment", "indented code"],
)
def test_doc_row_matches_skips_what_a_reader_does_not_see_as_a_table(text: str) -> None:
    """A naive grader reads every line that has pipes; an agent hides the right answer in a comment."""
    assert not row(J1_5, "Net", "^PDM_DATA$", text)


def test_doc_row_matches_counts_rows_of_all_tables() -> None:
    """A naive grader reads the first table; a second one with another answer makes the document ambiguous."""
    assert not row(J1_5, "Net", "PDM_DATA", PINOUT + "\ntext\n\n" + PINOUT)


def test_doc_row_matches_fails_for_a_column_that_occurs_twice() -> None:
    """A naive grader builds a mapping, in which the last column of a name wins."""
    twice = "| Refdes | Pin | Net | Net |\n|---|---|---|---|\n| J1 | 5 | DATA | PDM_DATA |\n"
    assert not row(J1_5, "Net", "PDM_DATA", twice)


@pytest.mark.parametrize(
    "text",
    [PINOUT.encode("utf-16"), b"\xff\xfe| a |", b"", b"\0" * 10, PINOUT.encode() + b"\xff"],
    ids=["utf-16", "not utf-8", "empty", "binary", "one bad byte"],
)
def test_doc_row_matches_fails_for_what_is_not_text(text: bytes) -> None:
    """A naive grader ignores bytes it cannot decode and matches the rest."""
    assert not row(J1_5, "Net", "PDM_DATA", text)


def test_doc_row_matches_never_follows_a_symlink() -> None:
    """A naive grader opens the path, and reads a file outside of the tree."""
    item = assertion("doc_row_matches", doc="docs/PINOUT.md", key="J1", column="Net", pattern=".*")
    outcome = outcome_of(item, end=tree({"docs/PINOUT.md": symlink("/etc/passwd")}))
    assert not outcome.passed
    assert "symlink" in outcome.reason


CONFIG = {".copperhead/config.json": json.dumps({"docs": "documentation/"})}


def contains(doc: str, pattern: str, *, absent: bool = False, **trees: Any) -> bool:
    return outcome_of(assertion("doc_contains", doc=doc, pattern=pattern, absent=absent), **trees).passed


def test_doc_is_found_from_the_root_or_under_the_configured_folder() -> None:
    """A naive grader looks in ``docs/`` only."""
    files = tree({**CONFIG, "documentation/SPEC.md": "25 uA", "NOTES.md": "hello"})
    assert contains("SPEC.md", "25 uA", baseline=files)
    assert contains("documentation/SPEC.md", "25 uA", baseline=files)
    assert contains("NOTES.md", "hello", baseline=files)
    assert not contains("OTHER.md", "x", baseline=files)


def test_doc_is_not_shadowed_by_a_new_file_at_the_root() -> None:
    """The agent leaves docs/SPEC.md alone and writes the answer to SPEC.md: a naive grader reads that."""
    before = tree({"docs/SPEC.md": "25 uA"})
    after = {**before, **tree({"SPEC.md": "30 uA"})}
    assert not contains("SPEC.md", "30 uA", baseline=before, end=after)
    assert contains("SPEC.md", "25 uA", baseline=before, end=after)


def test_docs_folder_comes_from_the_baseline() -> None:
    """The agent points the configuration at its own folder: a naive grader follows."""
    before = tree({".copperhead/config.json": '{"docs": "docs/"}', "docs/SPEC.md": "25 uA"})
    after = {**before, **tree({".copperhead/config.json": '{"docs": "mine/"}', "mine/SPEC.md": "30 uA"})}
    assert not contains("SPEC.md", "30 uA", baseline=before, end=after)


def test_doc_contains_absent_needs_the_document() -> None:
    """Deleting the document leaves nothing to match: a naive grader passes."""
    before = tree({"docs/SPEC.md": "30 uA"})
    assert not contains("docs/SPEC.md", "30", absent=True, baseline=before, end=tree())
    assert not contains(
        "docs/SPEC.md", "30", absent=True, baseline=before, end=tree({"docs/SPEC.md": b"\xff"})
    )
    assert contains("docs/SPEC.md", "30", absent=True, baseline=before, end=tree({"docs/SPEC.md": "25 uA"}))
    assert not contains("docs/SPEC.md", "30", absent=True, baseline=before)


def test_doc_contains_is_linear_in_hostile_patterns_and_documents() -> None:
    """A backtracking engine needs longer than the universe for this."""
    assert not contains("docs/A.md", "(a+)+$", baseline=tree({"docs/A.md": "a" * 200_000 + "!"}))


def test_doc_contains_refuses_a_document_over_the_limit() -> None:
    """A naive grader reads whatever there is into memory."""
    huge = tree({"docs/A.md": Entry(b"a" * (4 * 1024 * 1024 + 1))})
    assert not contains("docs/A.md", "a", baseline=huge)
    assert contains("docs/A.md", "a", baseline=tree({"docs/A.md": Entry(b"a" * (4 * 1024 * 1024))}))


def test_doc_contains_sees_line_ends_alike() -> None:
    """With CRLF a naive grader's ``$`` stands before an invisible sign."""
    assert contains("docs/A.md", "(?m)^limit 25$", baseline=tree({"docs/A.md": "x\r\nlimit 25\r\ny"}))


# --- drift ----------------------------------------------------------------------------------------------

BOM = "| Refdes | Value | Footprint | MPN | Why |\n|---|---|---|---|---|\n| R1 | 10 k | lib:R_0402 | X | |\n"
PINS = "| Refdes | Pin | Name | Net | Notes |\n|---|---|---|---|---|\n| R1 | 1 | ~ | DATA | |\n"
AGREES = design({"/DATA": ["R1.1"], "GND": ["R1.2"]}, R1="10k")


def drift(bom: str | None = BOM, pins: str | None = PINS, of: FakeDesign = AGREES, **args: Any) -> bool:
    named = {"docs/BOM.md": bom, "docs/PINOUT.md": pins}
    files = tree({path: text for path, text in named.items() if text is not None})
    return outcome_of(assertion("drift_clean", **args), of, end=files).passed


def test_drift_clean_passes_when_documents_agree() -> None:
    """A naive grader compares ``10 k`` and ``10k`` letter by letter, and ``DATA`` with KiCad's ``/DATA``."""
    assert drift()


@pytest.mark.parametrize(
    ("document", "value"),
    [
        ("10K", "10k"),
        ("4.7 Ω", "4.7ohm"),
        ("4.7Ω", "4.7 Ω"),
        ("1 µF", "1uf"),
        ("1μF", "1µF"),
        ("１０k", "10k"),
        ("", "~"),
        (" ", "~"),
        ("~", " "),
    ],
)
def test_drift_clean_folds_values(document: str, value: str) -> None:
    """Two code points for the ohm sign, two for the micro sign: a naive grader calls them different.

    For a blank value KiCad 9 says blank and KiCad 10 a tilde.
    """
    assert drift(BOM.replace("10 k", document), of=design({"/DATA": ["R1.1"]}, R1=value))


@pytest.mark.parametrize(
    ("bom", "pins"),
    [
        (BOM.replace("10 k", "22k"), PINS),
        (BOM.replace("10 k", "10kΩ"), PINS),
        (BOM.replace("lib:R_0402", "lib:R_0603"), PINS),
        (BOM.replace("lib:R_0402", "LIB:r_0402"), PINS),
        (BOM + "| R2 | 1k | lib:R_0402 | | |\n", PINS),
        (BOM.replace("| R1 |", "| R1,R2 |"), PINS),
        (BOM.split("| R1", maxsplit=1)[0], PINS),
        (BOM, PINS.replace("DATA", "CLK")),
        (BOM, PINS.replace("DATA", "")),
        (BOM, PINS + "| R1 | 3 | ~ | GND | |\n"),
        (BOM, PINS + "| R9 | 1 | ~ | GND | |\n"),
        (None, PINS),
        (BOM, None),
        ("no table", PINS),
        (BOM, "no table"),
        (BOM.replace("Footprint", "Package"), PINS),
        ("```\n" + BOM + "```\n", PINS),
    ],
    ids=[
        "wrong value",
        "a unit more",
        "wrong footprint",
        "footprint in other case",
        "part that is not there",
        "two references in a row",
        "part without a row",
        "wrong net",
        "unnamed claimed, named is",
        "no such pin",
        "no such part",
        "no BOM",
        "no PINOUT",
        "BOM without a table",
        "PINOUT without a table",
        "BOM without its columns",
        "BOM in a fence",
    ],
)
def test_drift_clean_fails_for(bom: str | None, pins: str | None) -> None:
    """Deleting a document is ``clean`` to the agent's own reader; a naive grader follows it."""
    assert not drift(bom, pins)


def test_drift_clean_takes_an_empty_net_cell_for_an_unnamed_net() -> None:
    """A naive grader compares the empty cell with ``Net-(R1-Pad1)``."""
    unnamed = design({"Net-(R1-Pad1)": ["R1.1"]}, R1="10k")
    assert drift(pins=PINS.replace("DATA", ""), of=unnamed)
    assert not drift(of=unnamed)


def test_drift_clean_does_not_ask_for_every_pin() -> None:
    """R1.2 has no row: only BOM is checked both ways."""
    assert drift(of=design({"/DATA": ["R1.1"], "/NEW": ["R1.2", "R1.3"]}, R1="10k"))


def new_only(before: str, after: str, of: FakeDesign = AGREES, old: FakeDesign = AGREES) -> bool:
    return outcome_of(
        assertion("drift_clean", newOnly=True),
        of,
        baseline_design=old,
        baseline=tree({"docs/BOM.md": before, "docs/PINOUT.md": PINS}),
        end=tree({"docs/BOM.md": after, "docs/PINOUT.md": PINS}),
    ).passed


def test_drift_clean_is_strict_by_default() -> None:
    """A row that was wrong before is wrong: a naive grader compares with the baseline and passes."""
    wrong = tree({"docs/BOM.md": BOM.replace("10 k", "22k"), "docs/PINOUT.md": PINS})
    assert not outcome_of(assertion("drift_clean"), AGREES, baseline=wrong).passed


def test_drift_clean_new_only_leaves_old_rows_aside_and_no_others() -> None:
    """A naive grader counts mismatches: one mended and one made look like no change."""
    old = BOM.replace("10 k", "22k")
    assert new_only(old, old)
    assert new_only(old, BOM)
    assert not new_only(BOM, old)
    assert not new_only(old, old.replace("lib:R_0402", "lib:R_0603"))
    two = design({"/DATA": ["R1.1"], "/X": ["R2.1"]}, R1="10k", R2="1k")
    assert not new_only(
        BOM + "| R2 | 2k | lib:R_0402 | | |\n", old + "| R2 | 1k | lib:R_0402 | | |\n", two, two
    )


def test_drift_clean_new_only_never_excuses_a_missing_document() -> None:
    """The table was missing before too: a naive grader excuses the whole document."""
    assert not new_only("no table", "no table")


def test_drift_clean_new_only_fails_when_the_baseline_cannot_be_read() -> None:
    """A naive grader takes an unreadable baseline for one without mismatches, or for one with all."""
    wrong = BOM.replace("10 k", "22k")
    assert not new_only(wrong, wrong, old=FakeDesign(UNREADABLE))


# --- constraints ----------------------------------------------------------------------------------------

ENTRY = {"max": 25, "source": "docs/SPEC.md#Budgets", "affects": ["docs/SPEC.md", "R1"], "value": "5"}


def registered(entry: Any = ENTRY, /, key: str = "sleep_current_uA", **args: Any) -> bool:
    text = entry if isinstance(entry, str) else json.dumps({"sleep_current_uA": entry})
    item = assertion("constraint_registered", key=key, **args)
    return outcome_of(item, end=tree({".copperhead/constraints.json": text})).passed


@pytest.mark.parametrize(
    ("args", "holds"),
    [
        ({}, True),
        ({"max": 25}, True),
        ({"max": 25.0}, True),
        ({"max": 30}, False),
        ({"max": 25.000001}, False),
        ({"min": 25}, False),
        ({"value": 5}, True),
        ({"value": "5"}, True),
        ({"value": "5.0"}, False),
        ({"value": 25}, False),
        ({"source": "docs/SPEC.md#Budgets"}, True),
        ({"source": "docs/SPEC.md"}, False),
        ({"affects": ["R1"]}, True),
        ({"affects": ["R1", "docs/SPEC.md"]}, True),
        ({"affects": ["R2"]}, False),
        ({"affects": []}, True),
        ({"max": 25, "source": "other"}, False),
        ({"key": "sleep_current"}, False),
    ],
)
def test_constraint_registered_compares_every_given_argument(args: dict[str, Any], holds: bool) -> None:
    """A naive grader is content that the key is there."""
    assert registered(**args) is holds


def test_constraint_registered_fails_for_a_raised_budget() -> None:
    """The agent meets the budget by raising it; the key is still there, and a naive grader passes."""
    assert not registered({**ENTRY, "max": 5000}, max=25)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "25",
        '{"sleep_current_uA": 25}',
        '{"sleep_current_uA": {"max": 25}, "sleep_current_uA": {"max": 5000}}',
        '{"sleep_current_uA": {"max": 5000, "max": 25}}',
        '[{"key": "sleep_current_uA", "max": 25}, {"key": "sleep_current_uA", "max": 25}]',
        '[{"max": 25}]',
        '{"sleep_current_uA": {"max": NaN}}',
        '{"sleep_current_uA": {"max": 1e999}}',
        '{"sleep_current_uA": {"max": [25]}}',
        '{"sleep_current_uA": {"max": true}}',
        '{"sleep_current_uA": {"max": 25, "affects": "R1"}}',
        '\ufeff{"sleep_current_uA": {"max": 25}}',
        "[" * 100_000 + "]" * 100_000,
    ],
    ids=lambda text: text[:50],
)
def test_constraint_registered_refuses_a_broken_registry(text: str) -> None:
    """Of two equal keys a naive reader takes the last, the agent the first; True equals 1 in Python."""
    assert not registered(text, max=25)
    assert not registered(text, max=1)


def test_constraint_registered_reads_a_list_of_entries() -> None:
    """The registry may list entries that carry their key."""
    assert registered('[{"key": "sleep_current_uA", "max": 25}]', max=25)


def test_constraint_registered_compares_numbers_exactly() -> None:
    """As floats these two are one number."""
    assert not registered('{"sleep_current_uA": {"max": 0.1000000000000000055}}', max=0.1)
    assert registered('{"sleep_current_uA": {"max": 0.10}}', max=0.1)


def test_constraint_registered_fails_without_a_registry() -> None:
    """A naive grader falls back to what the specification says."""
    assert not outcome_of(assertion("constraint_registered", key="x"), end=tree()).passed
    assert not outcome_of(
        assertion("constraint_registered", key="x"), end=tree({".copperhead/constraints.json": symlink("x")})
    ).passed
