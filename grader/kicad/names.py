"""Net names as KiCad writes them and as assertions give them (Standard §4)."""

import re

_SIGNS = {
    "slash": "/",
    "backslash": "\\",
    "lt": "<",
    "gt": ">",
    "colon": ":",
    "comma": ",",
    "quote": "'",
    "dblquote": '"',
    "dollar": "$",
    "brace": "{",
    "bar": "|",
    "space": " ",
    "return": "\n",
    "tab": "\t",
}
"""KiCad's ``UnescapeString``."""
_BRACED = re.compile(r"\{(" + "|".join(_SIGNS) + r")\}")


def decode(name: str) -> str:
    """A KiCad name with ``{slash}`` and its kin resolved."""
    return _BRACED.sub(lambda match: _SIGNS[match[1]], name) if "{" in name else name


def leaf(raw: str) -> str:
    """The last path element of a raw KiCad net name, decoded: a ``{slash}`` in it is no separator."""
    return decode(raw.rpartition("/")[2])
