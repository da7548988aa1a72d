"""The suite's budget is never passed, whatever runs go on together and however they end."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.budget import SuiteBudget

STEPS = st.lists(
    st.tuples(st.booleans(), st.one_of(st.none(), st.integers(0, 500)), st.floats(0, 1), st.booleans()),
    max_size=40,
)


@given(st.integers(0, 2000), st.integers(1, 5), STEPS)
def test_runs_together_never_spend_more_than_there_is(
    budget: int, jobs: int, steps: list[tuple[bool, int | None, float, bool]]
) -> None:
    suite, spent = SuiteBudget(budget, jobs), 0
    out: list[int] = []
    for begins, cap, part, known in steps:
        if begins and len(out) < jobs:
            out.append(suite.take(cap))
            assert cap is None or out[-1] <= cap
        elif out:
            allotment = out.pop(0)
            used = int(allotment * part)
            spent += used if known else allotment
            suite.give_back(allotment, used if known else None)
        assert spent + sum(out) + suite.left == budget and suite.left >= 0


def test_each_job_is_left_a_fair_part() -> None:
    suite = SuiteBudget(100, 2)
    assert (suite.take(None), suite.take(None), suite.take(None)) == (50, 50, 0)
    suite.give_back(50, 20)
    assert suite.left == 30


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 2000))
def test_what_a_run_overspent_is_taken_from_the_rest(budget: int, cap: int, spent: int) -> None:
    """Naive: an overspent allotment is merely gone, and the runs after it pass the budget."""
    suite = SuiteBudget(budget, 1)
    suite.give_back(suite.take(cap), spent)
    assert suite.left == max(budget - spent, 0)


def test_a_run_of_unknown_cost_has_spent_what_it_was_given() -> None:
    suite = SuiteBudget(100, 1)
    suite.give_back(suite.take(60), None)
    assert suite.left == 40


@given(st.integers(1, 5), st.lists(st.one_of(st.none(), st.integers(1, 300)), min_size=1, max_size=5))
def test_a_run_hears_whether_the_whole_budget_is_spent_or_its_part(jobs: int, caps: list[int | None]) -> None:
    """Naive: the budget is said to be spent, and most of it is with other runs."""
    suite = SuiteBudget(1000, jobs)
    out = [suite.take(cap) for cap in caps[:jobs]]
    told = str(suite.spent(out[0]))
    assert ("--jobs 1" in told) is (out[0] < 1000) and "--max-usd is spent" in told
