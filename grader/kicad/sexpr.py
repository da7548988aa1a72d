"""A bounded reader for KiCad's s-expressions: bytes in, spans out (Standard §4).

A file is checked once, whole, by one regular expression whose nesting is written out to a fixed depth, so
that matching runs in C, in linear time, without recursion and without building anything. Nodes are spans of
the checked bytes; children and texts are found when asked for, and subtrees nobody asks for are skipped.

The grammar is that of KiCad's own lexer, minus what KiCad never writes and what two readers could
understand differently: a NUL, as a byte or escaped (KiCad's text ends there, and what follows is seen by
nobody), a line break inside a string, a quote in the middle of an atom. Refusing those keeps a crafted file
from showing us one design and KiCad another. A line whose first sign is ``#`` is a comment.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import cast

from grader.kicad.errors import Unjudgeable

SPACE = rb"[ \t\r\n]"
# Every quote must open a string right after a space, a parenthesis or another string.
_OPENING = rb'(?<![^ \t\r\n()"])"'
# The escapes whose value is 0: hexadecimal, and octal cut to a byte.
_NUL = rb"x0(?:0|(?![0-9A-Fa-f]))|[04]00|00?(?![0-7])"
STRING = _OPENING + rb'(?:[^"\\\n]++|\\(?!' + _NUL + rb')[^\n])*+"'
ATOM = rb'[^()" \t\r\n]++'
# A possessive run of all that is neither parenthesis nor string: atoms and the space between them.
_LOOSE = rb'[^()"]++'
_COMMENT = re.compile(rb"\n[ \t\r]*+#[^\n]*+")
_FIRST_COMMENT = re.compile(rb"[ \t\r]*+#[^\n]*+")
_TOKEN = re.compile(rb"(" + STRING + rb")|(" + ATOM + rb")|([()])|(" + SPACE + rb"++)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps of one file; each is tested at, below and above."""

    size: int = 128 * 1024 * 1024
    """Bytes."""
    depth: int = 40
    """Nested lists. KiCad's own files stay below 16."""
    text: int = 4 * 1024 * 1024
    """Bytes of one atom or string that is read as text."""


DEFAULT = Limits()
KEPT = 1024
"""How many files' readings a process keeps: those of a design. A grading process lives for one record."""
Nested = list["str | Nested"]
"""A list of texts and lists."""


class BadSyntax(Unjudgeable):
    """The bytes are not an s-expression within the limits; names file, line and reason."""


def _list(depth: int) -> bytes:
    pattern = rb"\((?:" + _LOOSE + rb"|" + STRING + rb")*+\)"
    for _ in range(depth - 1):
        pattern = rb"\((?:" + _LOOSE + rb"|" + STRING + rb"|" + pattern + rb")*+\)"
    return pattern


@lru_cache(maxsize=8)
def _document(depth: int) -> re.Pattern[bytes]:
    return re.compile(SPACE + rb"*+(" + _list(depth) + rb")" + SPACE + rb"*+")


@lru_cache(maxsize=8)
def _subtree(depth: int) -> re.Pattern[bytes]:
    return re.compile(_list(depth))


@lru_cache(maxsize=8)
def _items(depth: int) -> re.Pattern[bytes]:
    return re.compile(rb"(" + STRING + rb")|(" + _list(depth) + rb")|" + ATOM)


@lru_cache(maxsize=256)
def _wanted(names: tuple[str, ...], depth: int) -> re.Pattern[bytes]:
    """Pattern whose group 1 is the next child list with one of ``names``; others are skipped inside C."""
    subtree = _list(depth)
    either = rb"|".join(re.escape(name.encode()) for name in names)
    head = rb"\(" + SPACE + rb"*+(?:" + either + rb")(?=[ \t\r\n()\"])"
    skip = rb"(?:" + _LOOSE + rb"|" + STRING + rb"|(?!" + head + rb")" + subtree + rb")*+"
    return re.compile(skip + rb"(?=" + head + rb")(" + subtree + rb")")


_WITH_NUL = re.compile(_OPENING + rb'(?:[^"\\\n]++|\\[^\n])*?\\(?:' + _NUL + rb")")
_NAME = re.compile(rb"\(" + SPACE + rb"*+(" + ATOM + rb")")
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_SIMPLE = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
    b'"': b'"',
    b"\\": b"\\",
    b"x": b"x",
}


def _unescape(match: re.Match[bytes]) -> bytes:
    if match[1] is not None:
        return bytes([int(match[1], 16)])
    if match[2] is not None:
        return bytes([int(match[2], 8) & 0xFF])
    # KiCad reads an unknown escape as a backslash followed by the sign.
    return _SIMPLE.get(match[3], b"\\" + match[3])


def unquote(raw: bytes) -> str:
    """The text of a quoted string, its quotes included in ``raw``, with KiCad's escapes resolved."""
    body = raw[1:-1]
    if b"\\" in body:
        body = _ESCAPE.sub(_unescape, body)
    return body.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Atom:
    """A text in a list: bare or quoted."""

    text: str
    quoted: bool
    start: int
    """Byte offset of its first sign in the source."""
    end: int
    """Byte offset behind its last."""


class Node:
    """One list: a span of checked source."""

    __slots__ = ("_limits", "_source", "end", "start")

    def __init__(self, source: bytes, start: int, end: int, limits: Limits) -> None:
        self._source = source
        self._limits = limits
        self.start = start
        """Byte offset of the opening parenthesis."""
        self.end = end
        """Byte offset behind the closing one."""

    def __repr__(self) -> str:
        return f"<{self.name} {self.start}:{self.end}>"

    @property
    def source(self) -> bytes:
        """The bytes of this list, as they stand in the file (a comment in it is blanked)."""
        return self._source[self.start : self.end]

    @property
    def name(self) -> str:
        """The bare atom that opens the list; empty if it opens with anything else."""
        match = _NAME.match(self._source, self.start, self.end)
        return match[1].decode("utf-8", "surrogateescape") if match else ""

    def lists(self, *names: str) -> Iterator[Node]:
        """The direct child lists, in order; with ``names``, only those so named (the others cost little)."""
        source, limits = self._source, self._limits
        if names:
            pattern, position, end = _wanted(names, limits.depth), self.start + 1, self.end - 1
            # Anchored matches: a search would try again at every byte once nothing more is there.
            while match := pattern.match(source, position, end):
                position = match.end()
                yield Node(source, match.start(1), position, limits)
            return
        for match in _items(limits.depth).finditer(source, self.start + 1, self.end - 1):
            if match[2] is not None:
                yield Node(source, match.start(), match.end(), limits)

    def first(self, *names: str) -> Node | None:
        """The first direct child list so named."""
        return next(self.lists(*names), None)

    def at(self, offset: int) -> Node | None:
        """The list that opens at a byte offset of :attr:`source`, however deep it lies."""
        match = _subtree(self._limits.depth).match(self._source, self.start + offset, self.end)
        return Node(self._source, match.start(), match.end(), self._limits) if match else None

    def items(self) -> Iterator[Node | Atom]:
        """All direct children, in order."""
        source, limits = self._source, self._limits
        for match in _items(limits.depth).finditer(source, self.start + 1, self.end - 1):
            start, end = match.span()
            if match.lastindex == 2:
                yield Node(source, start, end, limits)
            elif end - start > limits.text:
                raise BadSyntax(f"line {_line(source, start)}: a text of more than {limits.text} bytes")
            elif match.lastindex == 1:
                yield Atom(unquote(source[start:end]), True, start, end)
            else:
                yield Atom(source[start:end].decode("utf-8", "surrogateescape"), False, start, end)

    def texts(self) -> list[str]:
        """The direct atoms and strings, the name among them."""
        return [item.text for item in self.items() if isinstance(item, Atom)]

    @property
    def value(self) -> str:
        """The first text behind the name; empty if there is none."""
        item = next(islice(self.items(), 1, None), None)
        return item.text if isinstance(item, Atom) else ""

    def get(self, *path: str) -> str:
        """The value of the child list reached by ``path``; empty if there is none."""
        node: Node | None = self
        for name in path:
            node = node.first(name) if node else None
        return node.value if node else ""

    def tree(self) -> Nested:
        """All below as nested lists of texts, built in one pass; quoted and bare texts look alike.

        Raises:
            BadSyntax: a text is longer than the limit.
        """
        return tree_of(self.source, self._limits)

    def line(self) -> int:
        """The 1-based line it starts on."""
        return _line(self._source, self.start)


# In order: a list of bare atoms; a list of a name and one plain string; an opening with its first atoms;
# a closing; a plain string; a string with escapes; atoms. Whole small lists at a time keep the loop short.
_PIECE = re.compile(
    r'\(([^()"]*+)\)'
    r'|\(([^()" \t\r\n]++)[ \t\r\n]++"([^"\\\n]*+)"[ \t\r\n]*+\)'
    r'|\(([^()"]*+)'
    r"|(\))"
    r'|"([^"\\\n]*+)"'
    r'|("(?:[^"\\\n]++|\\[^\n])*+")'
    r'|([^()" \t\r\n][^()"]*+)'
)
_PART = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"|[^()" \t\r\n]++')
_ODD_SPACE = re.compile(r"[^\S \t\r\n]")


def tree_of(source: bytes, limits: Limits = DEFAULT) -> Nested:
    """:meth:`Node.tree` of a checked node's source.

    Raises:
        BadSyntax: a text is longer than the limit.
    """
    text = source.decode("utf-8", "surrogateescape")
    # str.split() also splits at spaces that KiCad takes for signs.
    split = str.split if _ODD_SPACE.search(text) is None else _split
    collecting = gc.isenabled()
    # Collections while a million lists are being made find nothing and cost a third of the time.
    gc.disable()
    try:
        return _stack(text, split, limits)
    finally:
        if collecting:
            gc.enable()


def _stack(text: str, split: Callable[[str], list[str]], limits: Limits) -> Nested:
    current: Nested = []
    open_lists: list[Nested] = []
    for match in _PIECE.finditer(text):
        kind = match.lastindex
        start, end = match.span()
        if end - start > limits.text and len(max(_PART.findall(match[0]), key=len)) > limits.text:
            raise BadSyntax(f"a text of more than {limits.text} bytes")
        if kind == 1:
            current.append(cast(Nested, split(match[1])))
        elif kind == 3:
            current.append([match[2], match[3]])
        elif kind == 4:
            below = cast(Nested, split(match[4]))
            current.append(below)
            open_lists.append(current)
            current = below
        elif kind == 5:
            current = open_lists.pop()
        elif kind == 6:
            current.append(match[6])
        elif kind == 7:
            current.append(unquote(match[7].encode("utf-8", "surrogateescape")))
        else:
            current.extend(split(match[8]))
    return cast(Nested, current[0])


def _split(text: str) -> list[str]:
    return [part for part in re.split(r"[ \t\r\n]+", text) if part]


def _line(source: bytes, offset: int) -> int:
    return source.count(b"\n", 0, offset) + 1


# A run's files are mostly the fixture's, and each is asked for by several reports.
@lru_cache(maxsize=KEPT)
def parse(data: bytes, about: str, limits: Limits = DEFAULT) -> Node:
    """Check a whole file and return its one top-level list.

    Args:
        data: the file. A UTF-8 byte order mark is skipped; CRLF and LF are the same.
        about: what the file is called in errors.
        limits: caps on size, depth and text length.

    Raises:
        BadSyntax: with file, line and reason; never anything else for any bytes.
    """
    if len(data) > limits.size:
        raise BadSyntax(f"{about}: larger than {limits.size} bytes")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadSyntax(f"{about}: line 1: UTF-16, KiCad files are UTF-8")
    if (nul := data.find(b"\0")) >= 0:
        raise BadSyntax(f"{about}: line {_line(data, nul)}: a NUL byte")
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    # A sign right behind a quote ("#PWR01", the usual one) cannot open a comment line.
    if data.count(b"#") != data.count(b'"#'):
        data = _without_comments(data, start)
    match = _document(limits.depth).fullmatch(data, start)
    if match is None:
        raise BadSyntax(f"{about}: {_diagnose(data, start, limits)}")
    return Node(data, match.start(1), match.end(1), limits)


def _without_comments(data: bytes, start: int) -> bytes:
    """Blank the comment lines instead of cutting them, so that spans stay those of the file."""
    data = _COMMENT.sub(lambda match: b"\n" + b" " * (len(match[0]) - 1), data)
    if first := _FIRST_COMMENT.match(data, start):
        data = data[:start] + b" " * (first.end() - start) + data[first.end() :]
    return data


def _diagnose(data: bytes, start: int, limits: Limits) -> str:
    """Why :func:`parse` refused: walks token by token, only for files that are wrong already."""
    depth, position, lists = 0, start, 0
    while position < len(data):
        match = _TOKEN.match(data, position)
        if match is None:
            return f"line {_line(data, position)}: {_bad_quote(data, position)}"
        position = match.end()
        if match[4] is not None:
            continue
        if match[3] == b"(":
            if depth == 0:
                lists += 1
                if lists > 1:
                    return f"line {_line(data, match.start())}: more than one top-level list"
            depth += 1
            if depth > limits.depth:
                return f"line {_line(data, match.start())}: nested deeper than {limits.depth} lists"
        elif match[3] == b")":
            depth -= 1
            if depth < 0:
                return f"line {_line(data, match.start())}: a closing parenthesis too many"
        elif depth == 0:
            return f"line {_line(data, match.start())}: text outside the list"
    if depth:
        return f"line {_line(data, len(data))}: ends inside {depth} open list{'s' if depth > 1 else ''}"
    return "empty: no list in it"


def _bad_quote(data: bytes, position: int) -> str:
    if position and data[position - 1 : position] not in b' \t\r\n()"':
        return "a quote in the middle of an atom"
    if _WITH_NUL.match(data, position):
        return "an escaped NUL in a string"
    return "a string without an end on its line"
