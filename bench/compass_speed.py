"""Print compass's speed: per command, per task, whole corpora, and growth on hostile repeats up to 1 MB.

``python bench/compass_speed.py``; figures, not gates. Machines are shared and noisy: read ratios.
"""

import resource
import time
from collections.abc import Callable

from compass.bench import guardrail, router
from compass.guardrail import findings
from compass.router import route

HOSTILE = {
    "nested substitutions": "$(",
    "pipes": "a|",
    "separators": "a;",
    "quotes": '"$(',
    "backticks": "`",
    "here-documents": "cat <<E\nx\nE\n",
    "subshells": "(",
    "braces": "rm {a,{b,c}}/{1..9} ",
    "deletions": "rm -rf x;",
    "doubling": "x=$x$x;",
    "xargs": "echo a|xargs ",
    "wrappers": "sudo ",
    "forks": ":(){ :|:& };:",
    "blank lines": "\n",
    "words": "a",
    "globs": "rm -rf /*/*/* ",
    "conditions": "if a;then ",
    "functions": "f(){ ",
}


def seconds(action: Callable[[], object], rounds: int = 1) -> float:
    """Best time of ``rounds``."""
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - started)
    return best


def main() -> None:
    """Print every figure."""
    rows = guardrail.cases()
    each = seconds(lambda: [findings(command, branch) for _, _, command, branch in rows], 5) / len(rows)
    print(f"guardrail: {1000 * each:.3f} ms a command over {len(rows)} corpus rows")
    tasks = [one.task for one in router.evaluate().routed]
    each = seconds(lambda: [route(task) for task in tasks], 5) / len(tasks)
    print(f"router: {1000 * each:.3f} ms a task")
    print(f"bench: guardrail {seconds(guardrail.evaluate):.2f} s, router {seconds(router.evaluate):.2f} s")
    print(f"{'hostile repeats':<22} {'20 kB':>8} {'39 kB':>8} {'1 MB':>8}  seconds")
    for name, unit in HOSTILE.items():
        times = []
        for size in (20_000, 39_000, 1_000_000):
            text = (unit * (size // len(unit) + 1))[:size]
            times.append(seconds(lambda text=text: findings(text)))  # type: ignore[misc]
        print(f"{name:<22} " + " ".join(f"{one:>8.3f}" for one in times))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
