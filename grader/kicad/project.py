"""The project file that kicad-cli is given: rules from the pristine project, key by key (Standard §4)."""

from __future__ import annotations

import codecs
import json
from functools import lru_cache
from typing import Any

from grader.documents import parse_json
from grader.kicad.errors import Unjudgeable
from grader.kicad.sexpr import KEPT

Json = dict[str, Any]

FROM_END = ("text_variables", "schematic", "sheets", "net_settings")
"""Top-level keys that are design, not rules: they come from the end state. All else is pinned."""

PINNED_SCHEMATIC = ("connection_grid_size", "meta", "top_level_sheets")
"""Keys under ``schematic`` that are rules all the same: the grid decides what is ``endpoint_off_grid``, and
KiCad 10 reads further roots from paths in here."""

MAX_BYTES = 16 * 1024 * 1024


@lru_cache(maxsize=KEPT)
def read_project(data: bytes, about: str) -> Json:
    """Read a ``.kicad_pro``: strict JSON, one object; shared, so never to be changed.

    Raises:
        Unjudgeable: KiCad would silently fall back to default rules on a file it cannot read.
    """
    value = parse_json(data.removeprefix(codecs.BOM_UTF8), about, limit=MAX_BYTES)
    if not isinstance(value, dict):
        raise Unjudgeable(f"{about}: not a JSON object")
    try:
        # Half a character, written as an escape, is a text to Python and an error to KiCad.
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Unjudgeable(f"{about}: a text with half a character in it") from None
    return value


def pin(pristine: Json, end: Json, *, net_settings: Json | None = None, exclusions: bool = False) -> Json:
    """The project under which ``end`` is judged.

    Args:
        pristine: the fixture's project; every rule, severity, exclusion and pin map is its.
        end: the end state's; it gives text variables, schematic and sheet settings, and net classes.
        net_settings: net classes to use instead of the end state's.
        exclusions: True keeps the pristine exclusions. They are dropped otherwise, because an exclusion's
            key holds positions: a part moved by 0.01 mm would lose its exclusion and look like a new finding.
    """
    # Only what is changed below is copied; neither project is.
    project = dict(pristine)
    for key in FROM_END:
        project.pop(key, None)
        if key in end:
            project[key] = end[key]
    for held in (("schematic",), ("pcbnew",), ("board", "design_settings"), ("erc",)):
        _own(project, held)
    _restore(project, pristine, "schematic", PINNED_SCHEMATIC)
    if sheet := _at(end, "pcbnew", "page_layout_descr_file"):
        pcbnew = project.setdefault("pcbnew", {})
        if isinstance(pcbnew, dict):
            pcbnew["page_layout_descr_file"] = sheet
    if net_settings is not None:
        project["net_settings"] = net_settings
    if not exclusions:
        for path in (("board", "design_settings", "drc_exclusions"), ("erc", "erc_exclusions")):
            holder = _at(project, *path[:-1])
            if isinstance(holder, dict) and path[-1] in holder:
                holder[path[-1]] = []
    return project


def dump(project: Json) -> bytes:
    """Canonical bytes, so that equal projects share a cached result."""
    # Without indent: Python's own encoder, which indents, takes longer than all else here.
    return json.dumps(project, sort_keys=True, allow_nan=False).encode()


def rule_edits(pristine: Json, end: Json) -> list[str]:
    """Dotted names of the pinned settings that the end state changed (to no effect here), sorted."""
    found: list[str] = []
    for path in (
        ("board", "design_settings", "rules"),
        ("board", "design_settings", "rule_severities"),
        ("board", "design_settings", "drc_exclusions"),
        ("erc",),
        ("schematic", "connection_grid_size"),
    ):
        before, after = _at(pristine, *path), _at(end, *path)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
            found.extend(".".join((*path, key)) for key in keys)
        else:
            found.append(".".join(path))
    return found


def _restore(project: Json, pristine: Json, section: str, keys: tuple[str, ...]) -> None:
    now, before = project.get(section), pristine.get(section)
    for key in keys:
        if isinstance(before, dict) and key in before:
            now = project.setdefault(section, {})
            if isinstance(now, dict):
                now[key] = before[key]
        elif isinstance(now, dict):
            now.pop(key, None)


def _own(holder: Json, path: tuple[str, ...]) -> None:
    """Put copies in the place of the objects along a path, so that they can be changed."""
    for key in path:
        if not isinstance(holder.get(key), dict):
            return
        holder[key] = dict(holder[key])
        holder = holder[key]


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
