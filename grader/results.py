"""Reading a results folder."""

import re
from collections.abc import Iterator
from pathlib import Path

from schema.jsonfile import read_model
from schema.record import Record

PLANS = "plans"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def read_records(results: Path) -> Iterator[tuple[Path, Record]]:
    """Every record below ``results/<date>/<model>/<task>/run-<n>.json``, in path order, numbers as numbers.

    Raises:
        InvalidFile: a record breaks the schema.
    """
    for path in sorted(results.glob("*/*/*/run-*.json"), key=_order):
        if _DATE.fullmatch(path.relative_to(results).parts[0]):
            yield path, read_model(path, Record)


def _order(path: Path) -> tuple[Path, int, str]:
    number = path.stem.removeprefix("run-")
    return path.parent, int(number) if number.isdecimal() else 0, path.name
