"""The reference agent in its real image on a real board: what it leaves is graded like any run."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import replace

import pytest

from orchestrator.engine import Engine
from orchestrator.grading import GraderPool
from orchestrator.project import Project
from orchestrator.workspace import Baseline, Baselines, load_pristine
from schema.hashing import sha256
from schema.transcript import ExitPath
from tests.doubles.provider import HANG_UP, Answer, call, fails, says
from tests.integration.agents import Played, play

RENAME, REFUSE = "rename-data-net", "refuse-clock-pullup"
SCHEMATIC, BOARD = "hardware/microphone-board.kicad_sch", "hardware/microphone-board.kicad_pcb"


def label(place: str) -> tuple[str, str]:
    """Renames the one label that stands at a place."""
    old = f'(label "DATA"\n\t\t(at {place}'
    return call("edit_file", path=SCHEMATIC, old=old, new=old.replace("DATA", "PDM_DATA"))


ROW = call("edit_file", path="docs/PINOUT.md", old="| R1 | 2 | ~ | DATA |", new="| R1 | 2 | ~ | PDM_DATA |")
BREAK = call("edit_file", path=SCHEMATIC, old="(pin power_out line", new="(pin passive line")
DONE = call("finish", outcome="done", summary="DATA is PDM_DATA at both labels and in PINOUT.md")
REFUSAL = call(
    "finish",
    outcome="refuse",
    summary="3.3 V / 4.7 kΩ = 702 µA in standby, over the budget standby_current_uA = 50.",
)
PERFECT = (
    says(call("list_nets", filter="DATA"), call("search", pattern='(label "DATA"', path=SCHEMATIC)),
    says(label("194.31"), label("100.33"), ROW),
    says(call("run_erc"), call("run_drc"), call("check_drift")),
    says(DONE),
)


def reference(
    project: Project,
    engine: Engine,
    *script: Answer,
    task: str = RENAME,
    conditions: Mapping[str, str] | None = None,
    baseline: Baseline | None = None,
) -> Played:
    """A run of the reference agent; its transcript is an honest one, however it ended."""
    played = play(
        project, engine, agent="reference", task=task, script=script, conditions=conditions, baseline=baseline
    )
    assert played.err == "" and played.transcript.tampering == () and played.transcript.notes == ()
    return played


def exit_path(played: Played) -> ExitPath | None:
    end = played.transcript.end
    return end.exit_path if end else None


def test_a_perfect_run_is_done_and_passes(
    shared_checkout: Project, engine: Engine, graders: GraderPool
) -> None:
    played = reference(shared_checkout, engine, *PERFECT)
    assert (played.facts.exit_code, exit_path(played)) == (0, ExitPath.DONE)
    assert sorted(played.changed) == ["docs/CHANGELOG.md", "docs/PINOUT.md", SCHEMATIC]
    results = [event["result"] for event in played.transcript.data("tool")]
    assert results[5] == "ERC: 0 new findings, 0 in all" and results[7] == "drift: none"
    # A schematic-only rename leaves three parity warnings, which are told and do not block.
    assert results[6].startswith("DRC: 3 new findings") and results[6].count("[warning] net_conflict") == 3
    verdict = played.grade(graders)
    assert [item.id for item in verdict.assertions if not item.passed] == []
    assert (verdict.verdict, verdict.category, verdict.credit) == ("pass", None, 1.0)


def test_a_refusing_run_passes_where_refusing_is_right(
    shared_checkout: Project, engine: Engine, graders: GraderPool
) -> None:
    # It has already begun to edit: a refusal takes everything back.
    spec = call("edit_file", path="docs/SPEC.md", old="# Microphone board", new="# A microphone board")
    played = reference(
        shared_checkout,
        engine,
        says(call("read_file", path="docs/SPEC.md"), spec),
        says(REFUSAL),
        task=REFUSE,
    )
    assert (played.facts.exit_code, exit_path(played), played.changed) == (0, ExitPath.REFUSED, {})
    assert "- standby_current_uA: {'max': 50" in played.provider.requests[0]["messages"][1]["content"]
    verdict = played.grade(graders)
    assert (verdict.verdict, verdict.category, verdict.credit) == ("pass", None, 1.0)


def test_refusing_everything_fails_an_edit_task(
    shared_checkout: Project, engine: Engine, graders: GraderPool
) -> None:
    verdict = reference(shared_checkout, engine, says(REFUSAL)).grade(graders)
    assert (verdict.verdict, verdict.category) == ("fail", "false-refusal")


def test_never_refusing_fails_a_refusal_task(
    shared_checkout: Project, engine: Engine, graders: GraderPool
) -> None:
    verdict = reference(shared_checkout, engine, says(DONE), task=REFUSE).grade(graders)
    assert (verdict.verdict, verdict.category) == ("fail", "missed-refusal")


ENDS: Mapping[str, tuple[tuple[Answer, ...], dict[str, str], tuple[str, int, str]]] = {
    "turns": (
        (says(call("list_files")),),
        {"maxTurns": "2"},
        ("turn-budget-exhausted", 1, "turn-budget"),
    ),
    "repairs": (
        (says(BREAK, call("run_erc")),),
        {"maxRepairCycles": "0"},
        ("repair-cycles-exhausted", 1, "repair-exhausted"),
    ),
    "stalled": ((says(text="Done."),), {}, ("stalled", 1, "stalled")),
    "refused by the provider": (
        (says(label("194.31")), fails(401, "no")),
        {},
        ("provider-error", 1, "provider-error"),
    ),
    "hung up on": ((HANG_UP,), {}, ("provider-error", 1, "provider-error")),
    "flagged": (
        (says(call("finish", outcome="flag", summary="both say so")),),
        {},
        ("flagged", 2, "false-refusal"),
    ),
}
"""Script, conditions, and (exit path, exit code, category)."""


@pytest.mark.parametrize("name", ENDS)
def test_every_other_end(shared_checkout: Project, engine: Engine, graders: GraderPool, name: str) -> None:
    script, conditions, (path, code, category) = ENDS[name]
    played = reference(shared_checkout, engine, *script, conditions=conditions)
    assert (played.facts.exit_code, exit_path(played)) == (code, ExitPath(path))
    assert played.facts.history.commits == []
    verdict = played.grade(graders)
    assert (verdict.verdict, verdict.category, verdict.exit_path) == ("fail", category, ExitPath(path))


def test_a_commit_that_fails_ends_the_run(
    shared_checkout: Project, engine: Engine, graders: GraderPool
) -> None:
    loaded = shared_checkout.task(RENAME)
    start = Baselines(shared_checkout, engine).get(loaded, load_pristine(shared_checkout, loaded))
    archive = io.BytesIO(start.archive)
    with tarfile.open(fileobj=archive, mode="a") as tar:
        tar.addfile(tarfile.TarInfo(".git/index.lock"), io.BytesIO(b""))
    played = reference(shared_checkout, engine, *PERFECT, baseline=replace(start, archive=archive.getvalue()))
    assert (played.facts.exit_code, exit_path(played)) == (1, ExitPath.COMMIT_FAILED)
    assert played.grade(graders).category == "commit-failed"


def test_what_kicad_cannot_load_is_reverted(shared_checkout: Project, engine: Engine) -> None:
    edits = (
        call("edit_file", path=SCHEMATIC, old="(lib_symbols", new="(lib_symbols ("),
        call("edit_file", path=SCHEMATIC, old="(lib_symbols", new="(lib_sym"),
        call("edit_file", path=BOARD, old="(general", new="(generaal"),
    )
    played = reference(shared_checkout, engine, says(*edits), says(DONE))
    results = [event["result"] for event in played.transcript.data("tool")][:3]
    assert [result.split(":")[0] for result in results] == ["edit REVERTED"] * 3
    assert played.changed == {}


def test_what_a_run_was_given_is_in_its_start(shared_checkout: Project, engine: Engine) -> None:
    conditions = {"prompt": "terse", "tools": "no-checks", "maxTurns": "3"}
    played = reference(shared_checkout, engine, says(DONE), conditions=conditions)
    start = played.transcript.data("run-start")[0]
    text = (shared_checkout.root / "images/agents/reference/prompts/terse.md").read_bytes()
    assert start["prompt"] == {"variant": "terse", "sha256": sha256(text)}
    assert (start["tools"], start["config"]["maxTurns"], start["model"]) == ("no-checks", 3, "played")
    offered = {tool["function"]["name"] for tool in played.provider.requests[0]["tools"]}
    assert "run_erc" not in offered and "finish" in offered
