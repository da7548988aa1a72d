"""Letters turned, mirrored or reversed: found by the words of the lexicon as such a cipher spells them."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from string import ascii_lowercase
from typing import NamedTuple

from compass.redteam.lexicon import lexicon
from compass.redteam.piece import Piece, lines_around
from compass.redteam.reading import Reading

#: So many different words near each other have to be spelt in one cipher before they are read.
_ENOUGH = 2
#: Words from these classes betray any turn of the alphabet; every known word betrays the usual ciphers.
_CLASSES = (
    "IGN|INS|PRIOR|REVEAL|SECRET|PROMPT|GUARD|SENDX|TELL|USER|SYS|DIS|FREE|TESTX|MALW|AI|OBEY|TASK|PASSED|KEY"
)


class _Place(NamedTuple):
    start: int
    end: int
    word: str


_ROT47 = {33 + i: chr(33 + (i + 47) % 94) for i in range(94)}


def _translated(table: dict[int, str], text: str) -> list[str]:
    return [text.translate(table)]


def _table(letters: str) -> dict[int, str]:
    return {ord(plain): turned for plain, turned in zip(ascii_lowercase, letters, strict=True)}


def _turned(shift: int) -> dict[int, str]:
    return _table(ascii_lowercase[shift:] + ascii_lowercase[:shift])


_TURNS = {f"rot{shift}": _turned(shift) for shift in range(1, 26)} | {"atbash": _table(ascii_lowercase[::-1])}
_USUAL = frozenset({"rot13", "atbash"})
_UNDO: dict[str, Callable[[str], list[str]]] = {
    "reversed": lambda text: [text[::-1], re.sub(r"\w+", lambda word: word[0][::-1], text)],
    "atbash": partial(_translated, _TURNS["atbash"]),
    **{f"rot{shift}": partial(_translated, _turned(26 - shift)) for shift in range(1, 26)},
}


@cache
def _spelt() -> dict[str, tuple[str, ...]]:
    """Ciphered word → the ciphers that spell a telling word so."""
    codes = lexicon().of(_CLASSES)
    spelt: dict[str, list[str]] = defaultdict(list)
    for word, code in lexicon().exact.items():
        if len(word) > 3 and word.isascii() and word.isalpha():
            spelt[word[::-1]].append("reversed")
            for name, table in _TURNS.items():
                if code in codes or name in _USUAL:
                    spelt[word.translate(table)].append(name)
    return {spelling: tuple(names) for spelling, names in spelt.items() if spelling not in lexicon().exact}


@cache
def _spelt47() -> frozenset[str]:
    codes = lexicon().of(_CLASSES)
    return frozenset(
        w.translate(_ROT47) for w, code in lexicon().exact.items() if code in codes and len(w) > 4
    )


def pieces(reading: Reading) -> Iterator[Piece]:
    """Stretches that hold telling words in a cipher, deciphered."""
    spelt = _spelt()
    seen: dict[str, list[_Place]] = defaultdict(list)
    for word, start, end in reading.spans(reading.distinct & spelt.keys()):
        for name in spelt[word]:
            seen[name].append(_Place(start, end, word))
    folded = reading.folded
    for name, places in sorted(seen.items()):
        for start, end in _stretches(folded.text, places):
            left, right, _ = folded.locate(start, end)
            for plain in _UNDO[name](folded.text[start:end]):
                yield Piece(left, right, plain, (name,))
    yield from _rot47(reading.text)


def _stretches(text: str, places: list[_Place]) -> Iterator[tuple[int, int]]:
    """Where enough different words stand together: one by itself is chance, in a long text even a few are."""
    if len({place.word for place in places}) < _ENOUGH:
        return
    at = 0
    for start, end in lines_around(text, ((place.start, place.end) for place in places)):
        first = at
        while at < len(places) and places[at].end <= end:
            at += 1
        if len({place.word for place in places[first:at]}) >= _ENOUGH:
            yield start, end


def _rot47(text: str) -> Iterator[Piece]:
    words = _spelt47().intersection(text.split())
    if len(words) >= _ENOUGH:
        places = sorted(place for word in words for place in _occurrences(text, word))
        for start, end in _stretches(text, places):
            yield Piece(start, end, text[start:end].translate(_ROT47), ("rot47",))


def _occurrences(text: str, word: str) -> Iterator[_Place]:
    at = text.find(word)
    while at >= 0:
        yield _Place(at, at + len(word), word)
        at = text.find(word, at + len(word))
