"""``python -m tests.fuzz [--seconds N | --sample] [--jobs N] [TARGET …]``: fuzz targets, guided by coverage.

Each target runs in a process of its own under limits of time and memory a case. A sample is the same cases in
each run, as far as the code is the same: what CI plays. What breaks an invariant is put into the committed
corpus, where the property tests replay it from then on. Exit codes: 0 nothing broke, 1 something did, 3
atheris is not here.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from schema.hashing import sha256
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
CASE_SECONDS = 20
"""Longest that one case may take: these are at most a few kilobytes."""
CASE_MEGABYTES = 2048
CASE_BYTES = 16384
FIXED = ("setarch", "-R")
"""Without random addresses: what is new in a case's coverage hangs on them, and so which case comes next."""


def main() -> int:
    """Fuzz, and say in a line how far each target came."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; default: all")
    parser.add_argument("--seconds", type=int, default=600, help="of each target, with cases at random")
    parser.add_argument("--sample", action="store_true", help="a fixed number of the same cases instead")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if unknown := set(arguments.targets) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}")
    if importlib.util.find_spec("atheris") is None:
        print("fuzz: atheris is not here; it has wheels for Linux on x86-64 only")
        return 3
    names = arguments.targets or list(TARGETS)
    with ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
        seconds = None if arguments.sample else arguments.seconds
        held = sum(pool.map(lambda name: _held(name, seconds), names))
    print(f"{held} of {len(names)} targets held")
    return 0 if held == len(names) else 1


def _held(name: str, seconds: int | None) -> bool:
    """Run one target to its end, or to that of its sample; what breaks it becomes a case of the corpus."""
    target = TARGETS[name]
    with tempfile.TemporaryDirectory(prefix=f"copperbench-fuzz-{name}-") as folder:
        grown, found, words = Path(folder, "grown"), Path(folder, "found"), Path(folder, "words")
        grown.mkdir()
        found.mkdir()
        for number, seed in enumerate(target.seeds()):
            (grown / f"seed{number}").write_bytes(seed)
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))
        kept = [str(CORPUS / name)] if (CORPUS / name).is_dir() else []
        extent = [f"-max_total_time={seconds}"] if seconds else [f"-runs={target.sample}", "-seed=1"]
        command = [
            *(() if seconds else _fixed()),
            *(sys.executable, "-m", "tests.fuzz.one", name),
            *extent,
            f"-timeout={CASE_SECONDS}",
            f"-rss_limit_mb={CASE_MEGABYTES}",
            f"-max_len={CASE_BYTES}",
            f"-artifact_prefix={found}/",
            f"-dict={words}",
            "-print_final_stats=1",
            "-verbosity=0",
            *(str(grown), *kept),
        ]
        # Python's own hashes are at random too, unless told.
        environment = {**os.environ, **({} if seconds else {"PYTHONHASHSEED": "0"})}
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        said = done.stderr.decode("utf-8", "replace")
        executed = next(
            (line.split()[-1] for line in said.splitlines() if "number_of_executed_units" in line), "?"
        )
        for case in found.iterdir():
            _keep(name, case.read_bytes())
        fine = done.returncode == 0
        print(
            f"{name:12} {executed:>9} cases, {len(list(grown.iterdir())):5} kept for their coverage: "
            f"{'held' if fine else 'BROKEN'}",
            flush=True,
        )
        if not fine:
            print("\n".join(f"    {line}" for line in said.splitlines()[-25:]), flush=True)
        return fine


def _fixed() -> tuple[str, ...]:
    """:data:`FIXED` where the machine has it and allows it; a sample differs a little where not."""
    allowed = shutil.which(FIXED[0]) and subprocess.run([*FIXED, "true"], capture_output=True, check=False)
    return FIXED if allowed and allowed.returncode == 0 else ()


def _keep(name: str, case: bytes) -> None:
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / sha256(case)[:16]).write_bytes(case)


def _escaped(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


if __name__ == "__main__":
    sys.exit(main())
