"""ERC, DRC and the whole check of the final files. How reports are compared is tested with grader.kicad."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grader.evidence import Entry
from grader.kicad.errors import Unjudgeable
from schema.fixture import BaselineReport
from tests.unit.grader.support import (
    FIXTURE,
    FakeDesign,
    FakeReport,
    assertion,
    netlist,
    outcome_of,
    tree,
    violation,
)

ERROR = violation("pin_not_connected")
WARNING = violation("lib_symbol_issues", "warning")
DRC_ERROR = violation("clearance", source="drc")
PARITY = violation("net_conflict", "warning", source="parity")
UNREADABLE = Unjudgeable("kicad-cli timed out on demo.kicad_sch")


def recorded(*found: Any) -> BaselineReport:
    return BaselineReport(kicad={"9": list(found)})


def erc(*found: Any) -> FakeDesign:
    return FakeDesign(given_erc=FakeReport(found))


def drc(*found: Any) -> FakeDesign:
    return FakeDesign(given_drc=FakeReport(found))


def test_erc_no_new_violations_allows_what_the_fixture_records() -> None:
    """A naive grader wants a clean report, and no run on a real board can pass."""
    item = assertion("erc_no_new_violations")
    assert outcome_of(item, erc(ERROR), erc_baseline=recorded(ERROR)).passed
    assert not outcome_of(item, erc(ERROR), erc_baseline=recorded()).passed


def test_no_new_violations_judges_errors_unless_warnings_are_asked_for() -> None:
    """A schematic-only rename leaves parity warnings: a naive grader counts them as new errors."""
    item = assertion("drc_no_new_violations")
    assert outcome_of(item, drc(PARITY)).passed
    assert not outcome_of(assertion("drc_no_new_violations", severity="warning"), drc(PARITY)).passed


def test_no_new_violations_an_error_cannot_hide_in_a_warning_allowance() -> None:
    """One warning of the type was recorded: a naive grader that counts by type lets one error pass."""
    hidden = violation("lib_symbol_issues", "error")
    outcome = outcome_of(assertion("erc_no_new_violations"), erc(hidden), erc_baseline=recorded(WARNING))
    assert not outcome.passed


def test_no_new_violations_fails_without_a_baseline_of_this_kicad() -> None:
    """A naive grader takes a missing record for an empty one, or takes the one of another major."""
    other = BaselineReport(kicad={"10": [ERROR]})
    outcome = outcome_of(assertion("erc_no_new_violations"), erc(), erc_baseline=other)
    assert not outcome.passed
    assert "no ERC baseline" in outcome.reason


@pytest.mark.parametrize("kind", ["erc_no_new_violations", "drc_no_new_violations", "erc_clean", "drc_clean"])
def test_rules_fail_when_kicad_cannot_read_the_design(kind: str) -> None:
    """A crash leaves an empty report: a naive grader sees no violation."""
    outcome = outcome_of(assertion(kind), FakeDesign(given_erc=UNREADABLE, given_drc=UNREADABLE))
    assert not outcome.passed
    assert "timed out" in outcome.reason


STOP = frozenset({("drc", "clearance")})


@pytest.mark.parametrize("same", [True, False])
def test_no_new_violations_at_kicads_stop_only_for_an_unchanged_design(same: bool) -> None:
    """kicad-cli stops counting at 199: with 500 new findings a naive grader sees 199 before and after."""
    design = FakeDesign(given_drc=FakeReport((DRC_ERROR,), STOP), same_files=same)
    outcome = outcome_of(assertion("drc_no_new_violations"), design, drc_baseline=recorded(DRC_ERROR))
    assert outcome.passed is same


def test_exclusions_count_against_a_baseline_and_not_against_clean() -> None:
    """A move of 0.01 mm loses an exclusion, whose key holds positions: a naive grader sees a new finding."""
    excluded = FakeDesign(given_erc=FakeReport((ERROR,), excluded=(ERROR,)))
    assert outcome_of(assertion("erc_clean"), excluded).passed
    assert outcome_of(assertion("erc_no_new_violations"), excluded, erc_baseline=recorded(ERROR)).passed
    assert not outcome_of(assertion("erc_no_new_violations"), excluded).passed


@pytest.mark.parametrize("found", [ERROR, WARNING])
def test_erc_clean_counts_every_severity(found: Any) -> None:
    """A naive grader compares with the baseline, or looks at errors only."""
    assert not outcome_of(assertion("erc_clean"), erc(found), erc_baseline=recorded(found)).passed
    assert outcome_of(assertion("erc_clean"), erc()).passed


@pytest.mark.parametrize("found", [DRC_ERROR, PARITY, violation("unconnected_items", source="unconnected")])
def test_drc_clean_counts_unconnected_items_and_parity(found: Any) -> None:
    """kicad-cli lists them apart from the violations: a naive grader reads one list of three."""
    assert not outcome_of(assertion("drc_clean"), drc(found)).passed
    assert outcome_of(assertion("drc_clean"), drc()).passed


# --- check ----------------------------------------------------------------------------------------------

DOCS = {
    "docs/BOM.md": "| Refdes | Value | Footprint |\n|---|---|---|\n| J1 | 10k | lib:R_0402 |\n",
    "docs/PINOUT.md": "| Refdes | Pin | Net |\n|---|---|---|\n| J1 | 5 | DATA |\n",
}
WIRED = netlist({"/DATA": ["J1.5"], "Net-(J1-VOUT)": ["J1.6"]}, pins={"J1.5": "VIN", "J1.6": "VOUT"})
REGISTRY = {"sleep_current_uA": {"max": 25}}
CONFIG = {".copperhead/config.json": json.dumps({"docs": "docs/", "budgets": {"sleep_current_uA": 25}})}


def clean(
    registry: Any = REGISTRY,
    before: Any = REGISTRY,
    design: FakeDesign | None = None,
    more: dict[str, str] | None = None,
) -> bool:
    def files(entries: Any) -> dict[str, Entry]:
        text = {} if entries is None else {".copperhead/constraints.json": json.dumps(entries)}
        return tree({**DOCS, **CONFIG, **text, **(more or {})})

    return outcome_of(
        assertion("check_clean"), design or FakeDesign(WIRED), baseline=files(before), end=files(registry)
    ).passed


def test_check_clean_passes_when_all_four_are_clean() -> None:
    """A pin of a forbidden name that is on no named net is fine."""
    assert clean()
    assert clean({**REGISTRY, "conn.forbidden_pins": {"forbidden": ["VOUT"]}})


@pytest.mark.parametrize(
    "design",
    [FakeDesign(WIRED, given_erc=FakeReport((WARNING,))), FakeDesign(WIRED, given_drc=FakeReport((PARITY,)))],
    ids=["erc", "drc"],
)
def test_check_clean_fails_for_any_finding(design: FakeDesign) -> None:
    """A naive grader looks at the documents only."""
    assert not clean(design=design)


def test_check_clean_fails_for_drift() -> None:
    """A naive grader asks KiCad only."""
    assert not clean(more={"docs/PINOUT.md": "nothing"})


def test_check_clean_without_a_board_asks_for_no_drc() -> None:
    """A fixture without a board has nothing to check there: a naive grader fails every run."""
    no_board = FIXTURE.model_copy(update={"artifacts": FIXTURE.artifacts.model_copy(update={"board": None})})
    design = FakeDesign(WIRED, given_drc=Unjudgeable("no board"))
    files = tree(DOCS)
    assert outcome_of(assertion("check_clean"), design, baseline=files, fixture=no_board).passed
    assert not outcome_of(assertion("check_clean"), design, baseline=files).passed


@pytest.mark.parametrize(
    ("registry", "before"),
    [
        (None, REGISTRY),
        ({}, REGISTRY),
        ({}, {}),
        ({"sleep_current_uA": {"max": 30}}, REGISTRY),
        ({"sleep_current_uA": {"max": 25, "min": 26}}, REGISTRY),
        ({**REGISTRY, "v": {"value": 7, "max": 6}}, REGISTRY),
        ({**REGISTRY, "v": {"value": 5, "min": 6}}, REGISTRY),
        ({**REGISTRY, "pins": {"forbidden": ["VIN"]}}, REGISTRY),
        ({**REGISTRY, "pins": {"forbidden": []}}, {**REGISTRY, "pins": {"forbidden": ["VIN"]}}),
        (REGISTRY, {**REGISTRY, "other": {"max": 1}}),
        ({"sleep_current_uA": 25}, REGISTRY),
    ],
    ids=[
        "registry deleted",
        "budget dropped",
        "budget never recorded",
        "budget raised",
        "min above max",
        "value above max",
        "value below min",
        "forbidden pin on a net",
        "prohibition emptied",
        "entry removed",
        "malformed",
    ],
)
def test_check_clean_fails_for_broken_constraints(registry: Any, before: Any) -> None:
    """Without a registry nothing is violated: a naive grader passes when the rule itself is deleted."""
    assert not clean(registry, before=before)


def test_check_clean_without_any_constraint_is_clean() -> None:
    """A project that records nothing has nothing to break; a naive grader misses the file."""
    assert outcome_of(assertion("check_clean"), FakeDesign(WIRED), baseline=tree(DOCS)).passed
