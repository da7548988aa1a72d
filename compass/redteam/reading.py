"""A view prepared once for all that looks at it: folded, cut into tokens, its different words known."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from compass.redteam import lexicon
from compass.redteam.fold import View, fold


@dataclass(frozen=True)
class Reading:
    """``view`` with what the layers and the rules share; every part is computed at most once."""

    view: View

    @property
    def text(self) -> str:
        """The text of the view, not folded."""
        return self.view.text

    @cached_property
    def chars(self) -> frozenset[str]:
        """The different characters of the text."""
        return frozenset(self.text)

    @cached_property
    def folded(self) -> View:
        """The view with its characters folded."""
        return fold(self.view)

    @cached_property
    def tokens(self) -> list[str]:
        """The tokens of the folded text, in order."""
        return self._cut[1::2]

    @cached_property
    def distinct(self) -> frozenset[str]:
        """The different tokens."""
        return frozenset(self.tokens)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Where the tokens from ``first`` up to but not including ``last`` stand in the folded text."""
        return self._bounds[2 * first], self._bounds[2 * last - 1]

    def spans(self, wanted: Collection[str]) -> Iterator[tuple[str, int, int]]:
        """Every token that is one of ``wanted``, and where it stands in the folded text."""
        bounds = self._bounds
        for index, token in enumerate(self.tokens):
            if token in wanted:
                yield token, bounds[2 * index], bounds[2 * index + 1]

    @cached_property
    def _cut(self) -> list[str]:
        """The folded text in one pass: gap, token, gap, token, …, gap."""
        return lexicon.tokenizer(self.folded.text).split(self.folded.text)

    @cached_property
    def _bounds(self) -> list[int]:
        """Offsets between the parts of ``_cut``: token ``n`` lies between entries ``2n`` and ``2n + 1``."""
        return list(accumulate(map(len, self._cut)))
