"""What an assertion may read, and how it answers.

The protocols name the part of ``grader.kicad`` that the vocabulary uses; ``Design`` there satisfies them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from grader.diff import Changes
from grader.documents import docs_folder
from grader.evidence import Bundle
from grader.transcript import Transcript
from schema.fixture import Violation
from schema.transcript import ExitPath


class Component(Protocol):
    """A part of the netlist. Power symbols are not components."""

    @property
    def value(self) -> str: ...
    @property
    def footprint(self) -> str: ...


class Netlist(Protocol):
    """KiCad's own connectivity."""

    @property
    def nets(self) -> Mapping[str, frozenset[tuple[str, str]]]: ...
    @property
    def components(self) -> Mapping[str, Component]: ...
    def match(self, argument: str) -> list[str]: ...
    @property
    def pin_names(self) -> Mapping[tuple[str, str], str]: ...
    def net_of(self, refdes: str, pin: str) -> str | None: ...


class Report(Protocol):
    """An ERC or DRC report."""

    @property
    def violations(self) -> tuple[Violation, ...]: ...


class Design(Protocol):
    """One tree's design as KiCad reads it. Every answer may raise ``Unjudgeable``."""

    @property
    def netlist(self) -> Netlist: ...
    @property
    def labels(self) -> frozenset[str]: ...
    @property
    def references(self) -> frozenset[str]: ...
    def check_text(self, path: str) -> None: ...
    def erc(self, *, exclusions: bool = False) -> Report: ...
    def drc(self, *, exclusions: bool = False) -> Report: ...
    def unchanged(self, kind: Literal["erc", "drc"]) -> bool: ...


NewViolations = Callable[..., tuple[list[str], list[str]]]
"""``new_violations(baseline, found, *, severity, file_unchanged)`` → what is new, and notes."""


@dataclass(frozen=True)
class Outcome:
    """One assertion's answer."""

    passed: bool
    reason: str
    """One line: what was found."""
    notes: tuple[str, ...] = ()


def passed(reason: str, notes: Sequence[str] = ()) -> Outcome:
    """The assertion holds."""
    return Outcome(True, reason, tuple(notes))


def failed(reason: str, notes: Sequence[str] = ()) -> Outcome:
    """The assertion does not hold."""
    return Outcome(False, reason, tuple(notes))


def check(holds: bool, reason: str, notes: Sequence[str] = ()) -> Outcome:
    """The assertion holds iff ``holds``."""
    return Outcome(holds, reason, tuple(notes))


@dataclass(frozen=True)
class Context:
    """All evidence of one run. Nothing is read before an assertion asks for it."""

    bundle: Bundle
    transcript: Transcript
    exit_path: ExitPath | None
    design: Design
    """Of the end tree."""
    baseline_design: Design
    """Of the baseline tree; only ``newOnly`` drift asks for it."""
    new_violations: NewViolations
    erc_baseline: Sequence[Violation] | None
    """The fixture's recorded findings under this kicad-cli's major; None when there is no record."""
    drc_baseline: Sequence[Violation] | None

    @cached_property
    def changes(self) -> Changes:
        """End tree against baseline tree, without what every run of this agent writes."""
        return Changes(self.bundle.baseline, self.bundle.end, self.bundle.agent.bookkeeping.always)

    @cached_property
    def docs(self) -> str:
        """The documents folder that the baseline configures."""
        return docs_folder(self.bundle.baseline)
