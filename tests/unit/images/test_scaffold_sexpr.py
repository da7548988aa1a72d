"""The s-expression reader, against sexpdata as an oracle."""

import importlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.images.sources import scaffold

sexpr = scaffold("sexpr")
# sexpdata ships no type information.
sexpdata = importlib.import_module("sexpdata")
Off = scaffold("errors").Off

Tree = list["Tree | str"]

_NAMES = st.text("abcxyz_-.+0123456789", min_size=1, max_size=8).map(lambda text: "k" + text)
_STRINGS = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12)


def _write(tree: Tree) -> str:
    parts = [tree[0], *(_write(item) if isinstance(item, list) else _quote(item) for item in tree[1:])]
    return "(" + " ".join(str(part) for part in parts) + ")"


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_TREES = st.recursive(
    st.builds(lambda name, items: [name, *items], _NAMES, st.lists(_STRINGS, max_size=3)),
    lambda inner: st.builds(
        lambda name, items: [name, *items], _NAMES, st.lists(inner | _STRINGS, max_size=4)
    ),
    max_leaves=20,
)


@given(_TREES)
def test_what_is_written_is_read(tree: Tree) -> None:
    assert sexpr.parse(_write(tree), "text") == tree


def test_it_reads_what_sexpdata_reads() -> None:
    text = '(kicad_sch (version 20250114)\n\t(property "a b" "say \\"hi\\"" (at 1.27 -2.54 0)) (flag yes))'

    def plain(node: object) -> object:
        return [plain(item) for item in node] if isinstance(node, list) else _atom(node)

    def _atom(node: object) -> str:
        return str(node.value()) if isinstance(node, sexpdata.Symbol) else str(node)

    assert sexpr.parse(text, "text") == plain(sexpdata.loads(text))


def test_escapes_are_undone() -> None:
    assert sexpr.parse(r'(a "1\n2\t\\ \"q\"")', "text") == ["a", '1\n2\t\\ "q"']


@pytest.mark.parametrize("text", ["", "atom", "(a", "(a))", "(a)(b)", '(a "open)', ")"])
def test_anything_but_one_whole_expression_is_off(text: str) -> None:
    with pytest.raises(Off, match=r"^board: "):
        sexpr.parse(text, "board")


def test_depth_is_no_limit() -> None:
    node = sexpr.parse("(a " * 50_000 + ")" * 50_000, "text")
    assert node[0] == "a"


def test_properties_skip_the_private_mark() -> None:
    node = sexpr.parse('(symbol (property "A" "1") (property private "B" "2") (property "C"))', "text")
    assert sexpr.properties(node) == {"A": "1", "B": "2"}
