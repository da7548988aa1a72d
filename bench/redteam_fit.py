"""Fit the cue model of the injection detector: ``python bench/redteam_fit.py FOLDER... > compass/data/redteam-cues.tsv``.

FOLDERs hold documentation (README files, manuals, changelogs, package metadata) that is taken for harmless; none
of it is kept. The labelled rows are the base and second splits of the red-team corpus; the other splits are only
scored, on standard error. Logistic regression by Adagrad with a small L2 penalty; deterministic.
"""

import math
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from compass.redteam import lexicon
from compass.redteam.cases import cases
from compass.redteam.cues import features, windows
from compass.redteam.fold import fold, raw

#: Splits that may be learned from.
LEARNED = frozenset({"base", "second"})
#: Weight of one documentation line beside one corpus row.
LINE_WEIGHT = 0.05
LINES_PER_FILE = 12
LINES = 60_000
EPOCHS, RATE, PENALTY = 25, 0.1, 5e-3
#: Weights smaller than this are dropped from the file.
SMALLEST = 0.04
#: Share of unseen documentation lines that may pass the threshold.
ALARMS = 0.0003

Example = tuple[Counter[str], bool, float]


def coded(text: str) -> str:
    """The codes of ``text``, one character a token."""
    folded = fold(raw(text)).text
    return lexicon.encode(lexicon.tokenizer(folded).findall(folded)).decode()


def lines(folders: list[Path]) -> Iterator[str]:
    """Some long enough lines of every documentation file, in a fixed random order of files."""
    dice = random.Random(7)
    names = sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in {".md", ".rst"} or path.name.startswith(("README", "METADATA", "CONTRIBUTING"))
    )
    dice.shuffle(names)
    seen: set[str] = set()
    for name in names:
        if not name.is_file():
            continue
        text = name.read_bytes()[:100_000].decode("utf-8", "replace")
        kept = sorted({line.strip() for line in text.split("\n") if len(line.strip()) > 30} - seen)
        chosen = dice.sample(kept, min(len(kept), LINES_PER_FILE))
        seen.update(chosen)
        yield from chosen
        if len(seen) >= LINES:
            return


def fit(examples: list[Example]) -> dict[str, float]:
    """Weights by feature, with ``(bias)``."""
    dice = random.Random(11)
    weights: dict[str, float] = {"(bias)": 0.0}
    squares: dict[str, float] = {}
    for _ in range(EPOCHS):
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
    return weights


def main() -> int:
    """Print the weights; report on standard error."""
    folders = [Path(argument) for argument in sys.argv[1:]]
    documentation = [coded(line) for line in lines(folders)]
    cut = len(documentation) * 2 // 3
    rows = [(case, coded(case.text)) for case in cases() if not case.family.startswith("channel:")]
    examples: list[Example] = [(features(row), case.inject, 1.0) for case, row in rows if case.split in LEARNED]
    frequent = Counter(name for counts, _, _ in examples for name in counts)
    examples += [(features(line), False, LINE_WEIGHT) for line in documentation[:cut]]
    telling = {name for name, n in frequent.items() if n > 1}
    examples = [(Counter({k: n for k, n in c.items() if k in telling}), y, w) for c, y, w in examples]
    weights = {name: weight for name, weight in fit(examples).items() if abs(weight) >= SMALLEST}

    def worst(line: str) -> float:
        parts = (features(line[first:last]) for first, last in windows(line))
        return max((weights["(bias)"] + sum(weights.get(k, 0.0) * n for k, n in c.items()) for c in parts), default=-99)

    unseen = sorted(map(worst, documentation[cut:]))
    threshold = unseen[int(len(unseen) * (1 - ALARMS))]
    weights["(threshold)"] = threshold
    print("# feature <TAB> weight; fitted by bench/redteam_fit.py, do not edit".replace(" <TAB> ", " TAB "))
    for name, weight in sorted(weights.items()):
        print(f"{name}\t{weight:.3f}")
    tally: Counter[tuple[str, bool, bool]] = Counter()
    for case, row in rows:
        tally[case.split, case.inject, worst(row) > threshold] += 1
    print(len(documentation), "lines,", len(weights), "weights, threshold", round(threshold, 2), file=sys.stderr)
    for key, n in sorted(tally.items()):
        print(*key, n, file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
