"""Reading what an agent may have written as documents: markdown tables, plain text, JSON.

Everything here is bounded in size and time, and says :class:`Unjudgeable` for what it cannot read: absence
needs evidence (Standard §4).
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, NoReturn

from markdown_it import MarkdownIt
from markdown_it.token import Token

from grader.evidence import Tree, printable
from grader.kicad.errors import Unjudgeable

CONFIG = ".copperhead/config.json"
DOCS = "docs"
"""The documents folder where the configuration names none."""

TEXT_BYTES = 4 * 1024 * 1024
"""Largest document that is matched against a pattern."""
TABLE_BYTES = 512 * 1024
"""Largest document whose tables are read: a few seconds for the worst text; a real BOM has about 100 kB."""
ROWS = 20_000
"""Most table rows of one document."""
JSON_BYTES = 4 * 1024 * 1024
JSON_DEPTH = 64


def docs_folder(baseline: Tree) -> str:
    """The configured documents folder, without a closing slash; ``""`` is the root.

    Read from the baseline tree: the configuration in the end tree is the agent's, and could point at
    documents that it wrote for the grader to find.
    """
    entry = baseline.get(CONFIG)
    if entry is None or entry.kind != "file":
        return DOCS
    try:
        config = parse_json(entry.data, CONFIG)
    except Unjudgeable:
        return DOCS
    folder = config.get("docs") if isinstance(config, dict) else None
    if not isinstance(folder, str) or not folder.isprintable():
        return DOCS
    return "/".join(part for part in folder.split("/") if part not in {"", "."})


def locate(doc: str, *, baseline: Tree, end: Tree) -> str | None:
    """Path of a document: as given from the root, else under the documents folder; None when in neither.

    A document of the baseline keeps its place, so that a file laid at the root later does not shadow it.
    """
    folder = docs_folder(baseline)
    places = [doc, f"{folder}/{doc}"] if folder else [doc]
    return next((place for tree in (baseline, end) for place in places if place in tree), None)


def read_text(tree: Tree, path: str, *, limit: int = TEXT_BYTES) -> str:
    """A document as text: UTF-8, without a byte order mark, line ends as ``\\n``.

    Raises:
        Unjudgeable: missing, a symlink, over ``limit`` bytes, or not UTF-8 text.
    """
    entry = tree.get(path)
    about = printable(path)
    if entry is None:
        raise Unjudgeable(f"{about}: no such file")
    if entry.kind != "file":
        raise Unjudgeable(f"{about}: is a symlink, which is never followed")
    if len(entry.data) > limit:
        raise Unjudgeable(f"{about}: {len(entry.data)} bytes, more than the {limit} that are read")
    try:
        text = entry.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unjudgeable(f"{about}: not UTF-8 at byte {error.start}") from None
    if "\0" in text:
        raise Unjudgeable(f"{about}: holds a NUL byte, so it is not text")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def fold(text: str) -> str:
    """How names of columns are compared: NFKC, case and spaces folded."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@dataclass(frozen=True)
class Table:
    """One pipe table. Rows have as many cells as the header: ragged ones are cut or filled with ``""``."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @cached_property
    def _columns(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index, name in enumerate(self.header):
            found.setdefault(fold(name), []).append(index)
        return found

    def column(self, name: str) -> int | None:
        """Index of the one column of that name; None when there is none, or several."""
        indexes = self._columns.get(fold(name), [])
        return indexes[0] if len(indexes) == 1 else None

    def columns(self, names: Iterable[str]) -> list[int] | None:
        """Indexes of all the named columns, or None when one is missing or ambiguous."""
        found = [self.column(name) for name in names]
        return None if None in found else [index for index in found if index is not None]


def _reader() -> MarkdownIt:
    # Block structure only. markdown-it knows what a fence, a comment or a quoted block hides from a reader,
    # and its table rule is GitHub's; measured, its block rules stay linear on hostile text. Inline rules,
    # which do not, and link definitions are never run: cells are taken as written.
    reader = MarkdownIt("commonmark").enable("table")
    reader.core.ruler.enableOnly(["normalize", "block"])
    reader.block.ruler.disable("reference")
    return reader


# One document serves several assertions, and a hostile one takes seconds.
@lru_cache(maxsize=16)
def tables(text: str, about: str = "document") -> tuple[Table, ...]:
    """All GitHub pipe tables of a markdown text, in order; what stands in fences or comments is none.

    A cell is its source text, ``\\|`` read as ``|``, and a code span around the whole cell taken off.

    Raises:
        Unjudgeable: more than :data:`TABLE_BYTES` of text or :data:`ROWS` rows.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > TABLE_BYTES:
        raise Unjudgeable(f"{about}: {size} bytes, more than the {TABLE_BYTES} whose tables are read")
    # A text without both signs holds no table: no need to run the block rules over it.
    found = tuple(_tables(_reader().parse(text))) if "|" in text and "-" in text else ()
    if sum(len(table.rows) for table in found) > ROWS:
        raise Unjudgeable(f"{about}: more than {ROWS} table rows")
    return found


def _tables(tokens: Iterable[Token]) -> Iterator[Table]:
    rows: list[tuple[str, ...]] = []
    cells: list[str] = []
    in_table = False
    for token in tokens:
        if token.type == "table_open":
            in_table, rows = True, []
        elif token.type == "table_close":
            in_table = False
            yield Table(header=rows[0], rows=tuple(rows[1:]))
        elif token.type == "tr_open":
            cells = []
        elif token.type == "tr_close":
            rows.append(tuple(cells))
        elif token.type == "inline" and in_table:
            cells.append(_cell(token.content))


def _cell(source: str) -> str:
    text = source.strip()
    inner = text[1:-1]
    return inner.strip() if len(text) > 2 and text[0] == text[-1] == "`" and "`" not in inner else text


def read_tables(tree: Tree, path: str) -> tuple[Table, ...]:
    """The tables of one document of a tree.

    Raises:
        Unjudgeable: as :func:`read_text` and :func:`tables`.
    """
    return tables(read_text(tree, path, limit=TABLE_BYTES), printable(path))


def parse_json(
    data: bytes, about: str, *, limit: int = JSON_BYTES, depth: int = JSON_DEPTH, exact: bool = False
) -> Any:
    """JSON that an agent may have written.

    Args:
        data: UTF-8, without a byte order mark.
        about: names the source in the error.
        limit: most bytes.
        depth: most nested lists and objects.
        exact: numbers become :class:`~decimal.Decimal` instead of int and float.

    Raises:
        Unjudgeable: too large, too deep, not UTF-8, not JSON, a duplicate key, a number no double can hold.
    """
    if len(data) > limit:
        raise Unjudgeable(f"{about}: {len(data)} bytes, more than the {limit} that are read")
    if deeper_than(depth, data):
        raise Unjudgeable(f"{about}: nested deeper than {depth}")
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse,
            parse_float=_decimal if exact else _finite,
            parse_int=_decimal if exact else _bounded,
        )
    except UnicodeDecodeError as error:
        raise Unjudgeable(f"{about}: not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise Unjudgeable(f"{about}: not JSON ({error.msg} at line {error.lineno})") from None
    except ValueError as error:
        raise Unjudgeable(f"{about}: {error}") from None


def deeper_than(depth: int, data: bytes) -> bool:
    """Whether brackets outside of JSON strings nest deeper than ``depth``.

    Python's own guard is its recursion limit, which depends on who calls: a grade must not.
    """
    if data.count(b"[") + data.count(b"{") <= depth:
        return False
    outside = b"".join(data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    level = 0
    for bracket in outside.translate(None, delete=_NO_BRACKETS):
        level += 1 if bracket in b"[{" else -1
        if level > depth:
            return True
    return False


_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return found


def _decimal(text: str) -> Decimal:
    # What no double can hold is refused here too, and keeps the arithmetic of decimals small.
    if len(text) > 310:
        raise ValueError("a number is out of range")
    _finite(text)
    return Decimal(text)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise ValueError("a number is out of range")
    return number


def _bounded(text: str) -> int:
    # JSON numbers are doubles to most readers: none has more than 309 digits.
    if len(text) > 310:
        raise ValueError("a number is out of range")
    _finite(text)
    return int(text)
