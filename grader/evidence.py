"""What a grade is computed from: trees of bytes and the harness's facts, nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from schema.agent import Agent
from schema.assertions import Assertion
from schema.fixture import BaselineReport, Fixture
from schema.run import RunFacts
from schema.task import Task
from schema.text import plain


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or symlink. A symlink's data is its target text; nothing ever follows it."""

    data: bytes
    mode: int = 0o644
    """Permission bits."""
    kind: Literal["file", "symlink"] = "file"


Tree = Mapping[str, Entry]
"""Tree-relative POSIX path (``surrogateescape`` for bytes that are not UTF-8) → entry."""

EMPTY: Tree = MappingProxyType({})


@dataclass(frozen=True)
class Bundle:
    """All that grading one run may read."""

    task: Task
    assertions: tuple[Assertion, ...]
    agent: Agent
    fixture: Fixture
    erc_baseline: BaselineReport
    drc_baseline: BaselineReport
    facts: RunFacts
    pristine: Tree
    """The fixture as pinned: rules are taken from here."""
    baseline: Tree
    """The baseline commit: diffs are taken against this."""
    end: Tree = field(default_factory=lambda: EMPTY)
    """The workspace as the run left it, without ``.git``. Empty when no evidence was kept."""


def path_bytes(path: str) -> bytes:
    """A tree path as the bytes it was on disk."""
    return path.encode("utf-8", "surrogateescape")


def printable(path: str) -> str:
    """A tree path as one harmless line: control characters and bytes that are not UTF-8 are escaped."""
    return plain(path_bytes(path).decode("utf-8", "backslashreplace"))
