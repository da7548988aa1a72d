"""Read KiCad's s-expressions into nested lists of strings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from scaffold.errors import Off

Node: TypeAlias = "list[Node | str]"

_TOKEN = re.compile(r'\s*(?:([()])|"((?:[^"\\]|\\.)*)"|([^\s()"]+))', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}


def parse(text: str, about: str) -> Node:
    """Parse one expression; quoted and bare atoms both become ``str``.

    Raises:
        Off: unbalanced or trailing text; ``about`` names the file.
    """
    root: Node = []
    stack = [root]
    position, end = 0, len(text.rstrip())
    while position < end:
        token = _TOKEN.match(text, position)
        if token is None:
            raise Off(f"{about}: not an s-expression at character {position}")
        position = token.end()
        bracket, quoted, bare = token.groups()
        if bracket == "(":
            node: Node = []
            stack[-1].append(node)
            stack.append(node)
        elif bracket == ")":
            if len(stack) == 1:
                raise Off(f"{about}: unbalanced bracket at character {position - 1}")
            stack.pop()
        elif quoted is not None:
            stack[-1].append(_unescape(quoted) if "\\" in quoted else quoted)
        else:
            stack[-1].append(bare)
    if len(stack) != 1 or len(root) != 1 or isinstance(root[0], str):
        raise Off(f"{about}: not one whole s-expression")
    return root[0]


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: _CONTROL.get(match[1], match[1]), text)


def head(node: Node) -> str:
    """The name an expression starts with, or an empty string."""
    return node[0] if node and isinstance(node[0], str) else ""


def children(node: Node, name: str | None = None) -> Iterator[Node]:
    """The sub-expressions, all or those of one name."""
    for item in node:
        if not isinstance(item, str) and (name is None or head(item) == name):
            yield item


def child(node: Node, name: str) -> Node | None:
    """The first sub-expression of that name."""
    return next(children(node, name), None)


def atoms(node: Node | None) -> list[str]:
    """The atoms after the name; none for an expression that is not there."""
    return [] if node is None else [item for item in node[1:] if isinstance(item, str)]


def atom(node: Node, name: str, default: str = "") -> str:
    """The first atom of the first sub-expression of that name."""
    return next(iter(atoms(child(node, name))), default)


def properties(node: Node) -> dict[str, str]:
    """``(property "Name" "value" …)`` as a dictionary."""
    found: dict[str, str] = {}
    for item in children(node, "property"):
        values = atoms(item)
        # KiCad 9 writes (property private "Name" "value").
        if values[:1] == ["private"]:
            values = values[1:]
        if len(values) >= 2:
            found[values[0]] = values[1]
    return found
