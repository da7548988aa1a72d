"""KiCad's and our own checks, always held against the project as it was at the start."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from scaffold.errors import Off
from scaffold.kicad import Kicad
from scaffold.netlist import Netlist
from scaffold.sexpr import parse

from reference.drift import BOM, PINOUT, Mismatch, mismatches
from reference.workspace import Workspace

CONFIG = ".copperhead/config.json"
REGISTRY = ".copperhead/constraints.json"
_RENAMED = {"unconnected_items", "power_pin_not_driven", "pin_not_driven", "multiple_net_names"}
"""KiCad picks anew which items it names for these: only their number tells."""
_BUDGET = re.compile(r"-\s+`?([A-Za-z][\w.]*)`?\s*[:=]\s*(-?\d+(?:\.\d+)?)\b")
_EXPRESSIONS = {".kicad_sch", ".kicad_pcb", ".kicad_sym", ".kicad_mod", ".kicad_wks"}
DESIGN = _EXPRESSIONS | {".kicad_pro", ".kicad_dru"}

T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """One ERC or DRC violation."""

    source: str
    kind: str
    severity: str
    items: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"[{self.severity}] {self.kind}: {self.text}"


@dataclass(frozen=True)
class Report:
    """What a check finds now, and what of it was not there at the start."""

    now: list[Finding]
    new: list[Finding]

    @property
    def errors(self) -> list[Finding]:
        """New findings that block."""
        return [finding for finding in self.new if finding.severity == "error"]


@dataclass(frozen=True)
class Settings:
    """``.copperhead/config.json``."""

    schematic: str
    board: str | None
    docs: str
    max_turns: int
    max_repair_cycles: int
    budgets: dict[str, Any]

    @classmethod
    def read(cls, workspace: Workspace) -> Settings:
        """Raises ValueError when the file is not as the scaffolder writes it."""
        config = json.loads(workspace.read(CONFIG))
        if not isinstance(config, dict) or not isinstance(config.get("schematic"), str):
            raise ValueError("names no schematic")
        return cls(
            schematic=config["schematic"],
            board=config.get("board"),
            docs=str(config.get("docs", "docs/")).strip("/"),
            max_turns=int(config.get("maxTurns", 40)),
            max_repair_cycles=int(config.get("maxRepairCycles", 5)),
            budgets=dict(config.get("budgets", {})),
        )


class Checks:
    """Every check of one workspace; what KiCad found is kept until a file that it reads changes."""

    def __init__(self, workspace: Workspace, settings: Settings) -> None:
        self._workspace = workspace
        self.settings = settings
        self._known: dict[tuple[str, str], Any] = {}

    def erc(self) -> Report:
        """The electrical rules. Raises :class:`Off` when KiCad cannot read the schematic."""
        return self._compared("erc", self._erc)

    def drc(self) -> Report:
        """The design rules, parity with the schematic included; empty without a board."""
        return self._compared("drc", self._drc)

    def netlist(self) -> Netlist:
        """Parts and nets as KiCad sees them."""
        return self._once("netlist", self._netlist)

    def drift(self) -> tuple[list[Mismatch], list[Mismatch]]:
        """(all, new) disagreements of the documents with the schematic."""
        now = mismatches(self._text(BOM), self._text(PINOUT), self.netlist())
        if not now or self._is_new(self.settings.schematic):
            return now, now
        netlist = self._once("netlist", self._netlist, original=True)
        before = mismatches(self._text(BOM, original=True), self._text(PINOUT, original=True), netlist)
        return now, [item for item in now if item not in before]

    def contradictions(self) -> list[str]:
        """Where the project contradicts its own requirements: for a person to decide, not for us."""
        registry = self.registry()
        return [*self._forbidden(registry), *self._specified(registry)]

    def registry(self) -> dict[str, Any]:
        """``.copperhead/constraints.json``; empty when there is none."""
        if not self._workspace.exists(REGISTRY):
            return {}
        try:
            found = json.loads(self._workspace.read(REGISTRY))
        except ValueError as error:
            raise Off(f"{REGISTRY}: not JSON: {error}") from None
        if not isinstance(found, dict):
            raise Off(f"{REGISTRY}: not an object of key → constraint")
        return found

    def load(self, name: str) -> None:
        """Whether KiCad still reads a design file. Raises :class:`Off` with what it says."""
        suffix = Path(name).suffix
        data = self._workspace.read(name)
        if suffix == ".kicad_pro":
            try:
                json.loads(data)
            except (ValueError, RecursionError) as error:
                raise Off(f"{name}: not JSON: {error}") from None
        if suffix not in _EXPRESSIONS:
            return
        try:
            parse(data.decode(), name)
        except UnicodeDecodeError as error:
            raise Off(f"{name}: not UTF-8 at byte {error.start}") from None
        with self._copy() as kicad:
            if suffix == ".kicad_sch":
                kicad.netlist(name)
            elif suffix == ".kicad_pcb":
                kicad.load_board(name)

    # --- how

    def _erc(self, kicad: Kicad) -> list[Finding]:
        report = kicad.report("sch", "erc", self.settings.schematic)
        return [_finding("erc", item) for sheet in report["sheets"] for item in sheet["violations"]]

    def _drc(self, kicad: Kicad) -> list[Finding]:
        if self.settings.board is None:
            return []
        report = kicad.report("pcb", "drc", "--schematic-parity", self.settings.board)
        keys = ("violations", "unconnected_items", "schematic_parity")
        return [_finding(key, item) for key in keys for item in report.get(key, [])]

    def _netlist(self, kicad: Kicad) -> Netlist:
        return kicad.netlist(self.settings.schematic)

    def _text(self, document: str, *, original: bool = False) -> str | None:
        """A document as it is, or as it was; None when there is or was none."""
        name = f"{self.settings.docs}/{document}"
        data = self._workspace.read(name) if self._workspace.exists(name) else None
        if original:
            data = self._workspace.originals.get(name, data)
        return None if data is None else data.decode("utf-8", "replace")

    def _is_new(self, name: str) -> bool:
        return self._workspace.originals.get(name, b"") is None

    def _compared(self, what: str, find: Callable[[Kicad], list[Finding]]) -> Report:
        now = self._once(what, find)
        started_empty = self._is_new(self.settings.schematic)
        return Report(now, fresh([] if started_empty else self._once(what, find, original=True), now))

    def _once(self, what: str, find: Callable[[Kicad], T], *, original: bool = False) -> T:
        # Nothing changed is the first state too, so that it is asked about once.
        key = (what, repr([]) if original else self._state())
        if key not in self._known:
            with self._copy(original=original) as kicad:
                self._known[key] = find(kicad)
        known: T = self._known[key]
        return known

    def _state(self) -> str:
        """A digest of what was changed and KiCad reads."""
        names = sorted(name for name in self._workspace.touched if not name.endswith(".md"))
        return repr([(name, hashlib.sha256(self._workspace.read(name)).hexdigest()) for name in names])

    @contextmanager
    def _copy(self, *, original: bool = False) -> Iterator[Kicad]:
        """kicad-cli on a copy, since it may write beside what it reads; on the first state, if asked."""
        with tempfile.TemporaryDirectory(prefix="check-") as name:
            project = Path(name) / "project"
            ignored = shutil.ignore_patterns(".git", ".copperhead")
            shutil.copytree(self._workspace.root, project, symlinks=True, ignore=ignored)
            for path, data in self._workspace.originals.items() if original else ():
                if path == REGISTRY:
                    continue
                if data is None:
                    (project / path).unlink(missing_ok=True)
                else:
                    (project / path).write_bytes(data)
            yield Kicad(project, Path(name))

    def _forbidden(self, registry: dict[str, Any]) -> Iterator[str]:
        for key, entry in sorted(registry.items()):
            names = entry.get("forbidden", []) if isinstance(entry, dict) else []
            for (refdes, pin), net in self.netlist().nets.items() if names else ():
                name = self.netlist().pin_names.get((refdes, pin), "")
                if name in names and not net.startswith("unconnected-("):
                    yield f"{refdes} pin {name} is on net {net}, forbidden by {key}"

    def _specified(self, registry: dict[str, Any]) -> Iterator[str]:
        path = f"{self.settings.docs}/SPEC.md"
        text = self._workspace.read(path).decode("utf-8", "replace") if self._workspace.exists(path) else ""
        for line in text.splitlines():
            match = _BUDGET.match(line.strip())
            if match is None:
                continue
            key, number = match[1], float(match[2])
            entry = registry.get(key, {"max": self.settings.budgets.get(key)})
            held = entry.get("value", entry.get("max")) if isinstance(entry, dict) else None
            if isinstance(held, int | float) and held != number:
                yield f"{key} is {match[2]} in {path} and {held:g} in {REGISTRY}"


def fresh(before: list[Finding], now: list[Finding]) -> list[Finding]:
    """Findings that were not there before, by what they concern; by number where KiCad renames them."""
    known = Counter((item.source, item.kind, item.severity, item.items) for item in before)
    counts = Counter((item.source, item.kind, item.severity) for item in before)
    grown = Counter((item.source, item.kind, item.severity) for item in now)
    found: list[Finding] = []
    for item in now:
        key, group = (
            (item.source, item.kind, item.severity, item.items),
            (item.source, item.kind, item.severity),
        )
        if known[key]:
            known[key] -= 1
        elif item.kind not in _RENAMED or grown[group] > counts[group]:
            found.append(item)
    return found


def _finding(source: str, item: dict[str, Any]) -> Finding:
    places = [str(place.get("description", "")) for place in item.get("items", [])]
    return Finding(
        source=source,
        kind=str(item["type"]),
        severity="excluded" if item.get("excluded") else str(item["severity"]),
        items=tuple(sorted(str(place.get("uuid", "")) for place in item.get("items", []))),
        text="; ".join([str(item.get("description", "")), *places]),
    )
