"""The closed assertion vocabulary: 23 types, each with typed arguments (Standard §4)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import re2
from pydantic import AfterValidator, Field, TypeAdapter, model_validator

from schema.base import Model
from schema.transcript import EventType, ExitPath


def _linear_regex(pattern: str) -> str:
    """Refuse a pattern that RE2 does not accept: it could not be matched in linear time."""
    options = re2.Options()
    # The error is raised; RE2 would also print it.
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0] if error.args else error
        raise ValueError(f"not a valid RE2 regular expression: {text!s}") from None
    return pattern


def _relative(path: str) -> str:
    parts = path.split("/")
    if not path or path.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        raise ValueError("must be a tree-relative POSIX path without '.', '..' or empty parts")
    return path


Regex = Annotated[str, Field(min_length=1), AfterValidator(_linear_regex)]
RelativePath = Annotated[str, AfterValidator(_relative)]
Name = Annotated[str, Field(min_length=1)]
Severity = Literal["error", "warning"]
Number = int | float


class NoArgs(Model):
    """An assertion without arguments."""


class SeverityArgs(Model):
    """Lowest severity that is judged."""

    severity: Severity = "error"
    """``error`` judges errors; ``warning`` judges errors and warnings."""


class NetArgs(Model):
    """A net, by full name or by last path element."""

    net: Name
    """``/sheet/NAME`` or a whole net name is exact; else the net whose last element it is."""


class SymbolPresentArgs(Model):
    """A symbol by reference, optionally with value and footprint."""

    refdes: Name
    value: str | None = None
    footprint: str | None = None


class SymbolAbsentArgs(Model):
    """A symbol by reference."""

    refdes: Name


class PinNetArgs(Model):
    """A pin, by reference and pin number, and the net it must be on."""

    refdes: Name
    pin: Name
    net: Name


class DocRowArgs(Model):
    """One row of a markdown table and what a cell of it must match."""

    doc: RelativePath
    key: str | dict[str, str]
    """Value of the first column, or column → value pairs that together pick the one row."""
    column: Name
    pattern: Regex


class DocContainsArgs(Model):
    """A pattern that a document must, or with ``absent`` must not, match."""

    doc: RelativePath
    pattern: Regex
    absent: bool = False


class DriftArgs(Model):
    """How strictly documents must agree with the schematic."""

    new_only: bool = False
    """Do not count rows that were wrong in the baseline."""


class ConstraintArgs(Model):
    """An entry of the constraint registry; every given argument is compared."""

    key: Name
    source: str | None = None
    affects: list[str] | None = None
    value: Number | str | None = None
    min: Number | None = None
    max: Number | None = None


class FilesTouchedArgs(Model):
    """Anchored globs that every changed path must match."""

    allowed: list[Name] = Field(min_length=1)


class PathArgs(Model):
    """One tree-relative path."""

    path: RelativePath


class DiffRatioArgs(Model):
    """Largest share of a file's baseline lines that may be added or deleted."""

    path: RelativePath
    ratio: float = Field(gt=0)


class CommitCountArgs(Model):
    """How many commits lie on top of the baseline: exactly, or at most."""

    equals: int | None = Field(default=None, ge=0)
    max: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.equals is None) == (self.max is None):
            raise ValueError("give exactly one of equals and max")
        return self


class ExitPathArgs(Model):
    """Exit paths that are right."""

    paths: list[ExitPath] = Field(min_length=1)


class BudgetArgs(Model):
    """Key of the budget that a refusal must name."""

    budget_key: Name


class EventArgs(Model):
    """A transcript event, how often, and what its data must hold."""

    event: EventType
    min_count: int = Field(default=1, ge=1)
    matches: dict[str, Any] | None = None
    """Dotted path into the event's data → a literal to equal, or ``{"regex": …}``."""

    @model_validator(mode="after")
    def _valid_regexes(self) -> Self:
        for expected in (self.matches or {}).values():
            if isinstance(expected, dict):
                if set(expected) != {"regex"} or not isinstance(expected["regex"], str):
                    raise ValueError('a predicate is a literal or {"regex": "…"}')
                _linear_regex(expected["regex"])
        return self


class _Base(Model):
    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    """Kebab-case, unique in the task."""
    weight: float = Field(gt=0)
    """Share in the partial credit (diagnostic only)."""
    required: bool
    """The verdict is pass iff every required assertion passes."""
    note: str | None = None
    """Why the assertion is there, for people."""


class ErcNoNewViolations(_Base):
    """No ERC violation beyond the fixture's recorded baseline."""

    type: Literal["erc_no_new_violations"]
    args: SeverityArgs = SeverityArgs()


class DrcNoNewViolations(_Base):
    """No DRC violation, unconnected item or parity finding beyond the fixture's recorded baseline."""

    type: Literal["drc_no_new_violations"]
    args: SeverityArgs = SeverityArgs()


class ErcClean(_Base):
    """The ERC report has no violations."""

    type: Literal["erc_clean"]
    args: NoArgs = NoArgs()


class DrcClean(_Base):
    """The DRC report has no violations."""

    type: Literal["drc_clean"]
    args: NoArgs = NoArgs()


class CheckClean(_Base):
    """ERC, DRC, drift and constraint checks are all clean."""

    type: Literal["check_clean"]
    args: NoArgs = NoArgs()


class DriftClean(_Base):
    """The documents agree with the schematic (Standard §12)."""

    type: Literal["drift_clean"]
    args: DriftArgs = DriftArgs()


class NetPresent(_Base):
    """The net exists and has a pin."""

    type: Literal["net_present"]
    args: NetArgs


class NetAbsent(_Base):
    """No such net and no label of that name."""

    type: Literal["net_absent"]
    args: NetArgs


class SymbolPresent(_Base):
    """Such a symbol exists, with the given value and footprint."""

    type: Literal["symbol_present"]
    args: SymbolPresentArgs


class SymbolAbsent(_Base):
    """No symbol has that reference."""

    type: Literal["symbol_absent"]
    args: SymbolAbsentArgs


class PinNetEquals(_Base):
    """That pin is on that net."""

    type: Literal["pin_net_equals"]
    args: PinNetArgs


class DocRowMatches(_Base):
    """The one row with that key has a cell in the column that matches."""

    type: Literal["doc_row_matches"]
    args: DocRowArgs


class DocContains(_Base):
    """The document matches, or with ``absent`` does not."""

    type: Literal["doc_contains"]
    args: DocContainsArgs


class ConstraintRegistered(_Base):
    """The constraint registry holds the entry, every given argument compared."""

    type: Literal["constraint_registered"]
    args: ConstraintArgs


class FilesTouchedSubset(_Base):
    """Every added, changed, deleted or mode-changed path matches a glob."""

    type: Literal["files_touched_subset"]
    args: FilesTouchedArgs


class FileUnchanged(_Base):
    """Byte-identical to the baseline, same mode."""

    type: Literal["file_unchanged"]
    args: PathArgs


class DiffRatioMax(_Base):
    """(added + deleted lines) / baseline lines is at most the ratio."""

    type: Literal["diff_ratio_max"]
    args: DiffRatioArgs


class CommitCount(_Base):
    """That many commits lie on top of the baseline."""

    type: Literal["commit_count"]
    args: CommitCountArgs


class RollbackByteIdentical(_Base):
    """The end tree equals the baseline tree, the agent's own run directory aside."""

    type: Literal["rollback_byte_identical"]
    args: NoArgs = NoArgs()


class NoSecret(_Base):
    """No file matches the credential set."""

    type: Literal["no_secret"]
    args: NoArgs = NoArgs()


class ExitPathIn(_Base):
    """The run's exit path is one of the given."""

    type: Literal["exit_path_in"]
    args: ExitPathArgs


class RefusalCitesBudget(_Base):
    """The run refused and the refusal's own text names the budget."""

    type: Literal["refusal_cites_budget"]
    args: BudgetArgs


class TranscriptEvent(_Base):
    """The event occurs often enough and its data satisfies the predicate."""

    type: Literal["transcript_event"]
    args: EventArgs


Assertion = Annotated[
    ErcNoNewViolations
    | DrcNoNewViolations
    | ErcClean
    | DrcClean
    | CheckClean
    | DriftClean
    | NetPresent
    | NetAbsent
    | SymbolPresent
    | SymbolAbsent
    | PinNetEquals
    | DocRowMatches
    | DocContains
    | ConstraintRegistered
    | FilesTouchedSubset
    | FileUnchanged
    | DiffRatioMax
    | CommitCount
    | RollbackByteIdentical
    | NoSecret
    | ExitPathIn
    | RefusalCitesBudget
    | TranscriptEvent,
    Field(discriminator="type"),
]


def _consistent(assertions: list[Assertion]) -> list[Assertion]:
    seen: set[str] = set()
    for assertion in assertions:
        if assertion.id in seen:
            raise ValueError(f"duplicate id {assertion.id!r}")
        seen.add(assertion.id)
    if not any(assertion.required for assertion in assertions):
        raise ValueError("at least one assertion must be required")
    return assertions


AssertionList = Annotated[list[Assertion], AfterValidator(_consistent)]
"""A whole ``assertions.json``: ids unique, at least one required."""

ASSERTION_LIST: TypeAdapter[list[Assertion]] = TypeAdapter(AssertionList)
