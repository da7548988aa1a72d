"""What schematic files say: sheets, symbols, labels. What they mean together is the netlist's to tell."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from grader.evidence import Tree
from grader.kicad import buses, names, nested
from grader.kicad.errors import Unjudgeable
from grader.kicad.sexpr import KEPT, Nested, parse, tree_of

SUFFIX = ".kicad_sch"
MAX_INSTANCES = 2_000
"""Sheet instances of one design; a sheet that holds two copies of a sheet that holds two … grows fast."""
MAX_KEPT = 20_000
"""Symbols whose reading is kept."""
MAX_DEPTH = 32
"""Sheets inside sheets."""

LabelKind = Literal["local", "global", "hierarchical", "sheet-pin", "power"]
_LABELS: Mapping[str, LabelKind] = {
    "label": "local",
    "global_label": "global",
    "hierarchical_label": "hierarchical",
}


@dataclass(frozen=True, slots=True)
class Label:
    """A text that names a net."""

    kind: LabelKind
    text: str
    """As written; ``{slash}`` is not decoded."""
    uuid: str


@dataclass(frozen=True, slots=True)
class LibraryPin:
    """A pin of a library symbol."""

    number: str
    name: str
    type: str
    hidden: bool


@dataclass(frozen=True, slots=True)
class LibrarySymbol:
    """A symbol's definition as the schematic file carries it."""

    name: str
    power: bool
    """Names the net on its pin by its value."""
    pins: tuple[LibraryPin, ...]


@dataclass(frozen=True, slots=True)
class Symbol:
    """One placed unit of a symbol."""

    uuid: str
    library: str
    """Key into the file's library symbols."""
    unit: int
    properties: Mapping[str, str]
    pins: Mapping[str, str]
    """Pin uuid → pin number."""
    references: Mapping[str, str]
    """Sheet instance path of uuids → reference on that instance."""
    on_board: bool = True
    """KiCad's netlist leaves out what is kept off the board."""
    units: Mapping[str, int] = field(default_factory=dict)
    """Sheet instance path of uuids → unit on that instance: what KiCad goes by."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Pin number → the alternate function that it is placed with; its electrical type is that function's."""

    @property
    def value(self) -> str:
        """The value field."""
        return self.properties.get("Value", "")

    def unit_on(self, path: str) -> int:
        """Its unit on one sheet instance."""
        return self.units.get(path, self.unit)

    def reference(self, path: str) -> str:
        """Its reference on one sheet instance."""
        return self.references.get(path) or self.properties.get("Reference", "")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet symbol: a child sheet placed in a file."""

    uuid: str
    name: str
    file: str
    """As written."""
    pins: tuple[Label, ...]
    on_board: bool = True
    """False keeps everything below off the board."""


@dataclass(frozen=True)
class SchematicFile:
    """One ``.kicad_sch``."""

    path: str
    uuid: str
    sheets: tuple[Sheet, ...]
    symbols: tuple[Symbol, ...]
    labels: tuple[Label, ...]
    """Local, global and hierarchical."""
    library: Mapping[str, LibrarySymbol]
    no_connects: int
    lines: int

    def is_power(self, symbol: Symbol) -> bool:
        """Whether a symbol names a net by its value."""
        definition = self.library.get(symbol.library)
        return definition is not None and definition.power


@dataclass(frozen=True, slots=True)
class Instance:
    """One sheet as the design holds it: a reused file has several."""

    path: str
    """``/`` and uuids from the root's down."""
    name: str
    """Human-readable, ``/`` for the root, else ``/a/b/``."""
    file: str
    on_board: bool = True


@dataclass(frozen=True)
class Hierarchy:
    """A whole schematic: every reachable file, every sheet instance."""

    root: str
    files: Mapping[str, SchematicFile] = field(default_factory=dict)
    instances: tuple[Instance, ...] = ()

    def parts(self) -> Iterator[tuple[Instance, Symbol]]:
        """Every placed unit of a part on every instance of its sheet; power symbols are no parts."""
        for instance in self.instances:
            file = self.files[instance.file]
            for symbol in file.symbols:
                if not file.is_power(symbol) and not symbol.reference(instance.path).startswith("#"):
                    yield instance, symbol

    def references(self) -> frozenset[str]:
        """References of all parts, those kept off the board too, and those drawn with a power symbol.

        KiCad lists no symbol whose definition is a power symbol's, whatever it is called.
        """
        return frozenset(
            reference
            for instance in self.instances
            for symbol in self.files[instance.file].symbols
            if not (reference := symbol.reference(instance.path)).startswith("#")
        )

    def labels(self) -> Iterator[Label]:
        """Every text that names a net: labels, sheet pins, power symbols, hidden power pins."""
        for file in self.files.values():
            yield from file.labels
            for sheet in file.sheets:
                yield from sheet.pins
            for symbol in file.symbols:
                definition = file.library.get(symbol.library)
                if definition is None:
                    continue
                if definition.power:
                    yield Label("power", symbol.value, symbol.uuid)
                    continue
                for pin in definition.pins:
                    # A hidden power input joins the global net of its own name.
                    if pin.hidden and pin.type == "power_in":
                        yield Label("power", pin.name, symbol.uuid)


@lru_cache(maxsize=KEPT)
def read_schematic(data: bytes, path: str) -> SchematicFile:
    """Read one schematic file.

    Raises:
        Unjudgeable: not a schematic within the reader's limits.
    """
    root = parse(data, path)
    if root.name != "kicad_sch":
        raise Unjudgeable(f"{path}: not a KiCad schematic")
    sheets: list[Sheet] = []
    symbols: list[Symbol] = []
    labels: list[Label] = []
    library: dict[str, LibrarySymbol] = {}
    no_connects = 0
    uuid = ""
    named = 0
    wanted = ("uuid", "lib_symbols", "symbol", "sheet", "no_connect", "bus_alias", *_LABELS)
    for node in root.lists(*wanted):
        match node.name:
            case "symbol":
                symbols.append(_symbol(node.source))
                continue
            case "lib_symbols":
                library.update(_library(node.source))
                continue
        tree = node.tree()
        match tree[0]:
            case "uuid":
                uuid = nested.text(tree, 1)
            case "sheet":
                sheets.append(_sheet(tree, f"{path}: line {node.line()}"))
                named += sum(buses.count(pin.text) for pin in sheets[-1].pins)
            case "bus_alias":
                members = nested.texts(nested.first(tree, "members") or [])
                if any("${" in member for member in members):
                    raise Unjudgeable(f"{path}: a bus alias holds a variable")
                named += sum(map(buses.count, members))
            case "no_connect":
                no_connects += 1
            case kind:
                labels.append(Label(_LABELS[str(kind)], nested.text(tree, 1), nested.value(tree, "uuid")))
                named += buses.count(labels[-1].text)
        if named > buses.FILE_MEMBERS:
            raise Unjudgeable(f"{path}: buses of more than {buses.FILE_MEMBERS} members")
    return SchematicFile(
        path,
        uuid,
        tuple(sheets),
        tuple(symbols),
        tuple(labels),
        library,
        no_connects,
        data.count(b"\n") + (not data.endswith(b"\n") and bool(data)),
    )


def _properties(tree: Nested) -> list[tuple[str, str]]:
    found = []
    for item in nested.lists(tree, "property"):
        # ``(property private "Name" "value")`` is allowed too.
        place = 2 if nested.text(item, 1) == "private" else 1
        found.append((nested.text(item, place), nested.text(item, place + 1)))
    return found


# By their own bytes: a run changes some symbols of a sheet, and the library in it hardly ever.
@lru_cache(maxsize=MAX_KEPT)
def _symbol(source: bytes) -> Symbol:
    tree = tree_of(source)
    references: dict[str, str] = {}
    units: dict[str, int] = {}
    for project in nested.lists(nested.first(tree, "instances") or [], "project"):
        for path in nested.lists(project, "path"):
            references[nested.text(path, 1)] = nested.value(path, "reference")
            units[nested.text(path, 1)] = _unit(path)
    return Symbol(
        uuid=nested.value(tree, "uuid"),
        library=nested.value(tree, "lib_name") or nested.value(tree, "lib_id"),
        unit=_unit(tree),
        properties=dict(_properties(tree)),
        pins={nested.value(pin, "uuid"): nested.text(pin, 1) for pin in nested.lists(tree, "pin")},
        references=references,
        on_board=nested.value(tree, "on_board") != "no",
        units=units,
        roles={
            nested.text(pin, 1): role
            for pin in nested.lists(tree, "pin")
            if (role := nested.value(pin, "alternate"))
        },
    )


def _unit(tree: Nested) -> int:
    unit = nested.value(tree, "unit")
    return int(unit) if unit.isdecimal() and len(unit) < 6 else 1


_SHEET_NAME = ("sheetname", "sheet name")
_SHEET_FILE = ("sheetfile", "sheet file")


def _sheet(tree: Nested, where: str) -> Sheet:
    """A sheet symbol. KiCad takes name and file from the first two properties, whatever they are called."""
    fields = [(name.lower(), value) for name, value in _properties(tree)]
    known = [name for name, _ in fields if name in _SHEET_NAME or name in _SHEET_FILE]
    first = [name for name, _ in fields[:2]]
    if first != known or len(first) < 2 or first[0] not in _SHEET_NAME or first[1] not in _SHEET_FILE:
        raise Unjudgeable(f"{where}: a sheet without name and file as KiCad writes them")
    return Sheet(
        uuid=nested.value(tree, "uuid"),
        name=fields[0][1],
        file=fields[1][1],
        pins=tuple(
            Label("sheet-pin", nested.text(pin, 1), nested.value(pin, "uuid"))
            for pin in nested.lists(tree, "pin")
        ),
        on_board=nested.value(tree, "on_board") != "no",
    )


@lru_cache(maxsize=KEPT)
def _library(source: bytes) -> Mapping[str, LibrarySymbol]:
    tree = tree_of(source)
    found: dict[str, LibrarySymbol] = {}
    parents: dict[str, str] = {}
    for symbol in nested.lists(tree, "symbol"):
        holders = (symbol, *nested.lists(symbol, "symbol"))
        pins = tuple(_library_pin(pin) for holder in holders for pin in nested.lists(holder, "pin"))
        name = nested.text(symbol, 1)
        found[name] = LibrarySymbol(name, nested.first(symbol, "power") is not None, pins)
        if parent := nested.value(symbol, "extends"):
            parents[name] = parent
    for name, parent in parents.items():
        if base := found.get(parent):
            own = found[name]
            found[name] = LibrarySymbol(name, own.power or base.power, own.pins or base.pins)
    return found


def _library_pin(pin: Nested) -> LibraryPin:
    hide = nested.first(pin, "hide")
    return LibraryPin(
        number=nested.value(pin, "number"),
        name=nested.value(pin, "name"),
        type=nested.text(pin, 1),
        hidden="hide" in pin[2:] or (hide is not None and nested.text(hide, 1) in ("yes", "")),
    )


def resolve(base: str, written: str) -> str | None:
    """Tree path of a file that ``base`` refers to as ``written``; None when it is not in the tree.

    KiCad reads backslashes as slashes and resolves against the folder of the file that refers.
    """
    target = written.replace("\\", "/")
    if target.startswith(("/", "~")) or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", target):
        return None
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(base), target))
    return None if joined.startswith("../") or joined in {"..", "."} else joined


def read_hierarchy(tree: Tree, root: str) -> Hierarchy:
    """Read the root schematic and every sheet file it reaches.

    Raises:
        Unjudgeable: a file is missing, unreadable, outside the tree, called like no schematic, or includes
            itself; or there are more instances than we follow.
    """
    files: dict[str, SchematicFile] = {}
    instances: list[Instance] = []
    first = _load(tree, root, files)
    # (file, instance, files on the way here): a stack of our own instead of recursion.
    top = Instance(f"/{first.uuid}", "/", root)
    pending: list[tuple[SchematicFile, Instance, tuple[str, ...]]] = [(first, top, (root,))]
    while pending:
        file, here, chain = pending.pop()
        instances.append(here)
        if len(instances) > MAX_INSTANCES:
            raise Unjudgeable(f"{root}: more than {MAX_INSTANCES} sheets")
        for sheet in reversed(file.sheets):
            target = resolve(file.path, sheet.file)
            if target is None:
                raise Unjudgeable(f"{file.path}: sheet {sheet.name!r} leaves the tree: {sheet.file!r}")
            if not target.endswith(SUFFIX):
                # kicad-cli is not given it, and ends with 0 on the rest of the design.
                raise Unjudgeable(f"{file.path}: sheet {sheet.name!r} is no {SUFFIX} file: {sheet.file!r}")
            if target in chain:
                raise Unjudgeable(f"{file.path}: sheet {sheet.name!r} includes itself: {sheet.file!r}")
            if len(chain) >= MAX_DEPTH:
                raise Unjudgeable(f"{file.path}: sheets nested deeper than {MAX_DEPTH}")
            below = Instance(
                f"{here.path}/{sheet.uuid}",
                f"{here.name}{sheet.name}/",
                target,
                here.on_board and sheet.on_board,
            )
            pending.append((_load(tree, target, files), below, (*chain, target)))
    return Hierarchy(root, files, tuple(instances))


def _load(tree: Tree, path: str, files: dict[str, SchematicFile]) -> SchematicFile:
    if path not in files:
        entry = tree.get(path)
        if entry is None or entry.kind != "file":
            raise Unjudgeable(f"{path}: {'missing' if entry is None else 'a symlink'}")
        files[path] = read_schematic(entry.data, path)
    return files[path]


_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_OPENING = re.compile(r"[$@]\{")
"""Of a variable, or of an expression in later majors."""


def _resolved(text: str, variables: Mapping[str, str]) -> str:
    """A text with the project's variables in their places, as far as they are defined."""
    for _ in range(8):
        if "${" not in text:
            break
        text = _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), text)[:10_000]
    return text


def check_buses(hierarchy: Hierarchy, variables: Mapping[str, str], pristine: Hierarchy | None) -> None:
    """Refuse buses that kicad-cli would spell out without end, also those that a variable makes.

    Args:
        hierarchy: the design to judge.
        variables: its project's text variables.
        pristine: the fixture's schematic, whose own texts may hold what KiCad alone resolves.

    Raises:
        Unjudgeable: too many members, or a variable that the fixture's labels do not hold. KiCad resolves
            some from sheet or symbol before it asks the project, so what it stands for cannot be told.
    """
    known = {label.text for label in pristine.labels()} if pristine else frozenset[str]()
    named = 0
    for label in hierarchy.labels():
        if _OPENING.search(label.text) and label.text not in known:
            raise Unjudgeable(f"{hierarchy.root}: label {label.text!r} holds a variable")
        text = _resolved(label.text, variables)
        named += buses.count(text)
    if named > buses.FILE_MEMBERS:
        raise Unjudgeable(f"{hierarchy.root}: buses of more than {buses.FILE_MEMBERS} members")


def net_texts(hierarchy: Hierarchy, variables: Mapping[str, str]) -> frozenset[str]:
    """Every name that a label, sheet pin or power symbol gives to a net, decoded; buses are expanded.

    Raises:
        Unjudgeable: a label holds a variable that the project does not define.
    """
    found: set[str] = set()
    for label in hierarchy.labels():
        text = _resolved(label.text, variables)
        if _VARIABLE.search(text):
            raise Unjudgeable(f"{hierarchy.root}: label {text!r} holds a variable that is not defined")
        found.update(names.decode(name) for name in buses.expand(text))
    found.discard("")
    return frozenset(found)
