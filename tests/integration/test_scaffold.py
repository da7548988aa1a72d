"""The scaffolder in its container, on the real boards.

The repository's own scaffolder is mounted over the image's: the test speaks about the source beside it.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.images.sources import AGENTS, SCAFFOLD_PARENT

pytestmark = pytest.mark.engine

IMAGE = os.environ.get("COPPERBENCH_AGENT_BASE", "copperbench/agent-base")
MIRROR = os.environ.get("COPPERBENCH_FIXTURE_MIRROR")
UID = 65534
BOARDS = {
    # BOM rows, PINOUT rows: what a 0.9 agent's own reader and KiCad agree on.
    "pdm-microphone-board": (12, 26),
    "mikoto": (67, 248),
    "rp2040-dmxsun": (45, 184),
}
FLAGS = [
    *("--rm", "--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
    *("--user", f"{UID}:{UID}", "--tmpfs", "/tmp:rw,noexec,nosuid,nodev,mode=1777", "--env", "HOME=/tmp"),
]


@pytest.fixture(scope="module", autouse=True)
def _ready() -> None:
    if MIRROR is None:
        pytest.skip("COPPERBENCH_FIXTURE_MIRROR names no mirror")
    if (
        subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, check=False).returncode
        != 0
    ):
        pytest.skip(f"no image {IMAGE}")


def _source(board: str) -> dict[str, Any]:
    source: dict[str, Any] = json.loads((Path(str(MIRROR)) / board / "SOURCE.json").read_bytes())
    return source


def _lay_out(root: Path, board: str, commands: list[str]) -> None:
    """Input and workspace as the orchestrator gives them, with the findings that the mirror measured."""
    source = _source(board)
    measured = source["measured"]["withGlobalLibraryTables"]
    kinds = {
        (name, kind)
        for name in ("erc", "drc", "parity")
        for found in measured[name].values()
        for kind in found
    }
    prep = {
        "task": {
            "setup": {"commands": commands},
            "config": {"budgets": {"standby_current_uA": 25}},
            "caps": {"turns": 40, "wallClockSec": 600},
        },
        "fixture": {"artifacts": {key: source[key] for key in ("schematic", "board", "project")}},
        "quiet": [{"source": name, "type": kind} for name, kind in sorted(kinds)],
    }
    (root / "input").mkdir(parents=True)
    (root / "input/prep.json").write_text(json.dumps(prep))
    shutil.copytree(Path(str(MIRROR)) / board / "tree", root / "workspace")
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.chown(path, UID, UID)


def _docker(
    root: Path, *command: str, mounts: tuple[tuple[Path, str], ...] = ()
) -> subprocess.CompletedProcess[str]:
    volumes = [(root / "input", "/input:ro"), (root / "workspace", "/workspace"), *mounts]
    flags = [*FLAGS, *(f"--volume={source}:{target}" for source, target in volumes)]
    return subprocess.run(
        ["docker", "run", *flags, "--workdir", "/", *command], capture_output=True, text=True, check=False
    )


def _scaffold(root: Path, *environment: str) -> dict[str, Any]:
    command = (
        "--env=PYTHONPATH=/under-test",
        *environment,
        IMAGE,
        "python3",
        "-m",
        "scaffold",
        "/input",
        "/workspace",
    )
    done = _docker(root, *command, mounts=((SCAFFOLD_PARENT / "scaffold", "/under-test/scaffold:ro"),))
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def _rows(page: Path) -> int:
    return sum(line.startswith("|") for line in page.read_text().splitlines()) - 2


def _bytes(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("board", BOARDS)
def test_a_board_is_prepared_alike_each_time(tmp_path: Path, board: str) -> None:
    said = []
    for name, environment in (("a", []), ("b", ["--env=TZ=Asia/Tokyo", "--env=LANG=C", "--env=LC_ALL=C"])):
        _lay_out(tmp_path / name, board, ["init", "quiet-baseline"])
        if name == "b":
            for path in (tmp_path / name / "workspace").rglob("*"):
                os.utime(path, (1_000_000_000, 1_000_000_000))
        said.append(_scaffold(tmp_path / name, *environment))
    assert said[0] == said[1]
    workspace = tmp_path / "a/workspace"
    assert _bytes(workspace) == _bytes(tmp_path / "b/workspace")
    assert (_rows(workspace / "docs/BOM.md"), _rows(workspace / "docs/PINOUT.md")) == BOARDS[board]
    source = Path(str(MIRROR)) / board / "tree"
    changed = {name for name, data in _bytes(source).items() if (workspace / name).read_bytes() != data}
    assert changed == {_source(board)["project"]}


@pytest.mark.parametrize("board", BOARDS)
def test_a_silenced_board_reports_nothing_where_the_agent_runs(tmp_path: Path, board: str) -> None:
    _lay_out(tmp_path, board, ["init", "quiet-baseline"])
    _scaffold(tmp_path)
    source = _source(board)
    for check in (f"pcb drc '{source['board']}'", f"sch erc '{source['schematic']}'"):
        command = f"cd /workspace && kicad-cli {check} --exit-code-violations -o /tmp/report"
        done = _docker(tmp_path, IMAGE, "sh", "-c", command)
        assert done.returncode == 0, done.stdout + done.stderr


def test_git_of_the_host_makes_the_same_commit(tmp_path: Path) -> None:
    _lay_out(tmp_path, "mikoto", ["init"])
    said = _scaffold(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "workspace", copy, ignore=shutil.ignore_patterns(".git"))
    code = "import pathlib, sys; from scaffold import tree; print(tree.commit(pathlib.Path(sys.argv[1])))"
    done = subprocess.run(
        ["python3", "-c", code, str(copy)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SCAFFOLD_PARENT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == said["baselineCommit"]


def test_the_solution_agent_runs_on_a_prepared_board(tmp_path: Path) -> None:
    _lay_out(tmp_path, "pdm-microphone-board", ["init", "quiet-baseline"])
    said = _scaffold(tmp_path)
    solution = {
        "note": "",
        "expect": {"verdict": "pass"},
        "exitPath": "done",
        "summary": "DATA is PDM_DATA",
        "edits": [
            {
                "path": _source("pdm-microphone-board")["schematic"],
                "find": '(label "DATA"',
                "replace": '(label "PDM_DATA"',
                "count": "all",
            }
        ],
        "commits": 1,
        "bookkeeping": True,
    }
    (tmp_path / "input/solution.json").write_text(json.dumps(solution))
    (tmp_path / "input/run.json").write_text(json.dumps({"request": "Rename DATA to PDM_DATA"}))
    command = (IMAGE, "python3", "-I", "/opt/under-test.py", "do")
    done = _docker(tmp_path, *command, mounts=((AGENTS / "solution/apply.py", "/opt/under-test.py:ro"),))
    assert (done.returncode, done.stderr) == (0, "")
    [transcript] = (tmp_path / "workspace/.copperhead/runs").glob("*/transcript.jsonl")
    events = [json.loads(line) for line in transcript.read_text().splitlines()]
    assert events[0]["data"]["git"]["commit"] == said["baselineCommit"]
    assert events[-1]["data"]["exitPath"] == "done"
