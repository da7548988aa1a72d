"""Keeping LEADERBOARD.md beside the results it is made from."""

from __future__ import annotations

from grader.report.leaderboard import EMPTY_DOCUMENT, render, splice
from grader.results import read_records
from orchestrator.project import Project


def update(project: Project) -> None:
    """Regenerate the block between the markers; the text around it is kept."""
    path = project.results.parent / "LEADERBOARD.md"
    document = path.read_text("utf-8") if path.is_file() else EMPTY_DOCUMENT
    path.write_text(splice(document, _block(project)), "utf-8")


def is_current(project: Project) -> bool:
    """Whether the committed file is what the records give."""
    path = project.results.parent / "LEADERBOARD.md"
    document = path.read_text("utf-8") if path.is_file() else ""
    return splice(document, _block(project)) == document


def _block(project: Project) -> str:
    return render(record for _, record in read_records(project.results))
