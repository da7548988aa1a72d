"""What people and programs see: lines and tables on a terminal, one JSON object with ``--json``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from orchestrator.records import Finished, Report
from schema.text import plain_lines


class Screen:
    """Standard output for results, standard error for progress and errors."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        # Elsewhere than on a terminal, such as in a log, rows stay whole.
        width = None if sys.stdout.isatty() else 200
        self._out = Console(highlight=False, soft_wrap=True, width=width)
        self._err = Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, line: str) -> None:
        """Progress, for people: kept off standard output."""
        self._err.print(Text(plain_lines(line)))

    def show(self, line: str) -> None:
        """A line of the result; nothing with ``--json``."""
        if not self.as_json:
            self._out.print(Text(plain_lines(line)))

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str] = ()
    ) -> None:
        """A table of the result; nothing with ``--json``."""
        if self.as_json:
            return
        table = Table(*columns, box=None, pad_edge=False)
        for number, row in enumerate(rows):
            style = styles[number] if styles else None
            table.add_row(*(Text(plain_lines(cell)) for cell in row), style=style)
        self._out.print(table, soft_wrap=False)

    def emit(self, value: object) -> None:
        """The one JSON object of ``--json``; nothing without it."""
        if self.as_json:
            sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")

    @contextmanager
    def progress(self, total: int) -> Iterator[Report]:
        """A bar on a terminal, a line a run elsewhere."""
        if not self._err.is_terminal:
            yield self._line_reporter(total)
            return
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._err,
            transient=True,
        )
        with bar:
            task = bar.add_task("runs", total=total)

            def report(finished: Finished) -> None:
                bar.console.print(Text(plain_lines(describe(finished))))
                bar.advance(task)

            yield report

    def _line_reporter(self, total: int) -> Report:
        count = 0

        def report(finished: Finished) -> None:
            nonlocal count
            count += 1
            self.say(f"[{count}/{total}] {describe(finished)}")

        return report


def describe(finished: Finished) -> str:
    """One finished run in a line."""
    record = finished.record
    verdict = record.verdict
    outcome = "pass" if verdict.verdict == "pass" else f"fail ({verdict.category})"
    how = "already recorded" if finished.path is None else f"{record.timings.total:.1f} s"
    return f"{record.run.task} · {record.run.model} · repeat {record.run.repeat}: {outcome}, {how}"
