"""The event log: one JSON line a fact, bound to its run, for whoever looks into a run later.

Local (``.cache/logs``), never evidence, never a result, and never text that an agent wrote.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import structlog
from structlog.typing import FilteringBoundLogger


def open_log(folder: Path) -> FilteringBoundLogger:
    """A logger that appends to ``events.jsonl`` in ``folder``; threads may share it."""
    folder.mkdir(parents=True, exist_ok=True)
    return cast(
        FilteringBoundLogger,
        structlog.wrap_logger(
            # Line-buffered: an event is on disk when the call returns, also when we are killed next.
            structlog.WriteLogger((folder / "events.jsonl").open("a", encoding="utf-8", buffering=1)),
            wrapper_class=structlog.make_filtering_bound_logger(0),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.JSONRenderer(),
            ],
        ),
    )
