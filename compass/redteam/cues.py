"""A second opinion beside the rules: how much the words of one or two sentences together sound like an order.

A linear model over word classes and over ordered pairs of classes within a few words (``ignore`` before
``your``, ``send`` before ``secret``). It reaches wording that no rule foresaw and is deliberately shy: the
threshold was put where documentation stays silent. Weights: ``compass/data/redteam-cues.tsv``, fitted by
``bench/redteam_fit.py`` on the base and second splits of the corpus and on documentation.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from compass.redteam.lexicon import BREAK, lexicon

#: Two classes make a pair when at most so many tokens lie between their first and last.
NEAR = 6
#: A sentence longer than this, in tokens, is judged in parts.
LONGEST = 60
#: Classes that say nothing about meaning.
_MUTE = frozenset({"BREAK", "NUMBER", "SINGLE", "LETTER", "NONE", "COMMA"})


class Judgement(NamedTuple):
    """A stretch of tokens, half open, that scored past the threshold, and the pairs that weighed most."""

    first: int
    last: int
    score: float
    why: str


def features(window: str) -> Counter[str]:
    """Class and pair counts of a stretch of codes; each code, and each pair in a sentence, counts once."""
    names = class_names()
    counts: Counter[str] = Counter()
    for code in names.keys() & set(window):
        counts.update(names[code])
    for sentence in window.split(BREAK):
        for pair in _pairs(sentence):
            counts.update(f"{a}>{b}" for a in names[pair[0]] for b in names[pair[1]])
    return counts


def windows(line: str) -> Iterator[tuple[int, int]]:
    """Token spans to judge: every sentence, and every two that follow each other; long ones in parts."""
    previous = (0, 0)
    for left, right in _parts(line):
        yield left, right
        if 0 < right - previous[0] <= LONGEST and previous[1] > previous[0]:
            yield previous[0], right
        previous = (left, right)


def _parts(line: str) -> Iterator[tuple[int, int]]:
    start = 0
    for sentence in line.split(BREAK):
        end = start + len(sentence)
        for left in range(start, end, LONGEST):
            yield left, min(end, left + LONGEST)
        start = end + 1


@cache
def class_names() -> dict[str, tuple[str, ...]]:
    """The telling classes of every code that has any."""
    names: dict[str, list[str]] = {}
    for name, codes in sorted(lexicon().classes.items()):
        if name not in _MUTE:
            for code in codes:
                names.setdefault(code, []).append(name)
    return {code: tuple(classes) for code, classes in names.items()}


def _pairs(sentence: str) -> set[str]:
    names = class_names()
    kept = [(at, code) for at, code in enumerate(sentence) if code in names]
    pairs = set()
    for index, (at, code) in enumerate(kept):
        for later, other in kept[index + 1 : index + 1 + NEAR]:
            if later - at > NEAR:
                break
            pairs.add(code + other)
    return pairs


class _Weights:
    """The fitted weights, summed up once for every code and pair of codes that occurs."""

    def __init__(self) -> None:
        text = (files("compass") / "data" / "redteam-cues.tsv").read_text(encoding="utf-8")
        rows = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
        self.of = {name: float(weight) for name, weight in rows}
        self.bias = self.of["(bias)"]
        self.threshold = self.of["(threshold)"]
        self.singles = {
            code: sum(self.of.get(n, 0.0) for n in names) for code, names in class_names().items()
        }
        self.pairs: dict[str, float] = {}
        self.sentences: dict[str, float] = {}

    def paired(self, sentence: str) -> float:
        """The weight of all pairs in a sentence, remembered while one text is judged."""
        weight = self.sentences.get(sentence)
        if weight is None:
            weight = self.sentences[sentence] = sum(map(self.pair, _pairs(sentence)))
        return weight

    def pair(self, pair: str) -> float:
        """The weight of a pair of codes: that of all pairs of their classes."""
        weight = self.pairs.get(pair)
        if weight is None:
            names = class_names()
            of = self.of
            weight = sum(of.get(f"{a}>{b}", 0.0) for a in names[pair[0]] for b in names[pair[1]])
            self.pairs[pair] = weight
        return weight


@cache
def _weights() -> _Weights:
    return _Weights()


def score(window: str) -> float:
    """The model's log odds for a stretch of codes."""
    weights = _weights()
    singles = sum(map(weights.singles.__getitem__, weights.singles.keys() & set(window)))
    return weights.bias + singles + sum(weights.paired(sentence) for sentence in window.split(BREAK))


def judge(line: str) -> Iterator[Judgement]:
    """The stretches of ``line`` past the threshold, the strongest of overlapping ones, in order."""
    weights = _weights()
    weights.sentences.clear()
    seen: dict[str, float] = {}
    best: Judgement | None = None
    for first, last in windows(line):
        window = line[first:last]
        if window not in seen:
            seen[window] = score(window)
        if seen[window] <= weights.threshold:
            continue
        found = Judgement(first, last, seen[window], "")
        if best and first < best.last:
            best = max(best, found, key=lambda judgement: judgement.score)
            continue
        if best:
            yield _explained(best, line)
        best = found
    if best:
        yield _explained(best, line)


def _explained(judgement: Judgement, line: str) -> Judgement:
    weights = _weights().of
    counts = features(line[judgement.first : judgement.last])
    strongest = sorted(counts, key=lambda name: (-weights.get(name, 0.0) * counts[name], name))[:3]
    return judgement._replace(why="sounds like an order to a model: " + ", ".join(strongest))
