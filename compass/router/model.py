"""From features to a tier: an ordinal logistic model whose weights a person can read and argue with.

``bench/router_fit.py`` sets the weights on the base split only, pulled towards hand-chosen signs; they are
rounded and kept here, so that routing needs no file and no fitting.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from compass.router.features import Feature

#: Points a feature adds, times its strength; positive is harder.
WEIGHTS = {
    "looking-verb": -2.05, "touching-verb": -1.83, "neutral-verb": -0.23, "constructive-verb": 0.67,
    "deep-verb": 2.74, "deep-phrase": 1.64, "small-object": -0.89, "medium-object": 0.58,
    "large-object": 2.09, "wide": 1.46, "unsure": 1.55, "risk": 1.09, "judgement": 1.49, "lookup": -1.65,
    "trivial-add": -1.38, "named": -0.47, "literal": -0.66, "place": -0.7, "naming": -0.57, "steps": 0.61,
    "length": 0.54, "declined": -0.8, "narrowed": -1.0, "played-down": -0.02,
}  # fmt: skip
#: Scores at which the middle and the strongest tier become likelier than the one below.
CUTS = (-0.12, 4.14)
#: How steeply probability follows the score.
SLOPE = 1.0


@dataclass(frozen=True, slots=True)
class Reason:
    """One feature's part in a decision; ``points`` above zero speak for a stronger tier."""

    feature: str
    points: float
    because: str


def reasons(found: Sequence[Feature]) -> list[Reason]:
    """Each feature with its points, weightiest first; features without weight are left out."""
    made = [Reason(f.name, round(WEIGHTS.get(f.name, 0.0) * f.strength, 3), f.because) for f in found]
    return sorted((r for r in made if r.points), key=lambda r: (-abs(r.points), r.feature))


def probabilities(score: float) -> tuple[float, float, float]:
    """The chances of the three tiers, cheapest first, at ``score``."""
    above_first = 1 / (1 + exp(-SLOPE * (score - CUTS[0])))
    above_second = 1 / (1 + exp(-SLOPE * (score - CUTS[1])))
    return 1 - above_first, above_first - above_second, above_second
