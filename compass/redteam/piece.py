"""What a decoding layer returns, and the line arithmetic that several of them share."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Piece(NamedTuple):
    """``text`` is how ``source[start:end]`` reads once ``layers`` are undone."""

    start: int
    end: int
    text: str
    layers: tuple[str, ...]


def lines_around(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans widened to whole lines; adjacent ones merged. ``spans`` must be ordered."""
    current: tuple[int, int] | None = None
    for start, end in spans:
        if current and start <= current[1]:
            if end > current[1]:
                current = (current[0], _line_end(text, end))
            continue
        left = text.rfind("\n", current[1] if current else 0, start) + 1
        wide = (max(left, current[1] if current else 0), _line_end(text, end))
        if current and wide[0] <= current[1] + 1:
            current = (current[0], wide[1])
            continue
        if current:
            yield current
        current = wide
    if current:
        yield current


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end
