"""The stock solution agent: real git, the contract's transcript, no way out of the tree."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.history import read_history
from schema.agent import Agent
from schema.jsonfile import read_model
from schema.task import Mode, Solution
from schema.transcript import Event, RunCommitted, RunEnd, RunRefused, RunStart, Tool
from tests.unit.images.sources import AGENTS, APPLY, apply_module, scaffold
from tests.unit.orchestrator.repos import collected

tree = scaffold("tree")
apply = apply_module()


class Desk:
    """A baseline and a solution, and the program over them."""

    def __init__(self, root: Path) -> None:
        self.root, self.input, self.workspace = root, root / "input", root / "workspace"
        self.input.mkdir()
        self.solution: dict[str, Any] = {
            "note": "n",
            "expect": {"verdict": "pass"},
            "exitPath": "done",
            "summary": "did it",
            "commits": 1,
        }
        self.run_facts: dict[str, Any] = {
            "request": "Rename net A to B",
            "runId": "r",
            "model": "solution:gold",
        }
        tree.write(self.workspace, "hw/x.kicad_sch", "(net A)\r\n(net A)\n(net C)\n")
        tree.write(self.workspace, "docs/CHANGELOG.md", "# Changelog\n\nNewest first.\n")
        tree.write(self.workspace, ".gitignore", ".copperhead/runs/\n")
        config = {
            "schematic": "hw/x.kicad_sch",
            "board": None,
            "docs": "docs/",
            "maxTurns": 40,
            "budgets": {"k": 1},
        }
        tree.write(self.workspace, ".copperhead/config.json", json.dumps(config))
        tree.write(self.workspace, ".copperhead/constraints.json", '{"k": {"max": 1}}')
        self.baseline = tree.commit(self.workspace)

    def give(self, name: str, data: str | bytes) -> None:
        """A file beside ``solution.json``."""
        path = self.input / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)

    def run(self, mode: str = "do") -> subprocess.CompletedProcess[str]:
        """Run the program as the agent's container does, in a clean environment."""
        self.give("solution.json", json.dumps(self.solution))
        self.give("run.json", json.dumps(self.run_facts))
        return subprocess.run(
            [sys.executable, "-I", str(APPLY), mode, str(self.input), str(self.workspace)],
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
            cwd=self.workspace,
            capture_output=True,
            text=True,
            check=False,
        )

    def done(self, mode: str = "do") -> list[Event]:
        """Run a solution that fits; return the events."""
        Solution.model_validate_json(json.dumps(self.solution))
        done = self.run(mode)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        return self.events()

    def unfit(self) -> str:
        """Run a solution that does not fit; return why not."""
        done = self.run()
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.count("\n") == 1 and done.stderr.startswith("solution: cannot be carried out: ")
        assert "run-end" not in [event.type for event in self.events()]
        return done.stderr

    def events(self) -> list[Event]:
        """The transcript, each line validated."""
        found = list((self.workspace / ".copperhead/runs").glob("*/transcript.jsonl"))
        lines = [line for path in found for line in path.read_text().splitlines()]
        return [Event.model_validate_json(line) for line in lines]

    def git(self, *arguments: str) -> str:
        """What git says about the workspace."""
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", *arguments],
            cwd=self.workspace,
            env={"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def commits(self) -> int:
        """How many lie on top of the baseline."""
        return int(self.git("rev-list", "--count", f"{self.baseline}..HEAD"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def _edit(path: str = "hw/x.kicad_sch", find: str = "(net C)", replace: str = "(net D)", **more: Any) -> Any:
    return {"path": path, "find": find, "replace": replace, **more}


def test_the_manifest_is_an_agent_that_serves_every_mode() -> None:
    agent = Agent.model_validate_json((AGENTS / "solution/agent.json").read_text())
    assert (agent.name, agent.protocol, agent.inputs) == ("solution", "none", ["solution"])
    assert set(agent.commands) == set(Mode)
    assert all(command[-1] == mode for mode, command in agent.commands.items())
    assert agent.version == apply.VERSION


def test_edits_replace_exact_bytes(desk: Desk) -> None:
    desk.solution["edits"] = [
        _edit(find="(net A)\r\n", replace="(net é)\r\n"),
        _edit(find="(net ", replace="[net ", count="all"),
        _edit(find="[net C", replace="[net D", count=1),
    ]
    desk.done()
    assert (desk.workspace / "hw/x.kicad_sch").read_bytes() == "[net é)\r\n[net A)\n[net D)\n".encode()


def test_nothing_but_the_edit_changes(desk: Desk) -> None:
    desk.solution["edits"] = [_edit()]
    desk.done()
    assert desk.git("diff", "--stat", "--no-color", desk.baseline, "HEAD").split()[0] == "hw/x.kicad_sch"
    assert desk.git("diff", "--numstat", desk.baseline, "HEAD") == "1\t1\thw/x.kicad_sch\n"
    assert desk.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    "edit",
    [
        _edit(find="(net A)"),
        _edit(find="(net C)", count=2),
        _edit(find="(net Z)"),
        _edit(find="(net Z)", count="all"),
        _edit(find="", count="all"),
        _edit(path="hw/missing"),
        _edit(path="hw"),
        _edit(path="../input/run.json"),
        _edit(path="/etc/hostname"),
        _edit(path="hw/../.git/config"),
        _edit(path=".git/config", find="bare"),
        _edit(path="hw/./x.kicad_sch"),
        _edit(path=""),
    ],
)
def test_an_edit_that_does_not_fit_ends_without_a_run_end(desk: Desk, edit: Any) -> None:
    desk.solution["edits"] = [edit]
    assert desk.unfit()
    assert desk.git("rev-parse", "HEAD").strip() == desk.baseline


def test_the_order_is_edits_diff_files_deletions(desk: Desk) -> None:
    desk.solution["edits"] = [_edit()]
    desk.give("change.diff", "--- a/hw/x.kicad_sch\n+++ b/hw/x.kicad_sch\n@@ -3 +3 @@\n-(net D)\n+(net E)\n")
    desk.give("files/new/a.md", "a")
    desk.give("files/new/b.md", b"\0\xff")
    desk.solution["delete"] = ["new/a.md"]
    events = desk.done()
    assert (desk.workspace / "hw/x.kicad_sch").read_bytes().endswith(b"(net E)\n")
    assert (desk.workspace / "new/b.md").read_bytes() == b"\0\xff"
    assert not (desk.workspace / "new/a.md").exists()
    names = [event.data["name"] for event in events if event.type == "tool"]
    assert names == ["edit_file", "apply_diff", "write_file", "write_file", "delete_file", "finish"]


@pytest.mark.parametrize(
    "diff",
    [
        "--- a/hw/x.kicad_sch\n+++ b/hw/x.kicad_sch\n@@ -1 +1 @@\n-(net Q)\n+(net E)\n",
        "--- a/../input/run.json\n+++ b/../input/run.json\n@@ -0,0 +1 @@\n+x\n",
        "--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n",
        "no diff\n",
        "",
    ],
)
def test_a_diff_that_does_not_fit_ends_without_a_run_end(desk: Desk, diff: str) -> None:
    desk.give("change.diff", diff)
    assert desk.unfit()


@pytest.mark.parametrize("name", ["../x", ".git/config", "missing", "hw", ""])
def test_a_deletion_that_does_not_fit_ends_without_a_run_end(desk: Desk, name: str) -> None:
    desk.solution["delete"] = [name]
    assert desk.unfit()


def test_files_hold_no_links_and_nothing_of_gits(desk: Desk) -> None:
    desk.give("files/.git/config", "x")
    assert ".git" in desk.unfit()
    (desk.input / "files/.git/config").unlink()
    (desk.input / "files/link").symlink_to("/etc")
    assert "not a regular file" in desk.unfit()


@pytest.mark.parametrize("name", ["link/x", "link"])
def test_a_path_through_a_symlink_of_the_workspace_is_not_followed(
    desk: Desk, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (desk.workspace / "link").symlink_to(outside)
    desk.give(f"files/{name}", "x")
    assert "passes a symlink" in desk.unfit()
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("commits", [0, 1, 3])
def test_as_many_commits_as_said_the_last_with_all_changes(desk: Desk, commits: int) -> None:
    desk.solution |= {"commits": commits, "edits": [_edit()]}
    events = desk.done()
    assert desk.commits() == commits
    changed = desk.git("diff", "--name-only", "HEAD~1", "HEAD").split() if commits else []
    assert changed == (["hw/x.kicad_sch"] if commits else [])
    made = [event for event in events if event.type == "run-committed"]
    assert len(made) == (1 if commits else 0)
    if made:
        assert RunCommitted.model_validate(made[0].data).commit == desk.git("rev-parse", "HEAD").strip()
        assert made[0].data["files"] == ["hw/x.kicad_sch"]


@pytest.mark.parametrize("commits", [1, 2])
@pytest.mark.parametrize("bookkeeping", [False, True])
def test_its_last_commit_is_its_end_state(desk: Desk, commits: int, bookkeeping: bool) -> None:
    """An honest run must never look uncommitted."""
    desk.solution |= {"commits": commits, "edits": [_edit()], "bookkeeping": bookkeeping}
    desk.done()
    books = read_model(AGENTS / "solution/agent.json", Agent).bookkeeping
    found = read_history(collected(desk.workspace), desk.baseline, aside=books.always).history
    assert (found.status, len(found.commits)) == ("ok", commits)


def test_the_same_solution_gives_the_same_commit(tmp_path: Path) -> None:
    heads = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        desk = Desk(tmp_path / name)
        desk.solution |= {"edits": [_edit()], "bookkeeping": True, "commits": 2}
        desk.done()
        heads.append(desk.git("rev-parse", "HEAD"))
        # Two runs within a second would agree on the clock, too.
        assert set(desk.git("log", "-2", "--format=%as %cs").splitlines()) == {"2026-01-02 2026-01-02"}
    assert heads[0] == heads[1]


def test_hooks_and_settings_of_the_workspace_do_not_stop_it(desk: Desk) -> None:
    hook = desk.workspace / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    desk.done()
    assert desk.commits() == 1


def test_the_transcript_is_the_contracts(desk: Desk) -> None:
    desk.solution |= {"edits": [_edit()], "bookkeeping": True}
    events = desk.done()
    assert [event.type for event in events] == [
        "run-start",
        "assistant",
        "tool",
        "edit-tools-unlocked",
        "tool",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "run-committed",
        "run-end",
    ]
    start, end = RunStart.model_validate(events[0].data), RunEnd.model_validate(events[-1].data)
    [folder] = (desk.workspace / ".copperhead/runs").iterdir()
    assert (start.request, start.command, start.model) == ("Rename net A to B", "do", "solution:gold")
    assert start.run_id == folder.name
    assert events[0].data["config"] == {
        "schematic": "hw/x.kicad_sch",
        "board": None,
        "docs": "docs/",
        "maxTurns": 40,
        "maxRepairCycles": 5,
        "budgets": {"k": 1},
    }
    assert events[0].data["openConstraints"] == 1
    assert events[0].data["git"] == {"commit": desk.baseline, "branch": "main", "dirty": False}
    assert (end.exit_path, end.turns_used, end.max_turns, len(end.per_turn)) == ("done", 3, 40, 3)
    calls = [call for event in events if event.type == "assistant" for call in event.data["toolCalls"]]
    tools = [Tool.model_validate(event.data) for event in events if event.type == "tool"]
    assert [(call["name"], call["args"]) for call in calls] == [(tool.name, tool.args) for tool in tools]
    assert sorted(event.ts for event in events) == [event.ts for event in events]


def test_the_run_folder_is_the_start_time(desk: Desk) -> None:
    desk.done()
    [folder] = (desk.workspace / ".copperhead/runs").iterdir()
    day, clock = folder.name.split("T")
    assert day.count("-") == 2 and clock.count("-") == 3 and clock.endswith("Z")


def test_a_refusal_says_its_own_words_and_changes_nothing(desk: Desk) -> None:
    desk.solution |= {"exitPath": "refused", "commits": 0, "summary": "k = 1 would become 2"}
    events = desk.done()
    [refused] = [event for event in events if event.type == "run-refused"]
    assert RunRefused.model_validate(refused.data).summary == "k = 1 would become 2"
    assert events[-1].data["exitPath"] == "refused"
    assert desk.git("status", "--porcelain") == ""
    assert desk.commits() == 0


def test_a_flag_ends_flagged(desk: Desk) -> None:
    desk.solution |= {"exitPath": "flagged", "commits": 0}
    events = desk.done()
    assert events[-1].data["exitPath"] == "flagged"
    assert events[-2].data["args"]["outcome"] == "flag"


def test_a_stalled_run_fails_with_a_run_end(desk: Desk) -> None:
    desk.solution |= {"exitPath": "stalled", "commits": 0}
    assert desk.run().returncode == 1
    events = desk.events()
    assert [event.type for event in events] == ["run-start", "assistant", "run-failed", "run-end"]
    assert events[1].data == {"text": "did it", "toolCalls": []}


def test_bookkeeping_is_an_entry_before_the_others_and_a_proposal(desk: Desk) -> None:
    log = "# Changelog\n\nNewest first.\n\n## 2025-01-01 — Older\n\n- Change: older\n"
    (desk.workspace / "docs/CHANGELOG.md").write_text(log)
    desk.solution |= {"edits": [_edit()], "bookkeeping": True}
    desk.done()
    assert (desk.workspace / "docs/CHANGELOG.md").read_text() == (
        "# Changelog\n\nNewest first.\n\n## 2026-01-02 — Rename net A to B\n\n- Change: rename-net-a-to-b\n"
        "- Files: hw/x.kicad_sch\n\n## 2025-01-01 — Older\n\n- Change: older\n"
    )
    proposal = (desk.workspace / "openspec/changes/rename-net-a-to-b/proposal.md").read_text()
    assert "## Why\n\nRename net A to B\n" in proposal and proposal.endswith("did it\n")
    assert (
        "- [x] hw/x.kicad_sch\n"
        in (desk.workspace / "openspec/changes/rename-net-a-to-b/tasks.md").read_text()
    )


def test_bookkeeping_makes_a_change_log_where_there_is_none(desk: Desk) -> None:
    (desk.workspace / "docs/CHANGELOG.md").unlink()
    desk.solution["bookkeeping"] = True
    desk.run_facts["request"] = "§§§"
    desk.done()
    assert (
        (desk.workspace / "docs/CHANGELOG.md").read_text().startswith("# Changelog\n\n## 2026-01-02 — §§§\n")
    )
    assert (desk.workspace / "openspec/changes/change/tasks.md").is_file()


@pytest.mark.parametrize("mode", list(Mode))
def test_every_mode_is_named_in_the_transcript(desk: Desk, mode: Mode) -> None:
    assert desk.done(mode)[0].data["command"] == mode


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("solution.json", "[]"),
        ("solution.json", "{"),
        ("solution.json", '{"summary": "s", "exitPath": "killed", "commits": 0}'),
        ("run.json", "{}"),
        ("run.json", "[]"),
    ],
)
def test_an_input_that_is_not_as_agreed_ends_without_a_run_end(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str, data: str
) -> None:
    give = desk.give
    monkeypatch.setattr(desk, "give", lambda what, usual: give(what, data if what == name else usual))
    assert desk.unfit()


def test_wrong_arguments_are_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert apply.main([]) == 2
    assert capsys.readouterr().err.startswith("usage: ")
