"""Exceptions from the rules that a board grants its own footprints and pads (Standard §4).

They are design, so they are not forbidden; but what an end state adds of them could hide what it breaks. So
DRC runs without the added ones too, as it does under the old net classes, and the findings of both count.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from grader.kicad.board import reference
from grader.kicad.sexpr import Node, parse

MARGINS = ("clearance", "solder_mask_margin")
"""Of a footprint or a pad, in place of the rule's."""
SILENT = frozenset({"allow_missing_courtyard", "allow_soldermask_bridges", "board_only"})
"""Attributes of a footprint that silence a check."""
BOARD_WIDE = ("allow_soldermask_bridges_in_footprints", "solder_mask_min_width")


class Grant(NamedTuple):
    """One such exception, and where its bytes are."""

    owner: str
    """Uuid of the footprint or pad."""
    part: str
    """Reference of the footprint."""
    what: str
    """As in ``clearance 0.1`` or ``board_only``."""
    start: int
    end: int


def changes(before: bytes, after: bytes, path: str) -> list[str]:
    """``added`` and ``removed`` exceptions between two boards, one line each, sorted.

    Raises:
        Unjudgeable: one of them cannot be read.
    """
    old, new = ({f"{one.part}: {one.what}" for one in _exceptions(data, path)} for data in (before, after))
    return sorted([*(f"{line} added" for line in new - old), *(f"{line} removed" for line in old - new)])


def without_added(before: bytes, after: bytes, path: str) -> bytes | None:
    """A board without the exceptions that the fixture's does not grant; None if there are none.

    What silences a check of a whole footprint counts only on a part that the fixture's board has: a part that
    is only mechanical may be added as one.

    Raises:
        Unjudgeable: one of them cannot be read.
    """
    old = _exceptions(before, path)
    granted = {(one.owner, one.what) for one in old}
    parts = _parts(before, path)
    added = [
        one
        for one in _exceptions(after, path)
        if (one.owner, one.what) not in granted and (one.what not in SILENT or one.part in parts)
    ]
    if not added:
        return None
    board = bytearray(after)
    for one in added:
        board[one.start : one.end] = b" " * (one.end - one.start)
    return bytes(board)


@lru_cache(maxsize=4)
def _exceptions(data: bytes, path: str) -> tuple[Grant, ...]:
    return tuple(_found(data, path))


def _found(data: bytes, path: str) -> Iterator[Grant]:
    root = parse(data, path)
    for setup in root.lists("setup"):
        for setting in setup.lists(*BOARD_WIDE):
            yield Grant("", "board", " ".join(setting.texts()), setting.start, setting.end)
    for footprint in root.lists("footprint", "module"):
        part = reference(footprint)
        for owner in (footprint, *footprint.lists("pad")):
            uuid = owner.get("uuid") or owner.get("tstamp")
            name = part if owner is footprint else f"{part}.{owner.value}"
            for margin in owner.lists(*MARGINS):
                yield Grant(uuid, name, " ".join(margin.texts()), margin.start, margin.end)
        for attributes in footprint.lists("attr"):
            yield from _silent(attributes, footprint.get("uuid") or footprint.get("tstamp"), part)


def _silent(attributes: Node, uuid: str, part: str) -> Iterator[Grant]:
    for item in attributes.items():
        if not isinstance(item, Node) and item.text in SILENT:
            yield Grant(uuid, part, item.text, item.start, item.end)


@lru_cache(maxsize=4)
def _parts(data: bytes, path: str) -> frozenset[str]:
    return frozenset(reference(each) for each in parse(data, path).lists("footprint", "module"))
