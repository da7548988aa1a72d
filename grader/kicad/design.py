"""One tree's design as KiCad reads it; every answer is computed once, when asked for (Standard §4)."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

from grader.evidence import Tree
from grader.kicad import buses, grammar, overrides, paths, project, reports, rules
from grader.kicad.affected import BoardNets, SchematicNets
from grader.kicad.board import Board, read_board
from grader.kicad.cli import Job, KicadCli
from grader.kicad.errors import Unjudgeable
from grader.kicad.netlist import Netlist, read_netlist
from grader.kicad.reports import Finding, Report
from grader.kicad.schematic import Hierarchy, check_buses, net_texts, read_hierarchy
from grader.kicad.violations import ANEW
from schema.fixture import Artifacts, Violation

Settings = dict[str, Any]


class Design:
    """What KiCad and our own readers find in one tree, under the rules of the pristine one."""

    def __init__(self, tree: Tree, *, artifacts: Artifacts, pristine: Tree, cli: KicadCli) -> None:
        """
        Args:
            tree: the tree to judge.
            artifacts: paths of schematic, board and project in it.
            pristine: the fixture as pinned; severities, exclusions and design rules are taken from it.
            cli: runs kicad-cli.
        """
        self._tree = tree
        self._artifacts = artifacts
        self._pristine = pristine
        self._cli = cli
        self._reports: dict[tuple[str, bool], Report | Unjudgeable] = {}

    @cached_property
    def netlist(self) -> Netlist:
        """Nets and components as ``kicad-cli sch export netlist`` gives them.

        Raises:
            Unjudgeable: a file is missing or unreadable, or kicad-cli fails on it.
        """
        target = self._artifacts.schematic
        _ = self.hierarchy
        netlist = read_netlist(
            self._run("netlist", target, self._files("netlist", self._pinned())), f"netlist of {target}"
        )
        _expect_one_of_each(self.hierarchy)
        _expect_all_parts(self.hierarchy, netlist)
        return netlist

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The schematic's files and sheet instances, by our own reader.

        Raises:
            Unjudgeable: a file is missing, unreadable, leaves the tree or includes itself.
        """
        return read_hierarchy(self._tree, self._artifacts.schematic)

    @cached_property
    def references(self) -> frozenset[str]:
        """Every reference of a part in the schematic files, those kept off the board too.

        Raises:
            Unjudgeable: see :attr:`hierarchy`.
        """
        return self.hierarchy.references()

    @cached_property
    def board(self) -> Board:
        """The board, by our own reader.

        Raises:
            Unjudgeable: there is none, or it is unreadable.
        """
        path = self._artifacts.board
        if path is None:
            raise Unjudgeable("the fixture has no board")
        return read_board(self._file(path), path)

    @cached_property
    def labels(self) -> frozenset[str]:
        """Every net-naming text of every reachable sheet, ``{slash}`` decoded, buses expanded.

        Raises:
            Unjudgeable: a sheet cannot be read, or a label holds an undefined variable.
        """
        return net_texts(self.hierarchy, paths.text_variables(self._project))

    def erc(self, *, exclusions: bool = False) -> Report:
        """ERC under the pristine rules.

        Args:
            exclusions: False lists excluded findings like any other, which is how reports are compared with
                a baseline; True leaves out what the pristine project excludes, which is what "clean" means.

        Raises:
            Unjudgeable: see :attr:`netlist`.
        """
        return self._once("erc", exclusions, self._erc)

    def drc(self, *, exclusions: bool = False) -> Report:
        """DRC with unconnected items and schematic parity, under the pristine rules.

        When the net classes changed, DRC runs under the old and the new ones and the findings of both count;
        so it does without the exceptions that a changed board grants its own footprints and pads.

        Args:
            exclusions: see :meth:`erc`.

        Raises:
            Unjudgeable: see :attr:`netlist`; also when there is no board.
        """
        return self._once("drc", exclusions, self._drc)

    @cached_property
    def escapes(self) -> list[str]:
        """``file: what`` for every path that leaves the tree; any means tampered evidence."""
        return paths.escapes(self._tree, self._pristine, self._project_path)

    @cached_property
    def rule_changes(self) -> list[str]:
        """Rules that live in design files, or pinned settings, that differ from the pristine ones.

        For the record's diagnostics; never raises.
        """
        return rules.changes(self._tree, self._pristine, self._artifacts)

    def check_text(self, path: str) -> None:
        """See that the text of a file is its content: no comments, no letters spelled in escapes.

        Raises:
            Unjudgeable: it is a design file as KiCad does not write it.
        """
        if path.endswith(paths.EXPRESSIONS):
            self._check_source(path, self._file(path))

    @property
    def kicad_seconds(self) -> float:
        """Wall time spent inside kicad-cli so far, by all that share ``cli``."""
        return self._cli.seconds

    def unchanged(self, kind: Literal["erc", "drc"]) -> bool:
        """Whether all that kicad-cli reads for this report is the fixture's, byte for byte."""
        original = Design(self._pristine, artifacts=self._artifacts, pristine=self._pristine, cli=self._cli)
        try:
            return self._fingerprint(kind) == original._fingerprint(kind)
        except Unjudgeable:
            return False

    # What kicad-cli is given.

    @property
    def _project_path(self) -> str:
        return self._artifacts.project or f"{posixpath.splitext(self._artifacts.schematic)[0]}.kicad_pro"

    def _file(self, path: str) -> bytes:
        entry = self._tree.get(path)
        if entry is None:
            raise Unjudgeable(f"{path}: missing")
        if entry.kind != "file":
            raise Unjudgeable(f"{path}: a symlink")
        return entry.data

    @cached_property
    def _project(self) -> Settings:
        """The end state's project; an empty one only where the fixture has none."""
        if self._artifacts.project is None and self._project_path not in self._tree:
            return {}
        return project.read_project(self._file(self._project_path), self._project_path)

    @cached_property
    def _pristine_project(self) -> Settings:
        entry = self._pristine.get(self._project_path)
        return project.read_project(entry.data, f"pristine {self._project_path}") if entry else {}

    def _pinned(self, *, exclusions: bool = False, net_settings: Settings | None = None) -> bytes:
        return project.dump(
            project.pin(
                self._pristine_project,
                self._project,
                exclusions=exclusions,
                net_settings=net_settings,
            )
        )

    def _files(self, job: Job, pinned: bytes) -> dict[str, bytes]:
        """What kicad-cli reads for a job, with every rule file replaced by the pristine one.

        Raises:
            Unjudgeable: a path leaves the tree, or a file that kicad-cli could read is one that we cannot.
        """
        if self.escapes:
            raise Unjudgeable(f"a path leaves the tree: {self.escapes[0]}")
        self._check_buses()
        files = self._cli.inputs(job, paths.design_files(self._tree))
        files = {
            path: data for path, data in files.items() if not path.endswith((".kicad_dru", ".kicad_pro"))
        }
        for path, data in files.items():
            self._check_source(path, data)
        pristine = self._cli.inputs(job, paths.design_files(self._pristine))
        files |= {path: data for path, data in pristine.items() if path.endswith(".kicad_dru")}
        opened = [self._artifacts.schematic, self._artifacts.board, self._project_path]
        # KiCad takes the project that is called like the file it opens.
        stems = {posixpath.splitext(path)[0] for path in opened if path}
        return files | {f"{stem}.kicad_pro": pinned for stem in stems}

    def _check_source(self, path: str, data: bytes) -> None:
        """KiCad takes more than it writes, and than we read: of neither may it be shown any."""
        if path not in self._pristine or self._pristine[path].data != data:
            grammar.check(data, path, paths.design_files(self._pristine).items())

    def _check_buses(self) -> None:
        root = self._artifacts.schematic
        pristine = read_hierarchy(self._pristine, root) if root in self._pristine else None
        check_buses(self.hierarchy, paths.text_variables(self._project), pristine)
        # Later majors keep bus aliases here.
        if buses.count(project.dump(self._project.get("schematic", {})).decode()) > buses.FILE_MEMBERS:
            raise Unjudgeable(f"{self._project_path}: buses of more than {buses.FILE_MEMBERS} members")

    def _fingerprint(self, kind: Literal["erc", "drc"]) -> str:
        target = self._artifacts.schematic if kind == "erc" else self._artifacts.board
        return self._cli.digest(kind, target or "", self._files(kind, self._pinned()))

    # Reports.

    def _once(self, kind: str, exclusions: bool, make: Callable[[bool], Report]) -> Report:
        key = kind, exclusions
        if key not in self._reports:
            try:
                self._reports[key] = make(exclusions)
            except Unjudgeable as reason:
                self._reports[key] = reason
        known = self._reports[key]
        if isinstance(known, Unjudgeable):
            raise known
        return known

    def _erc(self, exclusions: bool) -> Report:
        target = self._artifacts.schematic
        self._check_sheets()
        files = self._files("erc", self._pinned(exclusions=exclusions))
        findings = self._findings("erc", target, files)
        nets = SchematicNets(self.hierarchy, self.netlist) if _any_picked_anew(findings) else None
        return Report(
            reports.to_violations(findings, nets.pins if nets else _unknown),
            reports.stops(findings),
            self._cli.digest("erc", target, files),
        )

    def _drc(self, exclusions: bool) -> Report:
        _ = self.board
        self._check_sheets()
        self._check_parity_source()
        pinned = self._pinned(exclusions=exclusions)
        found = self._drc_under(pinned)
        before = self._pristine_project.get("net_settings")
        if isinstance(before, dict) and before != self._project.get("net_settings"):
            pinned = self._pinned(exclusions=exclusions, net_settings=before)
            found = _merged(found, self._drc_under(pinned))
        if (board := self._without_exceptions()) is not None:
            found = _merged(found, self._drc_under(pinned, board))
        return found

    def _without_exceptions(self) -> bytes | None:
        """The board without the exceptions from its rules that the fixture's does not grant; None if none."""
        path = self._artifacts.board or ""
        before, after = self._pristine.get(path), self._file(path)
        if before is None or before.data == after:
            return None
        return overrides.without_added(before.data, after, path)

    def _check_sheets(self) -> None:
        """kicad-cli must have read every sheet that we have; the root it could not leave out."""
        if len(self.hierarchy.files) > 1:
            _ = self.netlist

    def _check_parity_source(self) -> None:
        """KiCad compares a board with the schematic that is called like it, whichever one is graded."""
        path = f"{posixpath.splitext(self._artifacts.board or '')[0]}.kicad_sch"
        if path != self._artifacts.schematic and (path in self._tree or path in self._pristine):
            read_hierarchy(self._tree, path)

    def _drc_under(self, pinned: bytes, board: bytes | None = None) -> Report:
        target = self._artifacts.board or ""
        files = self._files("drc", pinned)
        if board is not None:
            files[target] = board
        findings = self._findings("drc", target, files)
        nets = BoardNets(self.board) if _any_picked_anew(findings) else None
        return Report(
            reports.to_violations(findings, nets.pins if nets else _unknown),
            reports.stops(findings),
            self._cli.digest("drc", target, files),
        )

    def _findings(self, kind: Literal["erc", "drc"], target: str, files: dict[str, bytes]) -> list[Finding]:
        found = reports.read_findings(self._run(kind, target, files), kind, f"{kind.upper()} of {target}")
        return [finding for finding in found if not finding.excluded]

    def _run(self, job: Job, target: str, files: dict[str, bytes]) -> bytes:
        return self._cli.run(job, target, files)


def _expect_one_of_each(hierarchy: Hierarchy) -> None:
    """A reference means one part: KiCad lists two that share one as if they were one, with either's value.

    Holds for the parts of eleven real boards.

    Raises:
        Unjudgeable: two symbols are the same unit of one reference, its units differ in their value, or the
            value of several is a variable, which may stand for something else in each.
    """
    units: set[tuple[str, int]] = set()
    values: dict[str, str] = {}
    for instance, symbol in hierarchy.parts():
        reference, unit = symbol.reference(instance.path), symbol.unit_on(instance.path)
        if (reference, unit) in units:
            raise Unjudgeable(f"{instance.file}: two symbols are unit {unit} of {reference}")
        units.add((reference, unit))
        several = reference in values
        if values.setdefault(reference, symbol.value) != symbol.value or (several and "${" in symbol.value):
            raise Unjudgeable(f"{instance.file}: units of {reference} differ in their value")


def _expect_all_parts(hierarchy: Hierarchy, netlist: Netlist) -> None:
    """kicad-cli skips a sheet whose file it cannot open (it trims the name, say) and ends with 0.

    A part is known by its reference and by a unit's uuid, or, since KiCad lists only units of one library
    symbol, by a pin. Holds for each of the 2,700 parts of eleven real boards.

    Raises:
        Unjudgeable: a part that belongs on the board is not in the netlist.
    """
    known = {uuid for part in netlist.components.values() for uuid in part.uuids}
    for instance, symbol in hierarchy.parts():
        if not (instance.on_board and symbol.on_board):
            continue
        reference = symbol.reference(instance.path)
        pins = [netlist.net_of(reference, number) for number in symbol.pins.values()]
        seen = symbol.uuid in known or not pins or any(pins)
        if reference not in netlist.components or not seen:
            raise Unjudgeable(f"{instance.file}: kicad-cli did not read {reference} of this sheet")


def _unknown(_finding: Finding) -> list[str] | None:
    return None


def _any_picked_anew(findings: list[Finding]) -> bool:
    return any(finding.type in ANEW for finding in findings)


def _merged(one: Report, other: Report) -> Report:
    """Both reports' findings; one that is in both counts once."""
    left = Counter(map(reports.sort_text, one.violations))
    extra: list[Violation] = []
    for violation in other.violations:
        key = reports.sort_text(violation)
        if left[key] > 0:
            left[key] -= 1
        else:
            extra.append(violation)
    return Report(
        tuple(sorted((*one.violations, *extra), key=reports.sort_key)),
        one.stopped | other.stopped,
        one.files,
    )
