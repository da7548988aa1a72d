"""Bus labels: ``D[0..7]`` and ``USB{DP DM}`` name several nets at once."""

import re

MAX_MEMBERS = 4096
"""Members of one label that are spelled out."""
FILE_MEMBERS = 65_536
"""Members that the ranges of one schematic file may name: kicad-cli builds an object for each."""

_VECTOR = re.compile(r"^(.*?)\[(\d{1,6})\.\.(\d{1,6})\](.*)$", re.DOTALL)
_GROUP = re.compile(r"^([^{}\s]*)\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}$", re.DOTALL)


def expand(text: str) -> list[str]:
    """The label itself and, if it is a bus, every member it names."""
    found = [text]
    if (group := _GROUP.match(text)) and not text.startswith(("~{", "_{", "^{")):
        prefix = f"{group[1]}." if group[1] else ""
        for member in group[2].split()[:MAX_MEMBERS]:
            found += [prefix + name for name in _members(member)]
            if len(found) > MAX_MEMBERS:
                break
    elif vector := _VECTOR.match(text):
        low, high = sorted((int(vector[2]), int(vector[3])))
        last = min(high, low + MAX_MEMBERS)
        found += [f"{vector[1]}{number}{vector[4]}" for number in range(low, last + 1)]
    return found


def count(text: str) -> int:
    """How many members the ranges of a text name; a text without a range names none."""
    return sum(abs(_number(first) - _number(last)) + 1 for first, last in _RANGE.findall(text))


_RANGE = re.compile(r"\[\s*(\d+)\s*\.\.\s*(\d+)\s*\]")


def _number(digits: str) -> int:
    # More digits than KiCad's integers have: too many whatever they say.
    return int(digits) if len(digits) <= 10 else 10**10


def _members(member: str) -> list[str]:
    vector = _VECTOR.match(member)
    return expand(member)[1:] if vector else [member]
