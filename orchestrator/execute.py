"""Executing a plan: a bounded pool of runs, progress, interrupts, resume."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from types import FrameType

from orchestrator.access import Money
from orchestrator.companion import COMPANION
from orchestrator.engine import Engine
from orchestrator.grading import GraderPool
from orchestrator.job import Job
from orchestrator.ledger import Ledger
from orchestrator.log import event_log
from orchestrator.plan import write
from orchestrator.project import LoadedTask, Project
from orchestrator.reap import reap
from orchestrator.records import Finished, Report
from orchestrator.run import Runner
from orchestrator.sandbox import pack
from orchestrator.solutions import solution_inputs
from schema.errors import EnvironmentFault, Interrupted
from schema.run import Plan, RunSpec


def execute(
    project: Project,
    engine: Engine,
    plan: Plan,
    *,
    jobs: int,
    report: Report,
    say: Callable[[str], None] = lambda _: None,
    runtime: str | None = None,
    money: Money | None = None,
) -> list[Finished]:
    """Run what has no valid record yet; returns every planned run in plan order.

    The plan is written first: it fixes what has to be there in the end. ``runtime`` is the OCI runtime of
    the agents' containers; ``say`` tells a person what is being waited for.

    Raises:
        EnvironmentFault: the engine has no such runtime.
        Interrupted: by INT, TERM or HUP; recorded runs stay, the same plan again completes the rest.
    """
    if runtime and runtime not in engine.runtimes():
        raise EnvironmentFault(
            f"the engine has no runtime {runtime!r}",
            fix=f"configure it, or use one of {', '.join(engine.runtimes())}",
        )
    stop = threading.Event()
    money = money or Money()
    tasks = {name: project.task(name) for name in dict.fromkeys(s.run.task for s in plan.specs)}
    done: dict[str, Finished] = {}
    with (
        closing(Ledger(project.results)) as ledger,
        event_log(project.cache / "logs") as log,
        closing(GraderPool(engine, jobs, str(project.results), stop)) as pool,
        _interrupts(engine, pool, stop, say),
    ):
        reap(engine)
        ledger.plan(write(plan, project.results))
        runner = Runner(
            project, engine, pool, ledger, log=log, stop=stop, runtime=runtime, money=money or Money()
        )

        failed = threading.Event()

        def one(spec: RunSpec) -> Finished:
            if failed.is_set():
                raise Interrupted("not started: another run ended the plan", about=str(spec.run))
            try:
                job = _prepare(runner, spec, tasks[spec.run.task].under(spec.run.condition))
                return Finished(spec, *runner.execute(job))
            except BaseException:
                failed.set()
                raise

        with ThreadPoolExecutor(max_workers=jobs) as workers:
            for finished in _as_completed(workers, one, plan.specs, stop):
                done[str(finished.spec.run)] = finished
                report(finished)
    # What a process that was killed asked the engine for may have come to be only after our first look.
    reap(engine)
    return [done[str(spec.run)] for spec in plan.specs]


def _prepare(runner: Runner, spec: RunSpec, loaded: LoadedTask) -> Job:
    def inputs() -> bytes | None:
        agent = runner.project.agent(spec.run.agent)
        return pack(solution_inputs(loaded, spec.run)) if "solution" in agent.inputs else None

    return runner.prepare(spec.run, loaded, inputs)


def _as_completed(
    workers: ThreadPoolExecutor,
    one: Callable[[RunSpec], Finished],
    specs: list[RunSpec],
    stop: threading.Event,
) -> Iterator[Finished]:
    """Yield results as they come; the first error ends the plan and is raised when all have stopped."""
    waiting: set[Future[Finished]] = {workers.submit(one, spec) for spec in specs}
    error: BaseException | None = None
    while waiting:
        # A finite wait lets signal handlers run in this thread.
        ended, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
        if stop.is_set() or error:
            for future in waiting:
                future.cancel()
        for future in ended:
            if future.cancelled():
                continue
            failure = future.exception()
            if failure is None:
                yield future.result()
            elif error is None or isinstance(error, Interrupted):
                error = failure
    if stop.is_set():
        raise Interrupted("interrupted", fix="the same command again completes the rest")
    if error:
        raise error


@contextmanager
def _interrupts(
    engine: Engine, pool: GraderPool, stop: threading.Event, say: Callable[[str], None]
) -> Iterator[None]:
    """On INT, TERM or HUP, however often: start nothing new, kill our containers, so that every wait ends.

    What serves a run is spared at first: its run asks it to end, and learns what replies in flight cost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def kill_ours(spared: Collection[str]) -> None:
        serving = spared and engine.mine(*spared)
        for container in engine.mine():
            if container not in serving:
                engine.kill(container)
        if serving:
            say("interrupted: waiting for what replies in flight cost; once more ends at once")
        pool.abort()

    def handle(_number: int, _frame: FrameType | None) -> None:
        spared = () if stop.is_set() else (COMPANION,)
        stop.set()
        threading.Thread(target=kill_ours, args=(spared,), daemon=True).start()

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            # On the way out a further signal must not cut short what is still to be tidied up.
            signal.signal(number, signal.SIG_IGN if stop.is_set() else handler)
