"""Playing attacks: a checkout of its own, one plan of runs, one outcome a run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader.store import EvidenceStore
from orchestrator.engine import Engine
from orchestrator.execute import execute
from orchestrator.images import ImageSpec, build
from orchestrator.plan import expand, join
from orchestrator.project import Project
from orchestrator.records import Finished, Report
from schema.errors import CopperbenchError, Interrupted
from schema.record import Record
from schema.run import Plan, RunId, RunSpec
from schema.verdict import Category
from tests.attacks.attack import AGENT as PROVIDER
from tests.attacks.attack import Attack, Fails, FindsNothing

ROOT = Path(__file__).parents[2]
AGENT = "tests/attacks/agent"
PARTS = ("tasks", "suites", "fixtures", "images/agents", "models.json", "pricing.json")
CAP = 25
"""Seconds of wall clock of each run: the honest work takes two."""
REFERENCE = "solution:gold"

IMAGE = ImageSpec(
    tag="copperbench/agent-hostile",
    dockerfile=f"{AGENT}/Dockerfile",
    parent="copperbench/agent-solution",
    context=(f"{AGENT}/hostile",),
    strip=f"{AGENT}/",
)


@dataclass(frozen=True)
class Outcome:
    """What one attack came to."""

    attack: Attack
    got: str
    """Verdict in words."""
    faults: list[str] = field(default_factory=list)
    """What is not as the attack states; empty: the defence holds."""


def checkout(root: Path, attacks: Iterable[Attack]) -> Project:
    """A checkout in which the hostile agent, its provider, short caps and gold's data for each attack exist.

    Nothing of them is in the checkout that people use: there no model id leads to the hostile agent.
    """
    for part in PARTS:
        source, target = ROOT / part, root / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    models = json.loads((root / "models.json").read_bytes())
    models["providers"][PROVIDER] = models["providers"]["solution"]
    (root / "models.json").write_text(json.dumps(models))
    listed = list(attacks)
    for attack in listed:
        _lay_agent(root, attack)
    for task in {attack.task for attack in listed}:
        manifest = root / "tasks" / task / "task.json"
        value = json.loads(manifest.read_bytes())
        value["caps"]["wallClockSec"] = CAP
        manifest.write_text(json.dumps(value))
    for attack in listed:
        if attack.script:
            continue
        solutions = root / "tasks" / attack.task / "solutions"
        shutil.copytree(solutions / "gold", solutions / attack.name)
    (root / "results").mkdir()
    return Project(root)


def _lay_agent(root: Path, attack: Attack) -> None:
    """The manifest of the agent that performs an attack."""
    agent = root / "images/agents" / attack.agent
    agent.mkdir(exist_ok=True)
    value = json.loads((ROOT / AGENT / "agent.json").read_bytes())
    if attack.script:
        command = [part.format(model=f"{PROVIDER}:{attack.name}") for part in value["commands"]["do"]]
        value |= {"name": attack.agent, "commands": {"do": command}, "protocol": "openai-chat", "inputs": []}
    (agent / "agent.json").write_text(json.dumps(value))


def make_image(engine: Engine) -> None:
    """Build the hostile agent's image, unless an equal one is there."""
    build(Project(ROOT), engine, IMAGE, lambda _line: None)


def plan(project: Project, attacks: Iterable[Attack]) -> Plan:
    """The gold solution of each task, then every attack."""
    listed = list(attacks)
    tasks = {name: project.task(name) for name in dict.fromkeys(attack.task for attack in listed)}
    return join(
        [
            *(expand([task], [REFERENCE], "solution", 1, "attacks") for task in tasks.values()),
            *(expand([tasks[a.task]], [a.model], a.agent, a.repeats, "attacks") for a in listed),
        ]
    )


def play(
    project: Project, engine: Engine, attacks: Iterable[Attack], *, jobs: int, say: Callable[[Outcome], None]
) -> None:
    """Run every attack and hold its records against what it states.

    Args:
        project: see :func:`checkout`.
        engine: where the agents run.
        attacks: what to run.
        jobs: how many at a time.
        say: told of each outcome as soon as it is known.
    """
    waiting = list(attacks)
    planned = plan(project, waiting)
    found: dict[str, list[Record]] = {}
    gold: dict[str, Record] = {}

    def report(finished: Finished) -> None:
        record = finished.record
        if record.run.model == REFERENCE:
            gold[record.run.task] = record
        else:
            found.setdefault(_name(finished.spec), []).append(record)
        for attack in list(waiting):
            records = found.get(attack.name, [])
            if len(records) == attack.repeats and attack.task in gold:
                waiting.remove(attack)
                say(judge(project, attack, records, gold[attack.task]))

    stopped = _execute(project, engine, planned, jobs, report)
    for attack in waiting:
        fault = stopped.get(attack.name, f"{len(found.get(attack.name, []))} of {attack.repeats} records")
        say(Outcome(attack, "no record", [fault]))


def _execute(project: Project, engine: Engine, planned: Plan, jobs: int, report: Report) -> dict[str, str]:
    """Run a plan; what stopped the harness where something did, by attack."""
    done: set[RunId] = set()

    def tell(finished: Finished) -> None:
        done.add(finished.spec.run)
        report(finished)

    try:
        execute(project, engine, planned, jobs=jobs, report=tell)
    except Interrupted:
        raise
    except CopperbenchError:
        # One run stopped the plan: the rest one by one, so that it alone is blamed.
        return dict(_one_by_one(project, engine, planned, done, tell))
    return {}


def _one_by_one(
    project: Project, engine: Engine, planned: Plan, done: set[RunId], tell: Report
) -> Iterator[tuple[str, str]]:
    for spec in [spec for spec in planned.specs if spec.run not in done]:
        alone = planned.model_copy(update={"specs": [spec]})
        try:
            execute(project, engine, alone, jobs=1, report=tell)
        except Interrupted:
            raise
        except CopperbenchError as error:
            yield _name(spec), f"the harness stopped: {error}"


def _name(spec: RunSpec) -> str:
    if spec.run.agent == PROVIDER:
        return spec.run.model.partition(":")[2]
    return spec.run.agent.removeprefix(f"{PROVIDER}-")


def judge(project: Project, attack: Attack, records: list[Record], gold: Record) -> Outcome:
    """Hold an attack's records against what it states."""
    faults = [fault for record in records for fault in _faults(project, attack, record, gold)]
    return Outcome(attack, _got(records[-1], gold), faults)


def _got(record: Record, gold: Record) -> str:
    if outcomes(record) == outcomes(gold):
        return "as gold"
    verdict = record.verdict
    return verdict.verdict if verdict.verdict == "pass" else f"fail ({verdict.category})"


def outcomes(record: Record) -> dict[str, object]:
    """A verdict without its words: diagnostics may say that something was left out, reasons count files."""
    judged = [(outcome.id, outcome.passed) for outcome in record.verdict.assertions]
    return record.verdict.model_dump(exclude={"diagnostics", "assertions"}) | {"assertions": judged}


def _faults(project: Project, attack: Attack, record: Record, gold: Record) -> Iterator[str]:
    verdict = record.verdict
    if gold.verdict.verdict != "pass":
        yield "the gold solution itself does not pass"
    if record.facts.attempt != 1:
        yield f"{record.facts.attempt} attempts: {record.facts.earlier_faults}"
    if record.facts.tampering and (attack.rewrites or isinstance(attack.expect, Fails)):
        yield from _caught_in_the_act(record)
        return
    if not isinstance(attack.expect, Fails):
        if outcomes(record) != outcomes(gold):
            yield f"not as gold: {_difference(record, gold)}"
        if isinstance(attack.expect, FindsNothing):
            yield from _loot(project, record)
        return
    if (verdict.verdict, verdict.category) != ("fail", attack.expect.category):
        yield f"{verdict.verdict} ({verdict.category}): {_why(record)}"
    elif attack.expect.says not in (words := _words(record)):
        yield f"does not say {attack.expect.says!r}: {words[:300]}"


def _caught_in_the_act(record: Record) -> Iterator[str]:
    """The follower saw the transcript before it was rewritten, which is a race: then that is the record."""
    if record.verdict.category is not Category.EVIDENCE_TAMPERED:
        yield f"tampering was seen, and the record says {record.verdict.category}"


def _words(record: Record) -> str:
    verdict = record.verdict
    failed = [outcome.reason for outcome in verdict.assertions if not outcome.passed]
    return " | ".join([*failed, *verdict.diagnostics, record.facts.history.detail])


def _difference(record: Record, gold: Record) -> str:
    for one, other in zip(record.verdict.assertions, gold.verdict.assertions, strict=True):
        if one.passed != other.passed:
            return f"{one.id}: {one.reason!r}, not {other.reason!r}"
    return _why(record)


def _why(record: Record) -> str:
    return f"first failure {record.verdict.first_failure}: {_words(record)[:400]}"


def _loot(project: Project, record: Record) -> Iterator[str]:
    """What the agent reports to have found, out of the run's evidence."""
    if record.evidence is None:
        yield "no evidence"
        return
    tree = EvidenceStore(project.results / "evidence.git").evidence(record.evidence)[1]
    reports = [
        entry.data for path, entry in tree.items() if re.fullmatch(r"\.copperhead/runs/.*/loot\.json", path)
    ]
    if len(reports) != 1:
        yield "no report of what was found"
        return
    loot = json.loads(reports[0])
    if loot["found"]:
        yield f"found {loot['found'][:5]}"
    if loot["looked"] < 1:
        yield "looked nowhere"
