"""Anchored path globs in linear time (Standard §4).

``*`` stands for any run of characters within one path element, ``**`` across elements, ``?`` for one
character of an element. There are no classes, no negation and no escapes; names that start with a dot are
not special. ``**/`` at the start of an element also stands for nothing, so ``**/x`` matches ``x``.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

# A name that is not UTF-8 holds lone surrogates, which RE2 cannot take. Only wildcards can match such a
# character (no pattern can hold one), so any character that no pattern holds may stand in for it.
_STAND_IN = "\U0010ffff"
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), _STAND_IN)


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.dot_nl = True
    options.log_errors = False
    return re2.compile(_translate(pattern), options=options)


def _translate(pattern: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        starts_element = at == 0 or pattern[at - 1] == "/"
        if starts_element and pattern.startswith("**/", at):
            out.append("(?:[^/]+/)*")
            at += 3
        elif pattern.startswith("**", at):
            out.append(".*")
            at += 2
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(pattern[at], re2.escape(pattern[at])))
            at += 1
    return "".join(out)


def matches(pattern: str, path: str) -> bool:
    """Whether the whole of a tree-relative POSIX path matches one glob."""
    return _compiled(pattern).fullmatch(path.translate(_SURROGATES)) is not None


def matches_any(patterns: Iterable[str], path: str) -> bool:
    """Whether a path matches at least one of the globs."""
    return any(matches(pattern, path) for pattern in patterns)
