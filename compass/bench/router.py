"""The router against its corpus: accuracy, under- and over-serving, calibration, and cost beside three
other policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compass.corpus import FOLDER, UNSEEN, CorpusError, rows
from compass.cost import Profile, Savings, Table, savings
from compass.router import TIERS, Decision, Tier, explain
from compass.router.model import probabilities
from compass.scoring import Gate, Proportion

CORPUS = FOLDER / "router.tsv"
#: The seed's floor, on the two splits it names; adversarial rows are reported beside them.
ACCURACY = 0.90
GATED = ("base", "holdout")
SPLITS = ("base", "holdout", "adversarial")
#: Shifts of the score that draw the curve: below 0 is thriftier, above 0 more careful.
SHIFTS = (-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0)
_BINS = 5


@dataclass(frozen=True, slots=True)
class Routed:
    """One task, the tier it needs, and what the router decided."""

    case: str
    split: str
    task: str
    needed: Tier
    decision: Decision

    @property
    def distance(self) -> int:
        """Tiers above (positive) or below (negative) what the task needs."""
        return TIERS.index(self.decision.tier) - TIERS.index(self.needed)


@dataclass(frozen=True, slots=True)
class RouterReport:
    """Decisions on the whole corpus, and the floors."""

    routed: tuple[Routed, ...]
    gates: tuple[Gate, ...]
    unseen: tuple[Routed, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every floor is reached."""
        return all(gate.ok for gate in self.gates)

    @property
    def failures(self) -> tuple[Routed, ...]:
        """The tasks that went to another tier than they need."""
        return tuple(one for one in self.routed if one.distance)

    def split(self, name: str) -> list[Routed]:
        """The decisions of one split; the empty name is all of them."""
        return [one for one in self.routed if not name or one.split == name]

    def to_json(self) -> dict[str, Any]:
        """Everything that the text report shows, as plain data."""
        return {
            "name": "router",
            "ok": self.ok,
            "cases": len(self.routed),
            "splits": {name: quality(self.split(name)) for name in SPLITS},
            "unseen": {"gated": False, **quality(self.unseen)},
            "confusion": confusion(self.routed),
            "gates": [gate.to_json() for gate in self.gates],
            "failures": [
                {
                    "case": one.case,
                    "split": one.split,
                    "expected": one.needed,
                    "got": one.decision.tier,
                    "confidence": one.decision.confidence,
                    "task": one.task,
                }
                for one in self.failures
            ],
        }


def evaluate(path: Path = CORPUS) -> RouterReport:
    """Route every task of the corpus at ``path``. Raises CorpusError for an unknown split or tier."""
    made = _decided(path, SPLITS)
    gates = tuple(
        Gate(f"accuracy ({name})", ACCURACY, _accuracy([one for one in made if one.split == name]))
        for name in GATED
    )
    return RouterReport(made, gates, _decided(UNSEEN / CORPUS.name, ("unseen",)))


def _decided(path: Path, splits: Sequence[str]) -> tuple[Routed, ...]:
    routed = []
    for row in rows(path, range(3, 4)):
        split, needed, task = row.columns
        if split not in splits or needed not in TIERS:
            raise CorpusError(f"{row.case}: split {split!r} and tier {needed!r}")
        routed.append(Routed(row.case, split, task, needed, explain(task)))
    return tuple(routed)


def _accuracy(routed: Sequence[Routed]) -> Proportion:
    return Proportion(sum(one.distance == 0 for one in routed), len(routed))


def quality(routed: Sequence[Routed]) -> dict[str, Any]:
    """Accuracy, under- and over-serving with intervals, and how well confidence matches accuracy."""
    total = len(routed)
    confidence = sum(one.decision.confidence for one in routed) / total if total else 0.0
    return {
        "accuracy": _accuracy(routed).to_json(),
        "under_served": Proportion(sum(one.distance < 0 for one in routed), total).to_json(),
        "over_served": Proportion(sum(one.distance > 0 for one in routed), total).to_json(),
        "mean_confidence": round(confidence, 4),
        "calibration_error": round(calibration(routed), 4),
    }


def calibration(routed: Sequence[Routed]) -> float:
    """Expected calibration error: the mean gap between confidence and accuracy over equally full bins."""
    ordered = sorted(routed, key=lambda one: one.decision.confidence)
    gap = 0.0
    for number in range(_BINS):
        part = ordered[number * len(ordered) // _BINS : (number + 1) * len(ordered) // _BINS]
        if part:
            claimed = sum(one.decision.confidence for one in part)
            gap += abs(claimed - sum(one.distance == 0 for one in part))
    return gap / len(ordered) if ordered else 0.0


def confusion(routed: Sequence[Routed]) -> dict[Tier, dict[Tier, int]]:
    """Counts by needed tier, then by the tier given."""
    return {
        needed: {
            given: sum(one.needed == needed and one.decision.tier == given for one in routed)
            for given in TIERS
        }
        for needed in TIERS
    }


def shifted(routed: Sequence[Routed], shift: float) -> list[Tier]:
    """The tiers the router would give if every score were ``shift`` higher."""
    tiers = []
    for one in routed:
        chances = probabilities(one.decision.score + shift)
        tiers.append(TIERS[max(range(3), key=lambda number: chances[number])])
    return tiers


def cost(report: RouterReport, table: Table, tokens: Profile) -> dict[str, Any]:
    """The seed's cost comparison for each split and for all, and the cost-quality curve."""
    splits: dict[str, Any] = {}
    for name in (*SPLITS, ""):
        routed = report.split(name)
        splits[name or "all"] = compare(routed, table, tokens).to_json()
    return {
        "name": "cost",
        "ok": True,
        "prices": table.to_json(),
        "profile": {"tok_in": tokens.tokens_in, "tok_out": tokens.tokens_out},
        "splits": splits,
        "curve": [point(report.routed, shift, table, tokens) for shift in SHIFTS],
    }


def compare(routed: Sequence[Routed], table: Table, tokens: Profile) -> Savings:
    """Routed cost beside the oracle's and the two constant policies'."""
    return savings([one.decision.tier for one in routed], [one.needed for one in routed], table, tokens)


def point(routed: Sequence[Routed], shift: float, table: Table, tokens: Profile) -> Mapping[str, Any]:
    """One point of the curve: what a thriftier or more careful router would save and get wrong."""
    given = shifted(routed, shift)
    needed = [one.needed for one in routed]
    gaps = [TIERS.index(a) - TIERS.index(b) for a, b in zip(given, needed, strict=True)]
    total = len(gaps) or 1
    made = savings(given, needed, table, tokens)
    return {
        "shift": shift,
        "accuracy": round(sum(gap == 0 for gap in gaps) / total, 4),
        "under_served": round(sum(gap < 0 for gap in gaps) / total, 4),
        "over_served": round(sum(gap > 0 for gap in gaps) / total, 4),
        "savings_percent": round(made.percent(made.routed), 2),
    }
