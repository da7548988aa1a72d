"""Fit the router's weights on the base split and print them; run it after changing features, then paste.

A maximum a posteriori fit by plain gradient descent: the prior is the table below, so a feature that the
base split
hardly shows keeps the sign a person gave it. Holdout and adversarial rows are never read here.
"""

from collections import defaultdict
from math import exp, log

from compass.corpus import FOLDER, rows
from compass.router.features import features

TIERS = ("haiku", "sonnet", "opus")
PRIOR = {
    "looking-verb": -1.6, "touching-verb": -1.2, "neutral-verb": -0.2, "constructive-verb": 0.9,
    "deep-verb": 2.2, "deep-phrase": 1.6, "small-object": -0.6, "medium-object": 0.7, "large-object": 0.9,
    "wide": 1.2, "unsure": 1.5, "risk": 1.0, "judgement": 1.2, "lookup": -1.5, "trivial-add": -1.2,
    "named": -0.25, "literal": -0.6, "place": -0.6, "naming": -0.4, "steps": 0.35, "length": 0.25,
    "declined": -0.8, "narrowed": -1.0, "played-down": 0.0,
}  # fmt: skip
#: How firmly the prior holds; a weight one away from it costs this much likelihood.
HOLD = 1.5


def sigmoid(x: float) -> float:
    """1 / (1 + e^-x), safe at both ends."""
    return 1 / (1 + exp(-max(-35.0, min(35.0, x))))


def main() -> None:
    """Fit, and print weights, cuts and slope as Python."""
    data: list[tuple[dict[str, float], int]] = []
    for row in rows(FOLDER / "router.tsv", range(3, 4)):
        split, name, task = row.columns
        if split == "base":
            vector: dict[str, float] = defaultdict(float)
            for feature in features(task):
                vector[feature.name] += feature.strength
            data.append((dict(vector), TIERS.index(name)))
    weights, cuts, slope = dict(PRIOR), [0.6, 2.6], 1.0
    for step in range(4_000):
        rate = 0.02 if step < 3_000 else 0.005
        gradient = {name: HOLD * (weights[name] - PRIOR[name]) for name in weights}
        cut_gradient = [HOLD * (cuts[0] - 0.6), HOLD * (cuts[1] - 2.6)]
        for vector, tier in data:
            score = sum(weights[name] * value for name, value in vector.items())
            over = [sigmoid(slope * (score - cut)) for cut in cuts]
            # Cumulative model: each cut is one yes-or-no question ("harder than this?").
            for number in (0, 1):
                error = (over[number] - (tier > number)) * slope
                for name, value in vector.items():
                    gradient[name] += error * value
                cut_gradient[number] -= error
        for name in weights:
            weights[name] -= rate * gradient[name] / 10
        cuts = [cut - rate * g / 10 for cut, g in zip(cuts, cut_gradient, strict=True)]
    loss = 0.0
    for vector, tier in data:
        score = sum(weights[name] * value for name, value in vector.items())
        for number in (0, 1):
            chance = sigmoid(slope * (score - cuts[number]))
            loss -= log(max(1e-9, chance if tier > number else 1 - chance))
    print("WEIGHTS =", {name: round(value, 2) for name, value in weights.items()})
    print("CUTS =", tuple(round(cut, 2) for cut in cuts), "loss", round(loss / len(data), 4))


if __name__ == "__main__":
    main()
