"""Markdown tables and JSON that an agent may have written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader import documents
from grader.documents import deeper_than, docs_folder, locate, parse_json, read_text, tables
from grader.kicad.errors import Unjudgeable
from tests.unit.grader.support import symlink, tree


def rows(text: str) -> list[tuple[str, ...]]:
    return [row for table in tables(text) for row in table.rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("|a|b|\n|-|-|\n|1|2|", [("1", "2")]),
        ("a|b\n-|-\n1|2\n", [("1", "2")]),
        ("|a|b|\n|:-|-:|\n|1|2|\n|3|4|\n", [("1", "2"), ("3", "4")]),
        ("|a|b|\n|-|-|\n|1|\n", [("1", "")]),
        ("|a|b|\n|-|-|\n|1|2|3|\n", [("1", "2")]),
        ("|a|b|\n|-|-|\n|1\\|x|2|\n", [("1|x", "2")]),
        ("|a|b|\n|-|-|\n|`1\\|x`|2|\n", [("1|x", "2")]),
        ("|a|b|\n|-|-|\n|`1` and `2`|2|\n", [("`1` and `2`", "2")]),
        ("|a|b|\n|-|-|\n|\\_|~|\n", [("\\_", "~")]),
        ("|a|b|\n|-|-|\n||2|\n", [("", "2")]),
        ("|a|b|\n|---|\n|1|2|\n", []),
        ("|a|b|\n|1|2|\n", []),
        ("|a|b|\n|-|-|\n|1|2|\n\n|3|4|\n", [("1", "2")]),
        ("text\n|a|b|\n|-|-|\n|1|2|\n", [("1", "2")]),
        ("> |a|b|\n> |-|-|\n> |1|2|\n", [("1", "2")]),
        ("- x\n\n  |a|b|\n  |-|-|\n  |1|2|\n", [("1", "2")]),
        ("```\n|a|b|\n|-|-|\n|1|2|\n```", []),
        ("    |a|b|\n    |-|-|\n    |1|2|\n", []),
        ("<!--\n|a|b|\n|-|-|\n|1|2|\n-->\n", []),
        ("<div>\n|a|b|\n|-|-|\n|1|2|\n</div>\n", []),
        ("", []),
        ("|", []),
    ],
)
def test_tables(text: str, expected: list[tuple[str, ...]]) -> None:
    assert rows(text) == expected


CELLS = st.text(st.sampled_from("aZ9 µ/{}~._-*`"), max_size=8).map(lambda text: text.strip(" `"))


@settings(max_examples=200)
@given(st.lists(st.tuples(CELLS, CELLS), max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_a_table_writes_is_what_is_read(cells: list[tuple[str, str]], end: str, bom: bool) -> None:
    lines = ["| A | B |", "|---|---|", *(f"| {a} | {b} |" for a, b in cells)]
    data = ("\ufeff" if bom else "").encode() + end.join(lines).encode()
    assert rows(read_text(tree({"x.md": data}), "x.md")) == cells


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("|-:`\\\n\r\t >a#<!*1.~\0\ud800"), max_size=200))
def test_tables_are_rectangular_and_never_raise(text: str) -> None:
    for table in tables(text):
        assert all(len(row) == len(table.header) for row in table.rows)


@pytest.mark.parametrize(
    "unit",
    [
        "|a",
        ">",
        "- ",
        "`",
        "<!--",
        "a|b\n-|-\n",
        "> a\n",
        "[",
        "\\|",
        "1. a\n\n",
        "a\n=\n",
        " ",
        "|\n|-\n",
        "```\n",
    ],
)
@pytest.mark.timeout(60)
def test_hostile_tables_do_not_hang(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quadratic block rules take minutes for this much text."""
    monkeypatch.setattr(documents, "ROWS", 10**6)
    tables("|-" + unit * (500_000 // len(unit)))


def test_limits_are_inclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "|a|\n|-|\n|1|\n|2|\n"
    monkeypatch.setattr(documents, "TABLE_BYTES", len(text))
    monkeypatch.setattr(documents, "ROWS", 2)
    assert len(rows(text)) == 2
    with pytest.raises(Unjudgeable, match="bytes"):
        rows(text + "\n")
    monkeypatch.setattr(documents, "ROWS", 1)
    tables.cache_clear()
    with pytest.raises(Unjudgeable, match="rows"):
        rows(text)


@pytest.mark.parametrize(
    ("config", "folder"),
    [
        ('{"docs": "docs/"}', "docs"),
        ('{"docs": "./my/docs//"}', "my/docs"),
        ('{"docs": ""}', ""),
        ('{"docs": "."}', ""),
        ('{"docs": 1}', "docs"),
        ("{}", "docs"),
        ("[]", "docs"),
        ("{", "docs"),
        (None, "docs"),
    ],
)
def test_docs_folder(config: str | None, folder: str) -> None:
    assert docs_folder(tree({".copperhead/config.json": config} if config is not None else {})) == folder
    assert docs_folder({".copperhead/config.json": symlink("x")}) == "docs"


def test_a_document_keeps_its_place() -> None:
    before = tree({"docs/A.md": "x"})
    after = {**before, **tree({"A.md": "y", "docs/B.md": "z"})}
    assert locate("A.md", baseline=before, end=after) == "docs/A.md"
    assert locate("B.md", baseline=before, end=after) == "docs/B.md"
    assert locate("C.md", baseline=before, end=after) is None
    assert locate("docs/A.md", baseline=before, end=tree()) == "docs/A.md"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_json_agrees_with_the_standard_library(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    if not ascii_only and any("\ud800" <= c <= "\udfff" for c in text):
        return
    assert parse_json(text.encode(), "x") == json.loads(text)


@given(st.binary(max_size=60))
def test_json_raises_nothing_else(data: bytes) -> None:
    for exact in (False, True):
        try:
            parse_json(data, "x", exact=exact)
        except Unjudgeable as error:
            assert str(error).startswith("x: ")


@pytest.mark.parametrize(
    "text", ["1e999", "-1e999", "1" * 400, "0." + "1" * 400, "1e" + "9" * 30, "NaN", "Infinity"]
)
@pytest.mark.parametrize("exact", [False, True])
def test_json_refuses_what_no_double_holds(text: str, exact: bool) -> None:
    if text.startswith("0.") and not exact:
        assert parse_json(text.encode(), "x") == float(text)
        return
    with pytest.raises(Unjudgeable):
        parse_json(text.encode(), "x", exact=exact)


@given(
    st.recursive(
        st.text(st.sampled_from('a\\"[]{}')), lambda inner: st.lists(inner, max_size=3), max_leaves=10
    ).map(lambda value: [value])
)
def test_nesting_sees_brackets_outside_of_strings_only(value: object) -> None:
    def depth(item: object) -> int:
        return 1 + max(map(depth, item), default=0) if isinstance(item, list) else 0

    data, deep = json.dumps(value).encode(), depth(value)
    assert deeper_than(deep - 1, data)
    assert not deeper_than(deep, data)


@pytest.mark.parametrize(("depth", "holds"), [(63, True), (64, True), (65, False), (100_000, False)])
def test_json_depth_is_a_number_and_not_the_interpreters_mood(depth: int, holds: bool) -> None:
    """Python's recursion limit counts the caller's frames too: the same file would pass or fail by caller."""
    data = b"[" * depth + b"]" * depth
    if holds:
        parse_json(data, "x")
    else:
        with pytest.raises(Unjudgeable, match="deeper"):
            parse_json(data, "x")


@pytest.mark.parametrize(("size", "fits"), [(99, True), (100, True), (101, False)])
def test_texts_and_json_have_a_size(size: int, fits: bool) -> None:
    """The same reader serves both limits; each caller's number is its own."""
    number = b"1" + b" " * (size - 1)
    if fits:
        assert len(read_text(tree({"x": b"a" * size}), "x", limit=100)) == size
        assert parse_json(number, "x", limit=100) == 1
    else:
        with pytest.raises(Unjudgeable, match="more than the 100 that are read"):
            read_text(tree({"x": b"a" * size}), "x", limit=100)
        with pytest.raises(Unjudgeable, match="more than the 100 that are read"):
            parse_json(number, "x", limit=100)


def test_the_limits_are_those_that_are_documented() -> None:
    assert (documents.TEXT_BYTES, documents.JSON_BYTES) == (4 * 2**20, 4 * 2**20)
    assert (documents.TABLE_BYTES, documents.ROWS, documents.JSON_DEPTH) == (512 * 2**10, 20_000, 64)
