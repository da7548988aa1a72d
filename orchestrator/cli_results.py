"""Commands that read results: list, show, verify, grade again, publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from orchestrator.console import Screen
from orchestrator.options import CORES, Jobs, Json, Results
from orchestrator.project import Project
from schema.errors import CheckFailed


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (results, show, verify, rescore, leaderboard, bundle):
        app.command()(command)


def results(
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    form: Annotated[Literal["table", "csv"], typer.Option("--format")] = "table",
    results: Results = None,
    as_json: Json = False,
) -> None:
    """List the records: a table, CSV, or with --json the records as stored."""
    from grader.results import read_records
    from orchestrator.listing import COLUMNS, as_csv, row

    project, screen = Project.find(Path.cwd(), results), Screen(as_json=as_json)
    records = [
        record
        for _, record in read_records(project.results)
        if task in {None, record.run.task} and model in {None, record.run.model}
    ]
    if form == "csv" and not as_json:
        typer.echo(as_csv(records), nl=False)
        return
    screen.table(COLUMNS, [row(record) for record in records])
    screen.show(f"{len(records)} records")
    screen.emit({"records": [record.to_json() for record in records]})


def show(
    run: Annotated[str, typer.Argument(help="A record's path, a run's id, or a part that means one run.")],
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Tell one run: verdict, assertions with their reasons, facts, evidence."""
    from orchestrator.show import find, lines

    project, screen = Project.find(Path.cwd(), results), Screen(as_json=as_json)
    path, record = find(project.results, run)
    for line in lines(record):
        screen.show(line)
    screen.table(
        ["assertion", "type", "required", "weight", "outcome", "reason"],
        [
            [
                a.id,
                a.type,
                "required" if a.required else "",
                f"{a.weight:g}",
                "pass" if a.passed else "FAIL",
                a.reason,
            ]
            for a in record.verdict.assertions
        ],
        ["" if a.passed else "red" for a in record.verdict.assertions],
    )
    screen.emit({"path": str(path), "record": record.to_json()})


def verify(
    head: Annotated[str | None, typer.Option(help="A ledger head that was published before.")] = None,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Check that ledger, plans, records, evidence and published heads add up.

    An edited record, a dropped failure, a missing repeat or a rewritten ledger shows.
    """
    from grader.ledger import read_chain
    from orchestrator.verify import faults

    project, screen = Project.find(Path.cwd(), results), Screen(as_json=as_json)
    found = list(faults(project, head))
    for fault in found:
        screen.show(fault)
    chain = None if found else read_chain(project.results)
    if chain:
        screen.show(f"{len(chain.lines)} ledger lines hold; head {chain.head}")
    screen.emit({"faults": found, "head": chain.head if chain else None})
    if found:
        raise CheckFailed(f"{len(found)} things do not add up", about=str(project.results))


def rescore(
    path: Annotated[Path, typer.Argument(help="A checkout, its results, or a date folder in them.")],
    jobs: Jobs = CORES,
    kicad: Annotated[
        str | None, typer.Option(help="Grade with this major of KiCad; default: each record's own.")
    ] = None,
    write_new: Annotated[
        bool, typer.Option("--write-new", help="Record what is graded now, beside the old records.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Grade stored evidence again, in networkless graders, and compare with the records.

    In another environment than a record's own, verdicts are reported and do not fail the comparison.
    """
    from contextlib import closing

    from grader import rescore as rescoring
    from grader.__main__ import conclude, leaderboard_matches, line
    from orchestrator.engine import Engine
    from orchestrator.leaderboard import update
    from orchestrator.ledger import Ledger
    from orchestrator.regrade import Graders, Recorder

    root, folder = rescoring.locate(path)
    majors = [kicad] if kicad else [r.stamp.kicad_major for _, r in rescoring.records_below(path)]
    board = leaderboard_matches(path)
    outcomes, written = [], 0
    with (
        closing(Ledger(folder)) as ledger,
        Graders(Engine.connect(), jobs, f"rescore {path.resolve()}") as graders,
    ):
        graders.provide(majors)
        recorder = Recorder(folder, ledger, graders) if write_new else None
        for outcome in rescoring.rescore(path, graders.grade, jobs=jobs, kicad=kicad):
            outcomes.append(outcome)
            if not as_json:
                typer.echo(line(outcome))
            if recorder and (new := recorder.record(outcome)):
                written += 1
                Screen(as_json=as_json).say(f"wrote {new.relative_to(root)}")
    if written:
        update(Project(root, folder))
    raise typer.Exit(conclude(outcomes, board, as_json=as_json))


def leaderboard(
    check: Annotated[
        bool, typer.Option("--check", help="Fail when LEADERBOARD.md is not up to date.")
    ] = False,
    results: Results = None,
    as_json: Json = False,
) -> None:
    """Regenerate LEADERBOARD.md from plans, records and ledger."""
    from orchestrator.leaderboard import is_current, update

    project, screen = Project.find(Path.cwd(), results), Screen(as_json=as_json)
    if check:
        if not is_current(project):
            raise CheckFailed(
                "is not what the records give", about="LEADERBOARD.md", fix="run copperbench leaderboard"
            )
        screen.show("LEADERBOARD.md is what the records give")
    else:
        update(project)
        screen.show((project.results.parent / "LEADERBOARD.md").read_text("utf-8").rstrip())
    screen.emit({"current": True})


def bundle(results: Results = None, as_json: Json = False) -> None:
    """Write results/evidence.bundle: the evidence that may be committed, of boards that we drew ourselves."""
    from orchestrator.publish import make_bundle

    project, screen = Project.find(Path.cwd(), results), Screen(as_json=as_json)
    made = make_bundle(project)
    screen.show(f"{made.path.name}: evidence of {made.records} records, {made.path.stat().st_size} bytes")
    if made.left_out:
        screen.show(f"{made.left_out} records of boards that are not ours stay without evidence in it")
    screen.emit({"path": str(made.path), "records": made.records, "leftOut": made.left_out})
