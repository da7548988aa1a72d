"""Character folding: one lower-case, accent-free, Latin-looking reading of a text, with the way back.

Sources: Unicode UAX #15 (compatibility forms), UTS #39 (lookalikes; the table is our own selection, by eye,
of letters that read as Latin), UAX #9 (direction controls). Folding is per character and therefore linear and
idempotent; the lexicon is folded by the same table, so Russian or Greek words still match themselves.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

#: Latin letter, then every character we take for it (lower case; upper case is folded first).
_LOOKALIKES = (
    "aаαɑᴀⲁ bƅьʙᏏ cсϲᴄⲥↄ dԁɗᴅꓒ eеєҽɛᴇǝ fғſϝꜰẝ gɡցɢᶃ hһհʜɥⱨ iіıɩɪιᎥⲓ jјʝᴊϳ kкκᴋⲕ lӏⅼʟꓡ mмϻᴍɯⲙ "
    "nпηոռɴⲛ oоοօᴏσⲟ pрρᴘⲣ qԛզϙ rгɾʀɹᴦⲅ sѕꜱꓢʂ tтτᴛʇⲧ uυսᴜʋ vνѵᴠʌ wԝѡᴡʍω xхχҳⲭ yуγүʏʎⲩ zᴢʐȥꓜ"
)

_TABLE = {ord(other): group[0] for group in _LOOKALIKES.split() for other in group[1:]}
_TABLE |= {first + i: chr(ord("a") + i) for first in (0x1F150, 0x1F170, 0x1F1E6) for i in range(26)}
_TABLE |= {ord(curly): plain for curly, plain in zip("‘’‛′“”„‟″–—−", '\'\'\'\'"""""---', strict=True)}

#: Combining marks that decorate Latin, Cyrillic, Greek or Arabic letters without making another letter.
_DECORATION = frozenset(
    map(chr, (0x640, *range(0x300, 0x370), *range(0x483, 0x48A), *range(0x610, 0x61B), *range(0x64B, 0x660),
              *range(0x1AB0, 0x1B00), *range(0x1DC0, 0x1E00), *range(0x20D0, 0x2100),
              *range(0xFE20, 0xFE30))),
)  # fmt: skip

_DIRECTION = frozenset(map(chr, (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))))
_INVISIBLE = frozenset(
    map(chr, (0xAD, 0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x200B, 0x200C, 0x200D, 0x2060, 0x2061,
              0x2062, 0x2063, 0x2064, 0x3164, 0xFEFF, 0xFFA0, *range(0x180B, 0x180E), *range(0xFE00, 0xFE10),
              *range(0x206A, 0x2070), *range(0xFFF9, 0xFFFC))),
)  # fmt: skip


_LOOKALIKE = frozenset(char for char in map(chr, _TABLE) if char.isalpha())
_LATIN = frozenset("abcdefghijklmnopqrstuvwxyz")

_NAMED = re.compile(r"LATIN (?:SMALL|CAPITAL) LETTER ([A-Z])(?: WITH .+)?")


def is_tag(char: str) -> bool:
    """Whether ``char`` is one of the invisible copies of ASCII in the Tags block."""
    return "\U000e0020" <= char <= "\U000e007f"


def _is_hidden(char: str) -> bool:
    return char in _INVISIBLE or char in _DIRECTION or "\U000e0000" <= char <= "\U000e01ef"


def _undecorated(char: str) -> str:
    """The letter under a stroke, hook or tail, by its Unicode name (ø, đ, ɓ do not decompose)."""
    match = _NAMED.fullmatch(unicodedata.name(char, "")) if "\x80" <= char < "\uab70" else None
    return match[1].lower() if match else char


@lru_cache(maxsize=65536)
def fold_char(char: str) -> str:
    """What ``char`` reads as: zero or more lower-case characters."""
    if char < "\x80":
        return char.lower()
    if _is_hidden(char) or char in _DECORATION:
        return ""
    if "\uac00" <= char <= "\ud7a3":
        return char
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", char).lower()).lower()
    kept = "".join(_TABLE.get(ord(part)) or _undecorated(part) for part in parts if part not in _DECORATION)
    return unicodedata.normalize("NFC", kept)


@dataclass(frozen=True)
class View:
    """A reading of a text: its characters, the layers that made it, and how spans map to the original.

    ``locate(start, end)`` gives the half-open span in the outermost original and the name of the innermost
    layer for that place, or an empty name when nothing there was changed.
    """

    text: str
    via: tuple[str, ...]
    locate: Callable[[int, int], tuple[int, int, tuple[str, ...]]]


def raw(text: str) -> View:
    """The text itself as a view."""
    return View(text, (), lambda start, end: (start, end, ()))


def fold(view: View) -> View:
    """``view`` with every character folded; the layer names what kind of disguise the span wore."""
    text = view.text
    if text.isascii():
        return View(text.lower(), view.via, view.locate)
    table = {ord(char): fold_char(char) for char in set(text)}
    folded = text.translate(table)
    resized = {chr(code): len(shown) - 1 for code, shown in table.items() if len(shown) != 1}
    back = _Way(text, resized)

    def locate(start: int, end: int) -> tuple[int, int, tuple[str, ...]]:
        first, last = back.index(start), back.index(max(start, end - 1)) + 1
        outer = view.locate(first, last)
        return outer[0], outer[1], outer[2] + disguise(text[first:last])

    return View(folded, view.via, locate)


class _Way:
    """From an offset in a folded text to the index of the character that produced it."""

    def __init__(self, text: str, resized: Mapping[str, int]) -> None:
        self._text, self._resized = text, resized

    @cached_property
    def _steps(self) -> tuple[list[int], list[int]]:
        """Folded offsets at which the two texts drift apart further, and the drift from there on."""
        offsets, drifts = [0], [0]
        if self._resized:
            pattern = re.compile("[" + "".join(map(re.escape, self._resized)) + "]")
            for match in pattern.finditer(self._text):
                drift = drifts[-1] + self._resized[match[0]]
                offsets.append(match.end() + drift)
                drifts.append(drift)
        return offsets, drifts

    def index(self, offset: int) -> int:
        """The index in the text that was folded, of the character that ``offset`` belongs to."""
        offsets, drifts = self._steps
        step = bisect_right(offsets, offset) - 1
        following = offsets[step + 1] - drifts[step + 1] - 1 if step + 1 < len(offsets) else len(self._text)
        return min(offset - drifts[step], following)


@lru_cache(maxsize=65536)
def _is_compatibility(char: str) -> bool:
    return unicodedata.normalize("NFKC", char) != char


def disguise(text: str) -> tuple[str, ...]:
    """The character-level layers found in ``text``, in a fixed order; empty for plain text."""
    if text.isascii():
        return ()
    layers = []
    chars = set(text)
    if any("\U000e0000" <= char <= "\U000e007f" for char in chars):
        layers.append("tag-characters")
    if chars & _INVISIBLE:
        layers.append("invisible")
    if chars & _DIRECTION:
        layers.append("bidi")
    if chars & _LOOKALIKE and chars & _LATIN:
        layers.append("lookalike")
    if any(map(_is_compatibility, chars)):
        layers.append("compatibility")
    if chars & _DECORATION:
        layers.append("decoration")
    return tuple(layers)
