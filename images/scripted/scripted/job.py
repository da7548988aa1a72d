"""What a script is given: the right answer to the task, and the key it must be asked with.

It comes on standard input of the provider's own container, where neither agent nor gateway can read it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Edit:
    """Replace an exact text in one file, wherever it occurs."""

    path: str
    find: str
    replace: str


@dataclass(frozen=True)
class Job:
    """One run of one script."""

    script: str
    model: str
    listen: str
    """Unix socket."""
    key: str | None = None
    request: str = ""
    exit_path: str = "done"
    summary: str = ""
    edits: list[Edit] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Path → whole new content."""
    before: dict[str, str] = field(default_factory=dict)
    """Path → content in the baseline, of every file that the answer changes."""
    budgets: list[str] = field(default_factory=list)
    """Keys of the task's budgets."""
    huge_bytes: int = 2 * 2**20
    drip_seconds: float = 0.02
    hang_seconds: float = 3600.0


def read(line: bytes) -> Job:
    """A job from one line of JSON.

    Raises:
        ValueError: it is not one.
    """
    value: Any = json.loads(line)
    try:
        value["edits"] = [Edit(**edit) for edit in value.get("edits", [])]
        return Job(**value)
    except (TypeError, AttributeError) as error:
        raise ValueError(str(error)) from None
