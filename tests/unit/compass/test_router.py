"""The router: determinism, explanations, configurable tiers, and features that are more than keywords."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass.bench.router import evaluate
from compass.router import TIERS, explain, route
from compass.router.features import features, strip
from compass.router.model import probabilities


def test_obvious_tasks() -> None:
    assert route("Fix a typo in the README.") == "haiku"
    assert route("Write unit tests for the login handler.") == "sonnet"
    assert route("Design the architecture of a multi-tenant billing system.") == "opus"


@pytest.mark.parametrize(
    ("cheaper", "dearer"),
    [
        ("Read the threat model and tell me its date.", "Write a threat model and tell me what to change."),
        ("Don't redesign anything; bump the version.", "Redesign everything; bump the version."),
        (
            'Replace "distributed consensus" with "agreement" in intro.md.',
            "Replace our distributed consensus.",
        ),
        ("Rename deadlock_detector.py.", "Find the deadlock that the detector misses."),
        ("List the services.", "List the services, then redesign how they authenticate."),
        ("Fix the bug in total().", "Totals are sometimes wrong and nobody knows why; find the cause."),
        (
            "Add a log line to upload.py.",
            "Add a log line to upload.py and refactor it into three functions with tests.",
        ),
    ],
)
def test_more_than_keywords(cheaper: str, dearer: str) -> None:
    assert explain(cheaper).score < explain(dearer).score


def test_an_explanation_adds_up() -> None:
    decision = explain("Investigate why latency spikes every night across several services.")
    assert decision.score == pytest.approx(sum(reason.points for reason in decision.reasons), abs=0.01)
    assert sum(decision.chances.values()) == pytest.approx(1, abs=0.001)
    assert decision.confidence == max(decision.chances.values())
    assert {"unsure", "wide"} <= {reason.feature for reason in decision.reasons}
    assert json.dumps(decision.to_json())


def test_tiers_are_configurable_and_counted() -> None:
    assert route("Fix a typo in the README.", ("small", "middle", "large")) == "small"
    with pytest.raises(ValueError, match="three tiers"):
        route("x", ("only", "two"))


def test_names_and_quotations_are_set_aside() -> None:
    text, quoted, named = strip('Rename race_condition to "rc" in src/lock.py and U3')
    assert (quoted, named) == (1, 3)
    assert "race" not in text and "lock" not in text


def test_features_say_what_they_saw() -> None:
    seen = {
        feature.name: feature.because for feature in features("Please rename the label on line 12 of a.py")
    }
    assert seen["touching-verb"] == "rename"
    assert "label" in seen["small-object"]
    assert seen["place"] == "line 12"


@given(st.text(max_size=300))
def test_any_text_gets_a_tier(task: str) -> None:
    decision = explain(task)
    assert decision.tier in TIERS
    assert decision == explain(task)


@given(st.floats(-30, 30), st.floats(0, 5))
def test_a_higher_score_never_means_a_cheaper_tier(score: float, more: float) -> None:
    low, high = probabilities(score), probabilities(score + more)
    assert high[0] <= low[0] + 1e-12
    assert high[2] >= low[2] - 1e-12


def test_confidence_means_something() -> None:
    routed = [one for one in evaluate().routed if one.split != "base"]
    ordered = sorted(routed, key=lambda one: one.decision.confidence)
    half = len(ordered) // 2
    unsure = sum(one.distance == 0 for one in ordered[:half]) / half
    sure = sum(one.distance == 0 for one in ordered[-half:]) / half
    assert sure > unsure


def test_corpus_covers_every_tier_in_every_split() -> None:
    routed = evaluate().routed
    assert len(routed) >= 240
    for split in ("base", "holdout", "adversarial"):
        counts = {tier: sum(one.needed == tier for one in routed if one.split == split) for tier in TIERS}
        assert min(counts.values()) >= 20, (split, counts)
