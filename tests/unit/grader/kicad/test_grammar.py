"""What KiCad reads and does not write is refused in a changed file, unless the fixture holds it too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.kicad.errors import Unjudgeable
from grader.kicad.grammar import check, oddities
from tests.unit.grader.kicad import twins

ROOT, BOARD = "hw/twins.kicad_sch", "hw/twins.kicad_pcb"
TREE = twins.files()
SETUP = b"(setup "


def refused(path: str, data: bytes) -> str:
    """Why a changed file is refused; it must be a change."""
    assert data != TREE[path]
    with pytest.raises(Unjudgeable) as told:
        check(data, path, TREE.items())
    return str(told.value)


def root(old: bytes, new: bytes) -> bytes:
    """The root sheet with one thing changed."""
    assert old in TREE[ROOT]
    return TREE[ROOT].replace(old, new, 1)


@pytest.mark.parametrize("path", [ROOT, "hw/channel.kicad_sch", BOARD])
def test_what_kicad_writes_is_taken(path: str) -> None:
    assert oddities(TREE[path], path) == frozenset()


@pytest.mark.parametrize(
    "token",
    [
        *("trace_min", "last_trace_width", "user_trace_width", "trace_clearance", "via_min_size"),
        *("zone_clearance", "max_error", "edge_width", "uvia_min_size", "visible_elements", "anything"),
    ],
)
def test_a_setting_of_old_in_the_board_is_refused(token: str) -> None:
    """With one of them KiCad drops the project's rules and severities for its defaults, without a word."""
    told = refused(BOARD, TREE[BOARD].replace(SETUP, SETUP + f"({token} 0.01) ".encode()))
    assert told.startswith(f"{BOARD}: '{token}' in kicad_pcb/setup")


def test_net_classes_of_old_in_the_board_are_refused() -> None:
    new = TREE[BOARD].replace(SETUP, b'(net_class "Default" "" (clearance 0.01)) ' + SETUP)
    assert "'net_class' in kicad_pcb" in refused(BOARD, new)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'(lib_id "own:', b'(lib_id "own:GND") (lib_id "own:', "more than one lib_id"),
        (b"(instances ", b"(instances) (instances ", "more than one instances"),
        (b"(unit 1)", b"(unit 1) (unit 2)", "more than one unit"),
        (b"(reference ", b'(value "OLD") (reference ', "'value' in kicad_sch/symbol/instances/project/path"),
        (b"(instances ", b'(default_instance (reference "R9")) (instances ', "'default_instance'"),
        (
            b"(instances ",
            f'(instances (project "other" (path "{twins.ROOT_PATH}" (reference "Q9") (unit 1))) '.encode(),
            "two references of one place",
        ),
        (b"(sheet_instances", b"(symbol_instances) (sheet_instances", "'symbol_instances' in kicad_sch"),
        (b"(lib_symbols ", b'(lib_symbols (symbol "own:R") ', "two symbol lists of one name"),
        (
            b'(property "Value" "',
            b'(property "Value" "10k") (property "Value" "',
            "two property lists of one name",
        ),
        (b"(version 20250114)", b"(version 20211123)", "format version 20211123"),
        (b"(version 20250114)", b"", "format version none"),
        (b"(version 20250114)", b"(version 20250114) (version 20211123)", "more than one version"),
        (b"(lib_symbols", b'\n# "R1"\n(lib_symbols', "a comment"),
        (b'"R3"', rb'"\x52\x33"', "the escape"),
        (b'"R3"', rb'"\1223"', "the escape"),
    ],
)
def test_a_schematic_that_can_be_read_in_two_ways_is_refused(old: bytes, new: bytes, says: str) -> None:
    """KiCad takes the last of two, or the form of an older version; a naive reader the first, or none."""
    assert says in refused(ROOT, root(old, new))


@pytest.mark.parametrize(
    "extra",
    ['(property "Reference" "Z1")', '(fp_text reference "Z1" (at 0 0))', '(property "Value" "1")'],
)
def test_a_field_that_a_footprint_has_twice_is_refused(extra: str) -> None:
    """KiCad takes the last, and one called REFERENCE for nothing."""
    assert b"(attr smd)" in TREE[BOARD]
    new = TREE[BOARD].replace(b"(attr smd)", f"(attr smd) {extra}".encode(), 1)
    assert "two property lists of one name" in refused(BOARD, new)


def test_comments_around_the_list_are_refused() -> None:
    assert "a comment" in refused(ROOT, b"# x\n" + TREE[ROOT])
    assert "a comment" in refused(ROOT, TREE[ROOT] + b"\n# x\n")


def test_what_the_fixture_holds_is_taken() -> None:
    """Boards of older versions, and of people who wrote into the file by hand."""
    old = root(b"(version 20250114)", b"(version 20211123)").replace(
        b"(lib_symbols", b"\n# by hand\n(lib_symbols"
    )
    check(old.replace(b'"R3"', b'"R4"'), ROOT, [(ROOT, old)])
    with pytest.raises(Unjudgeable):
        check(old, ROOT, [(BOARD, old)])


def test_the_fixtures_older_version_may_become_the_current_one() -> None:
    old = root(b"(version 20250114)", b"(version 20231120)")
    check(TREE[ROOT], ROOT, [(ROOT, old)])
    check(old, ROOT, [(ROOT, old)])


def test_a_file_that_is_called_by_its_suffix_alone_is_held_to_it() -> None:
    """Naive: split the name at its last dot, and find no suffix in ``.kicad_sch``."""
    twice = root(b"(instances ", b"(instances) (instances ")
    with pytest.raises(Unjudgeable, match="more than one instances"):
        check(twice, "hw/.kicad_sch", TREE.items())


def test_other_files_need_only_be_readable() -> None:
    check(b"(anything (at all))", "hw/lib.kicad_sym", [])
    with pytest.raises(Unjudgeable, match=r"hw/lib.kicad_sym: line 1"):
        check(b"(anything (at all)", "hw/lib.kicad_sym", [])


@given(st.sampled_from([ROOT, BOARD]), st.data())
def test_a_list_put_anywhere_never_raises_anything_else(path: str, data: st.DataObject) -> None:
    places = [at for at, sign in enumerate(TREE[path]) if sign == ord("(")]
    at = data.draw(st.sampled_from(places))
    extra = data.draw(
        st.sampled_from([b"(value 1)", b"(\xff)", b"()", b'("" "")', b"(property)", b"(version)"])
    )
    try:
        check(TREE[path][:at] + extra + TREE[path][at:], path, TREE.items())
    except Unjudgeable as told:
        assert str(told).isprintable()
