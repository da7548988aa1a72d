"""Fit the cue model of the injection detector.

    python bench/redteam_fit.py PATH... > compass/data/redteam-cues.tsv

PATHs are documentation (README files, manuals, package metadata) or folders of it, taken for harmless; none
of it is kept. The labelled rows are the learned splits of the red-team corpus; the others are only scored, on
standard error. Logistic regression by Adagrad with a small L2 penalty, then once more with the lines and
paragraphs of documentation that the first fit found suspicious; deterministic.
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
LEARNED = frozenset({"base", "second", "third", "fourth", "fifth", "sixth"})
#: Weight of one documentation line beside one corpus row.
LINE_WEIGHT = 0.05
LINES_PER_FILE = 40
#: Weight of one stretch of a harmless row: the floor on precision is the stricter one.
SAFE_WEIGHT = 1.5
LINES = 200_000
LONGEST_PART = 2_000
#: Lines that a first fit takes for half an order are learned from too, up to so many a file.
HARD_PER_FILE = 80
HARD_SCORE = -2.0
HARD_WEIGHT = 0.5
EPOCHS, RATE, PENALTY = 16, 0.1, 5e-3
#: Weights smaller than this are dropped from the file.
SMALLEST = 0.04
#: The threshold lies at least so far above every harmless row.
MARGIN = 0.05
#: Share of unseen lines of documentation that may pass the threshold.
ALARMS = 0.001

Example = tuple[Counter[str], bool, float]


def coded(text: str) -> str:
    """The codes of ``text``, one character a token."""
    folded = fold(raw(text)).text
    return lexicon.encode(lexicon.tokenizer(folded).findall(folded)).decode()


def documents(paths: list[Path]) -> list[list[str]]:
    """The longer lines and the paragraphs of every documentation file, files in a fixed random order."""
    names = sorted(
        file
        for path in paths
        for file in (path.rglob("*") if path.is_dir() else (path,))
        if file.suffix in {".md", ".rst"} or file.name.startswith(("README", "METADATA", "CONTRIBUTING"))
    )
    random.Random(7).shuffle(names)  # noqa: S311
    seen: set[str] = set()
    kept = []
    for name in names:
        if name.is_file():
            text = name.read_bytes()[:100_000].decode("utf-8", "replace")
            parts = (*text.split("\n"), *text.split("\n\n"))
            lines = sorted({part.strip() for part in parts if 30 < len(part.strip()) < LONGEST_PART} - seen)
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


class Fitted:
    """Weights learned from rows and documentation, the suspicious documentation counted once more."""

    def __init__(self, rows: list[Example], documentation: list[list[str]]) -> None:
        telling = {
            name for name, n in Counter(name for counts, _, _ in rows for name in counts).items() if n > 1
        }

        def known(line: str) -> Counter[str]:
            return Counter({name: n for name, n in features(line).items() if name in telling})

        examples = [(Counter({k: n for k, n in c.items() if k in telling}), y, w) for c, y, w in rows]
        usual = map(coded, sampled(documentation, LINES_PER_FILE))
        examples += [(known(line), False, LINE_WEIGHT) for line in usual]
        self.weights = fit(examples)
        pool = map(coded, sampled(documentation, HARD_PER_FILE))
        hard = [line for line in pool if self.worst(line) > HARD_SCORE]
        examples += [
            (known(line[first:last]), False, HARD_WEIGHT) for line in hard for first, last in windows(line)
        ]
        self.weights = {name: weight for name, weight in fit(examples).items() if abs(weight) >= SMALLEST}
        self.examples, self.hard = len(examples), len(hard)

    def worst(self, line: str) -> float:
        """The highest log odds of any stretch of ``line``."""
        parts = (features(line[first:last]) for first, last in windows(line))
        of = self.weights
        return max(
            (of["(bias)"] + sum(of.get(k, 0.0) * n for k, n in c.items()) for c in parts), default=-99.0
        )


def main() -> int:
    """Print the weights; report on standard error."""
    files = documents([Path(argument) for argument in sys.argv[1:]])
    cut = len(files) * 2 // 3
    rows = [(case, coded(case.text)) for case in cases() if not case.family.startswith("channel:")]
    learned = [(case, row) for case, row in rows if case.split in LEARNED]
    examples: list[Example] = [(features(row), True, 1.0) for case, row in learned if case.inject]
    examples += [
        (features(row[first:last]), False, SAFE_WEIGHT)
        for case, row in learned
        if not case.inject
        for first, last in windows(row)
    ]
    # The threshold comes from files that its model has not seen; the model that is kept has seen all of them.
    part = Fitted(examples, files[:cut])
    lines = (line for line in sampled(files[cut:], LINES_PER_FILE) if "\n" not in line)
    unseen = sorted(map(part.worst, map(coded, lines)))
    model = Fitted(examples, files)
    harmless = max(model.worst(row) for case, row in rows if not case.inject)
    document = unseen[int(len(unseen) * (1 - ALARMS))]
    threshold = max(document, harmless + MARGIN)
    print("# feature TAB weight; fitted by bench/redteam_fit.py, do not edit")
    for name, weight in sorted({**model.weights, "(threshold)": threshold}.items()):
        print(f"{name}\t{weight:.3f}")
    tally = Counter((case.split, case.inject, model.worst(row) > threshold) for case, row in rows)
    print(
        f"{model.examples} examples, {model.hard} hard; {len(unseen)} unseen lines of documentation, "
        f"their limit {document:.2f}; highest harmless row {harmless:.2f}; "
        f"{len(model.weights)} weights, threshold {threshold:.2f}",
        file=sys.stderr,
    )
    for key, n in sorted(tally.items()):
        print(*key, n, file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
