"""The leaderboard: comparable rows only, byte-reproducible, honest about n."""

import random
from pathlib import Path

import pytest

from grader.report.leaderboard import (
    BEGIN,
    EMPTY_DOCUMENT,
    END,
    published_head,
    render,
    render_results,
    splice,
)
from orchestrator.ledger import Ledger
from orchestrator.records import Records
from schema.errors import CheckFailed
from schema.record import Cost, Record
from schema.run import ModelAccess, Usage
from schema.verdict import Category
from tests.unit.samples import ZERO, facts, record, run_id, spec, stamp, verdict


def api(usd: float | None) -> Cost:
    return Cost(usd=usd, segment="api")


def rows(text: str, model: str) -> tuple[dict[str, str], dict[str, str]]:
    """What the two tables of the one section say of a model: rates, and what they rest on."""
    found = []
    head: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| Model"):
            head = cells
        elif line.startswith(f"| {model}"):
            found.append(dict(zip(head, cells, strict=True)))
    rates, counts = found
    return rates, counts


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
    assert "one repeat: not a result" in rows(render([record()]), "solution:gold")[0]["Model"]
    two = [record(run=run_id(repeat=n)) for n in (1, 2)]
    assert "not a result" not in rows(render(two), "solution:gold")[0]["Model"]


def test_another_stamp_gets_its_own_section_and_is_never_averaged_in() -> None:
    """Naive: group by model alone, and a KiCad 10 run raises a KiCad 9 rate."""
    nine = record(run=run_id(model="m:x"), passed=False)
    ten = record(
        run=run_id(model="m:x"), passed=True, stamp=stamp(kicad_version="10.0.6"), at="2027-01-01T00:00:00Z"
    )
    text = render([nine, ten])
    assert text.count("## Agent") == 2 and text.count("| m:x (") == 2
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
    assert rows(text, "solution:gold")[0]["edit"].startswith("1/1 ")
    assert "1 older records of the same runs are kept and not counted." in text


def answered(
    *names: str, repeat: int = 1, passed: bool = True, model: str = "m:x", year: int = 2026
) -> Record:
    """A record of a run that models of these names answered."""
    run = run_id(model=model, repeat=repeat)
    access = ModelAccess(
        answered=list(names),
        comparable=len(names) <= 1,
        retries=0,
        refused_requests=0,
        excluded_seconds=0,
    )
    seen = facts(run, access=access, ended_at=f"{year}-01-01T00:00:01.000Z")
    return record(run=run, facts=seen, passed=passed)


def labels(text: str) -> list[str]:
    """The first cells of the first table of each section."""
    found, taken = [], False
    for line in text.splitlines():
        if line.startswith("| Model"):
            taken = "Strict pass rate" in line
        elif line.startswith("| ") and taken and not line.startswith("| ---"):
            found.append(line.split(" | ")[0].removeprefix("| "))
    return found


def test_two_snapshots_of_one_alias_never_share_a_row() -> None:
    """Naive: a row a model id; the alias is moved on between two repeats, and two models share a rate."""
    text = render(
        [
            answered("x-2026-01-01", repeat=1),
            answered("x-2026-01-01", repeat=2),
            answered("x-2026-09-09", repeat=3, passed=False, year=2027),
        ]
    )
    first, second = "m:x, answered by x-2026-01-01", "m:x, answered by x-2026-09-09"
    assert labels(text) == [first, f"{second} (one repeat: not a result)"]
    assert rows(text, first)[0]["edit"].startswith("2/2 ")
    assert rows(text, second)[0]["edit"].startswith("0/1 ")


def test_a_run_that_nothing_answered_counts_with_the_newest_snapshot() -> None:
    """Naive: in a row of its own, where losing runs lowers nobody's rate."""
    lost = record(run=run_id(model="m:x", repeat=3), passed=False)
    missing = spec(run_id(model="m:x", repeat=4))
    known = [answered("x-2026-09-09", repeat=1, year=2027), answered("x-2026-01-01", repeat=2)]
    text = render([*known, lost, answered(repeat=5, passed=False)], {str(missing.run): missing})
    rates, counts = rows(text, "m:x, answered by x-2026-09-09")
    assert rates["edit"].startswith("1/4 ") and (counts["Runs planned"], counts["Recorded"]) == ("4", "3")
    assert rows(text, "m:x, answered by x-2026-01-01")[0]["edit"].startswith("1/1 ")


@pytest.mark.parametrize(
    ("model", "name"), [("m:x", "x"), ("compat:a/b@groq", "a/b"), ("openrouter:a/b:free", "a/b:free")]
)
def test_a_model_that_answers_by_its_own_name_has_its_ids_row(model: str, name: str) -> None:
    assert labels(render([answered(name, model=model, repeat=n) for n in (1, 2)])) == [model]


def test_other_models_that_answered_are_told_apart_too() -> None:
    text = render([answered("y", "x", repeat=1), answered("z", "x", repeat=2)])
    assert "another model answered" in text
    assert [label.partition(" (")[0] for label in labels(text)] == [
        "m:x, answered by y, x",
        "m:x, answered by z, x",
    ]


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
    _, counts = rows(text, "solution:gold")
    assert counts["Correct refusals"].startswith("1/1 ") and counts["False refusals"].startswith("1/2 ")


def test_the_wrong_solutions_of_a_task_share_a_row() -> None:
    wrong = [record(run=run_id(model=f"solution:wrong-{n}"), passed=False) for n in ("a", "b")]
    assert rows(render([*wrong, record()]), "solution:wrong-*")[0]["edit"].startswith("0/2 ")


def test_unknown_cost_is_unknown_never_zero() -> None:
    runs = [record(run=run_id(model="m:x", repeat=n), cost=api(usd)) for n, usd in ((1, 0.5), (2, None))]
    assert rows(render(runs), "m:x")[0]["USD per passed task"] == "unknown (api)"


def test_cost_per_pass_is_all_spent_over_tasks_passed() -> None:
    runs = [
        record(run=run_id(model="m:x", task="a"), cost=api(0.5)),
        record(run=run_id(model="m:x", task="b"), cost=api(1.0), passed=False),
    ]
    assert rows(render(runs), "m:x")[0]["USD per passed task"] == "1.5000 (api)"


def test_a_route_without_a_price_tells_its_tokens() -> None:
    """Naive: a model on one's own machine costs 0 USD and leads every ranking by cost."""
    usage = Usage(replies=1, input_tokens=1000, output_tokens=234, usd=None)
    own = Cost(usd=None, segment="open-weight-self-hosted")
    run = run_id(model="m:x")
    text = render([record(run=run, cost=own, facts=facts(run, usage=usage))])
    told = rows(text, "m:x")[0]["USD per passed task"]
    assert told == "no price (open-weight-self-hosted), 1,234 tokens"


def test_a_run_that_another_model_answered_stands_apart() -> None:
    """Naive: a provider's silent fallback is measured under the pinned model's name."""
    run = run_id(model="m:x")
    access = ModelAccess(answered=["y"], comparable=False, retries=0, refused_requests=0, excluded_seconds=0)
    text = render([record(run=run, facts=facts(run, access=access)), record(run=run_id(model="m:y"))])
    assert text.count("## Agent") == 2 and "another model answered" in text


def test_faults_that_are_not_the_models_are_counted_apart() -> None:
    run = run_id(model="m:x")
    lost = record(run=run, facts=facts(run, infrastructure="the engine was lost"), passed=False)
    assert rows(render([lost]), "m:x")[1]["Not evidence"] == "1"


def test_a_fault_that_only_the_agent_tells_of_is_its_own() -> None:
    """Naive: an agent that says the provider failed has its failure set apart."""
    run = run_id(model="m:x")
    told = record(run=run, verdict=verdict(False, category=Category.PROVIDER_ERROR))
    assert rows(render([told]), "m:x")[1]["Not evidence"] == "0"


def test_a_planned_run_without_a_record_stays_in_the_denominator() -> None:
    """Naive: rates over what is recorded, and deleting a failure raises the rate."""
    runs = [run_id(model="m:x", repeat=n) for n in (1, 2, 3)]
    text = render([record(run=run) for run in runs[:2]], {str(run): spec(run) for run in runs})
    rates, counts = rows(text, "m:x")
    assert rates["Strict pass rate, simple"].startswith("2/3 ")
    assert (counts["Runs planned"], counts["Recorded"], counts["Tasks passed every time"]) == (
        "3",
        "2",
        "0/1",
    )


def test_what_is_planned_and_not_begun_is_there_too() -> None:
    text = render([], {str(run_id(model="m:x")): spec(run_id(model="m:x"))})
    assert rows(text, "m:x")[0]["Strict pass rate, simple"].startswith("0/1 ")
    assert "Nothing is recorded yet." in text


def test_a_plan_for_a_newer_task_makes_older_records_history() -> None:
    run = run_id(model="m:x")
    text = render([record(run=run)], {str(run): spec(run, manifest_sha256="1" * 64)})
    assert rows(text, "m:x")[0]["edit"].startswith("0/1 ")
    assert "1 older records of the same runs are kept and not counted." in text


def test_another_condition_gets_its_own_section() -> None:
    """Naive: an ablation with more turns is averaged into the default."""
    other = record(run=run_id(condition="maxTurns=9"), passed=False)
    text = render([record(), other])
    assert "condition maxTurns=9" in text and text.count("## Agent") == 2


def test_starts_that_came_to_nothing_are_counted(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    run = run_id(model="m:x")
    for _ in range(3):
        claim = ledger.claim(run, ZERO, 1)
    ledger.fault(run, 2, "the engine was lost")
    done = record(run=run, facts=facts(run, claim=claim))
    Records(tmp_path, ledger).write(done)
    text = render_results(tmp_path)
    assert rows(text, "m:x")[1]["Starts lost"] == "2"
    assert f"Ledger: 5 lines, head `{ledger.chain().head}`" in text
    (tmp_path / "LEADERBOARD.md").write_text(splice(EMPTY_DOCUMENT, text))
    assert published_head(tmp_path / "LEADERBOARD.md") == ledger.chain().head


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
