"""What one run costs beyond the agent's own time and kicad-cli's, against a bare container start.

``python bench/overhead.py [RUNS]`` from the checkout, with images and fixtures in place. Prints medians in
seconds, for one job and for four, and the ratio to ``docker run`` of the same image doing nothing.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from orchestrator.engine import ContainerSpec, Engine, Limits
from orchestrator.execute import execute
from orchestrator.plan import expand, join
from orchestrator.project import Project
from orchestrator.records import Finished
from schema.record import Record

TASK = "rename-data-net"
MODEL = "solution:gold"


def bare(engine: Engine, runs: int) -> list[float]:
    """Create, start, wait for and remove a container that does nothing."""
    limits = Limits(memory=2 * 2**30, cpus=1.0, pids=256)
    out = []
    for number in range(runs):
        began = time.monotonic()
        container = engine.create(
            ContainerSpec(
                name=f"copperbench-bench-{time.time_ns()}-{number}",
                image="copperbench/agent-solution",
                command=["true"],
                limits=limits,
            )
        )
        engine.start(container)
        engine.wait(container, 60)
        engine.remove(container)
        out.append(time.monotonic() - began)
    return out


def play(project: Project, engine: Engine, runs: int, jobs: int) -> tuple[list[Record], float]:
    """Run gold a number of times into a fresh results folder; the records and the wall time of all."""
    plan = join([expand([project.task(TASK)], [MODEL], "solution", runs, "bench")])
    finished: list[Finished] = []
    began = time.monotonic()
    execute(project, engine, plan, jobs=jobs, report=finished.append)
    return [item.record for item in finished], time.monotonic() - began


def overhead(record: Record) -> float:
    """Seconds of a run that are neither the agent's nor kicad-cli's."""
    return record.timings.total - record.timings.agent - record.timings.kicad


def main() -> None:
    """Measure and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    root = Path(__file__).parents[1]
    engine = Engine.connect()
    start = statistics.median(bare(engine, runs))
    print(f"bare container: {start:.2f} s")
    cores = os.cpu_count() or 1
    for jobs in (1, 4):
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "results"
            project = Project(root, results)
            # Every grader container's first record pays for kicad-cli: enough runs that it does not decide.
            records, wall = play(project, engine, runs * jobs, jobs)
            store = results / "evidence.git"
            size = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
        elsewhere = statistics.mean(record.timings.agent + record.timings.kicad for record in records)
        per_run = wall / len(records)
        # Agents and kicad-cli of several runs share the cores; what is left of the wall is ours.
        value = per_run - elsewhere / min(jobs, cores)
        print(
            f"jobs {jobs}: {len(records)} runs, {per_run:.2f} s of wall each, "
            f"overhead {value:.2f} s ({value / start:.1f} × bare); "
            f"median of one run {statistics.median(map(overhead, records)):.2f} s; "
            f"evidence store {size / 1000:.0f} kB"
        )
        for step in ("prepare", "start", "agent", "collect", "store", "grade", "kicad"):
            print(f"    {step:8} {statistics.median(getattr(r.timings, step) for r in records):.3f} s")


if __name__ == "__main__":
    main()
