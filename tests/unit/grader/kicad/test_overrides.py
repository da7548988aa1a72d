"""Exceptions that a board grants its own parts: told, and taken out for a second DRC."""

from __future__ import annotations

import pytest

from grader.kicad.overrides import changes, without_added
from tests.unit.grader.kicad import twins
from tests.unit.grader.kicad.support import Replay, design

BOARD = "hw/twins.kicad_pcb"
PLAIN = twins.files()[BOARD]


def edited(*pairs: tuple[bytes, bytes]) -> bytes:
    """The board with things put into it."""
    data = PLAIN
    for old, new in pairs:
        assert old in data
        data = data.replace(old, new, 1)
    return data


ATTR = b"(attr smd)"
EXCEPTIONS = {
    "footprint": (ATTR, b"(clearance 0.01) " + ATTR, "R1: clearance 0.01"),
    "pad": (b"(size 1 1) (layers", b"(size 1 1) (clearance 0.01) (layers", "R1.1: clearance 0.01"),
    "mask": (ATTR, b"(solder_mask_margin -1) " + ATTR, "R1: solder_mask_margin -1"),
    "attribute": (ATTR, b"(attr smd board_only)", "R1: board_only"),
    "board": (
        b"(setup ",
        b"(setup (allow_soldermask_bridges_in_footprints yes) ",
        "board: allow_soldermask_bridges_in_footprints yes",
    ),
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_added_exception_is_told_and_taken_out(name: str) -> None:
    """A naive DRC runs on the board as it is, and the exception hides what was broken."""
    old, new, line = EXCEPTIONS[name]
    board = edited((old, new))
    assert changes(PLAIN, board, BOARD) == [f"{line} added"]
    assert changes(board, PLAIN, BOARD) == [f"{line} removed"]
    cleaned = without_added(PLAIN, board, BOARD)
    assert cleaned is not None and len(cleaned) == len(board)
    assert cleaned.split() == edited((old, new)).replace(new, old).split() or name in {"attribute", "board"}
    assert changes(PLAIN, cleaned, BOARD) == []


def test_what_the_fixture_grants_stays() -> None:
    board = edited(EXCEPTIONS["pad"][:2])
    assert without_added(board, board.replace(b"(at 10", b"(at 11"), BOARD) is None
    other = board.replace(b"(clearance 0.01)", b"(clearance 0.001)")
    assert without_added(board, other, BOARD) is not None


def test_a_new_part_may_be_mechanical() -> None:
    hole = b'(footprint "own:H" (layer "F.Cu") (uuid "x") (property "Reference" "H1") (attr board_only))\n\t'
    at = PLAIN.index(b"(footprint")
    assert without_added(PLAIN, PLAIN[:at] + hole + PLAIN[at:], BOARD) is None


def test_drc_runs_with_and_without_it() -> None:
    cli = Replay()
    tree = twins.tree({BOARD: edited(EXCEPTIONS["pad"][:2])})
    found = design(tree, cli)
    _ = found.drc()
    boards = [files[BOARD] for job, _, files in cli.given if job == "drc"]
    assert [b"(clearance 0.01)" in board for board in boards] == [True, False]
    assert any("R1.1: clearance 0.01 added (DRC with and without)" in line for line in found.rule_changes)
