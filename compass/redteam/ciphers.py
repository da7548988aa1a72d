"""Letters turned, mirrored or reversed: found by the words of the lexicon as such a cipher spells them."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from string import ascii_lowercase

from compass.redteam.lexicon import lexicon
from compass.redteam.piece import Piece, lines_around
from compass.redteam.reading import Reading

_ROT47_WORD = re.compile(r"[!-~]{4,24}")
#: So many different words have to be spelt in one cipher before its lines are read.
_ENOUGH = 2
#: Words from these classes betray any turn of the alphabet; every known word betrays the usual ciphers.
_CLASSES = (
    "IGN|INS|PRIOR|REVEAL|SECRET|PROMPT|GUARD|SENDX|TELL|USER|SYS|DIS|FREE|TESTX|MALW|AI|OBEY|TASK|PASSED|KEY"
)

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
    """Lines that hold telling words in a cipher, deciphered."""
    spelt = _spelt()
    seen: dict[str, set[str]] = defaultdict(set)
    for word in filter(spelt.__contains__, reading.distinct):
        for name in spelt[word]:
            seen[name].add(word)
    for name, words in sorted(seen.items()):
        if len(words) >= _ENOUGH:
            yield from _deciphered(reading, name, words)
    yield from _rot47(reading.text)


def _deciphered(reading: Reading, name: str, words: set[str]) -> Iterator[Piece]:
    folded = reading.folded
    spans = [span for token, span in zip(reading.tokens, reading.spans, strict=True) if token in words]
    for start, end in lines_around(folded.text, spans):
        left, right, _ = folded.locate(start, end)
        for plain in _UNDO[name](folded.text[start:end]):
            yield Piece(left, right, plain, (name,))


def _rot47(text: str) -> Iterator[Piece]:
    words = _spelt47().intersection(text.split())
    if len(words) >= _ENOUGH:
        spans = [match.span() for match in _ROT47_WORD.finditer(text) if match[0] in words]
        for start, end in lines_around(text, spans):
            yield Piece(start, end, text[start:end].translate(_ROT47), ("rot47",))
