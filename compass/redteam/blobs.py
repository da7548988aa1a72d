"""Encoded runs: base16/32/58/64/85, character codes in other number systems, Morse, and gzip inside them."""

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Iterator

from compass.redteam import linear
from compass.redteam.piece import Piece, lines_around
from compass.redteam.reading import Reading

_BASE64 = linear.compile(r"[A-Za-z0-9+/_-]{16,}(?:\r?\n[ \t]{0,8}[A-Za-z0-9+/_-]{8,})*={0,2}")
#: base85 is tried on runs of so many characters, and decoded in parts of so many.
_B85_SHORTEST, _B85_LONGEST = 20, 4096
_SOLID = re.compile(rf"[!-~]{{{_B85_SHORTEST},}}")
#: Lines of uuencode know neither small letters nor anything past a backquote, and are at most 61 long.
_UU_LINES = linear.compile(r"(?m)^[!-M][ -`]{8,62}$(?:\r?\n[!-M][ -`]{4,62}$)*")
_HEX_PAIRS = re.compile(
    r"(?:(?:0x|\\x|%|#)?[0-9a-fA-F]{2}(?:[ ,:;\-]{1,2}|(?=0x|\\x))){7,}(?:0x)?[0-9a-fA-F]{2}\b"
)
_BINARY = re.compile(r"(?:[01]{7,8}[ ,\-]{0,2}){5,}")
_DECIMAL = re.compile(r"(?:\b\d{2,3}[ ,;\-]{1,2}){7,}\d{2,3}\b")
_MORSE = re.compile(r"(?:[.\-·−–_]{1,6}[ /|]{1,3}){8,}[.\-·−–_]{1,6}")
_NOT_HEX = re.compile(r"0x|\\x|[^0-9a-fA-F]")
#: Cheap and linear: without a match here none of the number patterns can match.
_CODES = linear.compile(
    r"(?:[0-9a-fA-F]{2}(?:[ ,:;\-]{1,2}|0x|\\x)(?:0x|\\x|#)?){5,}|(?:[01]{7,8}[ ,\-]{0,2}){5,}"
    r"|(?:[0-9]{2,3}[ ,;\-]{1,2}){5,}|(?:[.\-·−–_]{1,6}[ /|]{1,3}){6,}"
)
_PUNCTUATION = frozenset("!#$%&()*+;<=>?@^_`{|}~'\",./:[]\\-")

_HEX = re.compile(r"[0-9a-fA-F]+")
_B32 = re.compile(r"(?:[A-Z2-7]+|[a-z2-7]+)={0,6}")
_B58 = {c: i for i, c in enumerate("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")}
_MORSE_SIGNS = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- "
    "--.. .---- ..--- ...-- ....- ..... -.... --... ---.. ----. -----"
)
_MORSE_LETTERS = dict(zip(_MORSE_SIGNS.split(), "abcdefghijklmnopqrstuvwxyz1234567890", strict=True))
_DASHES = str.maketrans("·−–_", ".---")

#: What one compressed run may unfold to, in bytes.
_UNPACKED = 65_536
#: base58 is quadratic in its length, so longer runs are not tried.
_B58_LONGEST = 256


def pieces(reading: Reading) -> Iterator[Piece]:
    """Runs that decode to something readable, each with the layers that were undone."""
    text = reading.text
    for match in _BASE64.finditer(text):
        start, end = match.start(), match.end()
        yield from _first(start, end, text[start:end], _ALPHABETS)
    codes = [(match.start(), match.end()) for match in _CODES.finditer(text)]
    for start, end in lines_around(text, codes):
        yield from _numbers(text, start, end)
    for match in _UU_LINES.finditer(text):
        plain = readable(b"".join(map(_uu, text[match.start() : match.end()].splitlines())))
        if plain:
            yield Piece(match.start(), match.end(), plain, ("uuencode",))
    for start, end in _solid(text):
        run = text[start:end]
        if len(_PUNCTUATION.intersection(run)) > 3 and "://" not in run:
            yield from _first(start, end, run, _RADIX85)


def _uu(line: str) -> bytes:
    """One line: the first character counts octets, each other one carries six bits."""
    number = 0
    for char in line[1:]:
        number = number << 6 | (ord(char) - 32 & 63)
    bits = 6 * (len(line) - 1)
    octets = (number >> bits % 8).to_bytes(bits // 8, "big") if bits >= 8 else b""
    return octets[: ord(line[0]) - 32 & 63]


def _solid(text: str) -> Iterator[tuple[int, int]]:
    """Runs without a space, in parts that are decoded at once; splitting is the quickest way to the few."""
    cursor = 0
    for word in text.split():
        if len(word) >= _B85_SHORTEST:
            at = text.index(word, cursor)
            cursor = at + len(word)
            for match in _SOLID.finditer(word):
                for start in range(at + match.start(), at + match.end(), _B85_LONGEST):
                    yield start, min(at + match.end(), start + _B85_LONGEST)


def _numbers(text: str, start: int, end: int) -> Iterator[Piece]:
    for match in _HEX_PAIRS.finditer(text, start, end):
        yield from _first(*match.span(), _NOT_HEX.sub("", match[0]), (("hex", _hex),))
    for match in _BINARY.finditer(text, start, end):
        yield from _first(*match.span(), match[0], (("binary", _binary),))
    for match in _DECIMAL.finditer(text, start, end):
        yield from _first(*match.span(), match[0], (("octal", _octal), ("decimal", _decimal)))
    for match in _MORSE.finditer(text, start, end):
        plain = _morse(match[0])
        if plain:
            yield Piece(*match.span(), plain, ("morse",))


def _first(
    start: int, end: int, run: str, decoders: tuple[tuple[str, Callable[[str], bytes]], ...]
) -> Iterator[Piece]:
    for layer, decode in decoders:
        try:
            octets = decode(run)
        except (ValueError, binascii.Error, OverflowError):
            continue
        packed = _unpack(octets)
        plain = readable(packed or octets)
        if plain is not None:
            yield Piece(start, end, plain, (layer, "compressed") if packed else (layer,))
            return


def readable(octets: bytes) -> str | None:
    """``octets`` as text when they are mostly letters, spaces and line ends; None otherwise."""
    if len(octets) < 6:
        return None
    encoding = "utf-8"
    for start, wide in ((1, "utf-16-le"), (0, "utf-16-be")):
        if octets[start::2].count(0) * 3 > len(octets):
            encoding = wide
    try:
        text = octets.decode(encoding)
    except UnicodeDecodeError:
        return None
    shown = sum(char.isprintable() or char in "\n\r\t" for char in text)
    words = sum(char.isalpha() or char == " " for char in text)
    return text if shown * 20 >= len(text) * 19 and words * 10 >= len(text) * 6 else None


def _unpack(octets: bytes) -> bytes:
    if octets[:2] != b"\x1f\x8b" and octets[:1] != b"\x78":
        return b""
    try:
        return zlib.decompressobj(wbits=47).decompress(octets, _UNPACKED)
    except zlib.error:
        return b""


def _hex(run: str) -> bytes:
    if len(run) < 12 or not _HEX.fullmatch(run):
        raise ValueError("not base16")
    return bytes.fromhex(run)


def _base32(run: str) -> bytes:
    if not _B32.fullmatch(run):
        raise ValueError("not base32")
    plain = run.upper().rstrip("=")
    return base64.b32decode(plain + "=" * (-len(plain) % 8))


def _base64(run: str) -> bytes:
    if run.islower() or run.isupper():
        raise ValueError("a word, not base64")
    plain = "".join(run.split()).rstrip("=").replace("-", "+").replace("_", "/")
    if len(plain) % 4 == 1:
        plain = plain[:-1]
    return binascii.a2b_base64(plain + "=" * (-len(plain) % 4))


def _base58(run: str) -> bytes:
    if len(run) > _B58_LONGEST or run.islower() or not _B58.keys() >= set(run):
        raise ValueError("not base58")
    number = 0
    for char in run:
        number = number * 58 + _B58[char]
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _base85(run: str) -> bytes:
    # The library decodes letter by letter in Python; a short look first keeps long runs of punctuation cheap.
    if readable(base64.b85decode(run[:40])) is None:
        raise ValueError("not base85 text")
    return base64.b85decode(run)


def _ascii85(run: str) -> bytes:
    return base64.a85decode(run.removeprefix("<~").removesuffix("~>"))


def _binary(run: str) -> bytes:
    groups = re.findall(r"[01]+", run)
    if len(groups) == 1:
        groups = re.findall(r"[01]{8}", groups[0])
    return bytes(int(group, 2) for group in groups)


def _decimal(run: str) -> bytes:
    return bytes(int(code) for code in re.findall(r"\d+", run))


def _octal(run: str) -> bytes:
    return bytes(int(code, 8) for code in re.findall(r"\d+", run))


def _morse(run: str) -> str:
    words = re.split(r" {2,}|\s?[/|]\s?", run.translate(_DASHES))
    letters = [[_MORSE_LETTERS.get(sign, "") for sign in word.split()] for word in words]
    known = sum(bool(letter) for word in letters for letter in word)
    return " ".join("".join(word) for word in letters) if known >= 8 and len(letters) > 1 else ""


_ALPHABETS = (("hex", _hex), ("base32", _base32), ("base64", _base64), ("base58", _base58))
_RADIX85 = (("base85", _base85), ("ascii85", _ascii85))
