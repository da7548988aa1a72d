"""The whole scaffolder against a stand-in for kicad-cli, with real git."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.images.sources import SCAFFOLD_PARENT, label, netlist, program, scaffold, schematic, symbol

tree = scaffold("tree")
Off = scaffold("errors").Off

KICAD_CLI = """\
import json, os, pathlib, sys
out, about = sys.argv[sys.argv.index("-o") + 1], pathlib.Path(sys.argv[-1])
here = pathlib.Path(os.environ["STAND_IN"])
with (here / "calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:3]) + "\\n")
if "netlist" in sys.argv:
    pathlib.Path(out).write_text((here / "netlist").read_text())
    about.with_suffix(".kicad_prl").write_text("left behind")
else:
    found = json.loads((here / "violations").read_text())
    project = json.loads(next(pathlib.Path(".").rglob("*.kicad_pro")).read_text())
    section = project["erc"] if "erc" in sys.argv else project["board"]["design_settings"]
    items = [
        dict(item) for item in found["erc" if "erc" in sys.argv else "drc"]
        if section.get("rule_severities", {{}}).get(item["type"]) != "ignore" or item.get("deaf")
    ]
    report = {{"sheets": [{{"violations": items}}]}} if "erc" in sys.argv else {{"violations": items}}
    pathlib.Path(out).write_text(json.dumps(report))
sys.exit(int((here / "exit").read_text()))
"""


class Prep:
    """A prepared input and workspace, and the program over them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.input, self.workspace, self.stand_in = root / "input", root / "workspace", root / "stand-in"
        self.task: dict[str, Any] = {
            "setup": {"commands": ["init"]},
            "config": {"budgets": {}, "maxTurns": 30, "maxRepairCycles": 4},
            "caps": {"turns": 30, "wallClockSec": 600},
        }
        self.fixture: dict[str, Any] = {
            "artifacts": {
                "schematic": "hw/x.kicad_sch",
                "board": "hw/x.kicad_pcb",
                "project": "hw/x.kicad_pro",
            }
        }
        self.quiet: list[dict[str, str]] = []
        self.put("hw/x.kicad_sch", schematic(symbol("R", "R1", "100 100 0"), label("SENSE", "100 103.81")))
        self.put("hw/x.kicad_pcb", "(kicad_pcb)\r\n")
        self.put("hw/x.kicad_pro", '{\n  "board": {"design_settings": {}},\n  "erc": {}\n}\n')
        for name, text in (
            ("netlist", netlist({"/SENSE": ["R1.2"], "Net-(R1-Pad1)": ["R1.1"]}, {"R1": "10k"})),
            ("violations", '{"erc": [], "drc": []}'),
            ("exit", "0"),
        ):
            self.stand_in.mkdir(parents=True, exist_ok=True)
            (self.stand_in / name).write_text(text)
        program(self.stand_in / "kicad-cli", KICAD_CLI.format())

    def put(self, name: str, text: str, *, overlay: bool = False) -> None:
        """A file of the fixture, or of the task's overlay."""
        path = (self.input / "overlay" if overlay else self.workspace) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())

    def read(self, name: str) -> str:
        """A file of the workspace."""
        return (self.workspace / name).read_bytes().decode()

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run it as the prep container does."""
        self.input.mkdir(exist_ok=True)
        prep = {"task": self.task, "fixture": self.fixture, "quiet": self.quiet}
        (self.input / "prep.json").write_text(json.dumps(prep))
        return subprocess.run(
            [sys.executable, "-m", "scaffold", str(self.input), str(self.workspace)],
            env={
                "PATH": f"{self.stand_in}:{os.environ['PATH']}",
                "PYTHONPATH": str(SCAFFOLD_PARENT),
                "PYTHONDONTWRITEBYTECODE": "1",
                "STAND_IN": str(self.stand_in),
            }
            | environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )

    def done(self, **environment: str) -> dict[str, Any]:
        """Run it and return what it says."""
        done = self.run(**environment)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("\n") == 1
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    def refused(self) -> str:
        """Run it and return why it would not."""
        done = self.run()
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.count("\n") == 1 and done.stderr.startswith("scaffold: ")
        return done.stderr

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


@pytest.fixture
def prep(tmp_path: Path) -> Prep:
    return Prep(tmp_path)


def _bytes(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_it_writes_documents_settings_and_one_commit_of_everything(prep: Prep) -> None:
    said = prep.done()
    assert set(said) == {"baselineCommit", "scaffolderVersion", "notes"}
    assert said["notes"] == []
    assert prep.git("rev-parse", "HEAD").strip() == said["baselineCommit"]
    assert prep.git("rev-list", "--all", "--count").strip() == "1"
    assert prep.git("status", "--porcelain", "--ignored") == ""
    assert prep.git("ls-files").split() == [
        ".copperhead/config.json",
        ".gitignore",
        *(
            f"docs/{name}.md"
            for name in ("BOM", "CHANGELOG", "DECISIONS", "LAYOUT", "PINOUT", "SPEC", "SUBSYSTEMS")
        ),
        "hw/x.kicad_pcb",
        "hw/x.kicad_pro",
        "hw/x.kicad_sch",
    ]
    assert "| R1 | 10k | fp:R | UNVERIFIED | as drawn |" in prep.read("docs/BOM.md")
    assert "| R1 | 2 | ~ | SENSE |  |" in prep.read("docs/PINOUT.md")
    assert json.loads(prep.read(".copperhead/config.json")) == {
        "schematic": "hw/x.kicad_sch",
        "board": "hw/x.kicad_pcb",
        "docs": "docs/",
        "maxTurns": 30,
        "maxRepairCycles": 4,
        "budgets": {},
        "llmCache": False,
        "turnTimeoutMs": 120_000,
    }


def test_fixture_files_keep_their_bytes(prep: Prep) -> None:
    before = _bytes(prep.workspace)
    prep.done()
    assert before.items() <= _bytes(prep.workspace).items()


@pytest.mark.parametrize("wall", [1, 7.5, 600, 86_400])
def test_four_request_timeouts_fit_under_the_wall_cap(prep: Prep, wall: float) -> None:
    prep.task["caps"]["wallClockSec"] = wall
    prep.done()
    assert json.loads(prep.read(".copperhead/config.json"))["turnTimeoutMs"] * 4 < wall * 1000


def test_the_same_input_gives_the_same_bytes_whatever_the_machine(prep: Prep, tmp_path: Path) -> None:
    prep.put(".gitattributes", "* text=auto eol=crlf ident\n*.kicad_sch filter=lfs\n")
    prep.put("ignored/a.bin", "\0")
    prep.put(".gitignore", "ignored/\n")
    other = tmp_path / "other"
    shutil.copytree(prep.workspace, other / "workspace")
    second = Prep(other)
    for path in other.rglob("*.kicad_*"):
        os.utime(path, (1, 1))
        path.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\nname = x\n[core]\nautocrlf = true\n[commit]\ngpgsign = true\n")
    first = prep.done()
    other_said = second.done(
        HOME=str(home), TZ="Asia/Tokyo", LANG="tr_TR.UTF-8", GIT_AUTHOR_NAME="y", GIT_DIR="/x"
    )
    assert first == other_said
    assert _bytes(prep.workspace) == _bytes(second.workspace)
    assert "ignored/a.bin" in prep.git("ls-files")
    assert prep.git("show", "HEAD:hw/x.kicad_pcb") == "(kicad_pcb)\n"
    assert prep.git("cat-file", "-s", "HEAD:hw/x.kicad_pcb").strip() == "13"


def test_modes_are_not_part_of_it(prep: Prep) -> None:
    (prep.workspace / "hw/x.kicad_sch").chmod(0o400)
    (prep.workspace / "hw").chmod(0o500)
    prep.done()
    assert all(line.startswith("100644 ") for line in prep.git("ls-tree", "-r", "HEAD").splitlines())


def test_a_create_tasks_brief_is_in_the_workspace_and_wins(prep: Prep) -> None:
    """As bytes: a brief may be anything that its author wrote."""
    brief = b"# A divider\r\n\xff"
    prep.input.mkdir()
    (prep.input / "brief.md").write_bytes(brief)
    prep.put("brief.md", "another\n", overlay=True)
    prep.done()
    assert (prep.workspace / "brief.md").read_bytes() == brief
    assert "brief.md" in prep.git("ls-files").split()


def test_an_overlay_wins_over_fixture_and_documents(prep: Prep) -> None:
    prep.put("docs/BOM.md", "planted drift\n", overlay=True)
    prep.put("hw/x.kicad_pcb", "other\n", overlay=True)
    prep.put("notes/new.md", "new\n", overlay=True)
    prep.done()
    assert prep.read("docs/BOM.md") == "planted drift\n"
    assert prep.read("hw/x.kicad_pcb") == "other\n"
    assert "notes/new.md" in prep.git("ls-files")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (".copperhead/config.json", "not the task's to give"),
        (".copperhead/runs/a/transcript.jsonl", "not the task's to give"),
        (".copperhead/llm-cache/a", "not the task's to give"),
        (".git/config", "starts without git"),
        ("a/.GIT/hooks/x", "starts without git"),
    ],
)
def test_an_overlay_may_not_give_what_is_ours(prep: Prep, name: str, why: str) -> None:
    prep.put(name, "{}", overlay=True)
    assert why in prep.refused()


def test_an_overlay_file_cannot_replace_a_folder(prep: Prep) -> None:
    prep.put("hw", "x", overlay=True)
    assert "overlay/hw" in prep.refused()


def test_an_overlay_holds_no_links(prep: Prep) -> None:
    prep.put("a", "x", overlay=True)
    (prep.input / "overlay/b").symlink_to("/etc")
    assert "b: neither" in prep.refused()


def test_a_fixtures_own_document_is_kept_and_said(prep: Prep) -> None:
    prep.put("docs/SPEC.md", "ours\n")
    assert prep.done()["notes"] == ["docs/SPEC.md: the fixture's own is kept"]
    assert prep.read("docs/SPEC.md") == "ours\n"


def test_budgets_are_in_the_configuration_the_registry_and_the_specification(prep: Prep) -> None:
    prep.task["config"]["budgets"] = {"standby_current_uA": 25, "cost_usd": 2.5}
    prep.done()
    assert json.loads(prep.read(".copperhead/config.json"))["budgets"] == {
        "standby_current_uA": 25,
        "cost_usd": 2.5,
    }
    registry = json.loads(prep.read(".copperhead/constraints.json"))
    assert {key: entry["max"] for key, entry in registry.items()} == {
        "standby_current_uA": 25,
        "cost_usd": 2.5,
    }
    assert "- cost_usd: 2.5\n- standby_current_uA: 25\n" in prep.read("docs/SPEC.md")


def test_a_registry_that_the_task_brings_is_taken_and_specified(prep: Prep) -> None:
    prep.task["config"]["budgets"] = {"standby_current_uA": 25}
    given = '{"power.rail_V": {"min": 3, "max": 3.6}}'
    prep.put(".copperhead/constraints.json", given, overlay=True)
    assert prep.done()["notes"] == ["budget standby_current_uA is not in .copperhead/constraints.json"]
    assert prep.read(".copperhead/constraints.json") == given
    assert "- power.rail_V: min 3, max 3.6" in prep.read("docs/SPEC.md")


@pytest.mark.parametrize("given", ["[]", "{"])
def test_a_registry_that_is_none_is_off(prep: Prep, given: str) -> None:
    prep.put(".copperhead/constraints.json", given, overlay=True)
    assert "constraints.json" in prep.refused()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ".history/\n.copperhead/runs/\n.copperhead/llm-cache/\n"),
        ("*.bak", "*.bak\n.history/\n.copperhead/runs/\n.copperhead/llm-cache/\n"),
        (".history/\r\n*.bak\r\n", ".history/\r\n*.bak\r\n.copperhead/runs/\n.copperhead/llm-cache/\n"),
        (".copperhead/llm-cache/\n.copperhead/runs/\n.history/\n", None),
    ],
)
@pytest.mark.parametrize("overlay", [False, True])
def test_gitignore_keeps_its_lines_and_gains_ours(
    prep: Prep, before: str, after: str | None, *, overlay: bool
) -> None:
    if before:
        prep.put(".gitignore", before, overlay=overlay)
    prep.done()
    assert prep.read(".gitignore") == (before if after is None else after)


def test_without_init_there_are_no_documents(prep: Prep) -> None:
    prep.task["setup"]["commands"] = []
    prep.done()
    assert not (prep.workspace / "docs").exists()
    assert not (prep.stand_in / "calls").exists()


def test_quiet_baseline_silences_what_is_listed(prep: Prep) -> None:
    prep.task["setup"]["commands"] = ["quiet-baseline"]
    prep.quiet = [
        {"source": "erc", "type": "lib_symbol_issues"},
        {"source": "unconnected", "type": "unconnected_items"},
    ]
    (prep.stand_in / "violations").write_text(
        json.dumps({"erc": [{"type": "lib_symbol_issues"}, {"type": "x", "excluded": True}], "drc": []})
    )
    assert prep.done()["notes"] == []
    project = json.loads(prep.read("hw/x.kicad_pro"))
    assert project["erc"]["rule_severities"] == {"lib_symbol_issues": "ignore"}
    assert project["board"]["design_settings"]["rule_severities"] == {"unconnected_items": "ignore"}


def test_quiet_baseline_silences_what_only_this_image_reports_and_says_so(prep: Prep) -> None:
    prep.task["setup"]["commands"] = ["init", "quiet-baseline"]
    (prep.stand_in / "violations").write_text('{"erc": [], "drc": [{"type": "lib_footprint_issues"}]}')
    assert prep.done()["notes"] == ["quiet-baseline: only here: drc lib_footprint_issues"]
    project = json.loads(prep.read("hw/x.kicad_pro"))
    assert project["board"]["design_settings"]["rule_severities"] == {"lib_footprint_issues": "ignore"}


def test_a_violation_that_a_severity_cannot_silence_is_off(prep: Prep) -> None:
    prep.task["setup"]["commands"] = ["quiet-baseline"]
    (prep.stand_in / "violations").write_text('{"erc": [{"type": "custom", "deaf": true}], "drc": []}')
    assert "still reported: erc custom" in prep.refused()


def test_quiet_baseline_judges_the_fixture_not_the_overlay(prep: Prep) -> None:
    prep.task["setup"]["commands"] = ["quiet-baseline"]
    prep.put("hw/x.kicad_pro", '{"erc": {"own": 1}}', overlay=True)
    prep.done()
    assert prep.read("hw/x.kicad_pro") == '{"erc": {"own": 1}}'


def test_kicad_leaves_nothing_in_the_workspace(prep: Prep) -> None:
    prep.done()
    assert not list(prep.workspace.rglob("*.kicad_prl"))


def test_parts_that_only_one_reader_sees_are_said(prep: Prep) -> None:
    (prep.stand_in / "netlist").write_text(netlist({}, {"R1": "1", "R2": "2"}))
    assert prep.done()["notes"] == ["1 parts are seen only by KiCad: R2"]


def _no_kicad(prep: Prep) -> None:
    (prep.stand_in / "exit").write_text("3")


def _no_netlist(prep: Prep) -> None:
    (prep.stand_in / "netlist").write_text("(export)")


def _no_schematic(prep: Prep) -> None:
    (prep.workspace / "hw/x.kicad_sch").unlink()


def _cut_schematic(prep: Prep) -> None:
    prep.put("hw/x.kicad_sch", "(kicad_sch")


def _unknown_command(prep: Prep) -> None:
    prep.task["setup"]["commands"] = ["polish"]


def _no_caps(prep: Prep) -> None:
    del prep.task["caps"]


def _no_project(prep: Prep) -> None:
    prep.task["setup"]["commands"] = ["quiet-baseline"]
    prep.fixture["artifacts"]["project"] = None


def _bad_project(prep: Prep) -> None:
    prep.task["setup"]["commands"] = ["quiet-baseline"]
    prep.quiet = [{"source": "erc", "type": "a"}]
    prep.put("hw/x.kicad_pro", "not json")


def _a_repository(prep: Prep) -> None:
    prep.put(".git/HEAD", "ref: refs/heads/main\n")


def _a_link(prep: Prep) -> None:
    (prep.workspace / "link").symlink_to("hw")


@pytest.mark.parametrize(
    "break_it",
    [
        _no_kicad,
        _no_netlist,
        _no_schematic,
        _cut_schematic,
        _unknown_command,
        _no_caps,
        _no_project,
        _bad_project,
        _a_repository,
        _a_link,
    ],
)
def test_what_is_off_is_one_line(prep: Prep, break_it: Callable[[Prep], None]) -> None:
    break_it(prep)
    assert prep.refused()


def test_a_second_run_is_refused(prep: Prep) -> None:
    prep.done()
    assert "starts without git" in prep.refused()


def test_wrong_arguments_are_usage(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scaffold"],
        env={"PYTHONPATH": str(SCAFFOLD_PARENT), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
