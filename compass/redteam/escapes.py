"""Escapes inside running text: entities, percent, backslash, quoted-printable, tags that split words."""

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import NamedTuple
from urllib.parse import unquote

from compass.redteam.piece import Piece, lines_around
from compass.redteam.reading import Reading

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,24});")
_PERCENT_ONE = re.compile(r"%[0-9a-fA-F]{2}")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_BACKSLASH = re.compile(
    r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([0-3]?[0-7]{2})"
    r"|([nrt]))"
)
_CODE_POINT = re.compile(r"U\+([0-9a-fA-F]{4,6})[ ,;]?")
_QUOTED = re.compile(r"=[0-9A-F]{2}|=\r?\n")
_TAG = r"<(?:/?[a-zA-Z][^<>\n]{0,80}>|!--[^\n]{0,80}?-->)"
# Both begin with one character or one set: ``re`` then skips to the next place that can match.
_SPLIT = re.compile(rf"{_TAG}(?:{_TAG})*(?=\w)")
_MARKUP = re.compile(
    r"[*~`\\\[{](?:(?<=\*)\*{0,2}|(?<=~)~|(?<=`)`?|(?<=\\)[-_*]|(?<=\[)\]\(\)|(?<=\{)\})(?=\w)"
)
_QUERY = re.compile(r"(?<=\w)[?&=+](?=\w)")


def _entities(text: str) -> str:
    return _ENTITY.sub(lambda match: unescape(match[0]), text)


def _percent(text: str) -> str:
    plain = _PERCENT.sub(lambda match: unquote(match[0], errors="replace"), text)
    return _QUERY.sub(" ", plain)


def _character(code: int) -> str:
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _escaped(match: re.Match[str]) -> str:
    if match[6]:
        return " "
    digits = match[1] or match[2] or match[3] or match[4]
    return _character(int(digits, 16) if digits else int(match[5], 8))


def _backslash(text: str) -> str:
    return _BACKSLASH.sub(_escaped, text)


def _code_points(text: str) -> str:
    return _CODE_POINT.sub(lambda match: _character(int(match[1], 16)), text)


def _quoted(text: str) -> str:
    octets = _QUOTED.sub(lambda m: chr(int(m[0][1:], 16)) if m[0][1:].strip() else "", text)
    try:
        return octets.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return octets


def _untagged(text: str) -> str:
    return _SPLIT.sub(lambda match: "" if _between(text, match) else match[0], text)


def _unmarked(text: str) -> str:
    return _MARKUP.sub(lambda match: "" if _between(text, match) else match[0], text)


class _Kind(NamedTuple):
    layer: str
    needed: str
    pattern: re.Pattern[str]
    enough: int
    undo: Callable[[str], str]


#: ``needed``: one of these characters has to be there; ``enough``: so many places make a text worth a look.
_KINDS = (
    _Kind("html-entities", "&", _ENTITY, 1, _entities),
    _Kind("percent", "%", _PERCENT_ONE, 3, _percent),
    _Kind("backslash-escapes", "\\", _BACKSLASH, 3, _backslash),
    _Kind("code-points", "+", _CODE_POINT, 3, _code_points),
    _Kind("quoted-printable", "=", _QUOTED, 3, _quoted),
    _Kind("split-by-tags", "<", _SPLIT, 1, _untagged),
    _Kind("split-by-markup", "*~`\\[{", _MARKUP, 2, _unmarked),
)


def pieces(reading: Reading) -> Iterator[Piece]:
    """The lines that hold escapes, with all of them undone."""
    text = reading.text
    spans: list[tuple[int, int]] = []
    kinds = [kind for kind in _KINDS if any(char in text for char in kind.needed)]
    for kind in kinds:
        found = [match.span() for match in kind.pattern.finditer(text) if _between(text, match)]
        if len(found) >= kind.enough:
            spans.extend(found)
    spans.sort()
    for start, end in lines_around(text, spans):
        line = text[start:end]
        layers = []
        for kind in kinds:
            plain = kind.undo(line)
            if plain != line:
                layers.append(kind.layer)
                line = plain
        if layers:
            yield Piece(start, end, line, tuple(layers))


def _between(text: str, match: re.Match[str]) -> bool:
    """Markup and tags count only inside a word."""
    return match.re not in (_SPLIT, _MARKUP) or text[max(0, match.start() - 1)].isalnum()
