"""Disguises for the robustness attack, in two groups.

*Known* ones are what the normaliser was written to undo (the seed's five first). *Held out* ones are made by
other means than its tables: by Unicode names, by library codecs, by shuffling. A transform returns None for a
text that it cannot carry (Morse has no Cyrillic). All are deterministic.
"""

import base64
import binascii
import codecs
import gzip
import json
import quopri
import random
import re
import textwrap
import unicodedata
from collections.abc import Callable
from email.message import EmailMessage
from html import escape
from typing import NamedTuple
from urllib.parse import quote


class Transform(NamedTuple):
    """One disguise: its name, ``known`` or ``held-out``, and the function."""

    name: str
    group: str
    apply: Callable[[str], str | None]


_LEET = str.maketrans("aeiostAEIOST", "431057431057")
_LOOKALIKE = str.maketrans("aceiopsxyACEHIKMOPTX", "асеіорѕхуАСЕНІКМОРТХ")


def _dice(text: str) -> random.Random:
    return random.Random(text)  # noqa: S311


def _ascii(text: str) -> bool:
    return text.isascii()


def _zero_width(text: str) -> str:
    return "\u200b".join(text)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _percent(text: str) -> str:
    return "".join(f"%{octet:02X}" for octet in text.encode())


def _spaced(text: str) -> str:
    return "   ".join(" ".join(word) for word in text.split())


def _fullwidth(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


def _tags(text: str) -> str | None:
    return "".join(chr(0xE0000 + ord(char)) for char in text) if _ascii(text) else None


def _quoted_printable(text: str) -> str:
    return "".join(f"={octet:02X}" for octet in text.encode())


def _unicode_escapes(text: str) -> str | None:
    return "".join(f"\\u{ord(char):04x}" for char in text) if max(text, default="") <= "\uffff" else None


def _named(template: str) -> Callable[[str], str | None]:
    def letter(char: str) -> str:
        kind = "CAPITAL" if char.isupper() else "SMALL"
        try:
            return unicodedata.lookup(template.format(kind=kind, letter=char.upper()))
        except KeyError:
            return char

    def apply(text: str) -> str | None:
        return "".join(letter(char) if char.isascii() and char.isalpha() else char for char in text)

    return apply


def _decorated(text: str) -> str:
    """A stroke, hook or dot on every letter that has one in Unicode."""
    endings = ("DOT BELOW", "STROKE", "CARON", "DIAERESIS", "ACUTE", "HOOK ABOVE")
    dice = _dice(text)

    def letter(char: str) -> str:
        if not (char.isascii() and char.isalpha()):
            return char
        for ending in dice.sample(endings, len(endings)):
            kind = "CAPITAL" if char.isupper() else "SMALL"
            try:
                return unicodedata.lookup(f"LATIN {kind} LETTER {char.upper()} WITH {ending}")
            except KeyError:
                continue
        return char

    return "".join(map(letter, text))


def _combining(text: str) -> str:
    dice = _dice(text)
    return "".join(c + chr(dice.randrange(0x300, 0x36F)) if c.isascii() and c.isalpha() else c for c in text)


def _emoji(text: str) -> str:
    return " ".join("\N{SPARKLES}".join(word) for word in text.split())


def _inner_shuffle(text: str) -> str | None:
    if not _ascii(text):
        return None
    dice = _dice(text)

    def shuffled(word: str) -> str:
        if len(word) < 5 or not word.isalpha():
            return word
        inner = list(word[1:-1])
        at = dice.randrange(len(inner) - 1)
        inner[at], inner[at + 1] = inner[at + 1], inner[at]
        return word[0] + "".join(inner) + word[-1]

    return " ".join(map(shuffled, text.split(" ")))


def _stretched(text: str) -> str | None:
    if not _ascii(text):
        return None
    return "".join(char * 3 if char in "aeiou" else char for char in text)


def _bits(text: str) -> str:
    return " ".join(format(octet, "08b") for octet in text.encode())


def _character_codes(text: str) -> str | None:
    return ", ".join(str(ord(char)) for char in text) if _ascii(text) else None


def _morse(text: str) -> str | None:
    if not _ascii(text):
        return None
    return " / ".join(
        " ".join(_sign(char) for char in word if char.isalnum()) for word in text.lower().split()
    )


def _sign(char: str) -> str:
    """Morse by walking the tree of the code: E and T first, each next level one sign longer."""
    if char.isdigit():
        value = int(char)
        return (
            "." * min(value, 10 - value) + "-" * (5 - value) if value > 5 else "." * value + "-" * (5 - value)
        )
    path = "etianmsurwdkgohvf?l?pjbxcyzq??".index(char) + 2
    return format(path, "b")[1:].replace("0", ".").replace("1", "-")


def _atbash(text: str) -> str | None:
    if not _ascii(text):
        return None
    return "".join(
        chr(ord("a") + ord("z") - ord(c))
        if c.islower()
        else chr(ord("A") + ord("Z") - ord(c))
        if c.isupper()
        else c
        for c in text
    )


def _camel(text: str) -> str | None:
    words = "".join(char if char.isalnum() else " " for char in text).split()
    return "".join(word[:1].upper() + word[1:] for word in words) if _ascii(text) else None


def _mail(text: str) -> str:
    message = EmailMessage()
    message["Subject"] = "notes"
    message.set_content(text, cte="base64")
    return message.as_string()


def _uuencoded(text: str) -> str:
    octets = text.encode()
    lines = [binascii.b2a_uu(octets[i : i + 45]).decode() for i in range(0, len(octets), 45)]
    return "begin 644 note.txt\n" + "".join(lines) + "`\nend"


def _quoted_lines(text: str) -> str | None:
    return "\n".join("> " + line for line in textwrap.wrap(text, 18)) if " " in text else None


def _nested(text: str) -> str | None:
    return base64.urlsafe_b64encode(codecs.encode(text, "rot13").encode()).decode() if _ascii(text) else None


def _alternating(text: str) -> str:
    return "".join(char.upper() if index % 2 else char.lower() for index, char in enumerate(text))


def _one_typo(text: str) -> str | None:
    if not _ascii(text):
        return None
    dice = _dice(text)

    def mistyped(word: str) -> str:
        if len(word) < 8 or not word.isalpha():
            return word
        at = dice.randrange(1, len(word) - 1)
        return word[:at] + word[at + 1 :]

    return " ".join(map(mistyped, text.split(" ")))


def _markup(text: str) -> str:
    return " ".join(word[:2] + "<i></i>" + word[2:] if len(word) > 3 else word for word in text.split(" "))


def _ansi(text: str) -> str:
    """A terminal colour before every letter."""
    return "".join(f"\x1b[3{index % 8}m{char}" for index, char in enumerate(text)) + "\x1b[0m"


def _utf7(text: str) -> str:
    return "+" + base64.b64encode(text.encode("utf-16-be")).decode().rstrip("=") + "-"


def _plane(text: str) -> bool:
    return max(text, default="") <= "\uffff"


def _names(text: str) -> str:
    return "".join(f"\\N{{{unicodedata.name(c)}}}" if c.isalpha() else c for c in text)


def _joints(text: str) -> str:
    return 'note = "' + '" + "'.join(textwrap.wrap(text, 4, drop_whitespace=False)) + '"'


def _cells(text: str) -> str | None:
    return "| " + " | ".join(text.split()) + " |" if " " in text else None


def _bidi(text: str) -> str | None:
    return f"see \u202e{text[::-1]}\u202c" if _ascii(text) else None


def _pig_latin(text: str) -> str | None:
    if not _ascii(text):
        return None
    return re.sub(
        r"[A-Za-z]+",
        lambda word: (
            word[0] + "way"
            if word[0][0] in "aeiouAEIOU"
            else re.sub(r"^([^aeiouyAEIOUY]*)(.*)$", r"\2\1ay", word[0])
        ),
        text,
    )


def _json_string(text: str) -> str:
    return json.dumps({"note": _fullwidth(text)})


_MATHEMATICAL = _named("MATHEMATICAL SANS-SERIF {kind} {letter}")


def _known(name: str, apply: Callable[[str], str | None]) -> Transform:
    return Transform(name, "known", apply)


def _held_out(name: str, apply: Callable[[str], str | None]) -> Transform:
    return Transform(name, "held-out", apply)


TRANSFORMS: tuple[Transform, ...] = (
    _known("identity", lambda text: text),
    _known("base64", _base64),
    _known("zero-width", _zero_width),
    _known("leet", lambda text: text.translate(_LEET)),
    _known("homoglyph", lambda text: text.translate(_LOOKALIKE)),
    _known("rot13", lambda text: codecs.encode(text, "rot13") if _ascii(text) else None),
    _known("reversed", lambda text: text[::-1] if _ascii(text) else None),
    _known("percent", _percent),
    _known("html-entities", lambda text: "".join(f"&#x{ord(char):x};" for char in text)),
    _known("hex", lambda text: text.encode().hex()),
    _known("letter-spacing", _spaced),
    _known("fullwidth", _fullwidth),
    _known("tag-characters", _tags),
    _known("quoted-printable", _quoted_printable),
    _known("base32", lambda text: base64.b32encode(text.encode()).decode()),
    _known("unicode-escapes", _unicode_escapes),
    _known("gzip-base64", lambda text: base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()),
    _known("url-quoted", lambda text: "https://docs.example/search?q=" + quote(text)),
    _known("escaped-html", lambda text: f"<pre>{escape(text)}</pre>"),
    _known("soft-wrapped-qp", lambda text: quopri.encodestring(text.encode(), quotetabs=True).decode()),
    _known("camel-case", _camel),
    _known("uuencode", _uuencoded),
    _known("terminal-colours", _ansi),
    _known("utf-16-hex", lambda text: text.encode("utf-16-be").hex()),
    _known("utf-7", _utf7),
    _known("bare-entities", lambda text: "".join(f"&#{ord(char)}" for char in text)),
    _known("percent-u", lambda text: "".join(f"%u{ord(c):04x}" for c in text) if _plane(text) else None),
    _known("character-names", _names),
    _known("json-surrogates", lambda text: json.dumps(_MATHEMATICAL(text))),
    _known("string-joints", _joints),
    _held_out("fraktur", _named("MATHEMATICAL FRAKTUR {kind} {letter}")),
    _held_out("small-capitals", _named("LATIN LETTER SMALL CAPITAL {letter}")),
    _held_out("decorated", _decorated),
    _held_out("combining-marks", _combining),
    _held_out("emoji-gaps", _emoji),
    _held_out("inner-shuffle", _inner_shuffle),
    _held_out("one-typo", _one_typo),
    _held_out("stretched", _stretched),
    _held_out("bits", _bits),
    _held_out("character-codes", _character_codes),
    _held_out("morse", _morse),
    _held_out("atbash", _atbash),
    _held_out("mail-part", _mail),
    _held_out("quoted-lines", _quoted_lines),
    _held_out("rot13-in-base64", _nested),
    _held_out("alternating-case", _alternating),
    _held_out("split-by-tags", _markup),
    _held_out("json-fullwidth", _json_string),
    _held_out("circled", _named("CIRCLED LATIN {kind} LETTER {letter}")),
    _held_out("a-letter-a-line", "\n".join),
    _held_out("snake-case", lambda text: "_".join(text.split()) if " " in text else None),
    _held_out("table-cells", _cells),
    _held_out("bidi-override", _bidi),
    _held_out("pig-latin", _pig_latin),
)
