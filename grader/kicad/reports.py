"""ERC and DRC reports of kicad-cli (JSON) as violations (Standard §4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from grader.kicad.errors import Unjudgeable
from schema.errors import InvalidFile
from schema.fixture import Source, Violation
from schema.jsonfile import parse_json

ERROR_LIMIT = 199
"""kicad-cli's DRC lists no more findings of a type than this …"""
EXTENDED_LIMIT = 499
"""… and of these no more than this (a thread may add one). Measured on 9.0.2 and 10.0.6."""
EXTENDED_TYPES = frozenset({"clearance", "unconnected_items"})


@dataclass(frozen=True)
class Finding:
    """One finding as it stands in a report, before its affected net is known."""

    source: Source
    type: str
    severity: Literal["error", "warning"]
    sheet: str
    """Human-readable sheet path (ERC only)."""
    sheet_path: str
    """The same in uuids, which tells the instances of a reused sheet apart."""
    uuids: tuple[str, ...]
    descriptions: tuple[str, ...]
    text: str
    excluded: bool

    def violation(self, pins: list[str] | None) -> Violation:
        """The part that identifies it across runs."""
        return Violation(
            source=self.source,
            type=self.type,
            severity=self.severity,
            sheet=self.sheet,
            items=sorted(self.uuids),
            pins=pins,
        )


@dataclass(frozen=True)
class Report:
    """All findings of one ERC or DRC."""

    violations: tuple[Violation, ...]
    """Sorted. Exclusions do not remove any unless they were asked for."""
    stopped: frozenset[tuple[str, str]] = frozenset()
    """(source, type) that reached kicad-cli's stop: there may be more."""
    files: str = ""
    """SHA-256 over what kicad-cli was given; equal for two trees means nothing it reads changed."""


def read_findings(data: bytes, kind: Literal["erc", "drc"], about: str) -> list[Finding]:
    """Read a report written with ``--format json``.

    Raises:
        Unjudgeable: not JSON, not such a report, or a severity or shape we do not know.
    """
    try:
        report = parse_json(data, about)
    except InvalidFile as error:
        raise Unjudgeable(f"{about}: {error.what}") from None
    try:
        if kind == "erc":
            return [
                _finding(entry, "erc", str(sheet["path"]), str(sheet["uuid_path"]))
                for sheet in report["sheets"]
                for entry in sheet["violations"]
            ]
        sections: tuple[tuple[str, Source], ...] = (
            ("violations", "drc"),
            ("unconnected_items", "unconnected"),
            ("schematic_parity", "parity"),
        )
        return [_finding(entry, source, "", "") for key, source in sections for entry in report[key]]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Unjudgeable(f"{about}: not a kicad-cli {kind.upper()} report ({error!r})") from None


def _finding(entry: dict[str, Any], source: Source, sheet: str, sheet_path: str) -> Finding:
    severity = entry["severity"]
    if severity not in ("error", "warning"):
        raise ValueError(f"severity {severity!r}")
    items = entry["items"]
    return Finding(
        source=source,
        type=str(entry["type"]),
        severity=severity,
        sheet=sheet,
        sheet_path=sheet_path,
        uuids=tuple(str(item["uuid"]) for item in items),
        descriptions=tuple(str(item["description"]) for item in items),
        text=str(entry["description"]),
        excluded=entry.get("excluded", False) is True,
    )


def stops(findings: Iterable[Finding]) -> frozenset[tuple[str, str]]:
    """(source, type) pairs whose count reached the stop of kicad-cli's DRC. ERC has none."""
    counts = Counter((finding.source, finding.type) for finding in findings if finding.source != "erc")
    return frozenset(key for key, count in counts.items() if at_stop(key[1], count))


def at_stop(kind: str, count: int) -> bool:
    """Whether so many DRC findings of a type mean that kicad-cli stopped counting."""
    return count >= (EXTENDED_LIMIT if kind in EXTENDED_TYPES else ERROR_LIMIT)


def to_violations(
    findings: Iterable[Finding], pins_of: Callable[[Finding], list[str] | None]
) -> tuple[Violation, ...]:
    """Findings as sorted violations; ``pins_of`` gives the affected net's pins where the type needs them."""
    return tuple(sorted((finding.violation(pins_of(finding)) for finding in findings), key=sort_key))


def sort_key(violation: Violation) -> tuple[str, str, str, str, list[str], list[str]]:
    """A total order over violations."""
    return (
        violation.source,
        violation.type,
        violation.severity,
        violation.sheet,
        violation.items,
        violation.pins or [],
    )


def sort_text(violation: Violation) -> str:
    """A text that is equal for equal violations."""
    return violation.model_dump_json()
