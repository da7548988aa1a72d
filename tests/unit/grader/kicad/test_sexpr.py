"""The reader: right on what KiCad writes, a one-line error on anything else, linear on everything."""

from __future__ import annotations

import json

import pytest
import sexpdata  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.kicad.errors import Unjudgeable
from grader.kicad.sexpr import Atom, BadSyntax, Limits, Nested, Node, parse, unquote
from tests.unit.grader.kicad.support import nested

# Atoms that sexpdata leaves alone (it rewrites t, nil, 007 and 1e5).
ATOMS = st.from_regex(r"\A[a-z_]{3,8}\Z")
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters='\\"\0\n\r\t', exclude_categories=["C"]))
SPACES = st.text(st.sampled_from(" \t\r\n"), min_size=1, max_size=3)


class Quoted(str):
    """A text that is written in quotes."""

    __slots__ = ()


TREES: st.SearchStrategy[list[object]] = st.recursive(
    st.lists(ATOMS | TEXTS.map(Quoted), max_size=4),
    lambda below: st.lists(ATOMS | TEXTS.map(Quoted) | below, max_size=5),
    max_leaves=20,
)


def write(value: object, space: str) -> str:
    """A tree as text."""
    if isinstance(value, list):
        return "(" + space.join(write(item, space) for item in value) + ")"
    return f'"{value}"' if isinstance(value, Quoted) else str(value)


def plain(value: object) -> object:
    """What sexpdata read, as nested lists of texts."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.value() if isinstance(value, sexpdata.Symbol) else value


@given(TREES, SPACES)
def test_agrees_with_the_oracle(tree: list[object], space: str) -> None:
    text = write(tree, space)
    root = parse(text.encode(), "t")
    assert nested(root) == root.tree() == plain(sexpdata.loads(text))


@given(TREES, SPACES)
def test_every_span_is_exactly_its_source(tree: list[object], space: str) -> None:
    """A naive reader reports offsets of decoded text, which drift behind the first sign beyond ASCII."""
    data = b"\xef\xbb\xbf \r\n" + write(tree, space).encode()
    pending = [parse(data, "t")]
    while pending:
        node = pending.pop()
        assert data[node.start : node.end] == node.source
        assert node.source.startswith(b"(")
        for item in node.items():
            if isinstance(item, Node):
                pending.append(item)
                continue
            raw = data[item.start : item.end]
            assert (unquote(raw) if item.quoted else raw.decode()) == item.text


@given(st.binary(max_size=300))
def test_never_raises_anything_else(data: bytes) -> None:
    try:
        nested(parse(data, "t"))
    except Unjudgeable as error:
        assert str(error).startswith("t: ")


@given(st.text(st.sampled_from('()"\\ \n\r#ab'), max_size=60))
def test_never_raises_anything_else_on_near_misses(text: str) -> None:
    try:
        nested(parse(text.encode(), "t"))
    except Unjudgeable as error:
        assert "\n" not in str(error)


@given(TREES, st.data())
def test_every_truncation_is_refused(tree: list[object], data: st.DataObject) -> None:
    """A naive reader closes open lists at the end and grades half a design."""
    text = write(tree, " ").encode()
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(BadSyntax):
        parse(text[:cut], "t")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"(a", "line 1: ends inside 1 open list"),
        (b"(a\n(b\n", "line 3: ends inside 2 open lists"),
        (b"(a))", "line 1: a closing parenthesis too many"),
        (b")", "line 1: a closing parenthesis too many"),
        (b"(a)\n(b)", "line 2: more than one top-level list"),
        (b"(a)\nb", "line 2: text outside the list"),
        (b"a", "line 1: text outside the list"),
        (b'(a\n"b', "line 2: a string without an end on its line"),
        (b'(a "b\nc")', "line 1: a string without an end on its line"),
        (b'(a "b\\")', "line 1: a string without an end on its line"),
        (b'(a "b\\\n")', "line 1: a string without an end on its line"),
        (b'(a b"c d")', "line 1: a quote in the middle of an atom"),
        (b"(a\n\0)", "line 2: a NUL byte"),
        (b'(a\n"b\\0")', "line 2: an escaped NUL in a string"),
        (b'(a "b\\"\n")', "line 1: a string without an end on its line"),
        ("(a)".encode("utf-16"), "UTF-16"),
        ("(a)".encode("utf-16-le"), "a NUL byte"),
    ],
)
def test_errors_say_line_and_reason(data: bytes, reason: str) -> None:
    with pytest.raises(BadSyntax, match=r"^board\.kicad_pcb: ") as error:
        parse(data, "board.kicad_pcb")
    assert reason in str(error.value)


def test_a_quote_inside_an_atom_cannot_hide_a_list() -> None:
    """KiCad ends the atom at the space, so the sheet is live; a naive reader sees one long string."""
    with pytest.raises(BadSyntax, match="quote in the middle"):
        parse(b'(kicad_sch (x a" (sheet (file "/etc/passwd")) b"))', "t")


def test_a_comment_cannot_hide_what_follows() -> None:
    """KiCad skips the line; a naive reader opens a string at its quote and swallows the sheet."""
    root = parse(b'(kicad_sch\n \t# " \n(sheet "x")\n # "\n)', "t")
    assert [node.name for node in root.lists()] == ["sheet"]


def test_a_hash_inside_a_line_is_no_comment() -> None:
    root = parse(b'(a "x # y" b#c #d)', "t")
    assert root.texts() == ["a", "x # y", "b#c", "#d"]


def test_a_comment_on_the_first_line() -> None:
    assert parse(b'# ( "\n(a b)', "t").texts() == ["a", "b"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (rb'"a\"b"', 'a"b'),
        (rb'"a\\"', "a\\"),
        (rb'"\n\r\t"', "\n\r\t"),
        (rb'"\x41\x4"', "A\x04"),
        (rb'"\101\7"', "A\x07"),
        (rb'"\xzz"', "xzz"),
        (rb'"\q"', "\\q"),
        ('"µΩ"'.encode(), "µΩ"),
        (rb'"\xc2\xb5"', "µ"),
        (b'"\xff"', "\udcff"),
    ],
)
def test_escapes_are_those_of_kicad(written: bytes, meant: str) -> None:
    """A naive reader leaves escapes in, so a path spelled in hex looks harmless."""
    assert parse(b"(a " + written + b")", "t").value == meant


@given(st.text(st.sampled_from("\\\\x0014778afg"), max_size=12))
def test_a_text_is_refused_exactly_if_an_escape_makes_it_hold_a_nul(text: str) -> None:
    """KiCad's text ends at the NUL: ``GND\\0x`` is its GND, and a naive reader finds no GND to compare."""
    written = f'"{text}"' if (len(text) - len(text.rstrip("\\"))) % 2 == 0 else f'"{text}\\"'
    if "\0" in unquote(written.encode()):
        with pytest.raises(BadSyntax, match="line 1: an escaped NUL in a string"):
            parse(f"(a {written})".encode(), "t")
    else:
        assert parse(f"(a {written})".encode(), "t").texts()[1] == unquote(written.encode())


def test_a_bare_text_has_no_escapes() -> None:
    assert parse(rb"(a C:\000\x00)", "t").value == r"C:\000\x00"


def test_crlf_and_lf_are_the_same() -> None:
    text = b'(a\n(b "c")\n(d))\n'
    assert nested(parse(text, "t")) == nested(parse(text.replace(b"\n", b"\r\n"), "t"))


@pytest.mark.parametrize(("depth", "fits"), [(39, True), (40, True), (41, False)])
def test_depth_cap(depth: int, fits: bool) -> None:
    data = b"(" * depth + b")" * depth
    if fits:
        assert nested(parse(data, "t")) is not None
    else:
        with pytest.raises(BadSyntax, match="line 1: nested deeper than 40 lists"):
            parse(data, "t")


@pytest.mark.parametrize(("size", "fits"), [(99, True), (100, True), (101, False)])
def test_size_cap(size: int, fits: bool) -> None:
    data = b"(" + b"a" * (size - 2) + b")"
    if fits:
        parse(data, "t", Limits(size=100))
    else:
        with pytest.raises(BadSyntax, match="larger than 100 bytes"):
            parse(data, "t", Limits(size=100))


@pytest.mark.parametrize(("size", "fits"), [(99, True), (100, True), (101, False)])
def test_text_cap(size: int, fits: bool) -> None:
    root = parse(b"(a\n" + b"b" * size + b")", "t", Limits(text=100))
    if fits:
        assert len(root.value) == size
    else:
        with pytest.raises(BadSyntax, match="line 2: a text of more than 100 bytes"):
            root.texts()


@pytest.mark.parametrize(
    "data",
    [
        b"(" * 100_000,
        b"(" * 100_000 + b")" * 100_000,
        b"(a " * 100_000,
        b'(a "' + b"x" * 3_000_000,
        b'(a "' + b"\\" * 3_000_001,
        b"(" + b"a" * 3_000_000,
        b"(" + b"() " * 1_000_000,
        b"(" + b'"" ' * 1_000_000,
        (b"(" * 39 + b"x" * 1000) * 500,
        b"(a" + b"\n#" * 1_000_000,
        b"(a" + b"\n" * 3_000_000,
        b"(a " + b'(b "c") ' * 200_000,
    ],
    ids=lambda data: f"{data[:6]!r}",
)
@pytest.mark.timeout(60)
def test_hostile_input_is_refused_without_hanging(data: bytes) -> None:
    """A recursive reader dies on the nesting; a backtracking one hangs on the unfinished rest."""
    with pytest.raises(BadSyntax):
        parse(data, "t")


@pytest.mark.timeout(60)
def test_many_children_are_read_without_hanging() -> None:
    """A search that starts again at every byte takes hours on this."""
    root = parse(b"(a " + b'(b "c" (d 1)) ' * 100_000 + b"(e 2))", "t")
    assert sum(1 for _ in root.lists("b")) == 100_000
    assert [node.value for node in root.lists("e")] == ["2"]
    assert list(root.lists("none")) == []


def test_lists_by_name() -> None:
    root = parse(b'(a (b 1) "(b 2)" (bb 3) ( b 4) ("b" 5) (c (b 6)) (b) (b\n"7"))', "t")
    assert [node.value for node in root.lists("b")] == ["1", "4", "", "7"]
    assert [node.name for node in root.lists()] == ["b", "bb", "b", "", "c", "b", "b"]
    assert [node.value for node in root.lists("c", "bb")] == ["3", ""]
    assert root.get("c", "b") == "6"
    assert root.get("c", "none", "b") == ""
    assert root.first("none") is None


def test_atoms_know_whether_they_were_quoted() -> None:
    items = list(parse(b'(a "hide" hide)', "t").items())
    assert [item.quoted for item in items if isinstance(item, Atom)] == [False, True, False]


def test_line_numbers_count_from_one() -> None:
    root = parse(b"\n(a\r\n(b)\n\n(c))", "t")
    assert [root.line(), *(node.line() for node in root.lists())] == [2, 3, 5]


@given(st.text(st.sampled_from('()"\\\t ab\x0b\xa0\u2028'), max_size=40))
def test_both_ways_to_read_agree(text: str) -> None:
    try:
        root = parse(f"({text})".encode(), "t")
    except BadSyntax:
        return
    assert root.tree() == nested(root)


def test_a_text_too_long_is_refused_in_one_pass_too() -> None:
    with pytest.raises(BadSyntax, match="more than 100 bytes"):
        parse(b"(a (b " + b"c" * 101 + b"))", "t", Limits(text=100)).tree()


@settings(max_examples=30)
@given(st.lists(TEXTS, min_size=1, max_size=50))
def test_strings_survive(texts: list[str]) -> None:
    body = " ".join(json.dumps(text, ensure_ascii=False) for text in texts)
    assert parse(f"(a {body})".encode(), "t").texts()[1:] == texts


def test_nested_helper_reads_all() -> None:
    expected: Nested = ["a", ["b", ["c"]], "d"]
    assert nested(parse(b"(a (b (c)) d)", "t")) == expected
