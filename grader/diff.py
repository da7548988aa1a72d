"""What a run changed: end tree against baseline tree, by bytes (Standard §4, "Diff").

No rename detection, no ignore rules, no attributes: a path was added, deleted or changed, or it was not.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Literal

from grader.evidence import Entry, Tree
from grader.evidence import path_bytes as path_bytes  # noqa: PLC0414  # asked for here by who judges changes
from grader.evidence import printable as printable  # noqa: PLC0414
from grader.git import CLEAN_ENVIRONMENT
from grader.globs import matches_any
from grader.kicad.paths import DESIGN

SIDE_FILES = ("**/*.kicad_prl", "**/~*.lck", "**/fp-info-cache", "**/.history/**", "**/*-backups/**")
"""What KiCad itself writes beside a project it opens; see :func:`is_side_file`."""

SECONDS = 120.0
"""Wall time git may take to count one file's lines. Past it the ratio cannot be judged and fails."""

_FLAGS = ("--minimal", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")

Kind = Literal["added", "deleted", "changed", "mode", "kind"]


@dataclass(frozen=True)
class Change:
    """One path that differs. ``mode`` means that only permission bits do; ``kind``, file against symlink."""

    path: str
    kind: Kind

    def __str__(self) -> str:
        what = {"mode": "mode changed", "kind": "file became a symlink or the reverse"}
        return f"{printable(self.path)} ({what.get(self.kind, self.kind)})"


@dataclass(frozen=True)
class Changes:
    """All differences between two trees that are not ``ignored``."""

    baseline: Tree
    end: Tree
    ignored: Sequence[str] = ()
    """Globs of the agent's own bookkeeping that every run leaves; KiCad's side files come on top."""

    @cached_property
    def all(self) -> tuple[Change, ...]:
        """Every change, sorted by path bytes."""
        found = []
        for path in self.baseline.keys() | self.end.keys():
            before, after = self.baseline.get(path), self.end.get(path)
            kind = compare(before, after)
            if kind and not matches_any(self.ignored, path) and not is_side_file(path, before, after):
                found.append(Change(path, kind))
        return tuple(sorted(found, key=lambda change: path_bytes(change.path)))


def is_side_file(path: str, *entries: Entry | None) -> bool:
    """Whether KiCad writes such a file beside a project it opens: never an edit of the agent (Standard §7).

    What KiCad would take for part of a design is none, wherever it lies: a sheet may name any folder. Its
    backups are archives.

    Args:
        path: its path.
        entries: its content, before and after.
    """
    if not matches_any(SIDE_FILES, path):
        return False
    return not path.endswith(DESIGN) and not any(entry and _is_expression(entry.data) for entry in entries)


def _is_expression(data: bytes) -> bool:
    """Whether a file begins as all but project files of a design do. A library may have any name."""
    return data[:4096].lstrip()[:1] in {b"(", b"#"}


def compare(before: Entry | None, after: Entry | None) -> Kind | None:
    """How an entry changed, or None when it did not. Absent on both sides is unchanged."""
    if before is None or after is None:
        return None if before is after else ("added" if before is None else "deleted")
    if before.kind != after.kind:
        return "kind"
    if before.data != after.data:
        return "changed"
    # A symlink's permission bits mean nothing and differ between systems.
    return "mode" if before.kind == "file" and before.mode != after.mode else None


@dataclass(frozen=True)
class LineCount:
    """A file's edit in lines."""

    added: int
    deleted: int
    baseline: int
    """Lines of the baseline file: one more than newlines when it does not end in one."""

    def within(self, ratio: float) -> bool:
        """Whether (added + deleted) / baseline ≤ ratio, exactly."""
        # In decimals: 0.1 as a float is a little more than a tenth.
        return self.added + self.deleted <= Decimal(str(ratio)) * self.baseline


class Uncountable(Exception):
    """git did not count a file's lines; the text says why."""


def line_count(data: bytes) -> int:
    """Lines as git counts them: newlines, and one more when the last line lacks its own."""
    return data.count(b"\n") + (not data.endswith(b"\n") if data else 0)


def fewest_changes(before: bytes, after: bytes) -> int:
    """A lower bound of added + deleted lines, cheap on any input: how far two multisets of lines differ."""
    left, right = (_multiset(part) for part in differing(before, after))
    return (left - right).total() + (right - left).total()


def differing(before: bytes, after: bytes) -> tuple[bytes, bytes]:
    """Both files without the whole lines that they begin and end with alike; no diff touches those."""
    start = before.rfind(b"\n", 0, _common(before, after)) + 1
    left, right = before[start:], after[start:]
    same = _common(left[::-1], right[::-1])
    # The common end may begin in the middle of a line.
    newline = left.find(b"\n", len(left) - same)
    keep = len(left) - newline - 1 if newline >= 0 else 0
    return left[: len(left) - keep], right[: len(right) - keep]


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with alike, by halving: comparing slices costs next to nothing."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _plain_edit(before: bytes, after: bytes) -> tuple[int, int] | None:
    """Lines added and deleted where no line is on both sides of the edit but those in order; else None.

    Then the lines that only one side has are the whole minimal diff, and git need not be asked.
    """
    left, right = (_lines(part) for part in differing(before, after))
    here, there = set(left), set(right)
    kept = [line for line in left if line in there]
    if kept != [line for line in right if line in here]:
        return None
    return len(right) - len(kept), len(left) - len(kept)


def _multiset(data: bytes) -> Counter[bytes]:
    return Counter(_lines(data))


def _lines(data: bytes) -> list[bytes]:
    *lines, last = data.split(b"\n")
    # A last line without its newline is another line than one with it; only it holds the mark.
    return [*lines, last + b"\n"] if last else lines


def rewritten(before: bytes, after: bytes, ratio: float) -> int | None:
    """A lower bound of the edit in lines where it alone is above ``ratio``; else None.

    Decides the rewritten file, which would keep git busy; and, before anything is split, the swollen one.
    """
    total = line_count(before)

    def above(changed: int) -> bool:
        return not LineCount(added=changed, deleted=0, baseline=total).within(ratio)

    swollen = abs(line_count(after) - total)
    if above(swollen):
        return swollen
    fewest = fewest_changes(before, after)
    return fewest if above(fewest) else None


def count_lines(before: bytes, after: bytes | None, *, seconds: float = SECONDS) -> LineCount:
    """Lines added and deleted as git's minimal diff counts them; a deleted file (``after`` None) counts all.

    Raises:
        Uncountable: git failed or took longer than ``seconds``.
    """
    total = line_count(before)
    if after is None:
        return LineCount(added=0, deleted=total, baseline=total)
    if before == after:
        return LineCount(added=0, deleted=0, baseline=total)
    if (edit := _plain_edit(before, after)) is not None:
        return LineCount(added=edit[0], deleted=edit[1], baseline=total)
    with tempfile.TemporaryDirectory(prefix="copperbench-diff-") as name:
        folder = Path(name)
        (folder / "a").write_bytes(before)
        (folder / "b").write_bytes(after)
        added, deleted = _numstat(folder, seconds)
    return LineCount(added=added, deleted=deleted, baseline=total)


def _numstat(folder: Path, seconds: float) -> tuple[int, int]:
    # Neutral names in a folder of their own: no attribute and no configuration but ours reaches the copies.
    # --text does not reach --numstat, which counts nothing in a file with a NUL byte; the attribute does.
    attributes = folder / "attributes"
    attributes.write_text("* diff\n")
    git = ["git", "-c", f"core.attributesFile={attributes}"]
    command = [*git, "diff", "--no-index", "--numstat", *_FLAGS, "--", "a", "b"]
    environment = {
        **CLEAN_ENVIRONMENT,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
    }
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise Uncountable(f"git took more than {seconds:g} s to count lines") from None
    fields = done.stdout.split(b"\t")
    if done.returncode != 1 or len(fields) < 2 or not (fields[0] + fields[1]).isdigit():
        raise Uncountable("git could not count lines")
    return int(fields[0]), int(fields[1])
