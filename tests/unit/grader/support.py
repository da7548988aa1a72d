"""Evidence made by hand: trees, a design behind the same seam as KiCad's, facts, transcripts, bundles."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.evidence import Bundle, Entry, Tree
from grader.grade import grade_designs
from grader.kicad.errors import Unjudgeable
from grader.transcript import read_transcript, resolve_exit_path
from grader.vocabulary.context import Context, Outcome
from grader.vocabulary.registry import judge
from schema.agent import Agent, Bookkeeping
from schema.assertions import ASSERTION_LIST, Assertion
from schema.fixture import (
    Artifacts,
    BaselineReport,
    Fixture,
    KicadVersions,
    Scale,
    Upstream,
    Violation,
)
from schema.run import History, RunFacts, RunId
from schema.task import Task
from schema.verdict import Verdict

RUN_ID = "2026-11-30T10-36-02-644Z"
RUNS = f".copperhead/runs/{RUN_ID}"
TRANSCRIPT = f"{RUNS}/transcript.jsonl"


def tree(
    files: Mapping[str, str | bytes | Entry] | None = None, /, **more: str | bytes | Entry
) -> dict[str, Entry]:
    """A tree from path → content; content is text, bytes or a whole entry."""
    out = {}
    for path, content in {**(files or {}), **more}.items():
        data = content.encode() if isinstance(content, str) else content
        out[path] = data if isinstance(data, Entry) else Entry(data)
    return out


def symlink(target: str) -> Entry:
    """A symlink entry."""
    return Entry(target.encode(), 0o777, "symlink")


@dataclass(frozen=True)
class FakeComponent:
    """A part."""

    value: str = "10k"
    footprint: str = "lib:R_0402"


@dataclass(frozen=True)
class FakeNetlist:
    """Connectivity as given, matched by the seam's rules."""

    nets: Mapping[str, frozenset[tuple[str, str]]]
    components: Mapping[str, FakeComponent]
    pin_names: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def match(self, argument: str) -> list[str]:
        """Exact when it starts with a slash or is a whole name, else by last path element."""
        if argument in self.nets:
            return [argument]
        if argument.startswith("/"):
            return []
        return sorted(net for net in self.nets if net.rsplit("/", 1)[-1] == argument)

    def net_of(self, refdes: str, pin: str) -> str | None:
        """Full name of the net a pin is on."""
        return next((net for net, pins in self.nets.items() if (refdes, pin) in pins), None)


def netlist(
    nets: Mapping[str, Sequence[str]],
    parts: Mapping[str, str] | None = None,
    *,
    pins: Mapping[str, str] | None = None,
) -> FakeNetlist:
    """A netlist from net → ``REF.PIN`` list, and reference → value; other references get defaults."""
    connected = {net: frozenset(_split(pin) for pin in members) for net, members in nets.items()}
    values = parts or {}
    references = {refdes for members in connected.values() for refdes, _ in members}
    return FakeNetlist(
        nets=connected,
        components={ref: FakeComponent(values.get(ref, "10k")) for ref in sorted(references | values.keys())},
        pin_names={_split(pin): name for pin, name in (pins or {}).items()},
    )


def _split(pin: str) -> tuple[str, str]:
    refdes, _, number = pin.partition(".")
    return refdes, number


@dataclass(frozen=True)
class FakeReport:
    """An ERC or DRC report."""

    violations: tuple[Violation, ...] = ()
    stopped: frozenset[tuple[str, str]] = frozenset()
    excluded: tuple[Violation, ...] = ()
    """Those of the violations that the pristine project excludes."""

    def without_excluded(self) -> FakeReport:
        """The report with the pristine exclusions applied."""
        return FakeReport(tuple(item for item in self.violations if item not in self.excluded), self.stopped)


CLEAN = FakeReport()


@dataclass(frozen=True)
class FakeDesign:
    """A design whose parts are given; an exception in place of a part is raised when it is read."""

    given_netlist: FakeNetlist | Unjudgeable = field(default_factory=lambda: netlist({}))
    given_labels: frozenset[str] | Unjudgeable = frozenset()
    given_erc: FakeReport | Unjudgeable = CLEAN
    given_drc: FakeReport | Unjudgeable = CLEAN
    escapes: list[str] = field(default_factory=list)
    rule_changes: list[str] = field(default_factory=list)
    same_files: bool = False
    references: frozenset[str] = frozenset()
    """Of parts in the schematic files, whether or not the netlist has them."""

    @property
    def netlist(self) -> FakeNetlist:
        """The netlist."""
        if isinstance(self.given_netlist, Unjudgeable):
            raise self.given_netlist
        return self.given_netlist

    @property
    def labels(self) -> frozenset[str]:
        """The labels."""
        if isinstance(self.given_labels, Unjudgeable):
            raise self.given_labels
        return self.given_labels

    def check_text(self, path: str) -> None:
        """Every file is as KiCad writes it."""

    def erc(self, *, exclusions: bool = False) -> FakeReport:
        """The ERC report; with ``exclusions`` without its excluded findings."""
        if isinstance(self.given_erc, Unjudgeable):
            raise self.given_erc
        return self.given_erc.without_excluded() if exclusions else self.given_erc

    def drc(self, *, exclusions: bool = False) -> FakeReport:
        """The DRC report; with ``exclusions`` without its excluded findings."""
        if isinstance(self.given_drc, Unjudgeable):
            raise self.given_drc
        return self.given_drc.without_excluded() if exclusions else self.given_drc

    def unchanged(self, kind: str) -> bool:  # noqa: ARG002  # the seam
        """Whether the report can only be the fixture's."""
        return self.same_files


def by_count(
    baseline: Sequence[Violation], found: FakeReport, *, severity: str, file_unchanged: bool
) -> tuple[list[str], list[str]]:
    """A stand-in for the comparison of reports: counts by source, type and severity."""
    new = []
    for item in found.violations:
        same = [other for other in found.violations if _class(other) == _class(item)]
        allowed = [other for other in baseline if _class(other) == _class(item)]
        if len(same) > len(allowed) and (severity == "warning" or item.severity == "error"):
            new.append(f"{item.severity} {item.type}")
    stops = [] if file_unchanged else [f"{kind} at its stop" for _, kind in sorted(found.stopped)]
    return new + stops, []


def _class(item: Violation) -> tuple[str, str, str]:
    return item.source, item.type, item.severity


def violation(kind: str, severity: str = "error", source: str = "erc") -> Violation:
    """One finding."""
    return Violation.model_validate({"source": source, "type": kind, "severity": severity})


AGENT = Agent(
    name="scripted",
    version="1",
    image="scripted",
    commands={},
    bookkeeping=Bookkeeping(
        always=[".copperhead/runs/**", ".copperhead/llm-cache/**"],
        committed=["openspec/**", "docs/CHANGELOG.md", "docs/DECISIONS.md", ".gitignore"],
    ),
    exit_codes={"0": "done", "2": "flagged"},
    protocol="openai-chat",
)

FIXTURE = Fixture(
    id="demo",
    sha256="0" * 64,
    complexity="small",
    upstream=Upstream(
        name="demo",
        url="https://example.org/demo",
        commit="0" * 40,
        retrieved="2026-11-30",
        license="MIT",
        copyright="the authors",
        modifications="none",
        paths={},
    ),
    files={},
    kicad=KicadVersions(authored_version="9.0", file_format_version={}, verified_with_kicad_cli=["9.0.2"]),
    artifacts=Artifacts(schematic="demo.kicad_sch", board="demo.kicad_pcb", project="demo.kicad_pro"),
    scale=Scale(schematic_lines=1, symbols=1, sheets=1, signal_nets=1, power_nets=1),
    baseline={},
)


def task(**fields: Any) -> Task:
    """A task: edit, do, and what is given."""
    return Task.model_validate(
        {
            "id": "demo",
            "tier": "simple",
            "mode": "do",
            "fixture": {"path": "fixtures/demo", "sha256": "0" * 64},
            "request": "Rename net DATA to PDM_DATA",
            "expectedOutcome": "edit",
            "caps": {"turns": 10, "wallClockSec": 60},
            **fields,
        }
    )


def facts(**fields: Any) -> RunFacts:
    """Facts of a run that ended by itself with its evidence kept."""
    return RunFacts.model_validate(
        {
            "run": RunId(suite_version="1", task="demo", model="scripted:x", agent="scripted", repeat=1),
            "claim": 1,
            "attempt": 1,
            "baseline_commit": "0" * 40,
            "baseline_sha256": "0" * 64,
            "started_at": "2026-11-30T10:36:02Z",
            "ended_at": "2026-11-30T10:36:04Z",
            "exit_code": 0,
            "evidence": "kept",
            "history": History(status="ok", head="1" * 40, commits=["1" * 40]),
            **fields,
        }
    )


START: dict[str, Any] = {
    "request": "Rename net DATA to PDM_DATA",
    "runId": RUN_ID,
    "command": "do",
    "config": {"budgets": {"sleep_current_uA": 25}},
}


def event(kind: str, **data: Any) -> bytes:
    """One transcript line."""
    return json.dumps({"ts": "2026-11-30T10:36:02.664Z", "type": kind, "data": data}).encode() + b"\n"


def run_end(exit_path: str = "done", **data: Any) -> bytes:
    """A ``run-end`` line."""
    return event("run-end", **{"exitPath": exit_path, "turnsUsed": 1, **data})


def transcript(exit_path: str = "done", *events: bytes, run_id: str = RUN_ID) -> bytes:
    """A whole honest transcript around the given events."""
    return event("run-start", **{**START, "runId": run_id}) + b"".join(events) + run_end(exit_path)


def refusal(summary: str, *events: bytes) -> bytes:
    """A refused run's transcript."""
    return transcript("refused", *events, event("run-refused", summary=summary))


def assertion(kind: str, /, **args: Any) -> Assertion:
    """One required assertion of a type, its arguments by their names in files."""
    return assertions({"id": "it", "type": kind, "args": args})[0]


def assertions(*items: dict[str, Any]) -> tuple[Assertion, ...]:
    """Assertions as in ``assertions.json``; required, weight 1."""
    return tuple(ASSERTION_LIST.validate_python([{"weight": 1, "required": True, **item} for item in items]))


def bundle(
    *items: Assertion,
    baseline: Tree | None = None,
    end: Tree | None = None,
    pristine: Tree | None = None,
    log: bytes | None = None,
    **fields: Any,
) -> Bundle:
    """A bundle; ``log`` is its transcript (an honest ``done`` by default, ``b""`` for none), ``end`` defaults
    to the baseline."""
    before = baseline if baseline is not None else tree()
    after = dict(end if end is not None else before)
    text = transcript() if log is None else log
    if text:
        after[TRANSCRIPT] = Entry(text)
    return Bundle(
        task=fields.pop("task", None) or task(),
        assertions=items,
        agent=fields.pop("agent", AGENT),
        fixture=fields.pop("fixture", FIXTURE),
        erc_baseline=fields.pop("erc_baseline", BaselineReport(kicad={"9": []})),
        drc_baseline=fields.pop("drc_baseline", BaselineReport(kicad={"9": []})),
        facts=fields.pop("facts", None) or facts(**fields),
        pristine=pristine if pristine is not None else before,
        baseline=before,
        end=after,
    )


def verdict_of(
    given: Bundle, design: FakeDesign | None = None, baseline: FakeDesign | None = None
) -> Verdict:
    """Grade a bundle with fake designs."""
    return grade_designs(
        given,
        design or FakeDesign(),
        baseline or FakeDesign(),
        major="9",
        new_violations=by_count,
    )


def outcome_of(
    item: Assertion,
    design: FakeDesign | None = None,
    *,
    baseline_design: FakeDesign | None = None,
    **fields: Any,
) -> Outcome:
    """Judge one assertion over a bundle made of ``fields``."""
    given = bundle(item, **fields)
    read = read_transcript(given.agent, given.task.mode, baseline=given.baseline, end=given.end)
    context = Context(
        bundle=given,
        transcript=read,
        exit_path=resolve_exit_path(given.facts, read, given.agent, given.task.mode),
        design=design or FakeDesign(),
        baseline_design=baseline_design or FakeDesign(),
        new_violations=by_count,
        erc_baseline=given.erc_baseline.kicad.get("9"),
        drc_baseline=given.drc_baseline.kicad.get("9"),
    )
    return judge(item, context)
