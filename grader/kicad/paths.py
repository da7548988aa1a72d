"""No path may leave the tree: every path in every design file is checked before kicad-cli runs (Standard §4).

KiCad follows a sheet, library, worksheet or model path that is absolute or climbs with ``..`` and ends with
exit code 0, so that a design could be graded that is not the one in evidence. What the untouched fixture
already holds (a model on its author's disk, say) is allowed; a sheet that leaves the tree never is.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from grader.evidence import Tree
from grader.kicad.errors import Unjudgeable
from grader.kicad.project import read_project
from grader.kicad.sexpr import ATOM, KEPT, SPACE, STRING, Node, parse, unquote

Kind = Literal["sheet", "library", "worksheet", "model", "simulation", "embedded", "variable", "symlink"]

TABLES = ("sym-lib-table", "fp-lib-table", "design-block-lib-table")
EXPRESSIONS = (".kicad_sch", ".kicad_pcb", ".kicad_sym", ".kicad_mod", ".kicad_wks", ".kicad_dru")
DESIGN = (*EXPRESSIONS, *TABLES, ".kicad_pro")
"""Ends of the names of files that kicad-cli reads as part of a design."""

_STOCK = re.compile(
    r"KICAD\d*_(3DMODEL|FOOTPRINT|SYMBOL|TEMPLATE|DESIGN_BLOCK)_DIR|KISYS3DMOD|KISYSMOD|KICAD_SYMBOL_DIR"
)
"""Variables that name KiCad's own installed libraries."""
_VARIABLE = re.compile(r"\$\{([^{}]*)\}|\$\(([^()]*)\)|\$(\w+)|%(\w+)%")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SHEET_FILE = frozenset({"sheetfile", "sheet file"})
_SIMULATION = frozenset({"sim.library", "spice_lib_file"})


@dataclass(frozen=True, slots=True)
class Reference:
    """A path that a design file holds."""

    file: str
    kind: Kind
    text: str


def design_files(tree: Tree) -> dict[str, bytes]:
    """The regular files of a tree that kicad-cli reads as part of a design."""
    return {
        path: entry.data for path, entry in tree.items() if entry.kind == "file" and path.endswith(DESIGN)
    }


def escapes(end: Tree, pristine: Tree, project: str | None) -> list[str]:
    """``file: what`` for every path that leaves the tree and is not the fixture's own; sorted.

    Args:
        end: the tree to check.
        pristine: the fixture as pinned.
        project: path of the project file, against whose folder ``${KIPRJMOD}`` resolves.

    Never raises for any content: a file that cannot be read is refused where its content is judged.
    """
    held = {path: references(path, data) for path, data in design_files(pristine).items()}
    allowed = {(one.kind, one.text) for found in held.values() for one in found if one.kind != "sheet"}
    folder = posixpath.dirname(project) if project else ""
    variables = _text_variables(end, project)
    found: set[str] = set()
    for path, entry in end.items():
        if entry.kind == "symlink":
            if path.endswith(DESIGN) or _is_folder_of_design(path):
                target = entry.data.decode("utf-8", "surrogateescape")
                if reason := leaves(target, posixpath.dirname(path), folder, {}):
                    found.add(f"{path}: symlink {_shown(target)} {reason}")
            continue
        if not path.endswith(DESIGN):
            continue
        same = path in held and pristine[path].data == entry.data
        for reference in held[path] if same else references(path, entry.data):
            if (reference.kind, reference.text) in allowed and (same or reference.kind != "variable"):
                continue
            base = posixpath.dirname(path) if reference.kind in ("sheet", "embedded") else folder
            if reason := _judge(reference, base, folder, variables):
                found.add(f"{path}: {reference.kind} {_shown(reference.text)} {reason}")
    return sorted(found)


@lru_cache(maxsize=KEPT)
def references(path: str, data: bytes) -> tuple[Reference, ...]:
    """Every path in one design file, wherever in the file it stands; none if it cannot be read."""
    if path.endswith(".kicad_pro"):
        return tuple(_project_references(path, data))
    found: list[Reference] = []
    with suppress(Unjudgeable):
        # What was found before the place that cannot be read counts.
        found.extend(_expression_references(path, parse(data, path)))
    return tuple(found)


_KEYWORDS: Mapping[str, Kind] = {
    "model": "model",
    "uri": "library",
    "sheetfile": "sheet",
    "page_layout_descr_file": "worksheet",
}
_TEXT = rb"(?:" + STRING + rb"|" + ATOM + rb")"
_ONE = re.compile(_TEXT)


def _next(*names: str) -> re.Pattern[bytes]:
    """The next list so named, however deep; what lies before, strings above all, is skipped in C."""
    # A keyword ends at a space, or at the next list.
    head = SPACE + rb"*+(?:" + "|".join(names).encode() + rb")(?=[ \t\r\n(])"
    return re.compile(
        rb'(?:[^("]++|' + STRING + rb"|\((?!" + head + rb"))*+\(" + SPACE + rb"*+(\w++)"
        rb"((?:" + SPACE + rb"*+" + _TEXT + rb"){0,3})"
    )


# No more names than a kind of file needs: boards are full of properties and types that are no paths.
_IN_BOARD = _next("model", "embedded_files", "page_layout_descr_file")
_IN_TABLE = _next("uri", "type")
_ELSEWHERE = _next("model", "uri", "sheetfile", "page_layout_descr_file", "embedded_files", "property")


def _expression_references(path: str, root: Node) -> Iterator[Reference]:
    source, position = root.source, 0
    board, table = path.endswith((".kicad_pcb", ".kicad_mod")), path.endswith(TABLES)
    pattern = _IN_BOARD if board else _IN_TABLE if table else _ELSEWHERE
    while match := pattern.match(source, position):
        position = match.end()
        keyword = match[1].decode()
        texts = [_plain(raw) for raw in _ONE.findall(match[2])]
        if keyword == "embedded_files":
            holder = root.at(source.rfind(b"(", 0, match.start(1)))
            for file in holder.lists("file") if holder else ():
                yield Reference(path, "embedded", file.get("name"))
        elif keyword == "type":
            if texts and texts[0].lower() in ("http", "database"):
                yield Reference(path, "library", f"{texts[0].lower()}:")
        elif keyword == "property":
            yield from _property_reference(path, texts)
        elif texts:
            yield Reference(path, _KEYWORDS[keyword], texts[0])


def _property_reference(path: str, texts: list[str]) -> Iterator[Reference]:
    name, value = ([text for text in texts if text != "private"] + ["", ""])[:2]
    if name.strip().lower() in _SHEET_FILE:
        yield Reference(path, "sheet", value)
    elif name.strip().lower() in _SIMULATION and value:
        yield Reference(path, "simulation", value)


def _plain(raw: bytes) -> str:
    return unquote(raw) if raw.startswith(b'"') else raw.decode("utf-8", "surrogateescape")


def _project_references(path: str, data: bytes) -> Iterator[Reference]:
    try:
        project = read_project(data, path)
    except Unjudgeable:
        return
    for section in ("pcbnew", "schematic"):
        if isinstance(text := _member(project, section, "page_layout_descr_file"), str) and text:
            yield Reference(path, "worksheet", text)
    for section, key in (("schematic", "legacy_lib_dir"), ("cvpcb", "equivalence_files")):
        value = _member(project, section, key)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and text:
                yield Reference(path, "library", text)
    variables = project.get("text_variables")
    for name in variables if isinstance(variables, dict) else ():
        if name == "KIPRJMOD" or _STOCK.fullmatch(name):
            yield Reference(path, "variable", name)


def _member(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text_variables(tree: Tree, project: str | None) -> dict[str, str]:
    entry = tree.get(project) if project else None
    if entry is None or entry.kind != "file":
        return {}
    try:
        return text_variables(read_project(entry.data, project or ""))
    except Unjudgeable:
        return {}


def text_variables(project: Mapping[str, Any]) -> dict[str, str]:
    """A project's text variables."""
    found = project.get("text_variables")
    return (
        {key: value for key, value in found.items() if isinstance(value, str)}
        if isinstance(found, dict)
        else {}
    )


def _judge(reference: Reference, base: str, folder: str, variables: Mapping[str, str]) -> str | None:
    match reference.kind:
        case "variable":
            return "is a text variable that redirects KiCad's own"
        case "embedded":
            inert = reference.text not in {"", ".", ".."} and not set("/\\") & set(reference.text)
            return None if inert else "is no plain file name"
        case "sheet":
            # KiCad does not resolve variables here: a ``${`` is part of a file's name.
            return _stays(reference.text.replace("\\", "/"), base)
        case "model" if reference.text.startswith(":"):
            return "uses an alias of its author's configuration"
        case _:
            return leaves(reference.text, base, folder, variables)


def leaves(text: str, base: str, folder: str, variables: Mapping[str, str]) -> str | None:
    """Why a path leaves the tree; None when it stays, or names KiCad's own libraries.

    Args:
        text: the path as written.
        base: tree folder that a relative path starts from.
        folder: tree folder of the project, ``${KIPRJMOD}``.
        variables: the project's text variables, which KiCad resolves before any other.
    """
    path = text.replace("\\", "/")
    if path.startswith("kicad-embed://"):
        rest = path.removeprefix("kicad-embed://")
        return "climbs out of the embedded files" if "/" in rest or rest == ".." else None
    for _ in range(8):
        match = _VARIABLE.search(path)
        if match is None:
            return _stays(path, base)
        name = next(group for group in match.groups() if group is not None)
        before, rest = path[: match.start()], path[match.end() :]
        if name in variables:
            path = (before + variables[name] + rest).replace("\\", "/")[:10_000]
        elif before:
            return "holds a variable in its middle"
        elif name == "KIPRJMOD":
            base, path = folder, rest.lstrip("/")
        elif _STOCK.fullmatch(name):
            rest = posixpath.normpath(rest.lstrip("/") or ".")
            climbs = rest == ".." or rest.startswith("../") or _VARIABLE.search(rest)
            return "climbs out of KiCad's libraries" if climbs else None
        else:
            return f"uses the variable {_shown(name)}, which is not KiCad's own"
    return "holds too many variables"


def _stays(path: str, base: str) -> str | None:
    """Why a path without variables leaves the tree."""
    if path.startswith("/"):
        return "is absolute"
    if path.startswith("~"):
        return "starts in a home folder"
    if _SCHEME.match(path):
        return "is a URI or a drive"
    joined = posixpath.normpath(posixpath.join(base, path)) if path else base
    return "climbs out of the tree" if joined == ".." or joined.startswith("../") else None


def _is_folder_of_design(path: str) -> bool:
    return path.endswith((".pretty", ".3dshapes")) or "." not in path.rpartition("/")[2]


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 200 else text[:200] + "…")
