"""What grading stored evidence again costs: cold against the kicad-cli calls it needs, and from the cache.

``python bench/rescore.py [--tasks NAME …] [--jobs 2] [--passes 2]`` from the checkout, with images and
fixtures in place. Plays every shipped solution of the tasks into a temporary checkout, then grades all again:

- cold at one job, whose seconds inside kicad-cli are the sum of the calls that are needed at least once;
- cold at ``--jobs``, as wall time against that sum;
- from the cache, as records a second, the store read and the verdicts compared each time.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
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
        self.each: list[float] = []

    def grade(self, bundle: Bundle, _major: str) -> Verdict:
        """Grade one bundle in the reference environment."""
        began = time.monotonic()
        graded = self.pool.grade(bundle)
        with self._lock:
            self.kicad += graded.kicad_seconds
            self.each.append(time.monotonic() - began)
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
    parser.add_argument("--passes", type=int, default=2)
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
        meter.each.clear()
        rates = []
        for _ in range(options.passes):
            count, wall = once(project, meter, options.jobs)
            rates.append(count / wall)
        meter.pool.close()
        print(
            f"from the cache, {options.jobs} jobs: {max(rates):.1f} records/s"
            f" (median {statistics.median(rates):.1f}); a grade takes {statistics.median(meter.each):.3f} s"
        )


if __name__ == "__main__":
    main()
