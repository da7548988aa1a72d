"""Every assertion type and the function that judges it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from grader.kicad.errors import Unjudgeable
from grader.vocabulary import changes, end_state, events, rules
from grader.vocabulary.context import Context, Outcome, failed
from schema.assertions import Assertion

Judge = Callable[[Any, Context], Outcome]

REGISTRY: Mapping[str, Judge] = {
    "erc_no_new_violations": rules.erc_no_new_violations,
    "drc_no_new_violations": rules.drc_no_new_violations,
    "erc_clean": rules.erc_clean,
    "drc_clean": rules.drc_clean,
    "check_clean": rules.check_clean,
    "drift_clean": end_state.drift_clean,
    "net_present": end_state.net_present,
    "net_absent": end_state.net_absent,
    "symbol_present": end_state.symbol_present,
    "symbol_absent": end_state.symbol_absent,
    "pin_net_equals": end_state.pin_net_equals,
    "doc_row_matches": end_state.doc_row_matches,
    "doc_contains": end_state.doc_contains,
    "constraint_registered": end_state.constraint_registered,
    "files_touched_subset": changes.files_touched_subset,
    "file_unchanged": changes.file_unchanged,
    "diff_ratio_max": changes.diff_ratio_max,
    "commit_count": changes.commit_count,
    "rollback_byte_identical": changes.rollback_byte_identical,
    "no_secret": changes.no_secret,
    "exit_path_in": events.exit_path_in,
    "refusal_cites_budget": events.refusal_cites_budget,
    "transcript_event": events.transcript_event,
}
"""Type → function; a test proves that its keys are exactly the types of ``schema.assertions``."""


def types() -> list[str]:
    """The types of the schema, in its order."""
    union = get_args(Assertion)[0]
    return [get_args(kind.model_fields["type"].annotation)[0] for kind in get_args(union)]


def judge(assertion: Assertion, context: Context) -> Outcome:
    """Judge one assertion. What cannot be read fails with its reason: absence needs evidence."""
    try:
        return REGISTRY[assertion.type](assertion.args, context)
    except Unjudgeable as error:
        return failed(f"cannot be judged: {error}")
