"""A task's answer becomes tool calls that an agent with exact anchors can carry out."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.images.sources import scripted

moves, scripts, jobs = scripted("moves"), scripted("scripts"), scripted("job")


def job(**more: Any) -> Any:
    """A job of one file."""
    base = {"script": "perfect", "model": "m", "listen": "/x", "summary": "s"}
    return jobs.read(json.dumps({**base, **more}).encode())


def carried_out(calls: list[Any], texts: dict[str, str]) -> dict[str, str]:
    """As the tools do it: an anchor must match once, a new file must be new."""
    texts = dict(texts)
    for each in calls:
        given_ = json.loads(each.arguments)
        if each.name == "edit_file":
            assert texts[given_["path"]].count(given_["old"]) == 1, given_
            texts[given_["path"]] = texts[given_["path"]].replace(given_["old"], given_["new"])
        else:
            assert each.name == "write_file" and given_["path"] not in texts
            texts[given_["path"]] = given_["content"]
    return texts


LINES = st.lists(st.sampled_from(["a", "b", "(label X)", "  (at 1 2)", "", "é"]), min_size=1, max_size=12)


@given(LINES, st.sampled_from(["a", "X", "(label X)\n", "\n"]), st.sampled_from(["", "Y", "aX", "XX\n"]))
def test_edits_carried_out_one_by_one_give_what_the_answer_gives(
    lines: list[str], find: str, replace: str
) -> None:
    text = "\n".join(lines)
    edits = [{"path": "f", "find": find, "replace": replace}]
    asked = job(edits=edits, before={"f": text})
    if find not in text:
        with pytest.raises(ValueError, match="not in the baseline"):
            moves.changes(asked)
        return
    assert carried_out(moves.changes(asked), {"f": text}) == {"f": text.replace(find, replace)}


@given(LINES, LINES)
def test_a_whole_file_is_one_edit_of_what_differs(old: list[str], new: list[str]) -> None:
    before, after = "\n".join(old), "\n".join(new)
    asked = job(files={"f": after, "docs/new.md": "n"}, before={"f": before})
    if before == "":
        return
    assert carried_out(moves.changes(asked), {"f": before}) == {"f": after, "docs/new.md": "n"}


def test_constraints_are_recorded_not_written() -> None:
    path = ".copperhead/constraints.json"
    before = {path: json.dumps({"old": {"max": 1}, "raised": {"max": 1}})}
    after = json.dumps(
        {"old": {"max": 1}, "raised": {"max": 2}, "new": {"value": 3, "source": "docs/SPEC.md"}}
    )
    calls = moves.changes(job(files={path: after}, before=before))
    assert [(each.name, json.loads(each.arguments)) for each in calls] == [
        ("record_constraint", {"key": "raised", "max": 2}),
        ("record_constraint", {"key": "new", "value": 3, "source": "docs/SPEC.md"}),
    ]


def ends(script: str, **answer: Any) -> tuple[list[str], dict[str, Any]]:
    """The calls of a script, and the arguments of its ``finish``."""
    calls = [each for move in scripts.SCRIPTS[script].moves(job(**answer)) for each in move.calls]
    finish: dict[str, Any] = next((json.loads(each.arguments) for each in calls if each.name == "finish"), {})
    return [each.name for each in calls], finish


EDIT = {"edits": [{"path": "f", "find": "a", "replace": "b"}], "before": {"f": "a a"}, "exit_path": "done"}
REFUSAL = {"exit_path": "refused", "summary": "breaks i_uA = 50", "budgets": ["i_uA"]}


def test_the_degenerate_two_decide_without_looking_at_the_task() -> None:
    assert ends("always-refuse", **EDIT) == (["finish"], ends("always-refuse", **EDIT)[1])
    assert ends("always-refuse", **EDIT)[1]["outcome"] == "refuse"
    assert "i_uA" in ends("always-refuse", **REFUSAL)[1]["summary"]
    names, finish = ends("never-refuse", **REFUSAL)
    assert "write_file" in names and finish["outcome"] == "done"
    assert ends("never-refuse", **EDIT) == ends("perfect", **EDIT)


def test_a_near_miss_lacks_one_thing() -> None:
    whole, near = ends("perfect", **EDIT)[0], ends("near-miss", **EDIT)[0]
    assert near.count("edit_file") == whole.count("edit_file") - 1
    assert "i_uA" in ends("perfect", **REFUSAL)[1]["summary"]
    assert "i_uA" not in ends("near-miss", **REFUSAL)[1]["summary"]


@pytest.mark.parametrize("script", sorted(scripts.SCRIPTS))
def test_a_script_gives_the_same_replies_every_time(script: str) -> None:
    made = scripts.SCRIPTS[script].moves
    assert made(job(**EDIT)) == made(job(**EDIT)) and made(job(**REFUSAL))


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"[]", b'{"script": "perfect", "model": "m", "listen": "x", "no": 1}']
)
def test_a_job_that_cannot_be_read_is_said(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        jobs.read(line)
