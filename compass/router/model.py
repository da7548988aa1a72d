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
    "looking-verb": -2.17, "touching-verb": -1.83, "neutral-verb": -0.37, "constructive-verb": 0.55,
    "deep-verb": 2.72, "deep-phrase": 1.67, "small-object": -0.97, "medium-object": 0.51,
    "large-object": 2.17, "wide": 1.61, "unsure": 1.7, "risk": 1.2, "judgement": 1.48, "lookup": -1.71,
    "trivial-add": -1.36, "named": -0.65, "literal": -0.72, "place": -0.69, "naming": -0.54,
    "steps": 0.83, "length": 0.75, "declined": -0.8, "narrowed": -1.0, "played-down": -0.01,
}  # fmt: skip
#: Scores at which the middle and the strongest tier become likelier than the one below.
CUTS = (-0.16, 4.34)
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
