"""Labelled corpora on disk: tab-separated rows in the seed's columns, and a parallel index of families.

``NAME.tsv`` holds only the seed's columns, so every reader of that format reads it. ``NAME.index.tsv`` has
one line for each line of ``NAME.tsv``: ``family <TAB> split`` (further columns are its own, such as a
language). ``paste NAME.tsv NAME.index.tsv`` shows both. Rows past the index's end are contributions that
nobody has classed yet: family ``contributed``, split ``base``. U+2424 (␤) stands for a newline and U+2409 (␉)
for a tab inside a column, because a row is a line.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path

from schema.errors import InvalidFile

FOLDER = Path(str(files("compass"))) / "corpora"
#: Rows that are scored as counts only: never listed, gated, tuned or fitted on. They are the estimate.
UNSEEN = FOLDER / "unseen"

_UNFOLD = str.maketrans({"␤": "\n", "␉": "\t"})


class CorpusError(InvalidFile):
    """A corpus or its index breaks the format; the message names the file and line."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: where it stands, its columns with newlines restored, its family, split and further tags."""

    case: str
    columns: tuple[str, ...]
    family: str
    split: str
    tags: tuple[str, ...] = ()


def rows(path: Path, columns: range) -> Iterator[Row]:
    """The rows of ``path``; ``columns`` is how many columns a row may have (``range(2, 4)``: two or three).

    Lines that are empty or start with ``#`` are skipped. Raises CorpusError for a row of another width or an
    index that is longer than its corpus.
    """
    index = path.with_suffix(".index.tsv")
    tags = index.read_text(encoding="utf-8").splitlines() if index.exists() else []
    lines = path.read_text(encoding="utf-8").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if len(tags) > len(lines):
        raise CorpusError(f"{index.name} has {len(tags)} lines, {path.name} only {len(lines)}")
    for number, (line, tag) in enumerate(zip_longest(lines, tags, fillvalue=""), start=1):
        if not line or line.startswith("#"):
            continue
        fields = tuple(field.translate(_UNFOLD) for field in line.split("\t"))
        if len(fields) not in columns:
            raise CorpusError(f"{path.name}:{number}: {len(fields)} columns, expected {columns}")
        family, split, *rest = (*tag.split("\t"), "") if tag else ("contributed", "base")
        yield Row(f"{path.name}:{number}", fields, family, split or "base", tuple(t for t in rest if t))
