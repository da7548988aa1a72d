"""The command line: one line on failure, that names the file and the fix, with the documented exit code."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.project import Project
from orchestrator.starts import ATTEMPTS

ROOT = Path(__file__).parents[3]
PARTS = ("tasks", "suites", "fixtures", "images/agents", "models.json", "pricing.json")


def copperbench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder, where no engine answers."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DOCKER_HOST": "unix:///nonexistent.sock"}
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The committed tasks, suites and fixtures' metadata, without any board."""
    root = tmp_path / "a b"
    root.mkdir()
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *PARTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, tracked.split("\0")):
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    return root


def one_line(text: str) -> str:
    """The only line of an error."""
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["plan", "--suite", "none", "--model", "solution:gold"], 2, "no suite 'none'; use one of"),
        (
            ["plan", "--suite", "smoke", "--model", "gold"],
            2,
            "models.json: model id 'gold' has no known provider",
        ),
        (["plan", "--suite", "smoke", "--model", "other:x"], 2, "no known provider"),
        (
            ["plan", "--suite", "smoke", "--model", "solution:gold", "--agent", "x"],
            2,
            "no agent 'x'; use one of",
        ),
        (["prove", "none"], 2, "no task 'none'; use one of"),
        (["prove"], 3, "no Docker engine answers"),
        (["run", "--suite", "smoke", "--model", "solution:gold"], 3, "run make setup"),
        (["images", "build"], 3, "no Docker engine answers"),
        (["images", "build", "--kicad", "8"], 2, "no environment for KiCad 8; use one of 9, 10"),
        (["fixtures", "measure", "--kicad", "8"], 2, "no environment for KiCad 8; use one of 9, 10"),
        (["reap"], 3, "no Docker engine answers"),
        (["fixtures", "hash", "nowhere"], 3, "nowhere: no such folder"),
        (["fixtures", "sync", "none"], 2, "no fixture 'none'; use one of"),
        (["leaderboard", "--check"], 1, "LEADERBOARD.md"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_expected_failure_is_one_line_and_a_documented_code(
    checkout: Path, arguments: list[str], code: int, says: str
) -> None:
    done = copperbench(checkout, *arguments)
    assert done.returncode == code, done.stderr
    line = one_line(done.stderr)
    assert line.startswith("copperbench: ") and says in line


def test_outside_a_checkout_it_says_where_to_go(tmp_path: Path) -> None:
    done = copperbench(tmp_path, "validate")
    assert done.returncode == 2 and "not inside a copperbench checkout" in one_line(done.stderr)


def test_debug_shows_the_traceback(checkout: Path) -> None:
    assert (
        "Traceback"
        in copperbench(checkout, "plan", "--suite", "x", "--model", "solution:gold", "--debug").stderr
    )


def test_a_dry_run_prints_the_plan_and_its_worst_case(checkout: Path) -> None:
    done = copperbench(
        checkout,
        "run",
        "--suite",
        "starter",
        "--model",
        "solution:gold",
        "--repeats",
        "2",
        "--dry-run",
        "--json",
    )
    answer = json.loads(done.stdout)
    project = Project(checkout)
    caps = [project.task(name).task.caps for name in project.suite("starter").tasks]
    assert len(answer["plan"]["specs"]) == 2 * len(caps)
    assert answer["worstCase"] == {
        "runs": 2 * len(caps),
        "attempts": ATTEMPTS,
        "turns": ATTEMPTS * 2 * sum(cap.turns for cap in caps),
        "wallClockSec": ATTEMPTS * 2 * sum(cap.wall_clock_sec for cap in caps),
        "cost": {"usd": None, "basis": "provider-free has no price per token"},
    }
    (cost,) = answer["costs"]
    assert (cost["model"], cost["segment"], cost["runs"]) == ("solution:gold", "provider-free", 2 * len(caps))
    assert cost["worst"] == {"usd": None, "basis": "provider-free has no price per token"}
    assert cost["expected"]["basis"] == "provider-free has no price per token; no records yet"
    assert not (checkout / "results").exists()


def test_a_plan_needs_no_key_and_says_that_a_run_would(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it would take is wanted before there is an account."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    asked = ("--suite", "starter", "--model", "anthropic:claude-opus-5")
    shown, told = copperbench(checkout, "plan", *asked), copperbench(checkout, "plan", *asked, "--json")
    assert (shown.returncode, told.returncode) == (0, 0)
    missing = "no key for anthropic:claude-opus-5; set ANTHROPIC_API_KEY"
    assert f"run would refuse: {missing}" in shown.stdout.splitlines()
    answer = json.loads(told.stdout)
    assert answer["missing"] == [missing]
    (cost,) = answer["costs"]
    assert cost["worst"] == {"usd": None, "basis": "unbounded, the task caps neither tokens nor USD"}
    run = copperbench(checkout, "run", *asked)
    assert (run.returncode, run.stdout) == (2, "") and missing in one_line(run.stderr)


def test_a_budget_bounds_the_worst_case_of_a_plan(checkout: Path) -> None:
    """Tasks that cap neither tokens nor USD have no other bound."""
    models = ("--model", "anthropic:claude-opus-5", "--model", "openai:gpt-5")
    asked = ("plan", "--suite", "starter", *models, "--max-usd", "1.5")
    answer = json.loads(copperbench(checkout, *asked, "--json").stdout)
    bounded = {"usd": 1.5, "basis": "--max-usd"}
    assert [cost["worst"] for cost in answer["costs"]] == [bounded, bounded]
    assert (answer["worstCase"]["cost"], answer["maxUsd"]) == (bounded, 1.5)
    shown = copperbench(checkout, *asked).stdout.splitlines()
    assert "worst case of the whole plan 1.5000 USD by --max-usd" in shown
    assert "  worst case 1.5000 USD by --max-usd" in shown


def test_a_budget_in_usd_needs_a_price_in_a_plan_too(checkout: Path) -> None:
    done = copperbench(
        checkout, "plan", "--suite", "starter", "--model", "local:some-model", "--max-usd", "1"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "local:some-model has no price per token" in done.stderr


def test_an_agent_and_a_model_that_share_no_protocol_are_a_usage_error(checkout: Path) -> None:
    """Naive: found by the first run's 404s, after the plan is written and the grader has started."""
    change("images/agents/reference/agent.json", lambda agent: {**agent, "protocol": "openai-responses"})(
        checkout
    )
    asked = ("--suite", "starter", "--model", "local:some-model")
    for command in ("plan", "run"):
        done = copperbench(checkout, command, *asked)
        assert (done.returncode, done.stdout) == (2, "")
        assert "local:some-model speaks openai-chat, the agent speaks openai-responses" in one_line(
            done.stderr
        )
    assert not (checkout / "results").exists()


def change(path: str, edit: Callable[[Any], Any]) -> Callable[[Path], None]:
    """An edit of one JSON file."""

    def apply(root: Path) -> None:
        file = root / path
        file.write_text(json.dumps(edit(json.loads(file.read_text()))))

    return apply


def write(path: str, text: str) -> Callable[[Path], None]:
    """A file written over."""

    def apply(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)

    return apply


def first(**changes: Any) -> Callable[[Any], Any]:
    """Changes to the first assertion."""
    return lambda items: [{**items[0], **changes}, *items[1:]]


TASK = "tasks/rename-data-net/task.json"
ASSERTIONS = "tasks/rename-data-net/assertions.json"
FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "unknown type": (change(ASSERTIONS, first(type="looks_nice")), f"{ASSERTIONS}"),
    "unknown field": (change(TASK, lambda t: {**t, "colour": "red"}), f"{TASK}: colour"),
    "bad argument": (
        change(ASSERTIONS, first(type="diff_ratio_max", args={"path": "a", "ratio": -1})),
        f"{ASSERTIONS}: ",
    ),
    "invalid regex": (
        change(ASSERTIONS, first(type="doc_contains", args={"doc": "docs/A.md", "pattern": "("})),
        "RE2",
    ),
    "duplicate id": (change(ASSERTIONS, lambda items: [*items, items[0]]), "duplicate id 'no-secret'"),
    "wrong fixture hash": (
        change(TASK, lambda t: {**t, "fixture": {**t["fixture"], "sha256": "1" * 64}}),
        "sha256",
    ),
    "bad JSON": (write(TASK, "{"), f"{TASK}: not valid JSON"),
    "stray file": (
        write("tasks/rename-data-net/check.py", "print()"),
        "tasks/rename-data-net/check.py: stray file",
    ),
    "id is not the folder's name": (change(TASK, lambda t: {**t, "id": "other"}), TASK),
    "a suite names no task": (
        write("suites/x.json", '{"id":"x","title":"x","tasks":["none"]}'),
        "suites/x.json",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_validate_names_file_and_place(checkout: Path, name: str) -> None:
    apply, says = FAULTS[name]
    apply(checkout)
    done = copperbench(checkout, "validate")
    assert done.returncode == 1
    assert any(says in line for line in done.stdout.splitlines()), done.stdout + done.stderr
    assert str(checkout) not in done.stdout
