"""A view prepared once for all that looks at it: folded, cut into tokens, its different words known."""

from dataclasses import dataclass
from functools import cached_property

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
    def folded(self) -> View:
        """The view with its characters folded."""
        return fold(self.view)

    @cached_property
    def tokens(self) -> list[str]:
        """The tokens of the folded text, in order."""
        return lexicon.tokenizer(self.folded.text).findall(self.folded.text)

    @cached_property
    def distinct(self) -> frozenset[str]:
        """The different tokens."""
        return frozenset(self.tokens)

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Where each token stands in the folded text."""
        return [match.span() for match in lexicon.tokenizer(self.folded.text).finditer(self.folded.text)]
