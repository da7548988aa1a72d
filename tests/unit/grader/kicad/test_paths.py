"""No path may leave the tree."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.evidence import Entry, Tree
from grader.kicad import paths
from tests.unit.grader.kicad import twins

ROOT = twins.ARTIFACTS.schematic
PROJECT = twins.ARTIFACTS.project
TABLE = "hw/sym-lib-table"


def escapes(end: Tree, pristine: Tree | None = None) -> list[str]:
    """Escapes of a changed project."""
    return paths.escapes(end, twins.tree() if pristine is None else pristine, PROJECT)


def table(uri: str, kind: str = "KiCad") -> bytes:
    """A symbol library table with one row."""
    row = f'(lib (name "x")(type "{kind}")(uri "{uri}")(options "")(descr ""))'
    return f"(sym_lib_table (version 7) {row})".encode()


def sheet(file: str) -> dict[str, bytes | None]:
    """A root with one more sheet."""
    return {ROOT: twins.root_sheet(twins.sheet("X", file, 10, 10))}


def model(path: str) -> dict[str, bytes | None]:
    """A board with a footprint that has a 3D model."""
    return {"hw/twins.kicad_pcb": twins.board(f'(footprint "x" (model "{path}" (offset (xyz 0 0 0))))')}


def test_our_project_stays_inside() -> None:
    assert escapes(twins.tree()) == []
    assert escapes(twins.tree(), {}) == []


@pytest.mark.parametrize(
    "file",
    [
        "/etc/x.kicad_sch",
        "../../x.kicad_sch",
        "sub/../../../x.kicad_sch",
        "..\\\\..\\\\x.kicad_sch",
        "~/x.kicad_sch",
        "file:///x.kicad_sch",
        "C:/x.kicad_sch",
        "\\x2fetc/x.kicad_sch",
        "\\057etc/x.kicad_sch",
        "${X}/../../../x.kicad_sch",
    ],
)
def test_a_sheet_that_leaves_the_tree(file: str) -> None:
    """kicad-cli follows it and ends with 0: the graded design is not the one in evidence."""
    found = escapes(twins.tree(sheet(file)))
    assert len(found) == 1
    assert found[0].startswith("hw/twins.kicad_sch: sheet ")


def test_a_sheet_that_leaves_is_never_excused() -> None:
    """Not even by a fixture that has it: what it names is not pinned."""
    tree = twins.tree(sheet("/etc/x.kicad_sch"))
    assert len(escapes(tree, tree)) == 1


@pytest.mark.parametrize(
    "file", ["channel.kicad_sch", "../hw/channel.kicad_sch", "a\\\\b.kicad_sch", "${X}.kicad_sch"]
)
def test_a_sheet_inside_the_tree(file: str) -> None:
    assert escapes(twins.tree(sheet(file))) == []


def test_a_sheet_path_hidden_behind_a_comment_is_seen() -> None:
    hidden = twins.schematic("x", '\n# "\n', twins.sheet("X", "/etc/x.kicad_sch", 10, 10), '\n# "\n')
    assert len(escapes(twins.tree({"hw/other.kicad_sch": hidden}))) == 1


def test_a_sheet_path_inside_a_string_is_text() -> None:
    text = twins.label("label", '(property \\"Sheetfile\\" \\"/etc/x\\")', 10, 10)
    assert escapes(twins.tree({ROOT: twins.root_sheet(text)})) == []


@pytest.mark.parametrize(
    ("uri", "leaves"),
    [
        ("${KIPRJMOD}/own.kicad_sym", False),
        ("$(KIPRJMOD)/../lib/own.kicad_sym", False),
        ("own.kicad_sym", False),
        ("${KICAD9_SYMBOL_DIR}/Device.kicad_sym", False),
        ("${KICAD_SYMBOL_DIR}/Device.kicad_sym", False),
        ("${IN}/own.kicad_sym", False),
        ("${KIPRJMOD}/../../own.kicad_sym", True),
        ("${KIPRJMOD}/a/../../../own.kicad_sym", True),
        ("/usr/lib/own.kicad_sym", True),
        ("../../own.kicad_sym", True),
        ("~/own.kicad_sym", True),
        ("${HOME}/own.kicad_sym", True),
        ("$HOME/own.kicad_sym", True),
        ("%HOME%/own.kicad_sym", True),
        ("${KICAD9_SYMBOL_DIR}/../../../etc/x.kicad_sym", True),
        ("${KICAD9_SYMBOL_DIR}/${HOME}", True),
        ("a/${KIPRJMOD}/x", True),
        ("${OUT}/own.kicad_sym", True),
        ("${UP}/own.kicad_sym", True),
        ("${LOOP}", True),
        ("https://example.org/x.kicad_sym", True),
        ("\\\\\\\\server\\\\share", True),
    ],
)
def test_library_tables(uri: str, leaves: bool) -> None:
    """A naive grader looks for a leading slash."""
    variables = {"IN": "libs", "OUT": "/opt", "UP": "${KIPRJMOD}/../..", "LOOP": "${LOOP}"}
    tree = twins.tree({TABLE: table(uri), "hw/twins.kicad_pro": twins.project(text_variables=variables)})
    assert bool(escapes(tree)) is leaves


@pytest.mark.parametrize("kind", ["HTTP", "Database"])
def test_libraries_that_are_somewhere_else(kind: str) -> None:
    assert escapes(twins.tree({TABLE: table("${KIPRJMOD}/x", kind)}))


@pytest.mark.parametrize("name", ["KIPRJMOD", "KICAD9_SYMBOL_DIR"])
def test_a_text_variable_that_redirects_kicad_s_own(name: str) -> None:
    """KiCad resolves text variables first: ``${KIPRJMOD}/own`` looks harmless and is not."""
    changes: dict[str, bytes | None] = {"hw/twins.kicad_pro": twins.project(text_variables={name: "."})}
    assert escapes(twins.tree(changes))


@pytest.mark.parametrize(
    ("path", "leaves"),
    [
        ("${KICAD8_3DMODEL_DIR}/R.3dshapes/R.step", False),
        ("${KISYS3DMOD}/R.step", False),
        ("${KIPRJMOD}/models/R.step", False),
        ("kicad-embed://R.step", False),
        ("kicad-embed://../R.step", True),
        ("/home/x/R.step", True),
        ("${MINE}/R.step", True),
        (":MINE:R.step", True),
    ],
)
def test_models(path: str, leaves: bool) -> None:
    assert bool(escapes(twins.tree(model(path)))) is leaves


def test_what_the_fixture_holds_is_allowed() -> None:
    """Real boards name models on their author's disk; a naive check fails every run on them."""
    tree = twins.tree(model("/home/x/R.step"))
    assert escapes(tree, tree) == []
    assert len(escapes(tree, {})) == 1
    moved = {**tree, "hw/copy.kicad_pcb": tree["hw/twins.kicad_pcb"]}
    assert escapes(moved, tree) == []


def test_worksheets() -> None:
    inside = twins.project(pcbnew={"page_layout_descr_file": "own.kicad_wks"})
    outside = twins.project(schematic={"page_layout_descr_file": "/etc/own.kicad_wks"})
    assert escapes(twins.tree({"hw/twins.kicad_pro": inside})) == []
    assert escapes(twins.tree({"hw/twins.kicad_pro": outside}))


@pytest.mark.parametrize("name", ["../../x", "a/b", "a\\\\b", "..", ""])
def test_embedded_files_are_named_plainly(name: str) -> None:
    """KiCad writes them out under their name."""
    extra = f'(embedded_files (file (name "{name}") (type other) (data |AA==|) (checksum "0")))'
    assert escapes(twins.tree({ROOT: twins.root_sheet(extra)}))
    fine = '(embedded_files (file (name "a.step") (type model) (data |AA==|)))'
    assert escapes(twins.tree({ROOT: twins.root_sheet(fine)})) == []


@pytest.mark.parametrize(
    "extra",
    [
        '(embedded_files (file (type other) (name "../x") (data |AA==|)))',
        '(embedded_files(file(name "../x")))',
        '(symbol (embedded_files (file (name "a")) (file (data |AA==|) (name "../x"))))',
    ],
)
def test_an_embedded_file_is_found_in_any_order(extra: str) -> None:
    assert len(escapes(twins.tree({ROOT: twins.root_sheet(extra)}))) == 1


def test_texts_may_touch() -> None:
    """KiCad needs no space between two strings."""
    touching = twins.sheet("X", "/etc/x", 10, 10).replace('"Sheetfile" ', '"Sheetfile"')
    assert len(escapes(twins.tree({ROOT: twins.root_sheet(touching)}))) == 1


def test_simulation_libraries() -> None:
    extra = '(symbol (lib_id "own:R") (property "Sim.Library" "/etc/passwd"))'
    assert escapes(twins.tree({ROOT: twins.root_sheet(extra)}))


@pytest.mark.parametrize(
    ("name", "target", "leaves"),
    [
        ("hw/channel.kicad_sch", "/etc/x", True),
        ("hw/channel.kicad_sch", "../../x", True),
        ("hw/channel.kicad_sch", "other.kicad_sch", False),
        ("hw/own.pretty", "/usr/share", True),
        ("docs", "/usr/share", True),
        ("README.md", "/etc/passwd", False),
    ],
)
def test_symlinks(name: str, target: str, leaves: bool) -> None:
    tree = {**twins.tree(), name: Entry(target.encode(), kind="symlink")}
    assert bool(escapes(tree)) is leaves


def test_every_folder_is_searched() -> None:
    found = escapes({**twins.tree(), "deep/er/x.kicad_mod": Entry(b'(footprint "x" (model "/x.step"))')})
    assert found == ["deep/er/x.kicad_mod: model '/x.step' is absolute"]


def test_what_cannot_be_read_is_refused_elsewhere() -> None:
    """Here it only must not raise: the run is not tampered with by being broken."""
    assert escapes(twins.tree({ROOT: b'(kicad_sch (model "/x', "hw/twins.kicad_pro": b"{"})) == []


@given(st.text(st.sampled_from("./\\~$(){}aK:%"), max_size=12))
def test_no_text_raises_and_none_is_joined_outside(text: str) -> None:
    reason = paths.leaves(text, "hw", "hw", {})
    if reason is None and "$" not in text and "%" not in text:
        assert not text.replace("\\", "/").startswith(("/", "~", "../../"))


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    for name in ("hw/x.kicad_sch", "hw/x.kicad_pro", "hw/fp-lib-table"):
        list(paths.references(name, data))


def test_lines_are_one_line_and_bounded() -> None:
    found = escapes(twins.tree(model("/\\n" + "x" * 10_000)))
    assert len(found) == 1
    assert "\n" not in found[0]
    assert len(found[0]) < 400


def test_text_variables_of_odd_shape_are_ignored() -> None:
    assert paths.text_variables(json.loads('{"text_variables": {"a": 1, "b": "c"}}')) == {"b": "c"}
    assert paths.text_variables({"text_variables": []}) == {}
