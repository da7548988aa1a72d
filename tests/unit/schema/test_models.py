"""The models refuse what the standard refuses."""

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from schema.assertions import ASSERTION_LIST, Assertion
from schema.export import stale
from schema.fixture import Fixture
from schema.run import RunId
from schema.task import Solution, Task
from tests.unit.samples import fixture

BASE = {"id": "x", "weight": 1, "required": True}
VALID_ARGS: dict[str, dict[str, Any]] = {
    "erc_no_new_violations": {"severity": "warning"},
    "drc_no_new_violations": {},
    "erc_clean": {},
    "drc_clean": {},
    "check_clean": {},
    "drift_clean": {"newOnly": True},
    "net_present": {"net": "/A"},
    "net_absent": {"net": "A"},
    "symbol_present": {"refdes": "R1", "value": "1k", "footprint": "l:f"},
    "symbol_absent": {"refdes": "R1"},
    "pin_net_equals": {"refdes": "R1", "pin": "1", "net": "A"},
    "doc_row_matches": {"doc": "docs/B.md", "key": {"A": "1"}, "column": "C", "pattern": "^x$"},
    "doc_contains": {"doc": "docs/B.md", "pattern": "x", "absent": True},
    "constraint_registered": {"key": "k", "max": 5},
    "files_touched_subset": {"allowed": ["docs/**"]},
    "file_unchanged": {"path": "a.kicad_sch"},
    "diff_ratio_max": {"path": "a.kicad_sch", "ratio": 0.1},
    "commit_count": {"max": 1},
    "rollback_byte_identical": {},
    "no_secret": {},
    "exit_path_in": {"paths": ["done", "refused"]},
    "refusal_cites_budget": {"budgetKey": "k"},
    "transcript_event": {"event": "tool", "minCount": 2, "matches": {"name": {"regex": "^run_"}}},
}


def test_the_vocabulary_has_23_types_and_each_has_a_sample_here() -> None:
    union = get_args(get_args(Assertion)[0])
    types = {get_args(kind.model_fields["type"].annotation)[0] for kind in union}
    assert len(types) == 23
    assert types == VALID_ARGS.keys()


@pytest.mark.parametrize("kind", VALID_ARGS)
def test_each_type_takes_its_arguments_and_refuses_an_unknown_one(kind: str) -> None:
    item = {**BASE, "type": kind, "args": VALID_ARGS[kind]}
    (read,) = ASSERTION_LIST.validate_python([item])
    assert read.type == kind
    with pytest.raises(ValidationError):
        ASSERTION_LIST.validate_python([{**item, "args": {**VALID_ARGS[kind], "unheard": 1}}])


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ({"type": "looks_nice"}, "looks_nice"),
        ({"type": "doc_contains", "args": {"doc": "a.md", "pattern": "("}}, "RE2"),
        ({"type": "doc_contains", "args": {"doc": "a.md", "pattern": r"(a)\1"}}, "RE2"),
        ({"type": "commit_count", "args": {}}, "exactly one"),
        ({"type": "commit_count", "args": {"equals": 1, "max": 1}}, "exactly one"),
        ({"type": "file_unchanged", "args": {"path": "../x"}}, "tree-relative"),
        ({"type": "file_unchanged", "args": {"path": "/etc/x"}}, "tree-relative"),
        ({"type": "diff_ratio_max", "args": {"path": "a", "ratio": 0}}, "greater than 0"),
        ({"type": "net_present"}, "required"),
        ({"type": "transcript_event", "args": {"event": "x"}}, "Input should be"),
        ({"type": "transcript_event", "args": {"event": "tool", "matches": {"a": {"regex": "("}}}}, "RE2"),
    ],
)
def test_bad_assertions_are_refused(item: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ASSERTION_LIST.validate_python([{**BASE, **item}])


def test_ids_are_unique_and_something_is_required() -> None:
    one = {**BASE, "type": "no_secret"}
    with pytest.raises(ValidationError, match="duplicate id"):
        ASSERTION_LIST.validate_python([one, one])
    with pytest.raises(ValidationError, match="must be required"):
        ASSERTION_LIST.validate_python([{**one, "required": False}])


def test_a_create_task_points_at_its_brief() -> None:
    task = {
        "id": "t",
        "tier": "simple",
        "mode": "create",
        "request": "make me a board",
        "fixture": {"path": "fixtures/f", "sha256": "0" * 64},
        "expectedOutcome": "edit",
        "caps": {"turns": 1, "wallClockSec": 1},
    }
    with pytest.raises(ValidationError, match=r"brief\.md"):
        Task.model_validate(task)
    assert Task.model_validate({**task, "request": "brief.md"}).setup.commands == ["init"]


def test_a_failing_solution_declares_what_catches_it() -> None:
    base = {"note": "n", "exitPath": "done", "summary": "s", "commits": 0}
    with pytest.raises(ValidationError, match="firstFailure"):
        Solution.model_validate({**base, "expect": {"verdict": "fail"}})
    with pytest.raises(ValidationError, match="firstFailure"):
        Solution.model_validate({**base, "expect": {"verdict": "pass", "firstFailure": "x"}})


@pytest.mark.parametrize("missing", ["url", "commit", "retrieved"])
def test_only_a_vendored_board_has_no_upstream(missing: str) -> None:
    pinned = fixture().to_json()
    upstream = {key: value for key, value in fixture().upstream.to_json().items() if key != missing}
    with pytest.raises(ValidationError, match="not vendored names its url, commit and retrieved"):
        Fixture.model_validate({**pinned, "upstream": upstream})
    ours = Fixture.model_validate({**pinned, "vendored": True, "upstream": {**upstream, "paths": {}}})
    assert ours.files and getattr(ours.upstream, missing) is None


def test_a_pin_needs_url_and_commit() -> None:
    upstream = fixture().upstream
    assert upstream.pin == ("https://example.invalid/x", "0" * 40)
    with pytest.raises(ValueError, match="n has no upstream"):
        _ = upstream.model_copy(update={"commit": None}).pin


def test_committed_schemas_are_those_of_the_models() -> None:
    assert stale() == []


def test_run_refs_differ_whenever_runs_differ() -> None:
    one = RunId(suite_version="1.0.0", task="t", model="a:b/c", agent="x", repeat=1)
    other = one.model_copy(update={"model": "a:b", "task": "t"})
    assert one.ref != other.ref and one.short != other.short
    assert ".." not in one.ref and ":" not in one.ref
