"""Interruptions of a suite, and what must hold after the same command again (DESIGN §3, crash-only).

``python -m tests.crash.chaos`` goes through all of them and ends with a line that counts; CI takes a sample.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from grader.ledger import audit, planned, read_chain
from grader.results import read_records
from orchestrator.engine import LABEL, ContainerSpec, Engine, Limits
from orchestrator.leaderboard import is_current
from orchestrator.project import Project

ROOT = Path(__file__).parents[2]
PARTS = ("tasks", "suites", "fixtures", "images/agents", "models.json", "pricing.json")
TASK = "refuse-clock-pullup"
SECONDS = 300
SEED = 20261130


@dataclass(frozen=True)
class Step:
    """One function of the product at which the process dies."""

    target: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.target.partition(':')[2]} {self.nth}"


STEPS = [
    Step("orchestrator.execute:write"),
    Step("orchestrator.ledger:Ledger.plan"),
    Step("orchestrator.store:EvidenceWriter._create"),
    Step("orchestrator.store:EvidenceWriter._run", 2),
    Step("orchestrator.grading:Slot.open"),
    Step("orchestrator.workspace:_keep"),
    Step("orchestrator.ledger:Ledger.claim"),
    Step("orchestrator.ledger:Ledger._append", 2),
    Step("orchestrator.engine:Engine.create_tmpfs_volume"),
    Step("orchestrator.engine:Engine.create", 2),
    Step("orchestrator.engine:Engine.put"),
    Step("orchestrator.sandbox:Sandbox.start"),
    Step("orchestrator.sandbox:Sandbox.watch"),
    Step("orchestrator.attempt:collect"),
    Step("orchestrator.sandbox:Sandbox._remove", 2),
    Step("orchestrator.store:EvidenceWriter.put_tree"),
    Step("orchestrator.store:EvidenceWriter.put_run"),
    Step("orchestrator.grading:GraderPool.grade"),
    Step("orchestrator.records:Records.write"),
    Step("orchestrator.records:_link"),
    Step("orchestrator.ledger:Ledger.record"),
    Step("orchestrator.leaderboard:update"),
]
"""Every step of DESIGN §3, each before and after."""


@dataclass
class Tally:
    """What came of all interruptions."""

    survived: int = 0
    lost: int = 0
    duplicated: int = 0
    left_behind: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.survived} interruptions survived, {self.lost} lost, {self.duplicated} duplicated, "
            f"{self.left_behind} left behind"
        )

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.lost or self.duplicated or self.left_behind or self.faults)


class Checkout:
    """A checkout of its own in which one suite is run again and again."""

    def __init__(self, root: Path, models: Sequence[str]) -> None:
        for part in PARTS:
            source, target = ROOT / part, root / part
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target)
            elif source.is_file():
                shutil.copy(source, target)
        suite = {"id": "crash", "title": "One task", "tasks": [TASK], "repeats": 1}
        (root / "suites" / "crash.json").write_text(json.dumps(suite))
        self.project = Project(root)
        self.command = ["run", "--suite", "crash", "--jobs", "2"]
        self.command += [part for model in models for part in ("--model", model)]
        self.runs = len(models)

    def fresh(self, *, baselines: bool = True) -> None:
        """Forget all results; the prepared baselines too, unless told."""
        shutil.rmtree(self.project.results, ignore_errors=True)
        self.project.results.mkdir()
        if not baselines:
            shutil.rmtree(self.project.cache, ignore_errors=True)

    def start(self, *launcher: str) -> subprocess.Popen[bytes]:
        """The command, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", *(launcher or ("orchestrator",)), *self.command],
            cwd=self.project.root,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def complete(self) -> str:
        """The same command again; what it said if it failed."""
        with self.start() as process:
            said, _ = process.communicate(timeout=SECONDS)
        return "" if process.returncode == 0 else f"exit {process.returncode}: {said.decode()[-500:]}"


class Chaos:
    """Interrupts a checkout's command in every way and holds what is left against what must be."""

    def __init__(self, engine: Engine, checkout: Checkout, bystanders: Sequence[str]) -> None:
        self._engine = engine
        self._checkout = checkout
        self._bystanders = {name: engine.inspect(name)["State"]["StartedAt"] for name in bystanders}
        self.tally = Tally()

    def at_step(self, step: Step, when: str) -> None:
        """SIGKILL before or after one step, then the same command again."""
        self._checkout.fresh(baselines="workspace" not in step.target)
        with self._checkout.start("tests.crash.die", step.target, when, str(step.nth)) as process:
            said, _ = process.communicate(timeout=SECONDS)
        if process.returncode != -signal.SIGKILL:
            self._fault(f"{when} {step}: not reached (exit {process.returncode}: {said.decode()[-300:]})")
            return
        self._survive(f"SIGKILL {when} {step}")

    def at_random(self, count: int, order: random.Random) -> None:
        """SIGKILL of the command's group at random moments of a suite, over and over, until it is through."""
        left = count
        while left:
            self._checkout.fresh()
            while left and self._kill_after(order.uniform(0.2, 8)):
                left -= 1
                self.tally.survived += 1
            self._survive(f"random moments, {count - left} of {count} kills", counts=False)

    def _kill_after(self, seconds: float) -> bool:
        """Whether the command was still running then."""
        with self._checkout.start() as process:
            try:
                process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        return process.returncode == -signal.SIGKILL

    def by_signal(self, number: signal.Signals, times: int) -> None:
        """A signal, once or twice, as soon as the first run is recorded."""
        self._checkout.fresh()
        with self._checkout.start() as process:
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline and not any(read_records(self._checkout.project.results)):
                time.sleep(0.02)
            for _ in range(times):
                process.send_signal(number)
                time.sleep(0.1)
            said, _ = process.communicate(timeout=SECONDS)
        name = f"{number.name} × {times}"
        if process.returncode != 130:  # the documented exit code of an interrupt
            self._fault(f"{name}: exit {process.returncode}: {said.decode()[-300:]}")
        self._survive(name)

    def _survive(self, what: str, *, counts: bool = True) -> None:
        if said := self._checkout.complete():
            self._fault(f"{what}: the same command again: {said}")
        project = self._checkout.project
        for fault in audit(project.results, {}):
            self._fault(f"{what}: {fault}")
        if not is_current(project):
            self._fault(f"{what}: LEADERBOARD.md is not what the records give")
        recorded = Counter(str(record.run) for _, record in read_records(project.results))
        wanted = planned(read_chain(project.results), project.results)
        self.tally.lost += len(wanted.keys() - recorded.keys()) + (len(wanted) != self._checkout.runs)
        self.tally.duplicated += sum(n - 1 for n in recorded.values())
        self._look_for_leavings(what)
        self.tally.survived += counts
        print(f"{what}: {len(recorded)} of {self._checkout.runs} recorded", flush=True)

    def _look_for_leavings(self, what: str) -> None:
        left = [
            f"{kind} {name}"
            for kind, name, owner in self._engine.ours()
            if owner is not None and owner.dead()
        ]
        left += [str(path) for path in self._checkout.project.results.rglob("*.tmp")]
        left += [str(path) for path in self._checkout.project.results.rglob("tmp_*")]
        for name, started in self._bystanders.items():
            state = self._engine.inspect(name)["State"]
            if not state["Running"] or state["StartedAt"] != started:
                left.append(f"container {name} is not ours and was touched")
        self.tally.left_behind += len(left)
        for item in left:
            print(f"{what}: {item}", flush=True)

    def _fault(self, text: str) -> None:
        self.tally.faults.append(text)
        print(f"FAULT {text}", flush=True)


@contextmanager
def bystanders(engine: Engine) -> Iterator[list[str]]:
    """Containers that are nobody's business: one of another host, and one of a living process."""
    names: list[str] = []
    try:
        for owner in (f"elsewhere|{'0' * 36}|1|1", str(engine.owner)):
            name = f"bystander-{os.getpid()}-{len(names)}"
            container = engine.create(
                ContainerSpec(
                    name=name,
                    image="copperbench/holder",
                    command=["sleep", "infinity"],
                    limits=Limits(memory=64 * 2**20, cpus=0.1, pids=16),
                    labels={"owner": owner},
                )
            )
            names.append(container)
            engine.start(container)
            if engine.inspect(container)["Config"]["Labels"][f"{LABEL}.owner"] != owner:
                raise AssertionError("the bystander has not the owner it should have")
        yield names
    finally:
        for name in names:
            engine.remove(name)


def unleash(folder: Path, *, steps: Sequence[tuple[Step, str]], kills: int, signals: Sequence[int]) -> Tally:
    """Interrupt a suite: at steps, at random moments, by signals once or twice."""
    engine = Engine.connect()
    solutions = Project(ROOT).task(TASK).solutions()
    few = Checkout(folder / "few", ["solution:gold", "solution:noop"])
    many = Checkout(folder / "many", [f"solution:{name}" for name in solutions])
    with bystanders(engine) as others:
        chaos = Chaos(engine, few, others)
        for step, when in steps:
            chaos.at_step(step, when)
        for times in signals:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                chaos.by_signal(number, times)
        if kills:
            crowd = Chaos(engine, many, others)
            crowd.tally = chaos.tally
            crowd.at_random(kills, random.Random(SEED))  # noqa: S311  # a fixed order, not a secret
    return chaos.tally


def main() -> int:
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30, help="at random moments")
    arguments = parser.parse_args()
    steps = [(step, when) for step in STEPS for when in ("before", "after")]
    with tempfile.TemporaryDirectory(prefix="copperbench crash ") as folder:
        tally = unleash(Path(folder), steps=steps, kills=arguments.kills, signals=(1, 2))
    for fault in tally.faults:
        print(fault)
    print(tally)
    return 0 if tally.clean else 1


if __name__ == "__main__":
    raise SystemExit(main())
