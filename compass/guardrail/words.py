"""What a shell word becomes: quotes, escapes, braces, tilde, variables, substitutions and globs, without a
shell.

A value is a string in which a few Unicode noncharacters stand for what is not known: see ``UNKNOWN`` and its
neighbours. They survive joining, assignment and piping, so "this came from a secret" follows the data by
itself.
"""

import re
from collections.abc import Callable, Mapping
from itertools import product

from compass.guardrail.extents import closing

#: Stands for text that only a run would show.
UNKNOWN = "\ufdd0"
#: Text read from a secret (a key, a token, the environment).
SECRET = "\ufdd1"  # noqa: S105
#: Text that came over the network.
REMOTE = "\ufdd2"
#: Text that was decoded or decrypted on the way; what is known of it follows.
DECODED = "\ufdd3"
#: Unquoted glob characters ``*``, ``?`` and ``[``.
STAR, QUESTION, BRACKET = "\ufdd4", "\ufdd5", "\ufdd6"
#: The script's own name, ``$0``.
SELF = "\ufdd7"
#: A literal blank that an expansion brought in, at which unquoted words split.
_SPLIT = "\ufdd8"

_MARKS = re.compile("[\ufdd0-\ufdd8]")
_ORIGINS = re.compile("[\ufdd1-\ufdd3]")
_GLOBS = str.maketrans({STAR: "*", QUESTION: "?", BRACKET: "["})
_TO_GLOB = str.maketrans({"*": STAR, "?": QUESTION, "[": BRACKET})

#: Most words a brace expansion may make; longer ones stay as written.
BRACES = 128
#: Braces that turn out to be none, after which a word's further ones are taken as they stand.
_FAILURES = 16
#: Longest value kept; the rest of it is UNKNOWN.
VALUE = 70_000

Values = Mapping[str, str]
Substitute = Callable[[str], str]

_BLANKS = re.compile(r"[ \t\n]+")
_PIECE = re.compile(r"[^\\'\"`$*?\[<>\ufdd0-\ufdd8]+")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!_-]")
_BRACED = re.compile(r"(!?)([A-Za-z_]\w*|[0-9]+|[@*#?$!-])(?:\[[^\]]*\])?", re.S)
_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.S)
_SIMPLE_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v",
}  # fmt: skip
_RANGE = re.compile(r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.-?\d{1,3})?$")
_FREE = re.compile(r"[\w./:=@%+,-]+$")


def sanitise(text: str) -> str:
    """``text`` without the noncharacters that this module gives a meaning."""
    return _MARKS.sub("\ufffd", text)


def plain(value: str) -> str:
    """``value`` as a person would read it: globs back as characters, origin marks dropped, the unknown as
    ``…``."""
    return _ORIGINS.sub("", value).translate(_GLOBS).replace(UNKNOWN, "…").replace(SELF, "$0")


def known(value: str) -> str:
    """``value`` without the marks of origin; UNKNOWN and globs stay."""
    return _ORIGINS.sub("", value)


def origins(value: str) -> str:
    """Only the marks of origin in ``value``, each once."""
    return "".join(mark for mark in (SECRET, REMOTE, DECODED) if mark in value)


def unescape(text: str) -> str:
    """ANSI-C escapes as ``$'…'``, ``printf`` and ``echo -e`` read them."""

    def one(found: re.Match[str]) -> str:
        code = found.group(1)
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
            return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else ""
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        if code[0] == "c" and len(code) > 1:
            return chr(ord(code[1]) & 0x1F)
        return _SIMPLE_ESCAPES.get(code, code if code in "\\'\"?" else "\\" + code)

    return _ANSI.sub(one, text) if "\\" in text else text


def braces(raw: str) -> list[str]:
    """Brace expansion of a word as written, at most ``BRACES`` words; a word that would make more stays
    one."""
    if "{" not in raw:
        return [raw]
    pieces: list[list[str]] = [[""]]
    total, at, start, failures = 1, 0, 0, 0
    while at < len(raw):
        char = raw[at]
        if char == "\\":
            at += 2
        elif char in "'\"`":
            at = closing(raw, at + 1, char) if char != "'" else (raw.find("'", at + 1) + 1 or len(raw))
        elif char == "$" and raw[at + 1 : at + 2] in ("{", "("):
            at = closing(raw, at + 2, raw[at + 1])
        elif char == "{" and failures < _FAILURES:
            options = _alternatives(raw, at)
            if options is None:
                failures += 1
                at += 1
                continue
            words, end = options
            total *= len(words)
            if total > BRACES or len(pieces) > BRACES:
                return [raw]
            pieces += [[raw[start:at]], words]
            at = start = end
        else:
            at += 1
    if len(pieces) == 1:
        return [raw]
    pieces.append([raw[start:]])
    return ["".join(parts) for parts in product(*pieces)]


def _alternatives(raw: str, at: int, depth: int = 0) -> tuple[list[str], int] | None:  # noqa: PLR0912
    """The words of the brace expression that opens at ``at``, and where it ends; None if it is none."""
    if depth > 4:
        return None
    parts: list[str] = []
    start = scan = at + 1
    level = 0
    limit = min(len(raw), at + 4_000)
    while scan < limit:
        char = raw[scan]
        if char == "\\":
            scan += 1
        elif char == "'" and "'" in raw[scan + 1 :]:
            scan = raw.index("'", scan + 1)
        elif char == "{":
            level += 1
        elif char == "," and level == 0:
            parts.append(raw[start:scan])
            start = scan + 1
        elif char == "}":
            if level == 0:
                break
            level -= 1
        scan += 1
    else:
        return None
    last = raw[start:scan]
    if parts:
        words = [word for part in [*parts, last] for word in _nested(part, depth)]
        return words, scan + 1
    found = _RANGE.match(last)
    if not found:
        return None
    first, final = found.groups()
    if first.lstrip("-").isdigit() and final.lstrip("-").isdigit():
        low, high = int(first), int(final)
        if abs(high - low) >= BRACES:
            return None
        step = 1 if high >= low else -1
        return [str(number) for number in range(low, high + step, step)], scan + 1
    if len(first) == len(final) == 1 and first.isalpha() and final.isalpha():
        step = 1 if final >= first else -1
        return [chr(code) for code in range(ord(first), ord(final) + step, step)], scan + 1
    return None


def _nested(part: str, depth: int) -> list[str]:
    opening = part.find("{")
    inner = _alternatives(part, opening, depth + 1) if opening >= 0 else None
    if inner is None:
        return [part]
    words, end = inner
    return [part[:opening] + word + part[end:] for word in words]


class Expander:
    """Expands words against ``values``; ``substitute`` runs a command substitution's text for its output."""

    def __init__(self, values: Values, substitute: Substitute, home: str = "/home/user") -> None:
        self.values = values
        self.substitute = substitute
        self.home = home

    def fields(self, raw: str) -> list[str]:
        """The fields that ``raw`` becomes, with quotes removed and unquoted expansions split."""
        if _FREE.match(raw):
            return [raw]
        if raw in ('"$@"', '"${@}"') and UNKNOWN not in (words := self.values.get("@", UNKNOWN)):
            return words.split(" ") if words else []
        found: list[str] = []
        for word in braces(raw):
            value = self._word(word, split=True)
            if _SPLIT in value:
                found += [part for part in value.split(_SPLIT) if part]
            elif value or "'" in word or '"' in word:
                found.append(value)
        return found

    def one(self, raw: str) -> str:
        """``raw`` as one value: an assignment's right side, a here-string, a redirection's target."""
        if _FREE.match(raw):
            return raw
        return self._word(raw, split=False)

    def document(self, text: str) -> str:
        """A here-document's body with its expansions done."""
        return self._quoted(text) if ("$" in text or "`" in text) else text

    def _word(self, raw: str, *, split: bool) -> str:  # noqa: PLR0912
        out: list[str] = []
        at, end = 0, len(raw)
        if raw.startswith("~"):
            name = re.match(r"~([\w.+-]*)(?=/|$|:)", raw)
            if name:
                out.append(self._tilde(name.group(1)))
                at = name.end()
        while at < end:
            found = _PIECE.match(raw, at)
            if found:
                out.append(found.group())
                at = found.end()
                continue
            char = raw[at]
            if char == "\\":
                out.append(raw[at + 1 : at + 2] if raw[at + 1 : at + 2] != "\n" else "")
                at += 2
            elif char == "'":
                close = raw.find("'", at + 1)
                close = end if close < 0 else close
                out.append(raw[at + 1 : close])
                at = close + 1
            elif char == '"':
                close = closing(raw, at + 1, '"')
                out.append(self._quoted(raw[at + 1 : close - raw.startswith('"', close - 1)]))
                at = close
            elif char == "$" and raw.startswith("'", at + 1):
                close = at + 2
                while close < end and raw[close] != "'":
                    close += 2 if raw[close] == "\\" else 1
                out.append(unescape(raw[at + 2 : close]))
                at = close + 1
            elif char == "$" and raw.startswith('"', at + 1):
                at += 1
            elif char in "$`" or (char in "<>" and raw.startswith("(", at + 1)):
                value, at = self._expansion(raw, at)
                out.append(self._split(value) if split else value)
            elif char in "*?[":
                out.append(char.translate(_TO_GLOB))
                at += 1
            else:
                out.append(char)
                at += 1
        value = "".join(out)
        return value if len(value) <= VALUE else value[:VALUE] + UNKNOWN + origins(value)

    def _split(self, value: str) -> str:
        """Mark where an unquoted expansion splits and globs."""
        separators = self.values.get("IFS", " \t\n")
        if separators == " \t\n" or UNKNOWN in separators or not separators:
            return _BLANKS.sub(_SPLIT, value.translate(_TO_GLOB))
        return re.sub(f"[{re.escape(separators)}]+", _SPLIT, value.translate(_TO_GLOB))

    def _quoted(self, text: str) -> str:
        """The inside of double quotes, or a here-document."""
        out: list[str] = []
        at, end = 0, len(text)
        while at < end:
            found = re.compile(r"[^\\$`]+").match(text, at)
            if found:
                out.append(found.group())
                at = found.end()
            elif text[at] == "\\":
                following = text[at + 1 : at + 2]
                out.append(
                    "" if following == "\n" else following if following in '$`"\\' else "\\" + following
                )
                at += 2
            else:
                value, at = self._expansion(text, at)
                out.append(value)
        return "".join(out)

    def _expansion(self, text: str, at: int) -> tuple[str, int]:
        """The value of the expansion at ``at`` and the offset past it."""
        char, following = text[at], text[at + 1 : at + 2]
        if char == "`":
            close = closing(text, at + 1, "`")
            inner = text[at + 1 : close - text.startswith("`", close - 1)]
            return self.substitute(re.sub(r"\\([`\\$])", r"\1", inner)).rstrip("\n"), close
        if char in "<>" or (following == "(" and text[at + 2 : at + 3] != "("):
            close = closing(text, at + 2, "(")
            output = self.substitute(text[at + 2 : close - 1])
            # A process substitution is a file name; its origin is what matters of it.
            return (output if char == "$" else "/dev/fd/63" + (origins(output) or UNKNOWN)).rstrip(
                "\n"
            ), close
        if following == "(":
            close = closing(text, at + 2, "(")
            return self._arithmetic(text[at + 3 : close - 2]), close
        if following == "{":
            close = closing(text, at + 2, "{")
            return self._parameter(text[at + 2 : close - text.startswith("}", close - 1)]), close
        name = _NAME.match(text, at + 1)
        if name is None:
            return "$", at + 1
        return self._value(name.group()), name.end()

    def _value(self, name: str) -> str:
        return self.values.get(name, UNKNOWN)

    @staticmethod
    def _arithmetic(text: str) -> str:
        found = re.fullmatch(r"\s*(\d{1,9})\s*(?:([+*-])\s*(\d{1,9}))?\s*", text)
        if not found:
            return UNKNOWN
        left, sign, right = found.groups()
        if not sign:
            return str(int(left))
        a, b = int(left), int(right)
        return str(a + b if sign == "+" else a - b if sign == "-" else a * b)

    def _parameter(self, text: str) -> str:
        """``${…}``: plain, default, alternative, trimmed, replaced, sliced, cased or indirect."""
        if text.startswith("#") and len(text) > 1:
            return UNKNOWN
        found = _BRACED.match(text)
        if found is None:
            return UNKNOWN
        value = self._value(found.group(2))
        rest = text[found.end() :]
        if found.group(1):
            value = self._value(value) if value.isidentifier() else UNKNOWN
        if not rest:
            return value
        operator = rest[:2] if rest[:1] == ":" and rest[1:2] in ("-", "=", "+", "?") else rest[:1]
        argument = rest[len(operator) :]
        match operator:
            case ":-" | "-" | ":=" | "=":
                # What is unset here may be unset where it runs: the default is the case to judge.
                return (
                    (self._word(argument, split=False) or UNKNOWN) if UNKNOWN in value or not value else value
                )
            case ":+" | "+":
                return self._word(argument, split=False)
            case "?" | ":?":
                return value or UNKNOWN
        return self._edited(value, operator, argument)

    def _edited(self, value: str, operator: str, argument: str) -> str:
        if UNKNOWN in value:
            return UNKNOWN + origins(value)
        match operator:
            case "^":
                return value.upper() if argument.startswith("^") else value[:1].upper() + value[1:]
            case ",":
                return value.lower() if argument.startswith(",") else value[:1].lower() + value[1:]
            case ":":
                sliced = re.fullmatch(r"\s*(-?\d{1,6})\s*(?::\s*(-?\d{1,6})\s*)?", argument)
                if not sliced:
                    return UNKNOWN
                start = int(sliced.group(1))
                tail = value[start:]
                if sliced.group(2) is None:
                    return tail
                return tail[: int(sliced.group(2))]
            case "/":
                pattern, _, new = argument.lstrip("/").partition("/")
                pattern, new = self._word(pattern, split=False), self._word(new, split=False)
                if not pattern or STAR in pattern or QUESTION in pattern or BRACKET in pattern:
                    return UNKNOWN + origins(value)
                return value.replace(pattern, new, -1 if argument.startswith("/") else 1)
            case "#" | "%":
                pattern = self._word(argument.lstrip(operator), split=False)
                if operator == "#" and pattern and value.startswith(pattern):
                    return value[len(pattern) :]
                if operator == "%" and pattern and value.endswith(pattern):
                    return value[: -len(pattern)]
                return UNKNOWN + origins(value) if STAR in pattern or QUESTION in pattern else value
        return UNKNOWN + origins(value)

    def _tilde(self, name: str) -> str:
        if not name:
            return self.home
        if name in ("+", "-"):
            return UNKNOWN
        return "/root" if name == "root" else f"/home/{name}"
