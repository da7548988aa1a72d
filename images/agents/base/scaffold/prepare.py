"""Fixture → documents and settings → overlay → baseline commit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scaffold import VERSION, documents, endpoints, quiet, tree
from scaffold.errors import Off
from scaffold.kicad import copied

_REGISTRY = ".copperhead/constraints.json"
_IGNORED = (".history/", ".copperhead/runs/", ".copperhead/llm-cache/")
_DOCS = "docs"
_BRIEF = "brief.md"


@dataclass
class Preparation:
    """What is asked (``prep.json``), and what there is to say about it afterwards."""

    task: dict[str, Any]
    fixture: dict[str, Any]
    quiet: list[tuple[str, str]]
    workspace: Path
    overlay: Path
    brief: Path | None = None
    """What a ``create`` task asks for; other tasks have none."""
    notes: list[str] = field(default_factory=list)

    @property
    def schematic(self) -> str:
        """Root schematic, relative to the workspace."""
        return str(self.fixture["artifacts"]["schematic"])

    @property
    def board(self) -> str | None:
        """Board file, if the fixture has one."""
        board: str | None = self.fixture["artifacts"].get("board")
        return board

    @property
    def budgets(self) -> dict[str, int | float]:
        """Budget key → number."""
        return dict(self.task.get("config", {}).get("budgets", {}))


def load(folder: Path, workspace: Path) -> Preparation:
    """Read ``prep.json`` and check that the workspace holds what it names."""
    try:
        prep = json.loads((folder / "prep.json").read_bytes())
        violations = [(str(item["source"]), str(item["type"])) for item in prep["quiet"]]
        this = Preparation(
            prep["task"], prep["fixture"], violations, workspace, folder / "overlay", folder / _BRIEF
        )
        named = [this.schematic, this.board, this.fixture["artifacts"].get("project")]
    except OSError as error:
        raise Off(f"prep.json: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise Off(f"prep.json: {error.__class__.__name__}: {error}") from None
    there = set(tree.files(workspace))
    for name in named:
        if name is not None and name not in there:
            raise Off(f"{name}: named by the fixture, not in the workspace")
    return this


def prepare(this: Preparation) -> dict[str, Any]:
    """Do all of it; return what goes to standard output."""
    tree.plain_modes(this.workspace)
    lay_out(this)
    return {
        "baselineCommit": tree.commit(this.workspace),
        "scaffolderVersion": VERSION,
        "notes": this.notes,
    }


def lay_out(this: Preparation) -> None:
    """All but the commit: documents, settings, registry, overlay."""
    registry = _registry(this)
    for command in this.task.get("setup", {}).get("commands", ["init"]):
        if command == "init":
            _init(this, registry)
        elif command == "quiet-baseline":
            _quiet(this)
        else:
            raise Off(f"task.json: no setup command {command!r}")
    tree.write(this.workspace, ".copperhead/config.json", _json(_config(this)))
    if registry and not (this.workspace / _REGISTRY).exists():
        tree.write(this.workspace, _REGISTRY, _json(registry))
    if this.overlay.is_dir():
        tree.lay_over(this.overlay, this.workspace)
    if this.brief and this.brief.is_file():
        shutil.copyfile(this.brief, this.workspace / _BRIEF)
    _ignore(this.workspace)


def _registry(this: Preparation) -> dict[str, Any]:
    """The constraint registry: the task's, else the fixture's, else one entry a budget."""
    for root in (this.overlay, this.workspace):
        path = root / _REGISTRY
        if path.is_file():
            try:
                given = json.loads(path.read_bytes())
            except ValueError as error:
                raise Off(f"{_REGISTRY}: not valid JSON: {error}") from None
            if not isinstance(given, dict):
                raise Off(f"{_REGISTRY}: not an object of key → constraint")
            this.notes += [f"budget {key} is not in {_REGISTRY}" for key in this.budgets if key not in given]
            return given
    return {
        key: {"max": number, "source": f"{_DOCS}/SPEC.md Budgets", "affects": [f"{_DOCS}/SPEC.md"]}
        for key, number in this.budgets.items()
    }


def _init(this: Preparation, registry: dict[str, Any]) -> None:
    reading = endpoints.read(this.workspace / this.schematic, this.workspace)
    with copied(this.workspace) as kicad:
        netlist = kicad.netlist(this.schematic)
    known = {part.refdes for part in netlist.parts}
    for who, missing in (("KiCad", known - reading.refdes), ("an end-point reader", reading.refdes - known)):
        if missing:
            this.notes.append(
                f"{len(missing)} parts are seen only by {who}: {', '.join(sorted(missing)[:5])}"
            )
    pages = documents.render(
        title=Path(this.schematic).stem,
        board=this.board,
        netlist=netlist,
        pins=reading.pins,
        registry=registry,
    )
    for name, text in pages.items():
        if (this.workspace / _DOCS / name).exists():
            this.notes.append(f"{_DOCS}/{name}: the fixture's own is kept")
        else:
            tree.write(this.workspace, f"{_DOCS}/{name}", text)


def _quiet(this: Preparation) -> None:
    project = this.fixture["artifacts"].get("project")
    if project is None:
        raise Off("quiet-baseline: the fixture has no project file")
    _silence(this, project, this.quiet)
    # The grader measures a fixture with library tables of its own; an agent's gate runs in this image, where
    # other library findings show. Those are the baseline's too.
    if here := _reported(this):
        _silence(this, project, here)
        this.notes.append(f"quiet-baseline: only here: {_listed(here)}")
        if left := _reported(this):
            raise Off(f"quiet-baseline: still reported: {_listed(left)}")


def _silence(this: Preparation, project: str, violations: Iterable[tuple[str, str]]) -> None:
    path = this.workspace / project
    path.write_bytes(quiet.silence(path.read_bytes().decode(), violations, project).encode())


def _reported(this: Preparation) -> set[tuple[str, str]]:
    with copied(this.workspace) as kicad:
        return kicad.violations(this.schematic, this.board)


def _listed(violations: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{source} {kind}" for source, kind in sorted(violations))


def _config(this: Preparation) -> dict[str, Any]:
    config = this.task.get("config", {})
    wall = float(this.task["caps"]["wallClockSec"])
    return {
        "schematic": this.schematic,
        "board": this.board,
        "docs": f"{_DOCS}/",
        "maxTurns": config.get("maxTurns", 40),
        "maxRepairCycles": config.get("maxRepairCycles", 5),
        "budgets": this.budgets,
        # A cached reply would be replayed without a request: a run that measures nothing.
        "llmCache": False,
        # A hanging request is tried four times; all four must fit under the wall cap.
        "turnTimeoutMs": max(1, int(wall * 1000 / 5)),
    }


def _ignore(workspace: Path) -> None:
    path = workspace / ".gitignore"
    text = path.read_bytes().decode() if path.exists() else ""
    missing = [line for line in _IGNORED if line not in text.splitlines()]
    if missing:
        text += "" if not text or text.endswith("\n") else "\n"
        tree.write(workspace, ".gitignore", text + "".join(f"{line}\n" for line in missing))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
