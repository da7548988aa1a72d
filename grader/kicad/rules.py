"""Rules that cannot be pinned because they live in design files, and pinned settings that were edited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from grader.evidence import Entry, Tree
from grader.kicad import overrides, project
from grader.kicad.errors import Unjudgeable
from grader.kicad.schematic import Hierarchy, read_hierarchy
from grader.kicad.sexpr import parse
from schema.fixture import Artifacts


def changes(end: Tree, pristine: Tree, artifacts: Artifacts) -> list[str]:
    """One line for each rule that differs between two trees; never raises.

    Pin types of library symbols and roles of placed pins, the number of power flags and no-connects,
    footprints' net ties; exceptions that footprints and pads have from the rules, under which and without
    which DRC runs; edited severities, exclusions, design rules and custom rule files, which have no effect
    on the grade.
    """
    lines: list[str] = []
    for facts in (_project_edits, _custom_rules, _schematic_rules, _board_rules):
        try:
            lines.extend(facts(end, pristine, artifacts))
        except Unjudgeable as reason:
            lines.append(f"not compared: {reason}")
    return lines


def _project_edits(end: Tree, pristine: Tree, artifacts: Artifacts) -> Iterator[str]:
    path = artifacts.project
    if path and path in end and path in pristine:
        before = project.read_project(pristine[path].data, path)
        after = project.read_project(end[path].data, path)
        for name in project.rule_edits(before, after):
            yield f"{path}: {name} edited (no effect: pinned)"
        if before.get("net_settings") != after.get("net_settings"):
            yield f"{path}: net_settings edited (DRC under both)"


def _custom_rules(end: Tree, pristine: Tree, _artifacts: Artifacts) -> Iterator[str]:
    names = {path for path in (*end, *pristine) if path.endswith(".kicad_dru")}
    for path in sorted(names):
        if (path in end and end[path].data) != (path in pristine and pristine[path].data):
            yield f"{path}: custom rules edited (no effect: pinned)"


def _schematic_rules(end: Tree, pristine: Tree, artifacts: Artifacts) -> Iterator[str]:
    if artifacts.schematic not in pristine or _schematics(end) == _schematics(pristine):
        return
    before = _electrical(read_hierarchy(pristine, artifacts.schematic))
    after = _electrical(read_hierarchy(end, artifacts.schematic))
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key) and (key in before or not key.startswith("pin types")):
            yield f"schematic: {key}: {before.get(key, 'none')} before, {after.get(key, 'none')} after"


def _schematics(tree: Tree) -> dict[str, Entry]:
    return {path: entry for path, entry in tree.items() if path.endswith(".kicad_sch")}


def _electrical(hierarchy: Hierarchy) -> dict[str, str]:
    facts: dict[str, str] = {}
    flags = no_connects = 0
    for path, file in sorted(hierarchy.files.items()):
        no_connects += file.no_connects
        for symbol in file.symbols:
            if symbol.roles:
                roles = " ".join(sorted(f"{number}:{role}" for number, role in symbol.roles.items()))
                facts[f"pin roles of {symbol.properties.get('Reference', '')} in {path}"] = roles
            definition = file.library.get(symbol.library)
            flags += (
                definition is not None
                and definition.power
                and any(pin.type == "power_out" for pin in definition.pins)
            )
        for name, definition in file.library.items():
            types = Counter(f"{pin.number}:{pin.type}" for pin in definition.pins)
            facts[f"pin types of {name} in {path}"] = " ".join(sorted(types.elements()))
    facts["power flags"] = str(flags)
    facts["no-connects"] = str(no_connects)
    return facts


def _board_rules(end: Tree, pristine: Tree, artifacts: Artifacts) -> Iterator[str]:
    path = artifacts.board
    if path is None or path not in end or path not in pristine or end[path] == pristine[path]:
        return
    before, after = _net_ties(pristine[path].data, path), _net_ties(end[path].data, path)
    for line in sorted((after - before) | (before - after)):
        yield f"{path}: net tie {line} {'added' if line in after else 'removed'}"
    for line in overrides.changes(pristine[path].data, end[path].data, path):
        yield f"{path}: {line} (DRC with and without)"


@lru_cache(maxsize=4)
def _net_ties(data: bytes, path: str) -> frozenset[str]:
    return frozenset(
        f"{footprint.value} [{' '.join(groups.texts()[1:])}]"
        for footprint in parse(data, path).lists("footprint")
        for groups in footprint.lists("net_tie_pad_groups")
    )
