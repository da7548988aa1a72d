"""Records as rows: for a terminal, for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from schema.record import Record

COLUMNS = ["task", "model", "agent", "condition", "repeat", "verdict", "category", "first failure", "credit"]
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def row(record: Record) -> list[str]:
    """One record, as text for each of :data:`COLUMNS`."""
    run, verdict = record.run, record.verdict
    return [
        run.task,
        run.model,
        run.agent,
        run.condition,
        str(run.repeat),
        verdict.verdict,
        verdict.category or "",
        verdict.first_failure or "",
        f"{verdict.credit:.2f}",
    ]


def as_csv(records: Iterable[Record]) -> str:
    """Records as CSV, RFC 4180, with what tables of a paper need."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(
        [
            *COLUMNS,
            "tier",
            "class",
            "exit path",
            "seconds",
            "tokens in",
            "tokens out",
            "usd",
            "recorded at",
            "stamp",
        ]
    )
    for record in records:
        cost = "" if record.cost.usd is None else repr(record.cost.usd)
        usage = record.facts.usage
        more = [
            record.tier,
            record.expected_outcome,
            record.verdict.exit_path or "",
            f"{record.timings.agent:.3f}",
            "" if usage is None or usage.input_tokens is None else str(usage.input_tokens),
            "" if usage is None or usage.output_tokens is None else str(usage.output_tokens),
            cost,
            record.recorded_at,
            record.stamp.digest[:12],
        ]
        writer.writerow([_inert(cell) for cell in (*row(record), *more)])
    return out.getvalue()


def _inert(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if cell.startswith(FORMULA) else cell
