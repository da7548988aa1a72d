"""Fit the cue model of the injection detector.

    python bench/redteam_fit.py FOLDER... > compass/data/redteam-cues.tsv

FOLDERs hold documentation (README files, manuals, package metadata) that is taken for harmless; none of it is
kept. The labelled rows are the base and second splits of the red-team corpus; the others are only scored, on
standard error. Logistic regression by Adagrad with a small L2 penalty, then once more with the documentation
lines that the first fit found suspicious; deterministic.
"""

import math
import random
import sys
from collections import Counter
from pathlib import Path

from compass.redteam import lexicon
from compass.redteam.cases import cases
from compass.redteam.cues import features, windows
from compass.redteam.fold import fold, raw

#: Splits that may be learned from.
LEARNED = frozenset({"base", "second", "fourth"})
#: Weight of one documentation line beside one corpus row.
LINE_WEIGHT = 0.05
LINES_PER_FILE = 12
#: Weight of one stretch of a harmless row: the floor on precision is the stricter one.
SAFE_WEIGHT = 1.5
LINES = 200_000
#: Lines that a first fit takes for half an order are learned from too, up to so many a file.
HARD_PER_FILE = 40
HARD_SCORE = -2.0
EPOCHS, RATE, PENALTY = 25, 0.1, 5e-3
#: Weights smaller than this are dropped from the file.
SMALLEST = 0.04
#: The threshold lies at least so far above every harmless row.
MARGIN = 0.05
#: Share of unseen documentation lines that may pass the threshold.
ALARMS = 0.0002

Example = tuple[Counter[str], bool, float]


def coded(text: str) -> str:
    """The codes of ``text``, one character a token."""
    folded = fold(raw(text)).text
    return lexicon.encode(lexicon.tokenizer(folded).findall(folded)).decode()


def documents(folders: list[Path]) -> list[list[str]]:
    """The longer lines of every documentation file, files in a fixed random order."""
    names = sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in {".md", ".rst"} or path.name.startswith(("README", "METADATA", "CONTRIBUTING"))
    )
    random.Random(7).shuffle(names)  # noqa: S311
    seen: set[str] = set()
    kept = []
    for name in names:
        if name.is_file():
            text = name.read_bytes()[:100_000].decode("utf-8", "replace")
            lines = sorted({line.strip() for line in text.split("\n") if len(line.strip()) > 30} - seen)
            seen.update(lines)
            if lines:
                kept.append(lines)
    return kept


def sampled(files: list[list[str]], many: int) -> list[str]:
    """At most ``many`` lines of each file."""
    dice = random.Random(13)  # noqa: S311
    return [line for file in files for line in dice.sample(file, min(many, len(file)))][:LINES]


def fit(examples: list[Example]) -> dict[str, float]:
    """Weights by feature, with ``(bias)``: the mean over the later half of the epochs."""
    dice = random.Random(11)  # noqa: S311
    weights: dict[str, float] = {"(bias)": 0.0}
    squares: dict[str, float] = {}
    mean: Counter[str] = Counter()
    for epoch in range(EPOCHS):
        dice.shuffle(examples)
        for counts, label, weight in examples:
            total = weights["(bias)"] + sum(weights.get(name, 0.0) * n for name, n in counts.items())
            error = weight * (label - 1 / (1 + math.exp(-max(-30.0, min(30.0, total)))))
            if abs(error) < 1e-5:
                continue
            for name, n in (*counts.items(), ("(bias)", 1)):
                slope = error * n - (PENALTY * weights.get(name, 0.0) if name != "(bias)" else 0.0)
                squares[name] = squares.get(name, 1e-3) + slope * slope
                weights[name] = weights.get(name, 0.0) + RATE * slope / math.sqrt(squares[name])
        if epoch >= EPOCHS // 2:
            mean.update(weights)
    return {name: total / (EPOCHS - EPOCHS // 2) for name, total in mean.items()}


def main() -> int:
    """Print the weights; report on standard error."""
    files = documents([Path(argument) for argument in sys.argv[1:]])
    cut = len(files) * 2 // 3
    documentation = [coded(line) for line in sampled(files[:cut], LINES_PER_FILE)]
    rows = [(case, coded(case.text)) for case in cases() if not case.family.startswith("channel:")]
    learned = [(case, row) for case, row in rows if case.split in LEARNED]
    examples: list[Example] = [(features(row), True, 1.0) for case, row in learned if case.inject]
    examples += [
        (features(row[first:last]), False, SAFE_WEIGHT)
        for case, row in learned
        if not case.inject
        for first, last in windows(row)
    ]
    frequent = Counter(name for counts, _, _ in examples for name in counts)
    telling = {name for name, n in frequent.items() if n > 1}
    examples += [(features(line), False, LINE_WEIGHT) for line in documentation]
    examples = [(Counter({k: n for k, n in c.items() if k in telling}), y, w) for c, y, w in examples]
    weights: dict[str, float] = {}

    def worst(line: str) -> float:
        parts = (features(line[first:last]) for first, last in windows(line))
        return max(
            (weights["(bias)"] + sum(weights.get(k, 0.0) * n for k, n in c.items()) for c in parts),
            default=-99,
        )

    weights.update(fit(examples))
    hard = [line for line in map(coded, sampled(files[:cut], HARD_PER_FILE)) if worst(line) > HARD_SCORE]
    examples += [
        (Counter({k: n for k, n in features(line).items() if k in telling}), False, 0.5) for line in hard
    ]
    weights = {name: weight for name, weight in fit(examples).items() if abs(weight) >= SMALLEST}
    documentation += hard
    unseen = sorted(map(worst, map(coded, sampled(files[cut:], LINES_PER_FILE))))
    harmless = max(worst(row) for case, row in rows if not case.inject)
    threshold = max(unseen[int(len(unseen) * (1 - ALARMS))], harmless + MARGIN)
    weights["(threshold)"] = threshold
    print("# feature <TAB> weight; fitted by bench/redteam_fit.py, do not edit".replace(" <TAB> ", " TAB "))
    for name, weight in sorted(weights.items()):
        print(f"{name}\t{weight:.3f}")
    tally: Counter[tuple[str, bool, bool]] = Counter()
    for case, row in rows:
        tally[case.split, case.inject, worst(row) > threshold] += 1
    print(
        len(documentation),
        "lines,",
        len(hard),
        "hard,",
        len(unseen),
        "unseen, harmless",
        round(harmless, 2),
        len(weights),
        "weights, threshold",
        round(threshold, 2),
        file=sys.stderr,
    )
    for key, n in sorted(tally.items()):
        print(*key, n, file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
