"""A small language for rules over word classes, compiled to RE2 (linear time, whatever the text).

``IGN _{0,3} PRIOR|YOUR _{0,2} INS`` reads: a word of class IGN, up to three words of any kind, a word that is
PRIOR or YOUR, up to two more, a word of class INS. Items are separated by spaces; ``_`` is any token that
does not end a sentence, ``~`` any token at all, ``^`` a sentence start and ``$`` a sentence end, ``!A|B`` a
token outside those classes (and no break), ``( x / y )`` a choice, ``@NAME`` a macro; ``?``, ``*``, ``+`` and
``{m,n}`` follow an item.
"""

import re
from collections.abc import Mapping
from functools import cache

from compass.redteam import linear
from compass.redteam.lexicon import BREAK, lexicon

_ITEM = re.compile(r"^(?P<body>.+?)(?P<count>[?*+]|\{\d+(?:,\d*)?\})?$")
_DEPTH = 6


def compile_pattern(source: str, macros: Mapping[str, str]) -> tuple[linear.Pattern, tuple[str, ...]]:
    """RE2 over the two-byte codes, and for each item that must occur the codes of which one has to be there.

    Raises KeyError for an unknown class or macro and ``re2.error`` for unbalanced parentheses.
    """
    needed: list[str] = []
    expression = _expand(source, macros, needed, _DEPTH)
    return linear.compile(expression.encode()), tuple(needed)


def _expand(source: str, macros: Mapping[str, str], needed: list[str], depth: int) -> str:
    if depth == 0:
        raise KeyError(f"macros nest too deeply in {source!r}")
    out = []
    inside = 0
    for item in source.split():
        inside += (item == "(") - item.startswith(")")
        out.append(_item(item, macros, needed if inside == 0 else [], depth))
    return "".join(out)


def _item(item: str, macros: Mapping[str, str], needed: list[str], depth: int) -> str:
    if item in {"(", "/"}:
        return {"(": "(?:", "/": "|"}[item]
    if item.startswith(")"):
        return item
    match = _ITEM.match(item)
    if match is None:
        raise KeyError(f"no item: {item!r}")
    body, count = match["body"], match["count"] or ""
    optional = count[:1] in {"?", "*"} or count.startswith("{0")
    if body.startswith("@"):
        inner = _expand(macros[body[1:]], macros, [] if optional else needed, depth - 1)
        return f"(?:{inner}){count}"
    if body in _FIXED:
        return _FIXED[body] + count
    negated = body.startswith("!")
    codes = lexicon().of(body.lstrip("!"))
    if negated:
        return f"[^{_ranges(codes + BREAK)}]{count}"
    if not optional:
        needed.append(codes)
    return f"[{_ranges(codes)}]{count}"


_FIXED = {"_": f"[^{BREAK}]", "~": f"[^{chr(0)}]", "^": f"(?:^|{BREAK})", "$": f"(?:$|{BREAK})"}


@cache
def _ranges(codes: str) -> str:
    ordered = sorted(set(map(ord, codes)))
    parts = []
    start = previous = ordered[0]
    for code in [*ordered[1:], -1]:
        if code != previous + 1:
            parts.append(chr(start) if start == previous else f"{chr(start)}-{chr(previous)}")
            start = code
        previous = code
    return "".join(parts)
