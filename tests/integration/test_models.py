"""Models in the loop: whole runs of an agent, its gateway and a scripted provider, and all that ends one.

Most cases are runs of one plan, so that they share its start and go on side by side. What a provider says it
gave is held against what the record counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from grader.evidence import Tree
from grader.ledger import audit, read_chain
from grader.results import read_records
from grader.store import EvidenceStore
from orchestrator import access, gateway
from orchestrator.access import Money
from orchestrator.budget import SuiteBudget
from orchestrator.engine import LABEL, Engine
from orchestrator.execute import execute
from orchestrator.gateway import Gateway
from orchestrator.models import gateway_config
from orchestrator.plan import expand, join
from orchestrator.project import Project
from orchestrator.sandbox import Sandbox
from orchestrator.scripted import ScriptedProvider
from orchestrator.starts import ATTEMPTS
from schema.errors import InfrastructureLeft
from schema.gateway import Exchange, GatewayConfig, GatewayEvent
from schema.hashing import sha256
from schema.ledger import ClaimLine, FaultLine
from schema.record import Record
from schema.run import Plan
from tests.integration.conftest import _checkout
from tests.integration.test_crash import die
from tests.integration.test_gateway import FLOOD, ROUTES
from tests.integration.test_runs import COPPERBENCH, ROOT, copperbench, left

REFUSAL = "refuse-fast-cable"
EDIT = "fit-led-resistor"
PRICE = {"input": 2, "output": 10, "cacheRead": 0.2, "segment": "api", "pinning": "strong"}
KEY = "zz-a-key-that-no-pattern-knows-0123456789"
SECRET = "sk-this-is-an-example-and-no-key"
PATIENT = {
    "budget_seconds": 30,
    "attempts": 4,
    "first_byte_seconds": 5,
    "idle_seconds": 5,
    "drain_seconds": 10,
}
HASTY = {**PATIENT, "attempts": 2, "first_byte_seconds": 0.3}
JOBS = 2


# --- what is planned


@dataclass(frozen=True)
class Case:
    """One run and what its record must say."""

    script: str
    category: str | None
    """None: it passes."""
    task: str = REFUSAL
    agent: str = "reference"
    caps: Mapping[str, float] = field(default_factory=dict)
    condition: str = "default"
    killed_by: str | None = None
    exit_code: int | None = None
    attempt: int = 1
    create: bool = False
    """Ask in a brief instead of on the command line."""


def killed(script: str, category: str, cap: str, agent: str = "eager", **caps: float) -> Case:
    """A run that the harness kills at a cap."""
    return Case(script, category, caps=caps, killed_by=cap, agent=agent, exit_code=137)


CASES = {
    "turns": killed("endless", "turn-budget", "turns", turns=3),
    "turns-talking": killed("chatty", "turn-budget", "turns", turns=2),
    "turns-at-once": killed("slow-drip", "turn-budget", "turns", "crowd", turns=2),
    "tokens": killed("endless", "cost-cap", "tokens", tokens=60_000),
    "usd": killed("endless", "cost-cap", "usd", usd=0.2),
    "uncounted-usd": killed("no-usage", "cost-cap", "usd", usd=5),
    "wall-clock": killed("slow-drip", "wall-clock", "wall-clock", "crowd", wallClockSec=1),
    "flood": killed("lazy", "resource-cap", "requests", "refused"),
    "agent-killed": Case("endless", "agent-crashed", agent="eager", exit_code=137),
    "gateway-killed": Case("perfect", None, exit_code=0, attempt=2),
    # An agent that does not end by itself, so that only what is done to it and its gateway decides.
    "gateway-stopped": Case(
        "endless", "agent-crashed", caps={"turns": 1000}, agent="eager", exit_code=137, attempt=2
    ),
    "hanging": Case("hanging", "provider-error", attempt=3),
    "overloaded": Case("overloaded", "provider-error", attempt=3),
    "edit": Case("perfect", None, task=EDIT, exit_code=0),
    "brief": Case("perfect", None, task=EDIT, exit_code=0, create=True),
    "refusal": Case("perfect", None, exit_code=0),
    "one-reply": Case("parallel", None, task=EDIT, exit_code=0),
    "never-refuse": Case("never-refuse", "missed-refusal", exit_code=0),
    "always-refuse": Case("always-refuse", "false-refusal", task=EDIT, exit_code=0),
    "lazy": Case("lazy", "missed-refusal", exit_code=0),
    "stalled": Case("chatty", "stalled", exit_code=1),
    **{
        script: Case(script, None, exit_code=0)
        for script in (
            *("no-usage", "wrong-usage", "other-model", "rate-limited", "server-errors", "malformed"),
            *("huge", "lone-surrogates", "split-utf8", "half-closed"),
        )
    },
    "two-turns": Case("perfect", "turn-budget", condition="maxTurns=2", exit_code=1),
    "one-repair": Case("perfect", None, task=EDIT, condition="maxRepairCycles=1", exit_code=0),
    "terse": Case("perfect", None, condition="prompt=terse", exit_code=0),
    "files-only": Case("perfect", None, condition="tools=files-only", exit_code=0),
}

CROWD = r"""
import http.client, json, sys, threading
def ask():
    connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=60)
    body = json.dumps({"model": sys.argv[1], "messages": [{"role": "user", "content": "hi"}]})
    connection.request("POST", "/v1/chat/completions", body)
    connection.getresponse().read()
while True:
    crowd = [threading.Thread(target=ask) for _ in range(3)]
    [each.start() for each in crowd]
    [each.join() for each in crowd]
"""

REFUSED = r"""
import http.client
connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=60)
while True:
    connection.request("GET", "/v1/files")
    connection.getresponse().read()
"""


def agent(project: Project, name: str, do: list[str] | None = None) -> None:
    """An agent like the reference one. ``do``: its command; else the reference's without a turn budget."""
    folder = project.root / "images" / "agents"
    value = json.loads((folder / "reference" / "agent.json").read_bytes())
    command = do or [
        "--max-turns=1000" if part.startswith("--max-turns") else part for part in value["commands"]["do"]
    ]
    used = {key: values for key, values in value["conditions"].items() if f"{{{key}}}" in " ".join(command)}
    value |= {"name": name, "commands": {"do": command}, "conditions": used}
    shutil.copytree(folder / "reference" / "prompts", folder / name / "prompts")
    if "prompt" not in used:
        del value["prompts"]
    (folder / name / "agent.json").write_text(json.dumps(value))


def task(project: Project, source: str, name: str, *, create: bool = False, **caps: float) -> str:
    """A copy of a task under its own name, with other caps. ``create``: with its request as a brief."""
    folder = project.root / "tasks" / name
    shutil.copytree(project.root / "tasks" / source, folder)
    value = json.loads((folder / "task.json").read_bytes())
    value |= {"id": name, "caps": value["caps"] | caps}
    if create:
        (folder / "brief.md").write_text(value["request"])
        value |= {"mode": "create", "request": "brief.md"}
    (folder / "task.json").write_text(json.dumps(value))
    return name


def suite(project: Project, *tasks: str) -> str:
    """A suite of tasks, one repeat each."""
    value = {"id": "some", "title": "Some", "tasks": list(tasks), "repeats": 1}
    (project.root / "suites" / "some.json").write_text(json.dumps(value))
    return "some"


def price(project: Project) -> None:
    """Put a price on what scripts say."""
    path = project.root / "pricing.json"
    value = json.loads(path.read_bytes())
    value["models"]["scripted:*"] = PRICE
    path.write_text(json.dumps(value))


def micro_usd(input_tokens: int, output_tokens: int, cached: int) -> float:
    """What tokens cost by that price."""
    return 2 * (input_tokens - cached) + 0.2 * cached + 10 * output_tokens


# --- what is watched


@dataclass
class Watch:
    """What providers say they gave, and what is done to a run's containers from outside."""

    given: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Name of a claim in the engine → its provider's lines."""
    runs: dict[str, list[str]] = field(default_factory=dict)
    """Run → names of its claims."""
    heed: Callable[[Gateway, GatewayEvent], None] = lambda _gateway, _event: None

    def of(self, record: Record) -> list[dict[str, Any]]:
        """The replies that were given in full in the attempt that is judged."""
        name = self.runs[str(record.run)][-1]
        return [line for line in self.given[name] if "input" in line and line["delivery"] != "cut"]


def watch(patch: pytest.MonkeyPatch, heed: Callable[[Gateway, GatewayEvent], None] | None = None) -> Watch:
    """Follow every provider and gateway that runs start from now on."""
    seen = Watch()
    if heed:
        seen.heed = heed

    class Provider(ScriptedProvider):
        def __exit__(
            self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
        ) -> None:
            seen.runs.setdefault(self._labels["run"], []).append(self._name)
            seen.given[self._name] = self.given()
            super().__exit__(kind, value, trace)

    class Watched(Gateway):
        def _take(self, event: GatewayEvent) -> None:
            super()._take(event)
            seen.heed(self, event)

    def hasty(found: Any, protocol: str, *arguments: Any, **options: Any) -> GatewayConfig:
        made = gateway_config(found, protocol, *arguments, **options)
        patience = HASTY if found.name in {"hanging", "overloaded"} else PATIENT
        return made.model_copy(update={"patience": made.patience.model_copy(update=patience)})

    patch.setattr(access, "ScriptedProvider", Provider)
    patch.setattr(access, "Gateway", Watched)
    patch.setattr(access, "gateway_config", hasty)
    return seen


def meddle(gateway: Gateway, event: GatewayEvent) -> None:
    """Do to some runs' containers what their names say, at their first reply."""
    if not isinstance(event, Exchange) or event.seq != 1:
        return
    run, engine = gateway._labels["run"], gateway._engine
    if "/agent-killed/" in run:
        engine.kill(f"{gateway._name}-agent")
    first = gateway._name.endswith("-c1")
    if "/gateway-killed/" in run and first:
        engine.kill(gateway.container)
    if "/gateway-stopped/" in run:
        if first:
            engine._api.kill(gateway.container, "TERM")
        else:
            engine.kill(f"{gateway._name}-agent")


# --- one plan


@dataclass
class Played:
    """A plan of all cases, run."""

    project: Project
    records: dict[str, Record]
    seen: Watch

    def tree(self, name: str) -> Tree:
        """The evidence of a case."""
        evidence = self.records[name].evidence
        assert evidence is not None
        return EvidenceStore(self.project.results / "evidence.git").evidence(evidence)[1]

    def events(self, name: str) -> list[dict[str, Any]]:
        """What its agent wrote down."""
        found = [entry.data for path, entry in self.tree(name).items() if path.endswith("/transcript.jsonl")]
        (transcript,) = found
        return [json.loads(line) for line in transcript.splitlines()]

    def faults(self, name: str) -> list[FaultLine]:
        """Its lost attempts in the ledger."""
        run = str(self.records[name].run)
        lines = read_chain(self.project.results).lines
        return [line for line in lines if isinstance(line, FaultLine) and line.run == run]


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    """Of the module's plan."""
    with pytest.MonkeyPatch.context() as context:
        yield context


@pytest.fixture(scope="module")
def played(engine: Engine, patch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Every case, in one plan."""
    project = _checkout(tmp_path_factory.mktemp("models") / "a b")
    price(project)
    agent(project, "eager")
    agent(project, "crowd", ["python3", "-c", CROWD, "{model}"])
    agent(project, "refused", ["python3", "-c", REFUSED])
    plan = planned(project)
    seen = watch(patch, meddle)
    finished = execute(project, engine, plan, jobs=JOBS, report=lambda _: None)
    patch.undo()
    return Played(project, {item.record.run.task: item.record for item in finished}, seen)


def planned(project: Project) -> Plan:
    """A run of each case; its task bears its name."""
    plans = []
    for name, case in CASES.items():
        loaded = project.task(task(project, case.task, name, create=case.create, **case.caps)).under(
            case.condition
        )
        model = f"scripted:{case.script}"
        plans.append(expand([loaded], [model], case.agent, 1, "models", condition=case.condition))
    return join(plans)


@pytest.mark.parametrize("name", CASES)
def test_a_run_ends_in_one_record_of_the_right_category(played: Played, name: str) -> None:
    case, record = CASES[name], played.records[name]
    said = [record.verdict.first_failure, *record.verdict.diagnostics]
    assert (record.verdict.category, record.facts.killed_by) == (case.category, case.killed_by), said
    assert (record.verdict.verdict == "pass") is (case.category is None)
    # After the 403 of a cap the agent may end before the kill arrives; the cap is the reason either way.
    codes = {case.exit_code, 1} if case.killed_by not in {None, "wall-clock"} else {case.exit_code}
    assert record.facts.exit_code in codes and record.facts.attempt == case.attempt
    assert [each.run for _, each in read_records(played.project.results)].count(record.run) == 1


UNCOUNTED = {"no-usage", "wrong-usage", "uncounted-usd"}
LOST = {"hanging", "overloaded"}


@pytest.mark.parametrize("name", [name for name in CASES if name not in LOST])
def test_usage_is_what_the_provider_says_it_gave(played: Played, name: str) -> None:
    record = played.records[name]
    given, usage = played.seen.of(record), record.facts.usage
    assert usage is not None and usage.replies == len(given)
    if name in UNCOUNTED:
        assert usage.input_tokens is None and usage.output_tokens is None and usage.usd is None
        assert record.cost.usd is None and record.cost.note
        return
    tokens = tuple(sum(line[kind] for line in given) for kind in ("input", "output", "cached"))
    assert (usage.input_tokens, usage.output_tokens) == tokens[:2]
    if not given:
        assert record.cost.usd is None and record.cost.note == "no model reply"
        return
    if name == "half-closed":
        # Its first attempts broke after they were sent.
        assert usage.usd is None and record.cost.usd is None and record.cost.note
        return
    assert usage.usd == pytest.approx(micro_usd(*tokens) / 10**6, abs=2e-6)
    if not name.startswith("gateway-"):
        assert record.cost.usd == usage.usd and record.cost.note == ""


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, case in CASES.items()
        if case.category is None and name not in UNCOUNTED and not name.startswith("gateway-")
    ],
)
def test_an_honest_agent_counts_what_the_gateway_counts(played: Played, name: str) -> None:
    """Two counts of the same replies, made apart: attempts that the gateway bore are in neither."""
    end, usage = played.events(name)[-1], played.records[name].facts.usage
    assert end["type"] == "run-end" and usage is not None
    told = end["data"]
    assert (told["turnsUsed"], told["tokensIn"], told["tokensOut"]) == (
        usage.replies,
        usage.input_tokens,
        usage.output_tokens,
    )


def test_no_cap_is_passed(played: Played) -> None:
    usage = {name: played.records[name].facts.usage for name in ("turns", "turns-at-once", "tokens", "usd")}
    assert all(each is not None and each.replies > 0 for each in usage.values())
    turns, at_once, tokens, usd = usage.values()
    assert turns and turns.replies == 3 and at_once and at_once.replies == 2
    assert tokens and 0 < (tokens.input_tokens or 0) + (tokens.output_tokens or 0) <= 60_000
    assert usd and 0 < (usd.usd or 0) <= 0.2


@pytest.mark.parametrize("name", ["hanging", "overloaded"])
def test_a_provider_that_fails_costs_three_attempts_and_says_nothing_of_the_model(
    played: Played, name: str
) -> None:
    facts, faults = played.records[name].facts, played.faults(name)
    assert len(faults) == ATTEMPTS and {line.source for line in faults} == {"provider"}
    assert facts.provider_fault == faults[-1].what and facts.infrastructure is None
    assert facts.earlier_faults == [line.what for line in faults[:-1]]
    # A request that was sent and not answered may have been billed.
    usd = None if name == "hanging" else 0
    assert [line.usd for line in faults] == [usd] * 3 and played.records[name].cost.usd == usd
    assert played.records[name].evidence is None


@pytest.mark.parametrize(
    ("name", "what"), [("gateway-killed", "was lost"), ("gateway-stopped", "was ended from outside")]
)
def test_a_gateway_ended_from_outside_grants_an_attempt(played: Played, name: str, what: str) -> None:
    (fault,) = played.faults(name)
    assert fault.source == "infrastructure" and f"the gateway {what}" in fault.what
    (earlier,) = played.records[name].facts.earlier_faults
    assert earlier == fault.what


def test_what_a_lost_gateway_had_in_flight_makes_the_cost_unknown(played: Played) -> None:
    record, (fault,) = played.records["gateway-killed"], played.faults("gateway-killed")
    # It gave replies, and went with what it knew of those in flight.
    assert fault.usd is None and record.facts.lost_usd is None
    assert record.cost.usd is None and "unknown" in record.cost.note
    assert record.facts.usage is not None and record.facts.usage.usd is not None


def test_faults_that_were_borne_are_counted_once(played: Played) -> None:
    for name, each in (("rate-limited", 2), ("server-errors", 1), ("half-closed", 1)):
        facts = played.records[name].facts
        assert facts.access is not None and facts.usage is not None
        assert facts.access.retries == each * facts.usage.replies
        assert 0 < facts.access.excluded_seconds <= PATIENT["budget_seconds"]
    quiet = played.records["refusal"].facts.access
    assert quiet is not None and (quiet.retries, quiet.excluded_seconds) == (0, 0)


def test_only_another_models_answer_is_not_comparable(played: Played) -> None:
    comparable = {
        name: record.facts.access.comparable for name, record in played.records.items() if record.facts.access
    }
    assert [name for name, same in comparable.items() if not same] == ["other-model"]
    foreign = played.records["other-model"].facts.access
    assert foreign is not None and foreign.answered == ["somebody-elses-model-2"]


def test_a_condition_is_in_the_run_its_transcript_its_configuration_and_its_stamp(played: Played) -> None:
    default = played.records["refusal"]
    for name, key, value in (
        ("two-turns", "maxTurns", 2),
        ("one-repair", "maxRepairCycles", 1),
        ("terse", "prompt", "terse"),
        ("files-only", "tools", "files-only"),
    ):
        record, start = played.records[name], played.events(name)[0]
        assert record.run.condition == f"{key}={value}"
        assert start["type"] == "run-start" and value in _values(start), start
        other = record.stamp.prompt_sha256 != default.stamp.prompt_sha256
        assert record.stamp.prompt_sha256 and other is (key == "prompt")
        if key in {"maxTurns", "maxRepairCycles"}:
            configured = json.loads(played.tree(name)[".copperhead/config.json"].data)
            assert configured[key] == start["data"]["config"][key] == value
            assert played.events(name)[-1]["data"][key] == value


def test_a_brief_is_in_the_workspace_and_named_by_the_transcript(played: Played) -> None:
    tree = played.tree("brief")
    brief = (played.project.root / "tasks" / "brief" / "brief.md").read_bytes()
    assert tree["brief.md"].data == brief
    start = played.events("brief")[0]["data"]
    assert start["command"] == "create"
    assert start["brief"] == {"path": "brief.md", "sha256": hashlib.sha256(brief).hexdigest()}


def _values(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [each for inner in value.values() for each in _values(inner)]
    return [each for inner in value for each in _values(inner)] if isinstance(value, list) else [value]


def test_everything_grades_the_same_again_and_the_ledger_holds(played: Played) -> None:
    assert list(audit(played.project.results, {})) == []
    assert copperbench(played.project, "verify").returncode == 0
    again = copperbench(played.project, "rescore", "results", "--jobs", str(JOBS), "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert json.loads(again.stdout)["matched"] == len(CASES)


def test_nothing_is_left_running(played: Played, engine: Engine) -> None:
    scopes = {scope(played.project, record) for record in played.records.values()}
    assert [name for name in names(engine) if name.startswith(tuple(scopes))] == []


def scope(project: Project, record: Record) -> str:
    """How the names of a run's things in the engine begin."""
    return f"copperbench-run-{sha256(f'{project.results}|{record.run}'.encode())[:16]}-"


# --- what stops a plan


@pytest.mark.parametrize(
    ("script", "says"), [("unauthorized", "credential, 401"), ("out-of-quota", "quota, 429")]
)
def test_a_provider_that_refuses_us_stops_the_plan_and_nothing_is_lost(
    checkout: Project, script: str, says: str
) -> None:
    done = copperbench(checkout, "run", "--suite", suite(checkout, REFUSAL), "--model", f"scripted:{script}")
    assert done.returncode == 3 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and says in done.stderr, done.stderr
    assert list(read_records(checkout.results)) == []
    lines = read_chain(checkout.results).lines
    # Neither an attempt nor the run is used up.
    assert [line.attempt for line in lines if isinstance(line, ClaimLine)] == [1]
    assert [(line.source, line.usd) for line in lines if isinstance(line, FaultLine)] == [("harness", 0)]


def test_attempts_that_a_provider_spoiled_are_counted_over_restarts(
    checkout: Project, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive: each process starts at one, and what earlier ones paid is forgotten."""
    price(checkout)
    plan = expand([checkout.task(REFUSAL)], ["scripted:overloaded"], "reference", 1, "test")
    seen = watch(monkeypatch)
    die(
        checkout,
        "orchestrator.ledger:Ledger.fault",
        "after",
        "run",
        "--suite",
        suite(checkout, REFUSAL),
        "--model",
        "scripted:overloaded",
    )
    (finished,) = execute(checkout, engine, plan, jobs=1, report=lambda _: None)
    assert len(seen.given) == ATTEMPTS - 1
    assert finished.record.verdict.category == "provider-error" and finished.record.cost.usd == 0


@pytest.mark.parametrize(
    ("model", "options", "says"),
    [
        ("scripted:perfect", ["--max-usd", "1"], "cap on USD"),
        ("openai:gpt-5", [], "set OPENAI_API_KEY"),
        ("nobody:model", [], "nobody"),
        ("scripted:perfect", ["--condition", "prompt=rude"], "prompt=rude"),
        ("scripted:perfect", ["--condition", "maxTurns=0"], "maxTurns=0"),
        ("scripted:perfect", ["--condition", "mood=good"], "mood=good"),
    ],
)
def test_what_cannot_run_is_one_line_before_anything_starts(
    checkout: Project, model: str, options: list[str], says: str
) -> None:
    command = ["run", "--suite", suite(checkout, REFUSAL), "--model", model, *options]
    # No engine either: it is not even asked.
    done = copperbench(checkout, *command, OPENAI_API_KEY="", DOCKER_HOST="unix:///nowhere.sock")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and says in done.stderr, done.stderr
    assert list(checkout.results.iterdir()) == []


def test_a_script_that_does_not_exist_is_one_line_and_no_failure_of_the_machine(checkout: Project) -> None:
    done = copperbench(checkout, "run", "--suite", suite(checkout, REFUSAL), "--model", "scripted:nonesuch")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "no script 'nonesuch'" in done.stderr and list(read_records(checkout.results)) == []


# --- --max-usd


def test_two_jobs_at_once_never_pass_the_suites_budget(
    checkout: Project, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    price(checkout)
    agent(checkout, "eager")
    names = [task(checkout, REFUSAL, f"t-{number}") for number in range(4)]
    plan = expand([checkout.task(name) for name in names], ["scripted:endless"], "eager", 1, "test")
    seen, budget = watch(monkeypatch), SuiteBudget(300_000, 2)
    with pytest.raises(InfrastructureLeft, match="--max-usd is spent") as told:
        execute(checkout, engine, plan, jobs=2, report=lambda _: None, money=Money(budget))
    assert told.value.exit_code == 4
    replies = [line for lines in seen.given.values() for line in lines]
    spent = sum(micro_usd(line["input"], line["output"], line["cached"]) for line in replies)
    assert 0 < spent <= 300_000
    assert list(read_records(checkout.results)) == []


def test_a_spent_budget_leaves_runs_without_a_verdict_and_more_money_completes_them(
    checkout: Project,
) -> None:
    price(checkout)
    names = [task(checkout, REFUSAL, f"t-{number}") for number in range(3)]
    command = [
        "run",
        "--suite",
        suite(checkout, *names),
        "--model",
        "scripted:perfect",
        "--jobs",
        "1",
        "--max-usd",
    ]
    # Enough for one run and a part of another.
    short = copperbench(checkout, *command, "0.036")
    assert short.returncode == 4 and short.stderr.splitlines()[-1].startswith("copperbench: the budget of")
    first = [record for _, record in read_records(checkout.results)]
    assert 1 <= len(first) < 3 and all(record.verdict.verdict == "pass" for record in first)
    assert copperbench(checkout, *command, "5").returncode == 0
    records = [record for _, record in read_records(checkout.results)]
    assert len(records) == 3 and {record.facts.attempt for record in records} == {1}
    # What was spent on the one that the budget ended is part of what it cost in the end.
    (cut,) = [record for record in records if record.facts.lost_usd != 0]
    assert cut.facts.claim == 2 and cut.facts.usage is not None and cut.facts.usage.usd is not None
    assert cut.facts.lost_usd and cut.cost.usd == pytest.approx(cut.facts.usage.usd + cut.facts.lost_usd)
    (fault,) = [line for line in read_chain(checkout.results).lines if isinstance(line, FaultLine)]
    assert fault.source == "harness" and fault.usd == cut.facts.lost_usd and fault.run == str(cut.run)


# --- bodies, keys


TELL = r"""
import http.client, json, sys
messages = [{"role": "user", "content": sys.argv[2]}]
messages += [{"role": "assistant", "content": "."}] * 20
connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=60)
connection.request("POST", "/v1/chat/completions", json.dumps({"model": sys.argv[1], "messages": messages}))
connection.getresponse().read()
"""


@pytest.mark.parametrize("side", ["request", "reply"])
def test_a_credential_in_a_kept_body_is_a_leak(checkout: Project, engine: Engine, side: str) -> None:
    agent(checkout, "teller", ["python3", "-c", TELL, "{model}", SECRET if side == "request" else "hello"])
    name = task(checkout, REFUSAL, "told")
    if side == "reply":
        solution = checkout.root / "tasks" / name / "solutions" / "gold" / "solution.json"
        value = json.loads(solution.read_bytes())
        value["summary"] += f" {SECRET}"
        solution.write_text(json.dumps(value))
    plan = expand([checkout.task(name)], ["scripted:perfect"], "teller", 1, "test")
    money = Money(keep_bodies=True)
    (finished,) = execute(checkout, engine, plan, jobs=1, report=lambda _: None, money=money)
    record = finished.record
    assert record.verdict.category == "secret-leak" and record.evidence is None
    assert record.facts.secret is not None and record.facts.secret.pattern == "sk"
    assert holding(SECRET, checkout.results, checkout.cache) == []


def test_bodies_are_evidence_when_they_are_asked_for(checkout: Project, engine: Engine) -> None:
    plan = expand([checkout.task(REFUSAL)], ["scripted:perfect"], "reference", 1, "test")
    money = Money(keep_bodies=True)
    (finished,) = execute(checkout, engine, plan, jobs=1, report=lambda _: None, money=money)
    assert finished.record.evidence is not None and finished.record.facts.usage is not None
    git = ["git", "--git-dir", str(checkout.results / "evidence.git")]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", finished.record.evidence.ref],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    (path,) = (name for name in listed if name.endswith("bodies.jsonl"))
    text = subprocess.run(
        [*git, "show", f"{finished.record.evidence.ref}:{path}"], capture_output=True, text=True, check=True
    ).stdout
    bodies = [json.loads(line) for line in text.splitlines()]
    sides = [body["side"] for body in bodies]
    assert sides == ["request", "reply"] * finished.record.facts.usage.replies
    assert copperbench(checkout, "verify").returncode == 0
    assert copperbench(checkout, "rescore", "results").returncode == 0


def holding(text: str, *folders: Path) -> list[str]:
    """Files below folders that hold a text; what git packed is unpacked first."""
    found = []
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and text.encode() in path.read_bytes():
                found.append(str(path))
        for store in folder.glob("*.git"):
            cat = ["git", "--git-dir", str(store), "cat-file", "--batch-all-objects", "--batch"]
            if text.encode() in subprocess.run(cat, capture_output=True, check=True).stdout:
                found.append(str(store))
    return found


LOOK = f"""
import sys
{ROUTES.replace("print(json.dumps(found))", "")}
import http.client
found["values"] = dict(os.environ)
found["mounted"] = sorted(line.split()[1] for line in open("/proc/mounts"))
found["gateway"] = [line.split()[3] for line in open("/proc/mounts") if line.split()[1] == "/gateway"]
connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=60)
body = json.dumps({{"model": sys.argv[1], "messages": [{{"role": "user", "content": "hi"}}]}})
key = "-".join(["of", "the", "agent"])
connection.request("POST", "/v1/chat/completions", body, {{"Authorization": f"Bearer {{key}}"}})
found["status"] = connection.getresponse().status
found["processes"] = [
    path.read_bytes().decode("utf-8", "replace")
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")
]
pathlib.Path("/workspace/found.json").write_text(json.dumps(found))
"""


def test_a_live_agent_sees_no_key_no_proxy_and_no_way_but_the_relay(
    checkout: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = json.loads((checkout.root / "models.json").read_bytes())
    models["providers"]["scripted"]["keyVariable"] = "SCRIPTED_API_KEY"
    (checkout.root / "models.json").write_text(json.dumps(models))
    agent(checkout, "looking", ["python3", "-c", LOOK, "{model}"])
    proxy = "http://proxy.invalid:3128"
    (tmp_path / "config.json").write_text(
        json.dumps({"proxies": {"default": {"httpProxy": proxy, "httpsProxy": proxy}}})
    )
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, proxy)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("SCRIPTED_API_KEY", KEY)
    engine, spread = Engine.connect(), []

    class Inspected(Sandbox):
        def captured(self) -> Any:
            """The agent has ended and everything of the run is still there."""
            for each in engine._api.containers(all=True):
                if self._spec.name in each["Names"][0]:
                    logs = "".join(engine.output(each["Id"]))
                    spread.append(json.dumps(engine.inspect(each["Id"])) + logs)
            return super().captured()

    monkeypatch.setattr("orchestrator.attempt.Sandbox", Inspected)
    plan = expand([checkout.task(REFUSAL)], ["scripted:perfect"], "looking", 1, "test")
    money = Money(keep_bodies=True)
    (finished,) = execute(checkout, engine, plan, jobs=1, report=lambda _: None, money=money)
    record = finished.record
    assert record.facts.exit_code == 0 and record.evidence is not None
    tree = EvidenceStore(checkout.results / "evidence.git").evidence(record.evidence)[1]
    found = json.loads(tree["found.json"].data)
    assert found["status"] == 200
    assert found["interfaces"] == ["lo"] and found["routes"] == []
    assert found["listening"] == ["0100007F:1F90"] and found["reachable"] == [["127.0.0.1", 8080]]
    assert found["writable"] == ["/gateway/gateway.sock"] and found["replaced"] is False
    assert "ro" in found["gateway"][0].split(",")
    assert not [path for path in found["mounted"] if path.startswith(("/provider", "/input"))]
    assert set(found["values"]) <= {"HOME", "LANG", "PATH", "HOSTNAME", "LC_CTYPE", "PWD"} | image_variables()
    assert not [name for name in found["values"] if "proxy" in name.lower()]
    assert KEY not in json.dumps(found) and proxy not in json.dumps(found)
    # Gateway, provider, holder, agent.
    assert len(spread) == 4 and not [text for text in spread if KEY in text or proxy in text]
    assert holding(KEY, checkout.root) == [] and holding("of-the-agent", checkout.results) == []


def image_variables() -> set[str]:
    """What the agent's image itself sets."""
    command = ["docker", "image", "inspect", "copperbench/agent-reference"]
    config = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[0]["Config"]
    return {text.partition("=")[0] for text in config["Env"] or []}


# --- killed ourselves


def names(engine: Engine) -> set[str]:
    """Of runs' containers and volumes in the engine."""
    containers = {each["Names"][0].strip("/") for each in engine._api.containers(all=True)}
    volumes = {each["Name"] for each in engine._api.volumes()["Volumes"] or []}
    return {name for name in containers | volumes if name.startswith("copperbench-run-")}


@pytest.mark.alone
@pytest.mark.parametrize(
    ("at", "claim"), [("orchestrator.gateway:Gateway.close", 2), ("orchestrator.grading:GraderPool.grade", 1)]
)
def test_a_dead_process_leaves_nothing_and_the_same_command_one_record(
    checkout: Project, engine: Engine, at: str, claim: int
) -> None:
    before = names(engine)
    command = ["run", "--suite", suite(checkout, REFUSAL), "--model", "scripted:perfect", "--jobs", "1"]
    die(checkout, at, "before", *command)
    left = {name.rpartition("-c1-")[2] for name in names(engine) - before}
    alive = {"gateway", "provider", "holder", "agent", "workspace", "gateway-socket", "provider-socket"}
    assert left == (alive if claim == 2 else set())
    done = copperbench(checkout, *command, "--json")
    assert done.returncode == 0, done.stderr
    assert names(engine) == before
    ((_, record),) = read_records(checkout.results)
    assert [record.to_json()] == json.loads(done.stdout)["records"]
    assert record.verdict.verdict == "pass" and (record.facts.claim, record.facts.attempt) == (claim, 1)
    assert (record.facts.lost_usd is None) is (claim == 2)
    assert record.facts.usage is not None and record.facts.usage.replies > 0
    assert copperbench(checkout, "rescore", "results").returncode == 0


@pytest.mark.parametrize("times", [1, 2])
def test_what_an_interrupted_run_had_cost_is_part_of_what_it_costs_in_the_end(
    checkout: Project, engine: Engine, times: int
) -> None:
    """Naive: the gateway is killed with the rest, and one interrupt makes a cost unknown for good."""
    price(checkout)
    command = ["run", "--suite", suite(checkout, REFUSAL), "--model", "scripted:slow-drip", "--jobs", "1"]
    process = subprocess.Popen(
        [*COPPERBENCH, *command],
        cwd=checkout.root,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not replied(engine, process.pid):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert left(engine, process) == [] and list(read_records(checkout.results)) == []
    (fault,) = [line for line in read_chain(checkout.results).lines if isinstance(line, FaultLine)]
    assert (fault.source, fault.claim) == ("harness", 1)
    if times == 1:
        assert "waiting for what replies in flight cost" in said
        assert fault.usd is not None and fault.usd > 0
    assert copperbench(checkout, *command).returncode == 0
    ((_, record),) = read_records(checkout.results)
    assert record.verdict.verdict == "pass" and (record.facts.claim, record.facts.attempt) == (2, 1)
    assert record.facts.lost_usd == fault.usd and record.facts.usage is not None
    whole = None if fault.usd is None else (record.facts.usage.usd or 0) + fault.usd
    assert record.cost.usd == (whole if whole is None else pytest.approx(whole))


def replied(engine: Engine, pid: int) -> bool:
    """Whether a process's gateway has delivered a reply."""
    gateways = [
        each["Id"]
        for each in engine._api.containers()
        if each["Names"][0].endswith("-c1-gateway") and f"|{pid}|" in each["Labels"][f"{LABEL}.owner"]
    ]
    return any('"replied"' in line for each in gateways for line in engine.output(each))


def test_a_gateway_out_of_memory_by_the_agents_flood_counts_against_the_run(
    checkout: Project, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Less memory than the flood needs; with all of its memory the gateway bears it.
    monkeypatch.setattr(gateway, "LIMITS", replace(gateway.LIMITS, memory=72 * 2**20))
    flood = FLOOD.replace("for _ in range(3)", "while True")
    agent(checkout, "flooding", ["python3", "-c", flood.replace('"m"', '"lazy"')])
    plan = expand([checkout.task(REFUSAL)], ["scripted:lazy"], "flooding", 1, "test")
    (finished,) = execute(checkout, engine, plan, jobs=1, report=lambda _: None)
    record = finished.record
    assert (record.verdict.category, record.facts.attempt) == ("resource-cap", 1)
    assert record.facts.killed_by == "requests" and record.facts.earlier_faults == []


# --- doctor


def test_doctor_reaches_a_model_and_says_what_it_cost(checkout: Project) -> None:
    price(checkout)
    done = copperbench(checkout, "doctor", "--model", "scripted:perfect")
    last = done.stdout.splitlines()[-1]
    assert "scripted:perfect: perfect answered; " in last and " tokens in, " in last and last.endswith(" USD")


@pytest.mark.parametrize("model", ["nobody:model", "scripted:nonesuch", "openai:gpt-5"])
def test_doctor_says_in_one_line_that_a_model_cannot_be_reached(checkout: Project, model: str) -> None:
    done = copperbench(checkout, "doctor", "--model", model, OPENAI_API_KEY="")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
