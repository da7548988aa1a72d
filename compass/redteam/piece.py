"""What a decoding layer returns, and the line arithmetic that several of them share."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

#: What stands further from a disguised word than this, in characters, is not read again with it: no rule
#: looks so far, and a megabyte without a line end would otherwise be read once more for one escape in it.
REACH = 600


class Piece(NamedTuple):
    """``text`` is how ``source[start:end]`` reads once ``layers`` are undone."""

    start: int
    end: int
    text: str
    layers: tuple[str, ...]


def lines_around(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans widened to whole lines, at most ``REACH`` to either side; adjacent ones merged.

    ``spans`` must be ordered. A long line is cut at a space where there is one nearby.
    """
    current: tuple[int, int] | None = None
    for start, end in spans:
        if current and start <= current[1]:
            if end > current[1]:
                current = (current[0], _right(text, end))
            continue
        wide = (_left(text, start, current[1] if current else 0), _right(text, end))
        if current and wide[0] <= current[1] + 1:
            current = (current[0], wide[1])
            continue
        if current:
            yield current
        current = wide
    if current:
        yield current


def _left(text: str, position: int, floor: int) -> int:
    nearest = max(floor, position - REACH)
    line = text.rfind("\n", nearest, position) + 1
    if line or nearest == floor:
        return max(line, floor)
    return max(text.find(" ", nearest, position), nearest)


def _right(text: str, position: int) -> int:
    furthest = position + REACH
    line = text.find("\n", position, furthest)
    if line >= 0:
        return line
    if furthest >= len(text):
        return len(text)
    space = text.rfind(" ", position, furthest)
    return space if space >= 0 else furthest
