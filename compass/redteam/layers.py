"""Readings of a text: as it stands, with escapes undone, and with what its encodings, ciphers and gaps hide.

Every layer turns a text into pieces (where they stood, what they read as, which layer read them). The pieces
of one kind become one view, which is looked at once more in the same way, so that two nested layers are
undone. Work is bounded: each kind of layer yields at most about as much text as it was given, and all views
together at most ``BUDGET`` times the input, dropping the rest.

Sources: RFC 4648 (base16/32/64), RFC 2045 (quoted-printable), RFC 3986 (percent), HTML 5 (entities), UAX #9.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import accumulate

from compass.redteam import blobs, ciphers, escapes, gaps, hidden
from compass.redteam.fold import View, raw
from compass.redteam.piece import Piece
from compass.redteam.reading import Reading

#: All decoded views together hold at most this many times the input, or ``SMALL`` characters if that is more.
BUDGET = 3
SMALL = 65_536
#: How many nested layers are undone.
DEPTH = 2

#: Pieces of one view are kept apart by what every rule takes for the end of a paragraph.
_GLUE = "\n\n"

_LAYERS = (hidden.pieces, escapes.pieces, blobs.pieces, ciphers.pieces, gaps.pieces)


def readings(text: str) -> Iterator[Reading]:
    """The text and its decoded readings, outermost first. Never raises."""
    if not text.isascii():
        # Half a surrogate pair is no character; "?" keeps every offset where it was.
        text = text.encode("utf-8", "replace").decode()
    budget = max(SMALL, BUDGET * len(text))
    pending = deque([(raw(text), 0)])
    while pending:
        view, depth = pending.popleft()
        reading = Reading(view)
        yield reading
        if depth == DEPTH:
            continue
        for layer in _LAYERS:
            kept: list[Piece] = []
            for piece in layer(reading):
                budget -= len(piece.text) + len(_GLUE)
                if budget < 0:
                    break
                kept.append(piece)
            if kept:
                pending.append((_joined(view, kept), depth + 1))


def _joined(outer: View, pieces: Iterable[Piece]) -> View:
    kept = tuple(pieces)
    starts = list(accumulate((len(piece.text) + len(_GLUE) for piece in kept), initial=0))[:-1]

    def locate(start: int, end: int) -> tuple[int, int, tuple[str, ...]]:
        first = bisect_right(starts, start) - 1
        last = bisect_right(starts, max(start, end - 1)) - 1
        left, right, layers = outer.locate(kept[first].start, kept[last].end)
        return left, right, (*layers, *kept[first].layers)

    return View(_GLUE.join(piece.text for piece in kept), outer.via, locate)
