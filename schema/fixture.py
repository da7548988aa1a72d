"""Fixtures: real boards, pinned by upstream commit and tree hash (Standard §7)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from schema.assertions import RelativePath, Severity
from schema.base import Model
from schema.task import Sha256, TaskId

PERMITTED_LICENSES = frozenset(
    {"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "CERN-OHL-P-2.0", "CC0-1.0", "0BSD", "Unlicense"}
)
RATIONALE_LICENSES = frozenset({"CC-BY-4.0", "CERN-OHL-W-2.0"})

Major = Annotated[str, Field(pattern=r"^[0-9]+$")]
Counts = dict[str, int]


class Upstream(Model):
    """Where the tree comes from. A vendored board, which we drew, has no url, commit, date or paths."""

    name: str
    url: Annotated[str, Field(pattern=r"^https://")] | None = None
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    retrieved: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    license: str
    license_rationale: str | None = None
    copyright: str
    modifications: str
    """What differs from upstream, or ``none``."""
    paths: dict[RelativePath, RelativePath] = {}
    """Path in our tree → path at the upstream commit."""

    @property
    def pin(self) -> tuple[str, str]:
        """URL and commit.

        Raises:
            ValueError: a vendored board has none.
        """
        if self.url is None or self.commit is None:
            raise ValueError(f"{self.name} has no upstream: its tree is committed")
        return self.url, self.commit


class KicadVersions(Model):
    """Versions the fixture was written with and verified by."""

    authored_version: str
    file_format_version: dict[str, int]
    verified_with_kicad_cli: list[str]


class Artifacts(Model):
    """The design files, relative to the tree."""

    schematic: RelativePath
    board: RelativePath | None = None
    project: RelativePath | None = None


class Scale(Model):
    """How large it is."""

    schematic_lines: int
    board_lines: int | None = None
    symbols: int
    """Components in KiCad's netlist (power symbols are not components)."""
    sheets: int
    signal_nets: int
    power_nets: int


class ErcCounts(Model):
    """ERC findings of the untouched fixture."""

    errors: int
    error_types: Counts
    warnings: int
    warning_types: Counts


class DrcCounts(ErcCounts):
    """DRC findings of the untouched fixture."""

    unconnected_items: int
    schematic_parity: int
    schematic_parity_types: Counts


class BaselineCounts(Model):
    """Findings of one kicad-cli major."""

    kicad_version: str
    erc: ErcCounts
    drc: DrcCounts | None


class Fixture(Model):
    """``fixture.json``."""

    id: TaskId
    sha256: Sha256
    complexity: Literal["small", "medium", "large"]
    vendored: bool = False
    """True only for boards that we drew ourselves: their tree is committed."""
    upstream: Upstream
    files: dict[RelativePath, Sha256]
    """Path in our tree → SHA-256 of its bytes, so that a wrong byte can be laid at a file's door."""
    kicad: KicadVersions
    artifacts: Artifacts
    scale: Scale
    baseline: dict[Major, BaselineCounts]
    """kicad-cli major → counts."""

    @model_validator(mode="after")
    def _sources(self) -> Self:
        if self.vendored:
            return self
        if None in {self.upstream.url, self.upstream.commit, self.upstream.retrieved}:
            raise ValueError("upstream: a board that is not vendored names its url, commit and retrieved")
        if self.files.keys() != self.upstream.paths.keys():
            raise ValueError("files and upstream.paths must list the same paths")
        return self


Source = Literal["erc", "drc", "unconnected", "parity"]


class Violation(Model):
    """One finding of a report: what identifies it across runs, not where it stands or how it is worded."""

    source: Source
    type: str
    severity: Severity
    sheet: str = ""
    """Human-readable sheet path (ERC only)."""
    items: list[str] = []
    """Item uuids, sorted; a multiset."""
    pins: list[str] | None = None
    """``REF.PIN`` of the affected net, sorted; for types whose items KiCad picks anew, if it can be told."""


class BaselineReport(Model):
    """``baseline/erc.json`` and ``baseline/drc.json``: kicad-cli major → findings, sorted."""

    kicad: dict[Major, list[Violation]]
