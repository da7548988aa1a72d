"""The event log: one JSON line a fact, bound to its run, for whoever looks into a run later.

Local (``.cache/logs``), never evidence, never a result, and never text that an agent wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import structlog
from structlog.typing import FilteringBoundLogger


@contextmanager
def event_log(folder: Path) -> Iterator[FilteringBoundLogger]:
    """A logger that appends to ``events.jsonl`` in ``folder``; threads may share it."""
    folder.mkdir(parents=True, exist_ok=True)
    # Line-buffered: an event is on disk when the call returns, also when we are killed next.
    with (folder / "events.jsonl").open("a", encoding="utf-8", buffering=1) as file:
        yield cast(
            FilteringBoundLogger,
            structlog.wrap_logger(
                structlog.WriteLogger(file),
                wrapper_class=structlog.make_filtering_bound_logger(0),
                processors=[
                    structlog.processors.add_log_level,
                    structlog.processors.TimeStamper(fmt="iso", utc=True),
                    structlog.processors.JSONRenderer(),
                ],
            ),
        )
