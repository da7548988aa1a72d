"""What a changed design file may hold: what KiCad 9 and 10 write, in the lists that decide names and rules.

KiCad's own reader takes more than it writes: forms of older versions that override the project's rules or a
part's reference, a value twice of which the last counts, comments, letters spelled in hex. Each is a way to
show a reader one design and KiCad another. So whatever of it the fixture does not hold itself is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from grader.kicad.errors import Unjudgeable
from grader.kicad.sexpr import KEPT, Node, parse

CURRENT: Mapping[str, str] = {".kicad_sch": "20250114", ".kicad_pcb": "20241229"}
"""Format versions that KiCad 9.0 writes; an older one changes how a file is read."""


@dataclass(frozen=True)
class Rule:
    """What a list may hold besides texts."""

    once: frozenset[str]
    """Lists that it holds at most once."""
    many: frozenset[str] | None = frozenset()
    """Lists that it may hold several times; None lets any other be there."""
    below: Mapping[str, Rule] = field(default_factory=dict)
    """Rules of the lists in it."""


def _rule(once: str, many: str | None = "", /, **below: Rule) -> Rule:
    return Rule(frozenset(once.split()), None if many is None else frozenset(many.split()), below)


_PROPERTY = _rule("at effects hide show_name do_not_autoplace id")
_PATH = _rule("reference unit page", "variant")
_INSTANCES = _rule("", "project", project=_rule("", "path", path=_PATH))
_LABEL = _rule("at effects shape uuid length fields_autoplaced", "property")
_FLAGS = "exclude_from_sim in_bom on_board in_pos_files dnp fields_autoplaced"
_PIN = _rule("at length hide name number", "alternate")
_SHAPES = "arc bezier circle polyline rectangle text text_box"
_UNIT = _rule("unit_name", f"pin {_SHAPES}", pin=_PIN)
_DEFINITION = _rule(
    "extends power pin_numbers pin_names embedded_fonts embedded_files body_styles"
    f" duplicate_pin_numbers_are_jumpers jumper_pin_groups {_FLAGS}",
    f"property symbol pin {_SHAPES}",
    symbol=_UNIT,
    pin=_PIN,
    property=_PROPERTY,
)
_SYMBOL = _rule(
    f"lib_name lib_id at mirror unit convert body_style uuid instances passthrough {_FLAGS}",
    "property pin",
    property=_PROPERTY,
    pin=_rule("uuid alternate"),
    instances=_INSTANCES,
)
_SHEET = _rule(
    f"at size stroke fill uuid instances {_FLAGS}",
    "property pin",
    property=_PROPERTY,
    pin=_LABEL,
    instances=_INSTANCES,
)
_SCHEMATIC = _rule(
    "version generator generator_version uuid paper title_block lib_symbols sheet_instances embedded_fonts"
    " embedded_files",
    "bus bus_alias bus_entry directive_label global_label group hierarchical_label image junction label"
    f" netclass_flag no_connect rule_area sheet symbol table wire {_SHAPES}",
    bus_alias=_rule("members"),
    label=_LABEL,
    global_label=_LABEL,
    hierarchical_label=_LABEL,
    sheet=_SHEET,
    symbol=_SYMBOL,
    lib_symbols=_rule("", "symbol", symbol=_DEFINITION),
)
_COPPER = _rule("at start mid end width size drill layer layers net net_name uuid tstamp clearance", None)
_FOOTPRINT = _rule(
    "at layer uuid tstamp path sheetname sheetfile attr clearance zone_connect solder_mask_margin"
    " net_tie_pad_groups",
    None,
    pad=_rule("at size layers drill net uuid tstamp clearance zone_connect solder_mask_margin", None),
)
_BOARD = _rule(
    "version generator generator_version general paper title_block layers setup embedded_fonts embedded_files"
    " variants",
    "arc barcode dimension footprint generated gr_arc gr_circle gr_curve gr_line gr_poly gr_rect gr_text"
    " gr_text_box group image net point property segment table target via zone",
    setup=_rule(
        "stackup pad_to_mask_clearance solder_mask_min_width pad_to_paste_clearance"
        " pad_to_paste_clearance_ratio allow_soldermask_bridges_in_footprints tenting covering plugging"
        " capping filling aux_axis_origin grid_origin pcbplotparams zone_defaults",
    ),
    footprint=_FOOTPRINT,
    segment=_COPPER,
    arc=_COPPER,
    via=_COPPER,
    zone=_COPPER,
)
_RULES: Mapping[str, Rule] = {".kicad_sch": _SCHEMATIC, ".kicad_pcb": _BOARD}
_NAMED = frozenset({"fp_text", "property", "symbol"})
"""Lists that are called by their first text, of which KiCad keeps one a name."""
_FIELDS: Mapping[str, str] = {"reference": "Reference", "value": "Value"}
"""Texts of a footprint that are fields in older boards."""
_ODD_ESCAPE = re.compile(rb'\\[^"nr]')


def check(data: bytes, path: str, fixture: Iterable[tuple[str, bytes]]) -> None:
    """Refuse a changed file that holds what KiCad does not write and the fixture does not hold.

    Args:
        data: the file.
        path: what it is called; files that are neither schematic nor board need only be readable.
        fixture: path and content of the fixture's design files.

    Raises:
        Unjudgeable: with the first such thing.
    """
    found, suffix = oddities(data, path), _suffix(path)
    # Its own former self first: it explains most, and the others need then not be read.
    for name, content in sorted(fixture, key=lambda item: item[0] != path):
        if found and _suffix(name) == suffix:
            found -= oddities(content, name)
    if found:
        raise Unjudgeable(f"{path}: {min(found)}, as KiCad does not write it")


def _suffix(path: str) -> str:
    # By its end, as KiCad is given it: a file may be called by the suffix alone.
    return next((suffix for suffix in _RULES if path.endswith(suffix)), "")


@lru_cache(maxsize=KEPT)
def oddities(data: bytes, path: str) -> frozenset[str]:
    """What a schematic or board holds beside what KiCad writes; its format version, if not the current one.

    Raises:
        Unjudgeable: the file, of whatever kind, cannot be read.
    """
    root, suffix = parse(data, path), _suffix(path)
    if not suffix:
        return frozenset()
    found = set(_walk(root, _RULES[suffix], root.name))
    version = root.get("version")
    if not (version.isdecimal() and len(version) < 10 and int(version) >= int(CURRENT[suffix])):
        found.add(f"format version {version[:20] or 'none'}")
    around = data[: root.start].removeprefix(b"\xef\xbb\xbf") + data[root.end :]
    if around.strip() or root.source != data[root.start : root.end]:
        found.add("a comment")
    if b"\\" in data and (escape := _ODD_ESCAPE.search(data.replace(rb"\\", b""))):
        found.add(f"the escape {escape[0].decode('latin-1')!a}")
    return frozenset(found)


def _walk(node: Node, rule: Rule, where: str) -> Iterator[str]:
    """The oddities of a list and of those below it; rules are nested a fixed number of levels deep."""
    count: Counter[str] = Counter()
    named: Counter[tuple[str, str]] = Counter()
    for child in node.lists():
        name = child.name
        count[name] += 1
        if name in _NAMED and (called := _called(child)) is not None:
            named["property" if name == "fp_text" else name, called] += 1
        if below := rule.below.get(name):
            yield from _walk(child, below, f"{where}/{name}")
    for name, times in count.items():
        if name in rule.once:
            if times > 1:
                yield f"{where} with more than one {name}"
        elif rule.many is not None and name not in rule.many:
            yield f"{name[:60]!a} in {where}"
    if where.endswith("/instances"):
        yield from _contradictions(node, where)
    if where != "kicad_sch":
        for (name, _), times in named.items():
            if times > 1:
                yield f"{where} with two {name} lists of one name"


def _contradictions(instances: Node, where: str) -> Iterator[str]:
    """One place that two projects call differently: KiCad takes the project that is open, a reader either."""
    said: dict[str, list[str]] = {}
    for project in instances.lists("project"):
        for path in project.lists("path"):
            names = [path.get("reference"), path.get("unit")]
            if said.setdefault(path.value, names) != names:
                yield f"{where} with two references of one place"


def _called(node: Node) -> str | None:
    """What such a list is called; None for a text that is no field."""
    texts = node.texts()[1:3]
    if node.name == "fp_text":
        return _FIELDS.get(texts[0]) if texts else None
    # ``(property private "Name" "value")`` is allowed too.
    return texts[1] if texts[:1] == ["private"] and len(texts) > 1 else "".join(texts[:1])
