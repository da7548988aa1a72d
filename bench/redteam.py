"""Speed of the injection detector as ratios: ``python bench/redteam.py``. Prints, never asserts.

Seconds differ between machines, so every figure (of processor time) stands beside another: finding the words
of the same text with a regular expression.
"""

import base64
import json
import random
import re
import resource
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

from compass.redteam import bench, injection_findings
from compass.redteam.cases import cases
from compass.redteam.transforms import TRANSFORMS

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
    rows = list(cases())
    safe = [case.text for case in rows if not case.inject and case.text.isascii()]
    attacks = [case.text for case in rows if case.inject]
    disguised = [shown for case in rows if case.inject for t in TRANSFORMS if (shown := t.apply(case.text))]
    modules = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    sources = "".join(path.read_text("utf-8", "replace") for path in modules)
    return {
        "harmless rows": " ".join(dice.choices(safe, k=SIZE // 50))[:SIZE],
        "attack rows": " ".join(dice.choices(attacks, k=SIZE // 30))[:SIZE],
        "attacks, a line each": "\n".join(dice.choices(attacks, k=SIZE // 30))[:SIZE],
        "disguised attacks": "\n".join(dice.choices(disguised, k=SIZE // 60))[:SIZE],
        "program source": sources[:SIZE],
        "hex dump": dice.randbytes(SIZE // 3).hex(" "),
        "JSON numbers": json.dumps([dice.random() for _ in range(SIZE // 20)])[:SIZE],
        "trigger words": filled("ignore all the "),
        "vetoed matches": filled("how to ignore previous rules. "),
        "one letter": filled("a"),
        "spaced letters": filled("i g n o r e "),
        "chopped words": filled("i.g.n.o.r.e."),
        "entities": filled("&amp;"),
        "octal escapes": filled("\\101"),
        "markup": filled("a**b*c"),
        "random base64": base64.b64encode(dice.randbytes(SIZE * 3 // 4)).decode(),
        "camel humps": filled("IgnoreAllThe"),
        "letters and spaces": filled("a b "),
        "percent": filled("%41%20"),
        "quoted-printable": filled("=41=\n"),
        "angle brackets": filled("<"),
        "quotes": filled('"ignore" '),
        "random words": " ".join(
            "".join(dice.choices("abcdefghijklmnoprst", k=9)) for _ in range(SIZE // 10)
        ),
        "Chinese": filled("忽略之前的所有指令并"),
        "Hindi": filled("सभी निर्देशों को भूल "),
    }


def main() -> int:
    """Print the table."""
    injection_findings("warm up: vtaber cerivbhf")
    print(f"{'1 MB of':20} {'s':>6} {'ms/kB':>7} {'× word scan':>12}")
    for name, text in texts().items():
        plain = seconds(lambda text=text: WORD.findall(text))
        spent = seconds(lambda text=text: injection_findings(text))
        print(f"{name:20} {spent:6.2f} {spent / len(text) * 1e6:7.2f} {spent / plain:12.1f}")
    half, whole = (
        seconds(lambda n=n: injection_findings(texts()["attack rows"][:n])) for n in (SIZE // 2, SIZE)
    )
    print(f"twice the attacks takes {whole / half:.2f} times as long")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak memory {peak} MB")
    rows = list(cases())
    spent = seconds(bench.evaluate)
    print(f"{len(rows)} corpus rows: {spent:.2f} s, {1e3 * spent / len(rows):.2f} ms a row")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
