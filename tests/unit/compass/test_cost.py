"""The cost model: the seed's formula and numbers, overrides, and tables from elsewhere."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass import cost
from compass.bench.router import cost as compare_all
from compass.bench.router import evaluate
from compass.cost import Price, PriceError, Profile, Table, load, override, profile, savings

SEED = load("seed-2026-07")


def test_the_seeds_prices_and_profile() -> None:
    assert SEED.prices["haiku"] == Price(0.80, 4.00)
    assert SEED.prices["opus"] == Price(15.00, 75.00)
    assert SEED.date.startswith("2026-07")
    assert Profile().cost(SEED.prices["opus"]) == pytest.approx(15 * 2000 / 1e6 + 75 * 500 / 1e6)


def test_savings_follow_the_formula() -> None:
    made = savings(["haiku", "opus"], ["sonnet", "opus"], SEED, Profile())
    assert made.strongest == pytest.approx(2 * 0.0675)
    assert made.percent(made.routed) == pytest.approx(100 * (0.0675 - 0.0036) / 0.135)
    assert made.percent(made.oracle) < made.percent(made.routed) < made.percent(made.cheapest)
    assert savings([], [], SEED, Profile()).percent(0) == 0


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_equal_ratios_make_savings_independent_of_the_profile(tokens_in: int, tokens_out: int) -> None:
    assert SEED.profile_free
    made = savings(["haiku", "sonnet"], ["haiku", "sonnet"], SEED, Profile(tokens_in, tokens_out))
    assert made.percent(made.routed) == pytest.approx(100 * (1 - (0.8 + 3) / 30))


def test_environment_overrides_single_prices() -> None:
    table = override(SEED, {"COMPASS_BENCH_OPUS_IN": "18.00", "COMPASS_BENCH_OPUS_OUT": "90.00", "HOME": "/"})
    assert table.prices["opus"] == Price(18, 90)
    assert table.prices["haiku"] == SEED.prices["haiku"]
    assert table.overridden == ("COMPASS_BENCH_OPUS_IN", "COMPASS_BENCH_OPUS_OUT")
    assert table.profile_free
    assert not override(SEED, {"COMPASS_BENCH_HAIKU_IN": "1"}).profile_free


@pytest.mark.parametrize("value", ["", "cheap", "-1", "nan", "inf"])
def test_an_override_that_is_no_price_is_refused(value: str) -> None:
    with pytest.raises(PriceError, match="COMPASS_BENCH_OPUS_IN"):
        override(SEED, {"COMPASS_BENCH_OPUS_IN": value})


def test_a_flag_beats_the_environment_beats_the_default() -> None:
    environment = {"COMPASS_BENCH_TOK_IN": "10000"}
    assert profile({}) == Profile(2_000, 500)
    assert profile(environment) == Profile(10_000, 500)
    assert profile(environment, tok_in=7, tok_out=9) == Profile(7, 9)


def test_a_pricing_json_is_read(tmp_path: Path) -> None:
    models = {
        "anthropic:claude-haiku-4-5": {"input": 1, "output": 5},
        "anthropic:claude-sonnet-9": {"input": 2, "output": 10},
        "anthropic:claude-opus-9": {"input": 5, "output": 25},
        "local:opus-mini": {"input": None, "output": None},
    }
    file = tmp_path / "pricing.json"
    file.write_text(
        json.dumps({"tableVersion": "7", "effectiveDate": "2030-01-01", "source": "x", "models": models})
    )
    table = load(file=file)
    assert (table.version, table.date) == ("7", "2030-01-01")
    assert table.prices == {"haiku": Price(1, 5), "sonnet": Price(2, 10), "opus": Price(5, 25)}


def test_a_table_without_a_tier_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pricing.json"
    file.write_text(json.dumps({"models": {"claude-haiku-4-5": {"input": 1, "output": 5}}}))
    with pytest.raises(PriceError, match="sonnet"):
        load(file=file)
    with pytest.raises(PriceError, match="no price table"):
        load("of yore")


def test_the_repositorys_table_is_used_where_it_prices_every_tier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pricing.json"
    monkeypatch.setattr(cost, "_REPOSITORY", file)
    assert load().version == "seed-2026-07"
    file.write_text(json.dumps({"tableVersion": "9", "models": {"haiku-1": {"input": 1, "output": 2}}}))
    assert load().version == "seed-2026-07"
    models = {name: {"input": 1, "output": 2} for name in ("haiku-1", "sonnet-1", "opus-1")}
    file.write_text(json.dumps({"tableVersion": "9", "models": models}))
    assert load().version == "9"
    assert load("seed-2026-07").version == "seed-2026-07"


def test_fields_nobody_asked_for_are_left_alone(tmp_path: Path) -> None:
    """The benchmark's table says more of each model than this module needs."""
    row = {
        "cacheRead": 0.1,
        "cacheWrite": 1.25,
        "segment": "api",
        "pinning": "strong",
        "longPrompt": {"above": 9},
    }
    models = {
        f"anthropic:claude-{tier}-9": {"input": price, "output": 5 * price, **row}
        for price, tier in ((1, "haiku"), (3, "sonnet"), (5, "opus"))
    }
    models |= {"local:*": {"input": None, "output": None, **row}, "odd": []}  # type: ignore[dict-item]
    file = tmp_path / "pricing.json"
    file.write_text(json.dumps({"tableVersion": "1", "currency": "USD", "models": models, "more": 1}))
    assert load(file=file).prices["opus"] == Price(5, 25)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "cannot be read"),
        ("[]", "no object"),
        ('{"models": []}', "no object"),
        ('{"currency": "EUR"}', "EUR"),
        (
            json.dumps({"models": {t: {"input": "dear", "output": 1} for t in ("haiku", "sonnet", "opus")}}),
            "dear",
        ),
    ],
)
def test_a_broken_table_is_refused_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    file = tmp_path / "pricing.json"
    file.write_text(text)
    with pytest.raises(PriceError, match=rf"pricing\.json.*{told}"):
        load(file=file)
    monkeypatch.setattr(cost, "_REPOSITORY", file)
    with pytest.raises(PriceError, match=rf"pricing\.json.*{told}"):
        load()
    assert load("seed-2026-07").version == "seed-2026-07"


def test_the_comparison_shows_oracle_and_cheapest_beside_the_router() -> None:
    report = compare_all(evaluate(), SEED, Profile())
    for part in report["splits"].values():
        saved = part["savings_percent"]
        assert saved["all_cheapest"] > saved["oracle"] > 0
    accuracies = [point["accuracy"] for point in report["curve"]]
    middle = next(point for point in report["curve"] if point["shift"] == 0)
    assert middle["accuracy"] == max(accuracies)
    assert [p["savings_percent"] for p in report["curve"]] == sorted(
        (p["savings_percent"] for p in report["curve"]), reverse=True
    )


def test_a_free_table_saves_nothing() -> None:
    free = Table("free", "", "", {tier: Price(0, 0) for tier in ("haiku", "sonnet", "opus")})
    assert savings(["haiku"], ["haiku"], free, Profile()).to_json()["savings_percent"]["routed"] == 0
    assert not free.profile_free
