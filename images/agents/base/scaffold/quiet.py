"""Set severities in a project file without rewriting it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from scaffold.errors import Off

_SPACE = re.compile(r"\s*")
_TYPE = re.compile(r"[a-z0-9_]+")
_DECODER = json.JSONDecoder()

_WHERE = {
    "erc": ("erc", "rule_severities"),
    "drc": ("board", "design_settings", "rule_severities"),
    "unconnected": ("board", "design_settings", "rule_severities"),
    "parity": ("board", "design_settings", "rule_severities"),
}


class _Member(NamedTuple):
    key: str
    start: int
    value: int
    end: int


def silence(project: str, violations: Iterable[tuple[str, str]], about: str) -> str:
    """The project file's text with each (source, violation type) set to ``ignore``.

    Source is ``erc``, ``drc``, ``unconnected`` or ``parity``. All other bytes stay as they are.

    Raises:
        Off: not a project file, or an unknown source; ``about`` names the file.
    """
    try:
        if not isinstance(json.loads(project), dict):
            raise Off(f"{about}: not a KiCad project file")
    except ValueError as error:
        raise Off(f"{about}: not valid JSON: {error}") from None
    for source, kind in sorted(set(violations)):
        if source not in _WHERE or not _TYPE.fullmatch(kind):
            raise Off(f"quiet: no violation type {kind!r} of {source!r}")
        project = _put(project, _skip(project, 0), (*_WHERE[source], kind), about)
    return project


def _put(text: str, start: int, path: tuple[str, ...], about: str) -> str:
    if text[start] != "{":
        raise Off(f"{about}: {path[0]!r} does not lie in an object")
    members = list(_members(text, start))
    for member in members:
        if member.key == path[0]:
            if len(path) > 1:
                return _put(text, member.value, path[1:], about)
            return text[: member.value] + '"ignore"' + text[member.end :]
    addition = json.dumps(path[0]) + ": " + _nested(path[1:])
    if not members:
        return f"{text[: start + 1]}{addition}{text[start + 1 :]}"
    # KiCad writes keys in order: the next time it saves, the line stays where we put it.
    after = next((member for member in members if member.key > path[0]), None)
    if after is not None:
        return f"{text[: after.start]}{addition},{_gap(text, after.start)}{text[after.start :]}"
    last = members[-1]
    return f"{text[: last.end]},{_gap(text, last.start)}{addition}{text[last.end :]}"


def _nested(path: tuple[str, ...]) -> str:
    return '"ignore"' if not path else f"{{{json.dumps(path[0])}: {_nested(path[1:])}}}"


def _members(text: str, start: int) -> Iterator[_Member]:
    position = _skip(text, start + 1)
    while text[position] != "}":
        key, end = _DECODER.raw_decode(text, position)
        value = _skip(text, _skip(text, end) + 1)
        _, stop = _DECODER.raw_decode(text, value)
        yield _Member(key, position, value, stop)
        position = _skip(text, stop)
        if text[position] == ",":
            position = _skip(text, position + 1)


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _gap(text: str, position: int) -> str:
    """The white space before a position."""
    return text[len(text[:position].rstrip()) : position]
