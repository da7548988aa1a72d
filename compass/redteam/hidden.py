"""Text carried by characters that do not show: tag characters, variation selectors, zero-width bits."""

import re
from collections.abc import Iterator

from compass.redteam.fold import is_tag
from compass.redteam.piece import Piece
from compass.redteam.reading import Reading

_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_BITS = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u2061-\u2064]{16,}")
_CARRIERS = frozenset(
    map(chr, (0xFEFF, *range(0xE0000, 0xE01F0), *range(0xFE00, 0xFE10), *range(0x200B, 0x200E),
              *range(0x2060, 0x2065))),
)  # fmt: skip
_FLAG = "\N{WAVING BLACK FLAG}"


def pieces(reading: Reading) -> Iterator[Piece]:
    """Hidden runs, decoded; the tags of a flag emoji are left alone."""
    text = reading.text
    if text.isascii() or _CARRIERS.isdisjoint(reading.chars):
        return
    for match in _TAGS.finditer(text):
        if text[max(0, match.start() - 1) : match.start()] == _FLAG and len(match[0]) < 9:
            continue
        shown = "".join(
            chr(ord(char) - 0xE0000) for char in match[0] if is_tag(char) and char != "\U000e007f"
        )
        if shown:
            yield Piece(*match.span(), shown, ("tag-characters",))
    for match in _SELECTORS.finditer(text):
        yield from _decoded(match, bytes(map(_selected, match[0])), "variation-selectors")
    for match in _BITS.finditer(text):
        alphabet = sorted(set(match[0]))
        if len(alphabet) == 2:
            for zero in alphabet:
                bits = "".join("0" if char == zero else "1" for char in match[0])
                octets = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits) - 7, 8))
                yield from _decoded(match, octets, "zero-width-bits")


def _selected(char: str) -> int:
    code = ord(char)
    return code - 0xFE00 if code < 0xFE10 else code - 0xE0100 + 16


def _decoded(match: re.Match[str], octets: bytes, layer: str) -> Iterator[Piece]:
    shown = octets.decode("utf-8", "ignore")
    if sum(char.isalpha() for char in shown) * 2 > len(shown):
        yield Piece(*match.span(), shown, (layer,))
