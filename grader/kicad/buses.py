"""Bus labels: ``D[0..7]`` and ``USB{DP DM}`` name several nets at once."""

import re

MAX_MEMBERS = 4096
"""Members of one label that are spelled out."""

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


def _members(member: str) -> list[str]:
    vector = _VECTOR.match(member)
    return expand(member)[1:] if vector else [member]
