"""Escapes inside running text: entities, percent, backslash, quoted-printable, tags that split words."""

import binascii
import re
import unicodedata
from collections.abc import Callable, Iterator
from html import unescape
from typing import NamedTuple
from urllib.parse import unquote

from compass.redteam.piece import Piece, lines_around
from compass.redteam.reading import Reading

#: Browsers read a numeric entity without its semicolon as well.
_ENTITY = re.compile(r"&(?:#\d{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z]{2,24};)")
_PERCENT_ONE = re.compile(r"%[0-9a-fA-F]{2}")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_BACKSLASH = re.compile(
    r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([0-3]?[0-7]{2})"
    r"|([nrt])|N\{([A-Z][A-Z0-9 -]{2,80})\})"
)
#: JSON and JavaScript write characters past U+FFFF as two halves.
_SURROGATES = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_PERCENT_U = re.compile(r"%u([0-9a-fA-F]{4})")
_UTF7 = re.compile(r"\+((?:[A-Za-z0-9+/]{3,}))-?")
#: A string literal that ends where the next one begins: "ign" + "ore", 'ign' . 'ore', "ign" "ore".
_JOINT = re.compile(r"([\"'])[ \t]*(?:[+.&][ \t]*)?(?:\r?\n[ \t]*)?\1(?=\w| \w)")
_TERMINAL = re.compile(r"\x1b\[[0-9;:]{0,16}[A-Za-z]")
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
    if match[7]:
        return _named(match)
    digits = match[1] or match[2] or match[3] or match[4]
    return _character(int(digits, 16) if digits else int(match[5], 8))


def _named(match: re.Match[str]) -> str:
    try:
        return unicodedata.lookup(match[7])
    except KeyError:
        return match[0]


def _paired(match: re.Match[str]) -> str:
    return chr(0x10000 + ((int(match[1], 16) & 0x3FF) << 10) + (int(match[2], 16) & 0x3FF))


def _backslash(text: str) -> str:
    return _BACKSLASH.sub(_escaped, _SURROGATES.sub(_paired, text))


def _percent_u(text: str) -> str:
    return _PERCENT_U.sub(lambda match: _character(int(match[1], 16)), text)


def _utf7(text: str) -> str:
    return _UTF7.sub(_shifted, text)


def _shifted(match: re.Match[str]) -> str:
    """RFC 2152: base64 of UTF-16, big end first; what is no text stays as it is."""
    octets = binascii.a2b_base64(match[1] + "=" * (-len(match[1]) % 4)) if len(match[1]) % 4 != 1 else b""
    shown = octets[: len(octets) // 2 * 2].decode("utf-16-be", "replace")
    return shown if shown and shown.isprintable() and "\ufffd" not in shown else match[0]


def _joined(text: str) -> str:
    return _JOINT.sub("", text)


def _uncoloured(text: str) -> str:
    return _TERMINAL.sub("", text)


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
    _Kind("percent-u", "%", _PERCENT_U, 3, _percent_u),
    _Kind("percent", "%", _PERCENT_ONE, 3, _percent),
    _Kind("backslash-escapes", "\\", _BACKSLASH, 3, _backslash),
    _Kind("code-points", "+", _CODE_POINT, 3, _code_points),
    _Kind("quoted-printable", "=", _QUOTED, 3, _quoted),
    _Kind("utf-7", "+", _UTF7, 1, _utf7),
    _Kind("string-joints", "\"'", _JOINT, 2, _joined),
    _Kind("terminal-escapes", "\x1b", _TERMINAL, 1, _uncoloured),
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
