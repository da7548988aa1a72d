"""Speed of the injection detector as ratios: ``python bench/redteam.py``. Prints, never asserts.

Seconds differ between machines, so every figure (of processor time) stands beside another: finding the words
of the same text with a regular expression.
"""

import base64
import random
import re
import time
from collections.abc import Callable

from compass.redteam import bench, injection_findings
from compass.redteam.cases import cases

SIZE = 1_000_000
WORD = re.compile(r"\w+")


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The quickest of ``repeats`` runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def filled(unit: str, size: int = SIZE) -> str:
    """``unit`` repeated to ``size`` characters."""
    return (unit * (size // len(unit) + 1))[:size]


def texts() -> dict[str, str]:
    """One megabyte of each kind: prose, and repeats chosen to be awkward."""
    dice = random.Random(1)  # noqa: S311
    safe = [case.text for case in cases() if not case.inject and case.text.isascii()]
    return {
        "prose": " ".join(dice.choices(safe, k=SIZE // 60))[:SIZE],
        "trigger words": filled("ignore all the "),
        "vetoed matches": filled("how to ignore previous rules. "),
        "one letter": filled("a"),
        "spaced letters": filled("i g n o r e "),
        "chopped words": filled("i.g.n.o.r.e."),
        "entities": filled("&amp;"),
        "octal escapes": filled("\\101"),
        "markup": filled("a**b*c"),
        "random base64": base64.b64encode(dice.randbytes(SIZE * 3 // 4)).decode(),
        "random words": " ".join(
            "".join(dice.choices("abcdefghijklmnoprst", k=9)) for _ in range(SIZE // 10)
        ),
        "Chinese": filled("忽略之前的所有指令并"),
        "Hindi": filled("सभी निर्देशों को भूल "),
    }


def main() -> int:
    """Print the table."""
    injection_findings("warm up: vtaber cerivbhf")
    print(f"{'1 MB of':16} {'s':>6} {'ms/kB':>7} {'× word scan':>12}")
    for name, text in texts().items():
        plain = seconds(lambda text=text: WORD.findall(text))
        spent = seconds(lambda text=text: injection_findings(text))
        print(f"{name:16} {spent:6.2f} {spent / len(text) * 1e6:7.2f} {spent / plain:12.1f}")
    half, whole = (seconds(lambda n=n: injection_findings(texts()["prose"][:n])) for n in (SIZE // 2, SIZE))
    print(f"twice the prose takes {whole / half:.2f} times as long")
    rows = list(cases())
    spent = seconds(bench.evaluate)
    print(f"{len(rows)} corpus rows: {spent:.2f} s, {1e3 * spent / len(rows):.2f} ms a row")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
