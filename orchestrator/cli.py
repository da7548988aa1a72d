"""The ``copperbench`` command line: options in, plain functions called, one line on failure."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import orchestrator
from orchestrator import cli_results
from orchestrator.access import Money
from orchestrator.budget import SuiteBudget
from orchestrator.console import Screen
from orchestrator.kicad import ENVIRONMENTS, REFERENCE, environment
from orchestrator.models import MissingKey
from orchestrator.options import CORES, Condition, Jobs, Json, Kicad, MaxUsd, Results, Runtime
from orchestrator.project import Project
from schema.errors import CheckFailed, CopperbenchError
from schema.run import Plan

REFERENCE_AGENT = "reference"
"""Drives a model when no other agent is named."""

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
images_app = typer.Typer(no_args_is_help=True, help="Build or list the container images.")
fixtures_app = typer.Typer(no_args_is_help=True, help="Get, check and measure the boards.")
app.add_typer(images_app, name="images")
app.add_typer(fixtures_app, name="fixtures")


def main() -> None:
    """Console entry point: expected failures are one line and a documented exit code."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        app(prog_name="copperbench")
    except CopperbenchError as error:
        if debug:
            raise
        sys.stderr.write(f"copperbench: {error}\n")
        raise SystemExit(error.exit_code) from None


def _version(show: bool) -> None:
    if show:
        typer.echo(f"copperbench {orchestrator.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    """Measure how language-model agents edit real KiCad projects, graded offline.

    Exit codes: 0 done, 1 a check failed, 2 usage, 3 environment, 4 runs left without a verdict,
    130 interrupted. --debug shows tracebacks.
    """


@app.command()
def doctor(
    model: Annotated[
        str | None, typer.Option(help="Also make one smallest call of this model; it may cost a little.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell what is there, what is missing and how to mend it."""
    from orchestrator.doctor import Line, examine

    screen = Screen(as_json=as_json)
    lines = []
    for line in examine(_project()):
        lines.append(line)
        screen.show(str(line))
    if model:
        from orchestrator.engine import Engine
        from orchestrator.models import route
        from orchestrator.reach import reach

        lines.append(Line("ok", reach(Engine.connect(), route(_project(), model), os.environ)))
        screen.show(str(lines[-1]))
    missing = [line for line in lines if line.state == "missing"]
    screen.emit([{"state": line.state, "what": line.what, "fix": line.fix} for line in lines])
    if missing:
        raise typer.Exit(3)


@images_app.command("build")
def images_build(kicad: Kicad = REFERENCE.major) -> None:
    """Bring every image up to date; what has not changed is reused.

    With --kicad another environment's too, which grades the same evidence with another major of KiCad.
    """
    from orchestrator.engine import Engine
    from orchestrator.images import build_all

    chosen = environment(kicad)
    build_all(_project(), Engine.connect(), Screen(as_json=False).say, chosen)


@images_app.command("list")
def images_list(as_json: Json = False) -> None:
    """List the images with their sizes and layer digests."""
    from orchestrator.engine import Engine
    from orchestrator.images import RESULTS_IMAGE, specs

    project, engine, screen = _project(), Engine.connect(), Screen(as_json=as_json)
    rows: list[dict[str, str | int | None]] = []
    tags = [
        tag
        for each in ENVIRONMENTS.values()
        for tag in (each.base, *(spec.tag for spec in specs(project, each)))
    ]
    for tag in (*tags, RESULTS_IMAGE):
        if engine.image_labels(tag) is None:
            rows.append({"image": tag, "bytes": None, "digest": None})
        else:
            rows.append({"image": tag, "bytes": engine.image_bytes(tag), "digest": engine.digest(tag)})
    screen.table(
        ["image", "size", "layers"],
        [
            [
                str(r["image"]),
                f"{r['bytes'] / 1e6:.0f} MB" if isinstance(r["bytes"], int) else "not built",
                str(r["digest"] or ""),
            ]
            for r in rows
        ],
    )
    screen.emit(rows)


@fixtures_app.command("sync")
def fixtures_sync(
    names: Annotated[list[str] | None, typer.Argument()] = None,
    suite: Annotated[str | None, typer.Option(help="The boards of a suite.")] = None,
) -> None:
    """Get pinned boards, all unless told, from the mirror folder or from upstream, and verify each byte."""
    from orchestrator.fixtures import sync

    project, screen = _project(), Screen(as_json=False)
    if suite:
        tasks = [project.task(task) for task in project.suite(suite).tasks]
        names = [*(names or []), *dict.fromkeys(loaded.fixture.id for loaded in tasks)]
    for name in names or project.fixture_ids():
        screen.say(f"fixture {name}: {sync(project, name)}")


@fixtures_app.command("check")
def fixtures_check(
    names: Annotated[list[str] | None, typer.Argument()] = None, as_json: Json = False
) -> None:
    """Check manifests, licences, trees and baselines of the boards."""
    from orchestrator.fixtures import check

    project, screen = _project(), Screen(as_json=as_json)
    faults = [fault for name in names or project.fixture_ids() for fault in check(project, name)]
    _conclude(screen, faults, f"{len(names or project.fixture_ids())} fixtures are fit")


@fixtures_app.command("hash")
def fixtures_hash(folder: Path, as_json: Json = False) -> None:
    """Print the tree hash of a folder (Standard §7)."""
    from schema.hashing import hash_folder

    digest = hash_folder(folder)
    screen = Screen(as_json=as_json)
    screen.show(digest)
    screen.emit({"folder": str(folder), "sha256": digest})


@fixtures_app.command("measure")
def fixtures_measure(
    names: Annotated[list[str] | None, typer.Argument()] = None,
    kicad: Kicad = REFERENCE.major,
    write: Annotated[bool, typer.Option("--write", help="Write the measurement into the fixture.")] = False,
    as_json: Json = False,
) -> None:
    """Measure in a grader's environment; without --write, compare with what is committed for its major."""
    from orchestrator import fixtures
    from orchestrator.engine import Engine

    chosen = environment(kicad)
    project, engine, screen = _project(), Engine.connect(), Screen(as_json=as_json)
    out = {}
    for name in names or project.fixture_ids():
        measured = fixtures.measure(project, engine, name, chosen)
        counts = measured.counts
        out[name] = {"counts": counts.to_json(), "scale": measured.scale.to_json()}
        drc = f"DRC {counts.drc.errors}/{counts.drc.warnings}" if counts.drc else "no board"
        screen.show(
            f"{name}: KiCad {counts.kicad_version}, ERC {counts.erc.errors}/{counts.erc.warnings}, "
            f"{drc} (errors/warnings)"
        )
        if measured.escapes:
            screen.say(f"{name}: {len(measured.escapes)} paths lead out of its tree: {measured.escapes[0]}")
        if write:
            for changed in fixtures.write_measured(project, name, measured):
                screen.say(f"wrote {changed}")
        else:
            fixtures.compare_measured(project, name, measured)
    screen.emit(out)


@app.command()
def validate(names: Annotated[list[str] | None, typer.Argument()] = None, as_json: Json = False) -> None:
    """Check tasks, suites and fixtures against the schemas and against each other."""
    from orchestrator.engine import Engine
    from orchestrator.validate import baseline_faults, static_faults

    project, screen = _project(), Screen(as_json=as_json)
    tasks = names or project.task_ids()
    faults = static_faults(project, tasks)
    if not faults:
        try:
            engine = Engine.connect()
        except CopperbenchError:
            screen.say("no engine answers: not checked against prepared baselines; run make setup")
        else:
            faults = baseline_faults(project, engine, tasks)
    _conclude(screen, faults, f"{len(tasks)} tasks, {len(project.fixture_ids())} fixtures are valid")


@app.command()
def plan(
    suite: Annotated[str, typer.Option()],
    model: Annotated[list[str], typer.Option()],
    agent: Annotated[str | None, typer.Option()] = None,
    repeats: Annotated[int | None, typer.Option(min=1)] = None,
    condition: Condition = None,
    max_usd: MaxUsd = None,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Print what would be run, the most it can take and what records let expect; starts nothing."""
    from grader.results import read_records
    from orchestrator.forecast import forecast, whole, worst_case
    from orchestrator.models import route

    project, screen = _project(results), Screen(as_json=as_json)
    planned, keyless = _plan(project, suite, model, agent, repeats, condition or [], _money(max_usd))
    bound = worst_case(planned)
    records = [record for _, record in read_records(project.results)]
    forecasts = forecast(planned, lambda name: route(project, name), records, max_usd)
    most = whole(forecasts, max_usd)
    screen.table(
        ["task", "model", "agent", "condition", "repeat", "wall clock"],
        [
            [
                s.run.task,
                s.run.model,
                s.run.agent,
                s.run.condition,
                str(s.run.repeat),
                f"{s.caps.wall_clock_sec:.0f} s",
            ]
            for s in planned.specs
        ],
    )
    screen.show(
        f"{bound['runs']} runs, up to {bound['attempts']} attempts each; at most {bound['turns']} model "
        f"replies and {bound['wallClockSec'] / 3600:.1f} hours of agents' wall clock"
    )
    for each in forecasts:
        screen.show(f"{each.runs} runs of {each.model}, agent {each.agent}, condition {each.condition}:")
        screen.show(f"  worst case {each.worst}")
        screen.show(f"  expected {each.expected}")
    screen.show(f"worst case of the whole plan {most}")
    for missing in keyless:
        screen.show(f"run would refuse: {missing}")
    screen.emit(
        {
            "plan": planned.to_json(),
            "worstCase": {**bound, "cost": most.to_json()},
            "costs": [each.to_json() for each in forecasts],
            "maxUsd": max_usd,
            "missing": [str(missing) for missing in keyless],
        }
    )


@app.command()
def run(
    suite: Annotated[str, typer.Option()],
    model: Annotated[list[str], typer.Option(help="provider:model; may be given more than once.")],
    agent: Annotated[str | None, typer.Option()] = None,
    repeats: Annotated[int | None, typer.Option(min=1)] = None,
    condition: Condition = None,
    jobs: Jobs = CORES,
    runtime: Runtime = None,
    max_usd: MaxUsd = None,
    keep_bodies: Annotated[
        bool, typer.Option("--keep-bodies", help="Keep requests and replies as evidence.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Run a suite with a model, grade and record every run, update the leaderboard.

    Interrupted, the same command again completes what is missing.
    """
    if dry_run:
        plan(
            suite=suite,
            model=model,
            agent=agent,
            repeats=repeats,
            condition=condition,
            max_usd=max_usd,
            results=results,
            as_json=as_json,
        )
        return
    from orchestrator.engine import Engine
    from orchestrator.execute import execute
    from orchestrator.facts import require_clean_attempts
    from orchestrator.leaderboard import update
    from orchestrator.listing import COLUMNS, row

    project, screen = _project(results), Screen(as_json=as_json)
    money = _money(max_usd, jobs, keep_bodies=keep_bodies)
    planned, keyless = _plan(project, suite, model, agent, repeats, condition or [], money)
    for missing in keyless:
        raise missing
    engine = Engine.connect()
    with screen.progress(len(planned.specs)) as report:
        finished = execute(
            project, engine, planned, jobs=jobs, report=report, say=screen.say, runtime=runtime, money=money
        )
    update(project)
    screen.table(COLUMNS, [row(item.record) for item in finished])
    screen.emit({"plan": planned.id, "records": [item.record.to_json() for item in finished]})
    require_clean_attempts([item.record.facts for item in finished])


@app.command()
def prove(
    tasks: Annotated[list[str] | None, typer.Argument(help="Default: every task.")] = None,
    suite: Annotated[str | None, typer.Option(help="The tasks of a suite.")] = None,
    jobs: Jobs = CORES,
    runtime: Runtime = None,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Prove tasks without a model: gold passes, noop and every wrong solution fail where they say.

    What was proven is written to tasks/PROVEN.json. Solutions that were played before are not played again.
    """
    from orchestrator import plan as planning
    from orchestrator import prove as proving
    from orchestrator.engine import Engine
    from orchestrator.execute import execute
    from orchestrator.leaderboard import update

    project, screen = _project(results), Screen(as_json=as_json)
    names = tasks or (project.suite(suite).tasks if suite else project.task_ids())
    loaded = [project.task(name) for name in names]
    planned = planning.join(
        planning.expand([one], proving.models(one), proving.AGENT, 1, suite or "prove") for one in loaded
    )
    engine = Engine.connect()
    with screen.progress(len(planned.specs)) as report:
        finished = execute(project, engine, planned, jobs=jobs, report=report, runtime=runtime)
    update(project)
    proof = proving.judge(loaded, finished)
    screen.table(
        ["task", "solution", "expected", "got", ""],
        [
            [r.task, r.solution, r.expected, r.got, "" if r.as_declared else "NOT AS DECLARED"]
            for r in proof.rows
        ],
        ["" if row.as_declared else "red" for row in proof.rows],
    )
    for row in proof.rows:
        if not row.as_declared:
            screen.show(f"{row.task} {row.solution}: {row.reason}")
    for gap in proof.gaps:
        screen.show(gap)
    if proving.keep(project, proof.proven):
        screen.say(f"wrote {proving.PROVEN}")
    as_declared = sum(row.as_declared for row in proof.rows)
    screen.show(
        f"{len(proof.proven)} of {len(loaded)} tasks proven: {as_declared} of {len(proof.rows)} solutions "
        f"graded as declared, {len(proof.gaps)} gaps"
    )
    screen.emit({"rows": [row.to_json() for row in proof.rows], "gaps": proof.gaps, "holds": proof.holds})
    if not proof.holds:
        raise CheckFailed("not every task is proven", fix="see the rows above")


@app.command()
def reap(as_json: Json = False) -> None:
    """Remove what dead copperbench processes of this host left in the engine."""
    from orchestrator.engine import Engine
    from orchestrator.reap import reap as reap_dead

    screen = Screen(as_json=as_json)
    removed = reap_dead(Engine.connect())
    for item in removed:
        screen.show(f"removed {item}")
    screen.show(f"{len(removed)} removed")
    screen.emit({"removed": removed})


def _project(results: Path | None = None) -> Project:
    return Project.find(Path.cwd(), results)


def _money(max_usd: float | None, jobs: int = 1, *, keep_bodies: bool = False) -> Money:
    budget = None if max_usd is None else SuiteBudget(int(max_usd * 10**6), jobs)
    return Money(budget, keep_bodies=keep_bodies)


def _plan(
    project: Project,
    suite: str,
    models: list[str],
    agent: str | None,
    repeats: int | None,
    conditions: list[str],
    money: Money,
) -> tuple[Plan, list[MissingKey]]:
    """Expand a suite for the given models, refusing what could not run before anything starts.

    A key is not needed to know what a plan would take: those that are missing are returned.
    """
    from orchestrator import access
    from orchestrator import plan as planning
    from orchestrator.solutions import PROVIDER
    from schema import condition as conditioning

    chosen = project.suite(suite)
    condition = conditioning.parse(conditions)
    loaded = [project.task(task) for task in chosen.tasks]
    plans, keyless = [], {}
    for model in models:
        project.provider(model)
        name = agent or (PROVIDER if model.startswith(f"{PROVIDER}:") else REFERENCE_AGENT)
        for task in loaded:
            planning.check_agent(project.agent(name), task, condition)
            try:
                access.way(project, model, project.agent(name), task.under(condition), money=money)
            except MissingKey as missing:
                keyless[model] = missing
        plans.append(
            planning.expand(loaded, [model], name, repeats or chosen.repeats, suite, condition=condition)
        )
    return planning.join(plans), list(keyless.values())


def _conclude(screen: Screen, faults: list[str], fine: str) -> None:
    for fault in faults:
        screen.show(fault)
    if not faults:
        screen.show(fine)
    screen.emit({"faults": faults})
    if faults:
        raise typer.Exit(1)


cli_results.register(app)
