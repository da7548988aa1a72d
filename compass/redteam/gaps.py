"""Words with something between their letters, and words with nothing between them."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from typing import NamedTuple

from compass.redteam import linear
from compass.redteam.lexicon import OTHER, SCRIPTS, lexicon
from compass.redteam.piece import Piece, lines_around
from compass.redteam.reading import Reading

#: Vowel signs of Indic scripts are no word characters to ``re``; their letters are not searched for gaps.
_LETTER = rf"[^\W_{SCRIPTS}]"
_LETTERS = re.compile(rf"(?<![^\W_]){_LETTER}(?:[^\w{SCRIPTS}]{{1,4}}{_LETTER}(?![\w{SCRIPTS}])){{5,}}")
#: A row of letters that stand alone, in the marks of ``_mark``.
_ROW = re.compile(r"(?:1\.{0,4}+)*+n(?:\.{0,4}[1n])*+|1(?:\.{0,4}1){5,}+")
_SEPARATOR = re.compile(r"[^\w]|_")
#: Words told apart by capitals only; fewer than five are a name in a program.
_CAMEL = re.compile(r"(?<![A-Za-z0-9])[a-z]*+(?:[A-Z]++[a-z]*+){5,}+(?![0-9])")
#: Cheap: without a match here there are no five humps.
_MAYBE_CAMEL = linear.compile(r"(?:[A-Z]+[a-z]+){4}[A-Z]")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_GAP = re.compile(r"\W+")

#: Words that may stand between telling words in a run without gaps.
_FILLERS = (
    "a an the and or to of in on at is be it this that these those with from for by as if you your i me my "
    "we our all any now then please should will must do not no so up out are was were has have been can may "
    "just only here also into about before after who what which when there their them they us new"
)
_LONGEST = 16
#: Letters of one run that are cut into words; the rest of a longer run is not read.
_SEGMENTED = 20_000
#: Lengths between which a word without gaps is taken apart.
_SOLID = (14, 400)


class _Repair(NamedTuple):
    start: int
    end: int
    plain: str
    layer: str


@cache
def _vocabulary() -> frozenset[str]:
    return frozenset(
        word for word in lexicon().exact if word.isalpha() and word.isascii() and len(word) > 2
    ) | frozenset(_FILLERS.split())


@cache
def _telling() -> linear.Pattern:
    codes = lexicon().of("IGN|INS|PRIOR|REVEALX|SECRETX|PROMPT|GUARD|TELL|SYSTEMX|DIS|FREE|TESTX|MALW|OBEY")
    words = sorted(w for w, code in lexicon().exact.items() if code in codes and len(w) > 4 and w.isascii())
    return linear.compile("|".join(map(linear.escape, words)))


def segment(run: str) -> list[str]:
    """``run`` cut into known words from the left, the longest first; empty when too little of it is known."""
    known = _vocabulary()
    words = []
    start = 0
    while start < min(len(run), _SEGMENTED):
        for end in range(min(len(run), start + _LONGEST), start, -1):
            if run[start:end] in known:
                words.append(run[start:end])
                start = end
                break
        else:
            start += 1
    return words if sum(map(len, words)) * 10 >= len(run) * 7 else []


def pieces(reading: Reading) -> Iterator[Piece]:
    """Lines with spaced-out, chopped or glued words put right."""
    folded = reading.folded
    repairs = [*_spaced(reading), *_rejoined(reading)]
    yield from _humps(reading.text)
    if not repairs:
        return
    chosen: list[_Repair] = []
    for repair in sorted(repairs):
        if not chosen or repair.start >= chosen[-1].end:
            chosen.append(repair)
    following = 0
    for start, end in lines_around(folded.text, [(repair.start, repair.end) for repair in chosen]):
        first = following
        while following < len(chosen) and chosen[following].end <= end:
            following += 1
        left, right, _ = folded.locate(start, end)
        line, layers = _repaired(folded.text, start, end, chosen[first:following])
        yield Piece(left, right, line, layers)


def _humps(text: str) -> Iterator[Piece]:
    for match in _CAMEL.finditer(text) if _MAYBE_CAMEL.search(text) else ():
        yield Piece(*match.span(), _HUMP.sub(" ", match[0]), ("joined",))


def _repaired(text: str, start: int, end: int, repairs: list[_Repair]) -> tuple[str, tuple[str, ...]]:
    parts: list[str] = []
    cursor = start
    for repair in repairs:
        parts += [text[cursor : repair.start], repair.plain]
        cursor = repair.end
    return "".join([*parts, text[cursor:end]]), tuple(dict.fromkeys(repair.layer for repair in repairs))


def _alone(reading: Reading) -> Iterator[tuple[int, int]]:
    """Where letters stand alone in a row; tokens say so far cheaper than characters do."""
    marks = {token: _mark(token) for token in reading.distinct}
    for match in _ROW.finditer("".join(map(marks.__getitem__, reading.tokens))):
        yield reading.span(*match.span())


def _mark(token: str) -> str:
    """``1``: a letter, ``n``: letters with something between them, ``.``: punctuation, ``0``: a word."""
    if token.isalnum():
        return "1" if len(token) == 1 else "0"
    parts = [part for part in _SEPARATOR.split(token) if part]
    if any(len(part) > 1 for part in parts):
        return "0"
    return "n" if len(parts) > 1 else "1" if parts else "."


def _spaced(reading: Reading) -> Iterator[_Repair]:
    text = reading.folded.text
    for match in chain.from_iterable(
        _LETTERS.finditer(text, *span) for span in lines_around(text, _alone(reading))
    ):
        gaps = _GAP.findall(match[0])
        usual = Counter(gaps).most_common(1)[0][0]
        letters = _GAP.split(match[0])
        cuts = [
            0,
            *(at for at, gap in enumerate(gaps, start=1) if gap != usual and len(gap) >= len(usual)),
            len(letters),
        ]
        words = ("".join(letters[left:right]) for left, right in pairwise(cuts))
        plain = " ".join(" ".join(segment(word) if len(word) > 8 else ()) or word for word in words)
        yield _Repair(*match.span(), plain, "letter-spacing")


def _rejoined(reading: Reading) -> Iterator[_Repair]:
    repairs: dict[str, tuple[str, str]] = {}
    for token in reading.distinct:
        repaired = _chopped(token) or _glued(token) if len(token) > 3 else None
        if repaired:
            repairs[token] = repaired
    if repairs:
        for token, start, end in reading.spans(repairs):
            yield _Repair(start, end, *repairs[token])


def _chopped(token: str) -> tuple[str, str] | None:
    if token.isalnum() or "://" in token:
        return None
    known = lexicon().exact
    parts = _SEPARATOR.split(token)
    solid = "".join(parts)
    if solid in known and token not in known:
        return solid, "chopped"
    if len(parts) > 2 and sum(part in known for part in parts) > 2:
        return " ".join(parts), "joined"
    return None


def _glued(token: str) -> tuple[str, str] | None:
    if not _SOLID[0] <= len(token) <= _SOLID[1] or not token.isalpha() or lexicon()[token] != OTHER:
        return None
    if len(_telling().findall(token)) < 2:
        return None
    words = segment(token)
    return (" ".join(words), "joined") if words else None
