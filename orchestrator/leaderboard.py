"""Keeping LEADERBOARD.md beside the results it is made from."""

from __future__ import annotations

import os

from grader.report.leaderboard import EMPTY_DOCUMENT, render_results, splice
from orchestrator.project import Project


def update(project: Project) -> None:
    """Regenerate the block between the markers; the text around it is kept."""
    path = project.results.parent / "LEADERBOARD.md"
    document = path.read_text("utf-8") if path.is_file() else EMPTY_DOCUMENT
    text = splice(document, render_results(project.results))
    if text != document:
        part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        part.write_text(text, "utf-8")
        part.rename(path)


def is_current(project: Project) -> bool:
    """Whether the committed file is what the records give."""
    path = project.results.parent / "LEADERBOARD.md"
    document = path.read_text("utf-8") if path.is_file() else ""
    return splice(document, render_results(project.results)) == document
