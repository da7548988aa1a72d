"""The shared vocabulary of compass: findings, scored cases, and proportions with intervals."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

#: Two-sided 95 % normal quantile, used by every interval compass prints.
Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason to stop: what matched, where, and why it matters.

    ``start`` and ``end`` are code-point offsets into the text as it was given, half open. A match found
    inside a decoded or unwrapped layer carries the span of the outermost text that held it, and ``via`` names
    the layers from the outside in (``("sudo", "sh -c")``, ``("base64", "rot13")``).
    """

    rule: str
    family: str
    start: int
    end: int
    why: str
    via: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, ready for ``json.dumps``."""
        return {**asdict(self), "via": list(self.via)}


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One corpus row put through a detector; ``expected`` and ``got`` are true for "stop this"."""

    case: str
    family: str
    split: str
    expected: bool
    got: bool
    text: str
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether the detector said what the label says."""
        return self.expected == self.got

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, ready for ``json.dumps``."""
        return {**asdict(self), "ok": self.ok}


@dataclass(frozen=True, slots=True)
class Proportion:
    """``hits`` of ``total``, with Wilson's score interval; an empty total spans 0 to 1."""

    hits: int
    total: int

    @property
    def value(self) -> float | None:
        """The observed share, 0 to 1, or None when nothing was observed."""
        return self.hits / self.total if self.total else None

    @property
    def wilson(self) -> tuple[float, float]:
        """The 95 % Wilson score interval, 0 to 1 (Wilson 1927)."""
        return wilson(self.hits, self.total)

    def at_least(self, floor: float) -> bool:
        """Whether the share reaches ``floor``; nothing observed never does."""
        return self.total > 0 and self.hits >= floor * self.total - 1e-9

    def to_json(self) -> dict[str, Any]:
        """Hits, total, value and interval bounds."""
        low, high = self.wilson
        value = None if self.value is None else round(self.value, 4)
        return {
            "hits": self.hits,
            "total": self.total,
            "value": value,
            "wilson95": [round(low, 4), round(high, 4)],
        }


def wilson(hits: int, total: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval for ``hits`` of ``total``, as two shares between 0 and 1."""
    if total == 0:
        return 0.0, 1.0
    share = hits / total
    scale = 1 + z * z / total
    centre = (share + z * z / (2 * total)) / scale
    half = z * sqrt(share * (1 - share) / total + z * z / (4 * total * total)) / scale
    low = 0.0 if hits == 0 else max(0.0, centre - half)
    high = 1.0 if hits == total else min(1.0, centre + half)
    return low, high


@dataclass(frozen=True, slots=True)
class Score:
    """A two-by-two table of "stop" decisions against labels."""

    tp: int = 0
    fp: int = 0
    tn: int = 0
    fn: int = 0

    @classmethod
    def of(cls, cases: Iterable[CaseResult]) -> "Score":
        """Count the four cells."""
        cells = {(True, True): 0, (False, True): 0, (False, False): 0, (True, False): 0}
        for case in cases:
            cells[case.expected, case.got] += 1
        return cls(cells[True, True], cells[False, True], cells[False, False], cells[True, False])

    @property
    def total(self) -> int:
        """How many cases were scored."""
        return self.tp + self.fp + self.tn + self.fn

    @property
    def precision(self) -> Proportion:
        """Of what was stopped, the share that should have been."""
        return Proportion(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> Proportion:
        """Of what should have been stopped, the share that was."""
        return Proportion(self.tp, self.tp + self.fn)

    @property
    def false_alarms(self) -> Proportion:
        """Of what is harmless, the share that was stopped."""
        return Proportion(self.fp, self.fp + self.tn)

    def to_json(self) -> dict[str, Any]:
        """The cells and the three proportions."""
        return {
            "cases": self.total,
            **asdict(self),
            "precision": self.precision.to_json(),
            "recall": self.recall.to_json(),
            "false_alarms": self.false_alarms.to_json(),
        }


def table(cases: Iterable[CaseResult], key: Callable[[CaseResult], str]) -> dict[str, Score]:
    """Scores of the groups that ``key`` makes, sorted by name (``lambda case: case.family``)."""
    groups: dict[str, list[CaseResult]] = defaultdict(list)
    for case in cases:
        groups[key(case)].append(case)
    return {name: Score.of(groups[name]) for name in sorted(groups)}


@dataclass(frozen=True, slots=True)
class Gate:
    """One floor and what was measured against it."""

    name: str
    floor: float
    measured: Proportion

    @property
    def ok(self) -> bool:
        """Whether the floor is reached."""
        return self.measured.at_least(self.floor)

    def to_json(self) -> dict[str, Any]:
        """Name, floor, measurement and outcome."""
        return {"name": self.name, "floor": self.floor, "measured": self.measured.to_json(), "ok": self.ok}


@dataclass(frozen=True, slots=True)
class Report:
    """A detector's result on one corpus: cases, floors, and further figures of its own.

    ``unseen`` is the score on rows that nobody tunes to; it gates nothing, and its cases are not kept.
    """

    name: str
    cases: tuple[CaseResult, ...]
    gates: tuple[Gate, ...]
    extra: Mapping[str, Any] | None = None
    unseen: Score | None = None

    @property
    def ok(self) -> bool:
        """Whether every floor is reached."""
        return all(gate.ok for gate in self.gates)

    @property
    def failures(self) -> tuple[CaseResult, ...]:
        """The cases in which the detector and the label differ."""
        return tuple(case for case in self.cases if not case.ok)

    def to_json(self) -> dict[str, Any]:
        """Everything that the text report shows, as plain data."""
        return {
            "name": self.name,
            "ok": self.ok,
            "score": Score.of(self.cases).to_json(),
            "families": {k: v.to_json() for k, v in table(self.cases, lambda c: c.family).items()},
            "splits": {k: v.to_json() for k, v in table(self.cases, lambda c: c.split).items()},
            "gates": [gate.to_json() for gate in self.gates],
            "failures": [case.to_json() for case in self.failures],
            **({"unseen": {"gated": False, **self.unseen.to_json()}} if self.unseen else {}),
            **(self.extra or {}),
        }
