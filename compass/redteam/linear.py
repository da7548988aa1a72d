"""RE2 with types: regular expressions whose time is linear in the text, whatever the pattern (google-re2)."""

from collections.abc import Iterator
from typing import Any, Protocol

import re2


class Match(Protocol):
    """The part of a match that compass reads."""

    def start(self, group: int = 0, /) -> int:
        """First offset."""

    def end(self, group: int = 0, /) -> int:
        """Offset after the last."""


class Pattern(Protocol):
    """The part of a compiled pattern that compass uses; offsets count what the subject is made of."""

    def search(self, text: Any, /) -> Match | None:
        """The first match."""

    def finditer(self, text: Any, /) -> Iterator[Match]:
        """Matches from left to right, without overlap."""

    def findall(self, text: Any, /) -> list[Any]:
        """The texts of the matches."""


def compile(pattern: str | bytes, *, longest: bool = False) -> Pattern:
    """``pattern`` compiled; ``longest`` prefers the longest match over the first alternative.

    Raises ``re2.error`` when it is malformed or uses what RE2 leaves out."""
    options = re2.Options()
    options.log_errors = False
    options.longest_match = longest
    compiled: Pattern = re2.compile(pattern, options)
    return compiled


def escape(text: str) -> str:
    """``text`` as a pattern that matches only itself."""
    escaped: str = re2.escape(text)
    return escaped
