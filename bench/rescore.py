"""What grading stored evidence again costs: cold against the kicad-cli calls it needs, and from the cache.

``python bench/rescore.py [--tasks NAME …] [--jobs 2] [--passes 5]`` from the checkout, with images and
fixtures in place. Plays every shipped solution of the tasks into a temporary checkout, then grades all again:

- cold at one job, whose seconds inside kicad-cli are the sum of the calls that are needed at least once;
- cold at ``--jobs``, as wall time against that sum;
- from the cache, in the image, as records a second, the store read and the verdicts compared each time.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from grader.evidence import Bundle
from grader.rescore import rescore
from orchestrator.engine import Engine
from orchestrator.execute import execute
from orchestrator.grading import GraderPool
from orchestrator.plan import expand, join
from orchestrator.project import Project
from orchestrator.prove import AGENT
from schema.verdict import Verdict

ROOT = Path(__file__).parents[1]
PARTS = ("tasks", "suites", "fixtures", "images/agents", "models.json")


class Meter:
    """Grades through a pool and adds up what it cost."""

    def __init__(self, engine: Engine, jobs: int, scope: str) -> None:
        self.pool = GraderPool(engine, jobs, scope)
        self.pool.facts()
        self._lock = threading.Lock()
        self.kicad = 0.0

    def grade(self, bundle: Bundle, _major: str) -> Verdict:
        """Grade one bundle in the reference environment."""
        graded = self.pool.grade(bundle)
        with self._lock:
            self.kicad += graded.kicad_seconds
        return graded.verdict


def checkout(folder: Path) -> Project:
    """A checkout of its own, with the baselines that this one has prepared."""
    for part in PARTS:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, target)
    (folder / "results").mkdir()
    baselines = ROOT / ".cache" / "baselines"
    if baselines.is_dir():
        shutil.copytree(baselines, folder / ".cache" / "baselines")
    return Project(folder)


def once(project: Project, meter: Meter, jobs: int) -> tuple[int, float]:
    """One whole rescore: how many records, and its wall time."""
    began = time.monotonic()
    outcomes = list(rescore(project.root, meter.grade, jobs=jobs))
    wall = time.monotonic() - began
    wrong = [outcome for outcome in outcomes if not outcome.matches]
    for outcome in wrong:
        print(f"DIFFERS {outcome.record.run}: {outcome.differences}", file=sys.stderr)
    return len(outcomes), wall


def main() -> None:
    """Play, grade again, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--passes", type=int, default=5)
    options = parser.parse_args()
    engine = Engine.connect()
    with tempfile.TemporaryDirectory() as folder:
        project = checkout(Path(folder))
        tasks = [project.task(name) for name in options.tasks or project.task_ids()]
        plans = [
            expand([task], [f"solution:{name}" for name in task.solutions()], AGENT, 1, "bench")
            for task in tasks
        ]
        execute(project, engine, join(plans), jobs=options.jobs, report=lambda _: None)
        meter = Meter(engine, 1, "bench one")
        count, wall = once(project, meter, 1)
        needed = meter.kicad
        meter.pool.close()
        print(f"{count} records; cold, 1 job: {wall:.1f} s, of which kicad-cli {needed:.1f} s")
        meter = Meter(engine, options.jobs, "bench many")
        count, wall = once(project, meter, options.jobs)
        print(
            f"cold, {options.jobs} jobs: {wall:.1f} s, {wall / needed:.2f} of the calls needed"
            f" (kicad-cli ran {meter.kicad:.1f} s in all graders)"
        )
        meter.pool.close()
        cached(project.root, options.jobs, options.passes)


INSIDE = """
import sys, time
from pathlib import Path
from grader.local import local_graders
from grader.rescore import rescore
jobs, passes = map(int, sys.argv[1:])
with local_graders(jobs, Path('/tmp/cache')) as graders:
    for _ in range(passes + 1):
        began = time.monotonic()
        count = len(list(rescore(Path('/bench'), lambda bundle, _: graders.grade(bundle), jobs=jobs)))
        print(count / (time.monotonic() - began))
"""
"""A pool of the image's own, whose graders share one cache; a container's does not outlive it."""


def cached(root: Path, jobs: int, passes: int) -> None:
    """In the image: the first pass fills the cache, the others answer from it."""
    # The image's user is nobody here; temporary folders are their maker's alone.
    root.chmod(0o755)
    mount = ["--network", "none", "-v", f"{root}:/bench:ro", "--entrypoint", "python3"]
    command = ["docker", "run", "--rm", *mount, "copperbench/grader", "-c", INSIDE, str(jobs), str(passes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    cold, *rates = map(float, done.stdout.split())
    print(
        f"in the image, {jobs} jobs: cold {cold:.1f} records/s; from the cache {max(rates):.1f} records/s"
        f" (median {statistics.median(rates):.1f})"
    )


if __name__ == "__main__":
    main()
