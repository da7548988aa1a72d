"""stub"""

from collections.abc import Iterator
from compass.redteam.fold import View, raw


def views(text: str) -> Iterator[View]:
    yield raw(text)
