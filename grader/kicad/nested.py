"""Looking into a list of texts and lists, as :meth:`grader.kicad.sexpr.Node.tree` gives it."""

from __future__ import annotations

from collections.abc import Iterator

from grader.kicad.sexpr import Nested


def text(tree: Nested, place: int) -> str:
    """The text at a place; empty if there is none or a list is there."""
    item = tree[place] if place < len(tree) else ""
    return item if isinstance(item, str) else ""


def texts(tree: Nested) -> list[str]:
    """The direct texts, the list's name among them."""
    return [item for item in tree if isinstance(item, str)]


def lists(tree: Nested, name: str) -> Iterator[Nested]:
    """The direct child lists so named."""
    for item in tree:
        if not isinstance(item, str) and item and item[0] == name:
            yield item


def first(tree: Nested, name: str) -> Nested | None:
    """The first direct child list so named."""
    return next(lists(tree, name), None)


def value(tree: Nested, name: str) -> str:
    """The text behind the name of the first child list so named; empty if there is none."""
    found = first(tree, name)
    return text(found, 1) if found else ""
