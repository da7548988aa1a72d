"""``compass redteam --scan DIR`` and ``compass scan FILE``: files read as text, searched for injections."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compass.redteam.detector import injection_findings
from compass.scoring import Finding

#: Bytes of one file that are read; the rest is said to be unread.
LARGEST = 8_000_000
_SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache"})


@dataclass(frozen=True)
class FileFindings:
    """What one file holds; ``note`` says why it was not, or not wholly, read."""

    path: str
    findings: tuple[Finding, ...]
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, ready for ``json.dumps``."""
        return {
            "path": self.path,
            "note": self.note,
            "findings": [finding.to_json() for finding in self.findings],
        }


@dataclass(frozen=True)
class ScanReport:
    """A folder's files that have findings or notes, and how many were read."""

    files: tuple[FileFindings, ...]
    read: int

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not any(file.findings for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, ready for ``json.dumps``."""
        return {
            "name": "redteam-scan",
            "ok": self.ok,
            "read": self.read,
            "files": [f.to_json() for f in self.files],
        }


def scan_file(path: Path, name: str | None = None) -> FileFindings:
    """The findings of one file; bytes that are no UTF-8 are replaced, binary files are only noted.

    Raises OSError when the file cannot be read.
    """
    with path.open("rb") as stream:
        octets = stream.read(LARGEST + 1)
    shown = name or str(path)
    if b"\0" in octets[:4096] and not octets.startswith((b"\xff\xfe", b"\xfe\xff")):
        return FileFindings(shown, (), "binary")
    encoding = "utf-16" if octets.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    text = octets[:LARGEST].decode(encoding, "replace")
    note = f"only the first {LARGEST} bytes were read" if len(octets) > LARGEST else ""
    return FileFindings(shown, tuple(injection_findings(text)), note)


def scan_dir(path: Path) -> ScanReport:
    """Every regular file under ``path``, in order of name; symbolic links are not followed.

    Version control and environment folders are left out. A file that cannot be read is noted, not fatal.
    """
    files = []
    read = 0
    for file in _files(path):
        name = file.relative_to(path).as_posix()
        try:
            found = scan_file(file, name)
        except OSError as error:
            found = FileFindings(name, (), f"unreadable: {error.strerror}")
        else:
            read += 1
        if found.findings or (found.note and found.note != "binary"):
            files.append(found)
    return ScanReport(tuple(files), read)


def _files(path: Path) -> Iterator[Path]:
    for entry in sorted(path.iterdir()):
        if entry.is_symlink():
            continue
        if entry.is_dir():
            if entry.name not in _SKIPPED:
                yield from _files(entry)
        elif entry.is_file():
            yield entry
