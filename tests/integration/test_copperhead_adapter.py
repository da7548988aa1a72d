"""The copperhead adapter: its manifest, image and prepared workspaces, against a double of the agent.

The double travels the real way: a tarball that npm installs, the adapter's Dockerfile, its commands and
variables. Its reader shares no code with the scaffolder, so that a clean drift check means two readers agree.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.transcript import resolve_exit_path
from orchestrator.engine import Engine
from orchestrator.grading import GraderPool
from orchestrator.images import PackageMissing, build, specs
from orchestrator.project import Project
from schema.task import Mode
from schema.transcript import ExitPath
from tests.doubles import copperhead
from tests.doubles.provider import Answer, call, fails, says
from tests.integration.agents import Played, play
from tests.integration.test_scaffold import MIRROR, _lay_out, _rows, _scaffold, _source

ROOT = Path(__file__).parents[2]
IMAGE = "copperbench/agent-copperhead-double"
RENAME, REFUSE = "rename-data-net", "refuse-clock-pullup"
SCHEMATIC = "hardware/microphone-board.kicad_sch"

BOARDS = {
    # PINOUT rows, of so many pins that the double sees; parts that only one of both readers sees.
    "common-ibc": (264, 387, 0),
    "glasgow": (266, 776, 68),
    "harp-white-rabbit": (349, 533, 2),
    "latentred-lcbringup": (515, 1218, 0),
    "mikoto": (248, 257, 0),
    "pdm-microphone-board": (26, 31, 0),
    "rp2040-dmxsun": (184, 184, 0),
    "tt06-qfn-socket": (195, 247, 12),
    "tycho": (369, 584, 40),
    "usb-sniffer": (363, 409, 0),
}


@pytest.mark.parametrize("board", BOARDS)
def test_the_prepared_documents_hold_only_what_both_readers_say(tmp_path: Path, board: str) -> None:
    """A PINOUT written from KiCad's netlist blocks every honest run; ours never does.

    BOM.md is KiCad's list of parts: where sheets are used twice, no document suits both readers.
    """
    if MIRROR is None or not (Path(MIRROR) / board).is_dir():
        pytest.skip(f"COPPERBENCH_FIXTURE_MIRROR holds no {board}")
    _lay_out(tmp_path, board, ["init"])
    _scaffold(tmp_path)
    workspace = tmp_path / "workspace"
    design = copperhead.Design(workspace / _source(board)["schematic"])
    found = copperhead.drift(workspace / "docs", design)
    assert [line for line in found if line.startswith("PINOUT.md")] == []
    assert (_rows(workspace / "docs/PINOUT.md"), len(design.pins), len(found)) == BOARDS[board]


# --- the adapter


def _tarball(version: str = "0.9.0") -> bytes:
    """The double as an npm package."""
    package = {"name": "copperhead", "version": version, "bin": {"copperhead": "cli.js"}}
    start = (
        'const { spawnSync } = require("child_process");\n'
        'const argv = ["-I", `${__dirname}/double.py`, ...process.argv.slice(2)];\n'
        'process.exit(spawnSync("python3", argv, { stdio: "inherit" }).status);\n'
    )
    files = {
        "package.json": json.dumps(package).encode(),
        "cli.js": start.encode(),
        "double.py": Path(copperhead.__file__).read_bytes(),
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _image(project: Project, engine: Engine, folder: Path, tarball: bytes) -> list[str]:
    """Build the adapter's image with a tarball in COPPERHEAD_SPEC; what the build said."""
    path = folder / "copperhead.tgz"
    path.write_bytes(tarball)
    (spec,) = (spec for spec in specs(project) if spec.tag == "copperbench/agent-copperhead")
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COPPERHEAD_SPEC", str(path))
        build(project, engine, replace(spec, tag=IMAGE), said.append)
    return said


@pytest.fixture(scope="module")
def double(engine: Engine, shared_checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image with the double in place of the package."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not on this host: the package's image can't be built")
    _image(shared_checkout, engine, tmp_path_factory.mktemp("package"), _tarball())
    return IMAGE


Run = Callable[..., Played]


@pytest.fixture
def run(engine: Engine, shared_checkout: Project, double: str) -> Run:
    """A run of the adapter; its transcript is an honest one, however it ended."""

    def once(*script: Answer, task: str = RENAME, project: Project = shared_checkout, **more: Any) -> Played:
        played = play(project, engine, agent="copperhead", task=task, script=script, image=double, **more)
        assert played.transcript.tampering == () and played.transcript.notes == (), played.err
        return played

    return once


@pytest.fixture
def changed_task(checkout: Project) -> Iterator[Callable[..., Project]]:
    """A checkout in which the rename task starts otherwise."""

    def change(overlay: dict[str, str] | None = None, **fields: Any) -> Project:
        folder = checkout.root / "tasks" / RENAME
        task = json.loads((folder / "task.json").read_text()) | fields
        (folder / "task.json").write_text(json.dumps(task))
        for name, text in (overlay or {}).items():
            path = folder / "overlay" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return checkout

    yield change


UNLOCK = (
    call("propose_change", id="rename-data", why="w", what_changes="- net", tasks="- [x] net"),
    call("validate_change"),
)
EDITS = (
    call(
        "edit_file",
        path=SCHEMATIC,
        old_string='(label "DATA"',
        new_string='(label "PDM_DATA"',
        replace_all=True,
    ),
    call(
        "edit_file", path="docs/PINOUT.md", old_string="| DATA |", new_string="| PDM_DATA |", replace_all=True
    ),
)
DONE = call("finish", outcome="done", summary="DATA is PDM_DATA")
PERFECT = (says(*UNLOCK), says(*EDITS, call("run_erc"), call("check_drift")), says(DONE))


def exit_path(played: Played) -> ExitPath | None:
    return resolve_exit_path(played.facts, played.transcript, played.agent, played.task.task.mode)


def test_an_honest_edit_is_done_and_passes(run: Run, graders: GraderPool, changed_task: Any) -> None:
    """Also with a planted .env, which the agent reads: the manifest sets all that it could set."""
    planted = "COPPERHEAD_BASE_URL=http://127.0.0.1:9/v1\nCOPPERHEAD_KICAD_CLI=/bin/echo\nCOPPERHEAD_MODEL=compat:x\n"
    played = run(*PERFECT, project=changed_task({".env": planted}))
    assert (played.facts.exit_code, exit_path(played), played.err) == (0, ExitPath.DONE, "")
    assert len(played.facts.history.commits) == 1
    results = [event["result"] for event in played.transcript.data("tool")]
    assert results[-3:] == ["ERC: clean", "drift: clean", "all gates satisfied; run will commit"]
    assert {request["model"] for request in played.provider.requests} == {"played"}
    verdict = played.grade(graders)
    assert [item.id for item in verdict.assertions if not item.passed] == []
    assert (verdict.verdict, verdict.credit) == ("pass", 1.0)


def test_an_honest_refusal_passes(run: Run, graders: GraderPool) -> None:
    summary = "Refused: 702 µA in standby, over standby_current_uA = 50."
    played = run(says(*UNLOCK), says(call("finish", outcome="refuse", summary=summary)), task=REFUSE)
    assert (played.facts.exit_code, exit_path(played), played.changed) == (0, ExitPath.REFUSED, {})
    assert played.grade(graders).verdict == "pass"


def test_without_a_quiet_baseline_no_edit_can_end(run: Run, graders: GraderPool, changed_task: Any) -> None:
    project = changed_task(setup={"commands": ["init"]})
    played = run(says(*UNLOCK), says(*EDITS), says(call("run_erc")), project=project)
    assert (played.facts.exit_code, exit_path(played)) == (1, ExitPath.REPAIR_CYCLES)
    assert played.grade(graders).category == "repair-exhausted"


def test_a_pinout_from_the_netlist_alone_would_block_an_honest_edit(
    run: Run, graders: GraderPool, changed_task: Any
) -> None:
    rows = "".join(
        f"| {refdes} | {pin} | ~ | {net} | |\n"
        for refdes, pin, net in (
            ("R1", "2", "DATA"),
            ("J1", "5", "DATA"),
            ("D4", "1", "DATA"),
            ("J1", "3", "CLK"),
        )
    )
    text = "# Pinout\n\n| Refdes | Pin | Name | Net | Notes |\n|---|---|---|---|---|\n" + rows
    project = changed_task({"docs/PINOUT.md": text})
    played = run(*PERFECT, project=project, conditions={"maxTurns": "5"})
    assert (played.facts.exit_code, exit_path(played)) == (1, ExitPath.TURN_BUDGET)
    assert [event["result"] for event in played.transcript.data("tool")][-1].startswith("cannot finish yet:")
    assert played.grade(graders).category == "turn-budget"


@pytest.mark.parametrize(
    ("answer", "path", "category"),
    [
        (says(text="I think it is done."), ExitPath.STALLED, "stalled"),
        (fails(429), ExitPath.PROVIDER_ERROR, "provider-error"),
        (fails(400), ExitPath.PROVIDER_ERROR, "provider-error"),
    ],
)
def test_a_run_that_fails_leaves_the_baseline(
    run: Run, graders: GraderPool, answer: Answer, path: ExitPath, category: str
) -> None:
    played = run(says(*UNLOCK, *EDITS), answer)
    assert (played.facts.exit_code, exit_path(played), played.changed) == (1, path, {})
    assert played.facts.history.commits == []
    assert played.grade(graders).category == category


def test_sync_flags_a_violated_requirement_by_its_exit_code(run: Run, changed_task: Any) -> None:
    registry = '{"mic.pins": {"forbidden": ["DATA"], "source": "docs/SPEC.md"}}'
    played = run(says(DONE), project=changed_task({".copperhead/constraints.json": registry}, mode="sync"))
    assert (played.facts.exit_code, played.provider.requests, played.transcript.paths) == (2, [], ())
    assert json.loads(played.out)["violations"][0]["kind"] == "requirement-violation"
    assert exit_path(played) is ExitPath.FLAGGED


def test_sync_mends_drift_in_a_run_of_its_own(run: Run, changed_task: Any) -> None:
    text = "# P\n\n| Refdes | Pin | Name | Net | Notes |\n|---|---|---|---|---|\n| R1 | 2 | ~ | OLD | |\n"
    mend = call("edit_file", path="docs/PINOUT.md", old_string="| OLD |", new_string="| DATA |")
    script = (says(*UNLOCK), says(mend, call("check_drift")), says(DONE))
    played = run(*script, project=changed_task({"docs/PINOUT.md": text}, mode="sync"))
    assert (played.facts.exit_code, exit_path(played)) == (0, ExitPath.DONE)
    assert played.transcript.data("run-start")[0]["command"] == "sync"
    assert "docs/PINOUT.md" in played.changed


def test_sync_with_nothing_to_mend_is_done_without_a_model(run: Run, changed_task: Any) -> None:
    played = run(says(DONE), project=changed_task(mode="sync"))
    assert (played.facts.exit_code, played.provider.requests, exit_path(played)) == (0, [], ExitPath.DONE)
    assert played.changed == {} and played.task.task.mode is Mode.SYNC


def test_another_version_than_the_manifests_is_not_built(
    engine: Engine, shared_checkout: Project, double: str, tmp_path: Path
) -> None:
    with pytest.raises(PackageMissing) as caught:
        _image(shared_checkout, engine, tmp_path, _tarball("0.9.1"))
    assert "npm gave copperhead 0.9.1, agent.json says 0.9.0" in str(caught.value)


def test_the_manifest_names_no_key(shared_checkout: Project) -> None:
    environment = shared_checkout.agent("copperhead").environment
    assert environment["COPPERHEAD_API_KEY_ENV"] not in environment
    assert not {name for name in environment if name.endswith("_KEY")} and "OPENAI_API_KEY" not in environment
    assert os.environ.get(environment["COPPERHEAD_API_KEY_ENV"]) is None
