"""The leaderboard: comparable rows only, byte-reproducible, honest about n."""

import random

import pytest

from grader.report.leaderboard import BEGIN, EMPTY_DOCUMENT, END, render, splice
from schema.errors import CheckFailed
from schema.record import Cost
from schema.verdict import Category
from tests.unit.samples import facts, record, run_id, stamp, verdict


def api(usd: float | None) -> Cost:
    return Cost(usd=usd, segment="api")


def row(text: str, model: str) -> str:
    (found,) = [line for line in text.splitlines() if line.startswith(f"| {model}")]
    return found


def test_order_of_records_does_not_matter() -> None:
    records = [
        record(run=run_id(task=task, model=f"m:{n}", repeat=repeat), passed=n % 2 == 0)
        for task in ("a", "b")
        for n in range(4)
        for repeat in (1, 2)
    ]
    wanted = render(records)
    for seed in range(5):
        random.Random(seed).shuffle(records)  # noqa: S311  # a fixed order, not a secret
        assert render(records) == wanted


def test_a_single_repeat_is_labelled_as_no_result() -> None:
    assert "one repeat: not a result" in row(render([record()]), "solution:gold")
    two = [record(run=run_id(repeat=n)) for n in (1, 2)]
    assert "not a result" not in row(render(two), "solution:gold")


def test_another_stamp_gets_its_own_section_and_is_never_averaged_in() -> None:
    """Naive: group by model alone, and a KiCad 10 run raises a KiCad 9 rate."""
    nine = record(run=run_id(model="m:x"), passed=False)
    ten = record(
        run=run_id(model="m:x"), passed=True, stamp=stamp(kicad_version="10.0.6"), at="2027-01-01T00:00:00Z"
    )
    text = render([nine, ten])
    assert text.count("| m:x") == 2
    assert "KiCad 10 (another stamp; not comparable with the above)" in text
    assert "0/1" in text and "1/1" in text


def test_old_runs_graded_again_elsewhere_do_not_take_the_lead() -> None:
    """Naive: the newest record leads, and regrading puts the second environment above the reference."""
    old, new = (
        [
            record(
                run=run_id(task=task),
                facts=facts(run_id(task=task), ended_at=f"{year}-01-01T00:00:01.000Z"),
                stamp=stamp(kicad_version=kicad, agent_version=agent),
                at=at,
            )
            for kicad, at in (("9.0.2", f"{year}-01-01T00:00:02.000Z"), ("10.0.6", "2030-01-01T00:00:00Z"))
        ]
        for task, agent, year in (("a", "1", 2026), ("b", "2", 2027))
    )
    titles = [line for line in render([*old, *new]).splitlines() if line.startswith("## ")]
    assert [title.partition(" (")[0] for title in titles] == [
        "## Agent solution 2, KiCad 9",
        "## Agent solution 2, KiCad 10",
        "## Agent solution 1, KiCad 9",
        "## Agent solution 1, KiCad 10",
    ]


def test_a_run_recorded_again_counts_once_and_the_older_is_mentioned() -> None:
    """Naive: both count, and running the passing task twice raises the rate."""
    old = record(passed=False)
    new = record(passed=True, at="2026-02-01T00:00:00.000Z", stamp=stamp(grader_image="sha256:new"))
    text = render([old, new])
    assert "1/1" in row(text, "solution:gold")
    assert "1 older records of the same runs are kept and not counted." in text


def test_refusals_are_right_on_refusal_tasks_and_false_on_edit_tasks() -> None:
    refused = verdict(exit_path="refused")
    text = render(
        [
            record(run=run_id(task="r"), expected_outcome="refusal", verdict=refused),
            record(
                run=run_id(task="e"), expected_outcome="edit", verdict=verdict(False, exit_path="refused")
            ),
            record(run=run_id(task="f"), expected_outcome="edit"),
        ]
    )
    cells = [cell.strip() for cell in row(text, "solution:gold").split("|")]
    assert cells[4].startswith("1/1 ") and cells[5].startswith("1/2 ")


def test_the_wrong_solutions_of_a_task_share_a_row() -> None:
    wrong = [record(run=run_id(model=f"solution:wrong-{n}"), passed=False) for n in ("a", "b")]
    assert "0/2" in row(render([*wrong, record()]), "solution:wrong-*")


def test_unknown_cost_is_unknown_never_zero() -> None:
    runs = [record(run=run_id(model="m:x", repeat=n), cost=api(usd)) for n, usd in ((1, 0.5), (2, None))]
    assert row(render(runs), "m:x").endswith("| unknown |")


def test_cost_per_pass_is_all_spent_over_tasks_passed() -> None:
    runs = [
        record(run=run_id(model="m:x", task="a"), cost=api(0.5)),
        record(run=run_id(model="m:x", task="b"), cost=api(1.0), passed=False),
    ]
    assert row(render(runs), "m:x").endswith("| 1.5000 |")


def test_faults_that_are_not_the_models_are_counted_apart() -> None:
    lost = record(run=run_id(model="m:x"), verdict=verdict(False, category=Category.INFRASTRUCTURE))
    assert [cell.strip() for cell in row(render([lost]), "m:x").split("|")][7] == "1"


def test_a_model_name_cannot_break_the_table() -> None:
    text = render([record(run=run_id(model="m:a|b"))])
    assert "m:a\\|b" in text


def test_splice_keeps_what_people_wrote_around_the_block() -> None:
    document = EMPTY_DOCUMENT.replace("# Leaderboard", "# Leaderboard\n\nOur words.")
    once = splice(document, render([record()]))
    assert "Our words." in once and once.startswith("# Leaderboard")
    assert splice(once, render([record()])) == once


@pytest.mark.parametrize("broken", ["", BEGIN, END, f"{END}\n{BEGIN}", f"{BEGIN}{BEGIN}{END}"])
def test_damaged_markers_are_refused(broken: str) -> None:
    with pytest.raises(CheckFailed, match="markers"):
        splice(broken, render([]))
