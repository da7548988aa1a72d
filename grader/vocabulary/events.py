"""Assertions on the run's transcript (Standard §4, §11)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import re2

from grader.vocabulary.context import Context, Outcome, check, failed
from schema.assertions import BudgetArgs, EventArgs, ExitPathArgs
from schema.transcript import ExitPath

_MISSING = object()

# A key is a word of letters, digits and _, with dots or hyphens between such words: one more word on either
# side makes another key of it, a full stop does not.
_BEFORE = r"(?:^|[^\pL\pN_.\-]|(?:^|[^\pL\pN_])[.\-]+)"
_AFTER = r"(?:$|[^\pL\pN_.\-]|[.\-]+(?:$|[^\pL\pN_]))"


def exit_path_in(args: ExitPathArgs, context: Context) -> Outcome:
    """The run ended in one of the ways; the harness's own facts come before the transcript."""
    if context.exit_path is None:
        return failed("the run ended without a run-end")
    return check(context.exit_path in args.paths, f"exit path {context.exit_path}")


def refusal_cites_budget(args: BudgetArgs, context: Context) -> Outcome:
    """The run refused, and its one refusal summary names the budget's key as a whole word.

    Nothing else is searched: budgets are echoed in ``run-start``, and tools print configuration.
    """
    if context.exit_path is not ExitPath.REFUSED:
        return failed(f"exit path {context.exit_path or 'unknown'}, not refused")
    summaries = [data.get("summary") for data in context.transcript.data("run-refused")]
    if len(summaries) != 1 or not isinstance(summaries[0], str):
        return failed(f"{len(summaries)} refusals in the transcript, not one with a summary")
    named = cites(args.budget_key, summaries[0])
    return check(named, f"the refusal {'names' if named else 'does not name'} {args.budget_key}")


def cites(key: str, text: str) -> bool:
    """Whether a text holds a key as a whole, and not only as part of a longer one."""
    return re2.search(_BEFORE + re2.escape(key) + _AFTER, _plain(text)) is not None


def transcript_event(args: EventArgs, context: Context) -> Outcome:
    """Events of that type whose data satisfies every predicate occur at least ``minCount`` times."""
    found = context.transcript.data(args.event)
    fitting = [data for data in found if _satisfies(data, args.matches or {})]
    return check(
        len(fitting) >= args.min_count,
        f"{len(fitting)} of {len(found)} {args.event} events fit, wanted {args.min_count}",
    )


def _satisfies(data: Mapping[str, Any], predicates: Mapping[str, Any]) -> bool:
    for path, expected in predicates.items():
        value = _at(data, path)
        if isinstance(expected, dict):
            if not isinstance(value, str) or re2.search(expected["regex"], _plain(value)) is None:
                return False
        elif not equal(value, expected):
            return False
    return True


def _at(value: Any, path: str) -> Any:
    """What a dotted path leads to; digits index lists."""
    for step in path.split("."):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif (
            isinstance(value, list)
            and step.isascii()
            and step.isdigit()
            and len(step) < 7
            and int(step) < len(value)
        ):
            value = value[int(step)]
        else:
            return _MISSING
    return value


def equal(found: Any, expected: Any) -> bool:
    """JSON equality: numbers by value, and neither ``true`` nor ``"1"`` is 1."""
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(found, int | float) and isinstance(expected, int | float):
        return Decimal(str(found)) == Decimal(str(expected))
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(equal, found, expected))
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(equal(found[key], expected[key]) for key in expected)
    return type(found) is type(expected) and bool(found == expected)


def _plain(text: str) -> str:
    """Text that RE2 takes: a lone surrogate, left by a model's broken escape, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
