"""What a fixture's baseline and scale are, for ``copperbench fixtures measure`` (Standard §7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from grader.evidence import Tree
from grader.kicad.cli import KicadCli
from grader.kicad.design import Design
from schema.fixture import Artifacts, BaselineCounts, DrcCounts, ErcCounts, Scale, Violation


@dataclass(frozen=True)
class Measurement:
    """One fixture under one kicad-cli."""

    counts: BaselineCounts
    """With the project's own exclusions honoured: what a designer sees."""
    erc: list[Violation]
    """Without exclusions: what end states are compared with."""
    drc: list[Violation]
    scale: Scale
    escapes: list[str]
    """Paths of the fixture itself that leave its tree."""


def measure(tree: Tree, artifacts: Artifacts, cli: KicadCli) -> Measurement:
    """Measure an untouched fixture.

    Raises:
        Unjudgeable: kicad-cli or our readers cannot read it.
    """
    design = Design(tree, artifacts=artifacts, pristine=tree, cli=cli)
    board = artifacts.board is not None
    seen = design.erc(exclusions=True).violations
    counts = BaselineCounts(
        kicad_version=cli.version,
        erc=ErcCounts(**_counts(seen)),
        drc=_drc_counts(design.drc(exclusions=True).violations) if board else None,
    )
    return Measurement(
        counts,
        list(design.erc().violations),
        list(design.drc().violations) if board else [],
        _scale(design, board),
        Design(tree, artifacts=artifacts, pristine={}, cli=cli).escapes,
    )


def _counts(violations: Iterable[Violation]) -> dict[str, int | dict[str, int]]:
    chosen = list(violations)
    errors = Counter(v.type for v in chosen if v.severity == "error")
    warnings = Counter(v.type for v in chosen if v.severity == "warning")
    return {
        "errors": errors.total(),
        "error_types": dict(sorted(errors.items())),
        "warnings": warnings.total(),
        "warning_types": dict(sorted(warnings.items())),
    }


def _drc_counts(violations: Iterable[Violation]) -> DrcCounts:
    chosen = list(violations)
    parity = Counter(v.type for v in chosen if v.source == "parity")
    return DrcCounts(
        **_counts(v for v in chosen if v.source == "drc"),
        unconnected_items=sum(v.source == "unconnected" for v in chosen),
        schematic_parity=parity.total(),
        schematic_parity_types=dict(sorted(parity.items())),
    )


def _scale(design: Design, board: bool) -> Scale:
    files = design.hierarchy.files.values()
    power = {
        symbol.value for file in files for symbol in file.symbols if file.is_power(symbol)
    } & design.netlist.nets.keys()
    named = [name for name in design.netlist.nets if not name.startswith("unconnected-")]
    return Scale(
        schematic_lines=sum(file.lines for file in files),
        board_lines=design.board.lines if board else None,
        symbols=len(design.netlist.components),
        sheets=len(design.hierarchy.instances),
        signal_nets=len(named) - len(power),
        power_nets=len(power),
    )
