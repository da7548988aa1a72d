"""The router: which model tier a task needs, decided from its words alone, with reasons and a confidence.

``route(task)`` answers with a tier's name; ``explain(task)`` with the reasons. Nothing is random and
nothing is
asked of a model.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compass.router.features import features
from compass.router.model import Reason, probabilities, reasons

__all__ = ["TIERS", "Decision", "Tier", "explain", "route"]

#: A tier is known by its name.
Tier = str
#: The three tiers, cheapest first; callers may pass other names in the same order.
TIERS: tuple[Tier, Tier, Tier] = ("haiku", "sonnet", "opus")


@dataclass(frozen=True, slots=True)
class Decision:
    """A tier, how sure the model is of it (0 to 1), every tier's chance, and the reasons, weightiest
    first."""

    tier: Tier
    confidence: float
    chances: dict[Tier, float]
    score: float
    reasons: tuple[Reason, ...]

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, ready for ``json.dumps``."""
        return {**asdict(self), "reasons": [asdict(reason) for reason in self.reasons]}


def explain(task: str, tiers: Sequence[Tier] = TIERS) -> Decision:
    """Route ``task`` and say why. ``tiers`` are three names, cheapest first; raises ValueError for another
    number."""
    if len(tiers) != 3:
        raise ValueError(f"the router knows three tiers, cheapest first; {len(tiers)} given")
    why = reasons(features(task))
    score = sum(reason.points for reason in why)
    chances = probabilities(score)
    best = max(range(3), key=lambda number: chances[number])
    return Decision(
        tiers[best],
        round(chances[best], 4),
        {tier: round(chance, 4) for tier, chance in zip(tiers, chances, strict=True)},
        round(score, 3),
        tuple(why),
    )


def route(task: str, tiers: Sequence[Tier] = TIERS) -> Tier:
    """The tier that ``task`` needs, by name. See ``explain``."""
    return explain(task, tiers).tier
