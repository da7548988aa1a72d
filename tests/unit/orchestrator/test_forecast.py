"""What a plan may cost: bounds by caps, expectations by records, and why where there is none."""

from typing import Any

import pytest

from orchestrator.forecast import (
    MAX_USD,
    NO_RECORDS,
    SEGMENTS,
    UNBOUNDED,
    expected,
    forecast,
    whole,
    worst,
    worst_case,
)
from orchestrator.models import Route
from orchestrator.starts import ATTEMPTS
from schema import SCHEMA_VERSION
from schema.agent import Provider
from schema.pricing import LongPrompt, Price
from schema.record import Cost, Record
from schema.run import Plan, RunSpec, Usage
from schema.task import Caps
from tests.unit.samples import ZERO, facts, record, run_id, spec

PRICED = Price(input=2, output=8, cache_read=1, segment="api", pinning="strong")
SELF_HOSTED = Price(input=None, output=None, segment="open-weight-self-hosted", pinning="strong")
NO_SUCH_PRICE = "open-weight-self-hosted has no price per token"


def caps(**changes: Any) -> Caps:
    return Caps(turns=5, wall_clock_sec=60, **changes)


def paid(usd: float | None = 0.5, tokens: tuple[int | None, int | None] = (1000, 100), **run: Any) -> Record:
    """A record of a run that called a model."""
    identity = run_id(**{"model": "m:x", "agent": "a", **run})
    usage = Usage(replies=1, input_tokens=tokens[0], output_tokens=tokens[1], usd=usd)
    return record(run=identity, facts=facts(identity, usage=usage), cost=Cost(usd=usd, segment="api"))


def plan(*specs: RunSpec) -> Plan:
    return Plan(
        schema_version=SCHEMA_VERSION,
        id=ZERO,
        created_at="2026-01-01T00:00:00.000Z",
        suite="s",
        specs=list(specs),
    )


def route(model: str) -> Route:
    """``m:…`` has a price, all others run at home."""
    price = PRICED if model.startswith("m:") else SELF_HOSTED
    provider = Provider(
        base_url="http://127.0.0.1:1/v1", key_variable=None, segment=price.segment, pinning="strong"
    )
    return Route(model, "x", provider, price, "2026-01-01.1")


def test_the_worst_case_adds_up_every_cap() -> None:
    assert worst_case(plan(*(spec(run_id(repeat=number)) for number in (1, 2, 3)))) == {
        "runs": 3,
        "attempts": ATTEMPTS,
        "turns": ATTEMPTS * 15,
        "wallClockSec": ATTEMPTS * 180,
    }


@pytest.mark.parametrize(
    ("limits", "price", "usd", "basis"),
    [
        (caps(usd=0.25), PRICED, 0.75, "the cap on USD, 3 attempts a run"),
        (caps(tokens=100_000), PRICED, 2.4, "the cap on tokens, each at the dearest rate, 3 attempts a run"),
        (
            caps(tokens=100_000, usd=5),
            PRICED,
            2.4,
            "the cap on tokens, each at the dearest rate, 3 attempts a run",
        ),
        (caps(tokens=100_000, usd=0.5), PRICED, 1.5, "the cap on USD, 3 attempts a run"),
        (caps(), PRICED, None, UNBOUNDED),
        (caps(tokens=100), SELF_HOSTED, None, NO_SUCH_PRICE),
        (caps(tokens=100), None, None, "the model is not in pricing.json"),
    ],
)
def test_a_run_costs_at_most_what_its_caps_let_through(
    limits: Caps, price: Price | None, usd: float | None, basis: str
) -> None:
    """Naive: of one attempt; a fault of engine or provider grants another, with all its caps anew."""
    found = worst(limits, price)
    assert (found.usd, found.basis) == (usd if usd is None else pytest.approx(usd), basis)


def test_a_long_prompts_rates_and_a_dear_cache_are_the_worst_case() -> None:
    tiered = PRICED.model_copy(
        update={"long_prompt": LongPrompt(above=10, input=4, output=16, cache_write=20)}
    )
    assert worst(caps(tokens=1_000_000), tiered).usd == ATTEMPTS * 20


def test_records_of_the_same_task_foretell_better_than_others() -> None:
    others = [paid(9.0, task="other"), paid(7.0, agent="b", task="other"), paid(5.0, model="m:other")]
    run = run_id(model="m:x", agent="a")
    known = [paid(0.5), paid(1.5, tokens=(3000, 300), repeat=2), *others]
    assert expected(run, PRICED, known).to_json() == {
        "usd": 1.0,
        "basis": "2 records of the same task",
        "inputTokens": 2000,
        "outputTokens": 200,
    }
    assert (expected(run, PRICED, others).usd, expected(run, PRICED, others).basis) == (
        9.0,
        "1 record of other tasks",
    )
    assert expected(run, PRICED, others[1:]).basis == "1 record with other agents or conditions"
    assert (expected(run, PRICED, others[2:]).usd, expected(run, PRICED, others[2:]).basis) == (
        None,
        NO_RECORDS,
    )


def test_a_condition_is_another_kind_of_run() -> None:
    terse = paid(2.0, condition="prompt=terse")
    assert expected(run_id(model="m:x", agent="a"), PRICED, [terse, paid(4.0, task="other")]).usd == 4.0


def test_what_nobody_counted_is_not_taken_for_nothing() -> None:
    known = [paid(1.0), paid(None, tokens=(None, None), repeat=2)]
    found = expected(run_id(model="m:x", agent="a"), PRICED, known)
    assert (found.usd, found.input_tokens) == (1.0, 1000)
    unknown = expected(run_id(model="m:x", agent="a"), PRICED, known[1:])
    assert (unknown.usd, unknown.input_tokens) == (None, None)
    assert unknown.basis == "no record says what it cost; tokens by 1 record of the same task"


def test_a_route_without_a_price_says_so_and_still_tells_tokens() -> None:
    run = run_id(model="local:x", agent="a")
    found = expected(run, SELF_HOSTED, [paid(None, model="local:x")])
    assert (found.usd, found.input_tokens, found.output_tokens) == (None, 1000, 100)
    assert found.basis == f"{NO_SUCH_PRICE}; tokens by 1 record of the same task"
    assert expected(run, SELF_HOSTED, []).basis == f"{NO_SUCH_PRICE}; {NO_RECORDS}"


def test_each_model_of_a_plan_has_its_own_sum() -> None:
    limits = caps(usd=0.25)
    specs = [
        spec(run_id(model=model, agent="a", task=task), caps=limits)
        for model in ("m:x", "local:x")
        for task in ("some-task", "other")
    ]
    first, second = forecast(plan(*specs), route, [paid(0.5)])
    assert (first.model, first.segment, first.runs) == ("m:x", "api", 2)
    assert (first.worst.usd, first.worst.basis) == (1.5, "the cap on USD, 3 attempts a run")
    assert (first.expected.usd, first.expected.input_tokens) == (1.0, 2000)
    assert first.expected.basis == "1 record of the same task (1 runs); 1 record of other tasks (1 runs)"
    assert (second.segment, second.worst.usd, second.expected.usd) == ("open-weight-self-hosted", None, None)


def test_one_run_without_a_bound_leaves_the_sum_without_one() -> None:
    specs = [spec(run_id(model="m:x", repeat=n), caps=c) for n, c in ((1, caps(usd=1)), (2, caps()))]
    (found,) = forecast(plan(*specs), route, [])
    assert (found.worst.usd, found.worst.basis) == (None, UNBOUNDED)
    assert str(found.worst) == f"not known: {UNBOUNDED}"


def test_a_budget_bounds_each_part_and_the_whole() -> None:
    limits = caps(usd=0.25)
    first, second = ([spec(run_id(model=m, repeat=n), caps=limits) for n in (1, 2)] for m in ("m:x", "m:y"))
    for budget, parts, most in ((None, [1.5, 1.5], 3.0), (2.0, [1.5, 1.5], 2.0), (1.0, [1.0, 1.0], 1.0)):
        found = forecast(plan(*first, *second), route, [], budget)
        assert [each.worst.usd for each in found] == parts
        total = whole(found, budget)
        assert total.usd == most and (total.basis == MAX_USD) is (budget is not None)


def test_without_a_bound_of_each_part_only_a_budget_bounds_the_whole() -> None:
    specs = [spec(run_id(model=model), caps=caps()) for model in ("m:x", "m:y")]
    assert whole(forecast(plan(*specs), route, [])).basis == UNBOUNDED
    assert whole(forecast(plan(*specs), route, [], 2.0), 2.0).usd == 2.0


def test_segments_do_not_add_up() -> None:
    specs = [spec(run_id(model=model), caps=caps(usd=1)) for model in ("m:x", "local:x")]
    found = whole(forecast(plan(*specs), route, []))
    assert (found.usd, found.basis) == (None, SEGMENTS)
