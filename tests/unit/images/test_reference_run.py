"""The reference agent as a process: real git, a scripted provider on loopback, a stand-in for kicad-cli.

What it writes is read by the grader's own reader: an honest run of ours must never look like tampering.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from grader.evidence import Entry
from grader.taxonomy import tool_errors
from grader.transcript import Transcript, read_transcript
from orchestrator.history import read_history
from schema.agent import Agent
from schema.errors import UsageError
from schema.hashing import sha256
from schema.jsonfile import read_model
from schema.task import Mode
from schema.transcript import ExitPath, RunCommitted, RunRefused, RunStart
from schema.verdict import Category
from tests.doubles.provider import HANG_UP, Answer, Provider, call, fails, says, serving
from tests.unit.images.sources import REFERENCE, SCAFFOLD_PARENT, program, reference, scaffold
from tests.unit.orchestrator.repos import collected

AGENT = read_model(REFERENCE / "agent.json", Agent)
SCHEMATIC = "hw/x.kicad_sch"
DRAWN = """(kicad_sch
 (part "R1" "10k")
 (on "R1" "1" "/SENSE")
 (on "R1" "2" "GND")
 (warning "w1")
)
"""
KICAD_CLI = r"""
# A schematic is its own netlist and its own list of findings.
import json, pathlib, re, sys
area, _, kind = sys.argv[1:4]
out, text = pathlib.Path(sys.argv[sys.argv.index("-o") + 1]), pathlib.Path(sys.argv[-1]).read_text()
if "unloadable" in text:
    sys.exit("Failed to load")
found = [
    {{"type": "t", "severity": severity, "description": "d", "items": [{{"uuid": uuid, "description": "i"}}]}}
    for severity, uuid in re.findall(r'\((error|warning) "(\w+)"\)', text)
]
if sys.argv[2] == "erc":
    out.write_text(json.dumps({{"sheets": [{{"violations": found}}]}}))
elif sys.argv[2] == "drc":
    out.write_text(json.dumps({{"violations": found, "unconnected_items": [], "schematic_parity": []}}))
elif area == "sch":
    comps = "".join(
        f'(comp (ref "{{r}}") (value "{{v}}") (footprint "fp"))'
        for r, v in re.findall(r'\(part "(\w+)" "(\w+)"\)', text)
    )
    nets = "".join(
        f'(net (name "{{n}}") (node (ref "{{r}}") (pin "{{p}}") (pinfunction "P{{p}}")))'
        for r, p, n in re.findall(r'\(on "(\w+)" "(\w+)" "([^"]+)"\)', text)
    )
    out.write_text(f"(export (components {{comps}}) (nets {{nets}}))")
"""
BOM = "# BOM\n\n| Refdes | Value | Footprint |\n|---|---|---|\n| R1 | 10k | fp |\n"
PINOUT = "# Pinout\n\n| Refdes | Pin | Net |\n|---|---|---|\n| R1 | 1 | SENSE |\n| R1 | 2 | GND |\n"
RENAME = call("edit_file", path=SCHEMATIC, old='"/SENSE"', new='"/VDIV"')
PROPAGATE = call("edit_file", path="docs/PINOUT.md", old="| SENSE |", new="| VDIV |")
DONE = call("finish", outcome="done", summary="SENSE is VDIV")


class Desk:
    """A workspace with its baseline commit, and the agent over it."""

    def __init__(self, root: Path) -> None:
        self.root, self.programs = root / "workspace", root / "programs"
        self.programs.mkdir()
        program(self.programs / "kicad-cli", KICAD_CLI.format())
        config = {
            "schematic": SCHEMATIC,
            "board": None,
            "docs": "docs/",
            "maxTurns": 12,
            "maxRepairCycles": 2,
            "budgets": {"k_mA": 5},
            "turnTimeoutMs": 5000,
        }
        self.files = {
            SCHEMATIC: DRAWN,
            "docs/BOM.md": BOM,
            "docs/PINOUT.md": PINOUT,
            "docs/SPEC.md": "# Spec\n\n- k_mA: 5\n",
            "docs/CHANGELOG.md": "# Changelog\n\nNewest first.\n",
            ".gitignore": ".copperhead/runs/\n",
            ".copperhead/config.json": json.dumps(config),
            ".copperhead/constraints.json": '{"k_mA": {"max": 5}}',
        }
        self.commit()

    def commit(self) -> None:
        """The baseline."""
        tree = scaffold("tree")
        for name, text in self.files.items():
            tree.write(self.root, name, text)
        self.baseline = tree.commit(self.root)

    def start(self, *command: str, path: str = "") -> subprocess.CompletedProcess[str]:
        """Run the program as the agent's container does, in a clean environment."""
        code = (
            f"import sys; sys.path += {[str(REFERENCE), str(SCAFFOLD_PARENT)]}; "
            "from reference.cli import main; sys.exit(main(sys.argv[1:]))"
        )
        return subprocess.run(
            [sys.executable, "-I", "-B", "-c", code, *command],
            env={"PATH": path or f"{self.programs}:{os.environ['PATH']}", "HOME": "/nonexistent"},
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )

    def run(
        self, *script: Answer, options: tuple[str, ...] = (), mode: str = "do", request: str = "Rename it"
    ) -> Ran:
        """A run against a script."""
        with serving(*script) as provider:
            command = [mode, "--model=m", f"--base-url={provider.base_url}", *options, "--", request]
            done = self.start(*command)
        return Ran(self, done, provider)

    def git(self, *arguments: str) -> str:
        """git's answer in the workspace."""
        command = ["git", "-c", "safe.directory=*", *arguments]
        return subprocess.run(
            command, cwd=self.root, capture_output=True, text=True, check=True
        ).stdout.strip()

    def tree(self) -> Mapping[str, Entry]:
        """The workspace as evidence."""
        return {
            path.relative_to(self.root).as_posix(): Entry(path.read_bytes())
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.root).parts
        }

    def unchanged(self) -> bool:
        """Whether all files are the baseline's, byte for byte."""
        kept = {name: entry.data for name, entry in self.tree().items() if "/runs/" not in name}
        return kept == {name: text.encode() for name, text in self.files.items()}


class Ran:
    """What a run left."""

    def __init__(self, desk: Desk, done: subprocess.CompletedProcess[str], provider: Provider) -> None:
        self.code, self.err, self.out = done.returncode, done.stderr, done.stdout
        self.provider = provider
        end = desk.tree()
        self.transcript: Transcript = read_transcript(AGENT, Mode.DO, baseline={}, end=end)
        assert self.transcript.tampering == (), self.transcript.tampering
        assert self.transcript.notes == ()

    @property
    def exit_path(self) -> ExitPath | None:
        """By the transcript's own account."""
        return self.transcript.end.exit_path if self.transcript.end else None

    @property
    def results(self) -> list[str]:
        """Every tool's result, in order."""
        return [event["result"] for event in self.transcript.data("tool")]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# --- the ends


def test_done_is_verified_logged_and_committed_once(desk: Desk) -> None:
    ran = desk.run(says(RENAME, PROPAGATE, call("run_erc"), call("check_drift")), says(DONE))
    assert (ran.code, ran.err, ran.exit_path) == (0, "", ExitPath.DONE)
    assert ran.results[2:] == ["ERC: 0 new findings, 1 in all", "drift: none", "verified; committing"]
    committed = RunCommitted.model_validate(ran.transcript.data("run-committed")[0])
    assert committed.files == [SCHEMATIC, "docs/PINOUT.md"]
    assert desk.git("rev-parse", "HEAD") == committed.commit
    assert desk.git("rev-parse", "HEAD~1") == desk.baseline
    assert desk.git("status", "--porcelain") == ""
    history = read_history(collected(desk.root), desk.baseline, aside=AGENT.bookkeeping.always).history
    assert (history.status, history.commits) == ("ok", [committed.commit])
    assert desk.git("log", "-1", "--format=%an|%s|%b") == "reference agent|reference: Rename it|SENSE is VDIV"
    changed = desk.git("diff", "--name-only", "HEAD~1").splitlines()
    assert changed == ["docs/CHANGELOG.md", "docs/PINOUT.md", SCHEMATIC]
    log = (desk.root / "docs/CHANGELOG.md").read_text()
    assert log.startswith("# Changelog\n\nNewest first.\n\n## ") and "— Rename it\n\n- SENSE is VDIV\n" in log


def test_the_start_says_with_what_it_ran(desk: Desk) -> None:
    ran = desk.run(says(DONE), options=("--prompt=terse", "--max-turns=3", "--max-repair-cycles=0"))
    data = ran.transcript.data("run-start")[0]
    start = RunStart.model_validate(data)
    assert (start.request, start.model, start.command) == ("Rename it", "m", "do")
    text = (REFERENCE / "prompts/terse.md").read_bytes()
    assert data["prompt"] == {"variant": "terse", "sha256": sha256(text)}
    assert (data["config"]["maxTurns"], data["config"]["maxRepairCycles"]) == (3, 0)
    assert data["git"]["commit"] == desk.baseline
    assert ran.provider.requests[0]["messages"][0] == {"role": "system", "content": text.decode()}
    end = ran.transcript.end
    assert end is not None and (end.turns_used, end.tokens_in, end.tokens_out) == (1, 100, 10)


def test_done_without_a_change_commits_nothing(desk: Desk) -> None:
    ran = desk.run(says(DONE))
    assert (ran.code, ran.exit_path) == (0, ExitPath.DONE)
    assert desk.git("rev-parse", "HEAD") == desk.baseline and desk.unchanged()


@pytest.mark.parametrize(("outcome", "path", "code"), [("refuse", "refused", 0), ("flag", "flagged", 2)])
def test_refusing_and_flagging_take_everything_back(desk: Desk, outcome: str, path: str, code: int) -> None:
    record = call("record_constraint", key="new_mA", source="docs/SPEC.md", max=3)
    write = call("write_file", path="docs/notes/NEW.md", content="x\n")
    ran = desk.run(
        says(RENAME, record, write), says(call("finish", outcome=outcome, summary="k_mA = 5 forbids it"))
    )
    assert (ran.code, ran.exit_path) == (code, ExitPath(path))
    assert desk.unchanged() and desk.git("rev-parse", "HEAD") == desk.baseline
    refused = [RunRefused.model_validate(data).summary for data in ran.transcript.data("run-refused")]
    assert refused == (["k_mA = 5 forbids it"] if outcome == "refuse" else [])


def test_the_turn_budget_ends_a_run(desk: Desk) -> None:
    ran = desk.run(says(call("list_files")), options=("--max-turns=3",))
    assert (ran.code, ran.exit_path, len(ran.provider.requests)) == (1, ExitPath.TURN_BUDGET, 3)


def test_the_last_turn_may_finish(desk: Desk) -> None:
    ran = desk.run(says(call("list_files")), says(DONE), options=("--max-turns=2",))
    assert (ran.code, ran.exit_path) == (0, ExitPath.DONE)


def test_failed_checks_use_up_the_repair_budget(desk: Desk) -> None:
    """The third reply whose check fails is one more than two; two checks in one reply are one repair."""
    worse = call("edit_file", path=SCHEMATIC, old='(warning "w1")', new='(warning "w1") (error "e1")')
    ran = desk.run(
        says(worse, call("run_erc"), call("run_drc")), says(DONE), says(call("run_erc")), says(DONE)
    )
    assert (ran.code, ran.exit_path) == (1, ExitPath.REPAIR_CYCLES)
    assert ran.transcript.end is not None and ran.transcript.end.repair_cycles_used == 3
    assert "(error" in (desk.root / SCHEMATIC).read_text(), "a failed run's work stays to be looked at"
    assert desk.git("rev-parse", "HEAD") == desk.baseline


def test_three_replies_without_a_tool_are_a_stall(desk: Desk) -> None:
    ran = desk.run(says(text="hm"), says(call("list_files")), says(text="done!"))
    assert (ran.code, ran.exit_path, len(ran.provider.requests)) == (1, ExitPath.STALLED, 5)
    assert ran.provider.requests[-1]["messages"][-1]["role"] == "user"


@pytest.mark.parametrize(
    ("answer", "requests"),
    [
        (fails(401, "bad key"), 1),
        (fails(500, retry_after="0"), 3),
        (HANG_UP, 3),
        (Answer(b"<html>"), 1),
        (fails(400, "maximum context length is 10"), 1),
    ],
    ids=["refused", "broken", "hung up", "no completion", "too small for the request"],
)
def test_a_provider_that_does_not_answer_ends_the_run(desk: Desk, answer: Answer, requests: int) -> None:
    ran = desk.run(answer)
    assert (ran.code, ran.exit_path, len(ran.provider.requests)) == (1, ExitPath.PROVIDER_ERROR, requests)
    (failed,) = ran.transcript.data("run-failed")
    assert failed["exitPath"] == "provider-error" and failed["reason"].startswith("provider error: ")


def test_a_slow_reply_is_the_gateways_to_give_up(desk: Desk) -> None:
    """Naive: ``turnTimeoutMs`` of the settings file, below what the gateway bears for a provider."""
    config = json.loads(desk.files[".copperhead/config.json"]) | {"turnTimeoutMs": 50}
    (desk.root / ".copperhead/config.json").write_text(json.dumps(config))
    ran = desk.run(replace(says(call("finish", outcome="refuse", summary="x")), after=0.5))
    assert (ran.exit_path, len(ran.provider.requests)) == (ExitPath.REFUSED, 1)


def test_a_commit_that_fails_is_said(desk: Desk) -> None:
    (desk.root / ".git/index.lock").write_text("")
    ran = desk.run(says(RENAME, PROPAGATE), says(DONE))
    assert (ran.code, ran.exit_path) == (1, ExitPath.COMMIT_FAILED)
    assert ran.transcript.data("run-committed") == []


def test_a_hook_and_a_planted_setting_are_not_run(desk: Desk) -> None:
    hook = desk.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran\nexit 1\n")
    hook.chmod(0o755)
    with (desk.root / ".git/config").open("a") as file:
        file.write("[core]\n\tfsmonitor = touch ran\n")
    ran = desk.run(says(RENAME, PROPAGATE), says(DONE))
    assert ran.exit_path is ExitPath.DONE and not (desk.root / "ran").exists()


# --- the gate


def test_finish_waits_for_what_is_new_and_not_for_what_was_there(desk: Desk) -> None:
    ran = desk.run(says(RENAME), says(DONE), says(PROPAGATE), says(DONE))
    assert ran.results[1] == (
        "cannot finish yet: new since the start:\nPINOUT.md R1.1: claims 'SENSE', is '/VDIV'"
    )
    assert ran.exit_path is ExitPath.DONE


def test_a_new_warning_is_told_and_does_not_block(desk: Desk) -> None:
    more = call("edit_file", path=SCHEMATIC, old='(warning "w1")', new='(warning "w1") (warning "w2")')
    ran = desk.run(says(more, call("run_erc")), says(DONE))
    assert ran.results[1] == "ERC: 1 new findings, 2 in all\n[warning] t: d; i"
    assert ran.exit_path is ExitPath.DONE


def test_drift_that_was_there_does_not_block(desk: Desk) -> None:
    desk.files["docs/BOM.md"] = BOM.replace("10k", "22k")
    desk.commit()
    ran = desk.run(says(RENAME, PROPAGATE, call("check_drift")), says(DONE))
    assert "(was so at the start)" in ran.results[2] and ran.exit_path is ExitPath.DONE


def test_an_edit_that_kicad_cannot_load_is_reverted(desk: Desk) -> None:
    broken = call("edit_file", path=SCHEMATIC, old="(part", new="((part")
    rejected = call("edit_file", path=SCHEMATIC, old="(part", new="(unloadable) (part")
    ran = desk.run(says(broken, rejected), says(DONE))
    assert [result[:14] for result in ran.results[:2]] == ["edit REVERTED:"] * 2
    assert desk.unchanged()
    assert tool_errors(ran.transcript.data("tool")) == {Category.FILE_REVERT: 2}


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\x00"])
def test_a_project_file_that_is_no_json_is_reverted(desk: Desk, text: str) -> None:
    """KiCad would silently take default rules."""
    desk.files["hw/x.kicad_pro"] = "{}\n"
    desk.commit()
    ran = desk.run(says(call("edit_file", path="hw/x.kicad_pro", old="{}", new=text)), says(DONE))
    assert ran.results[0].startswith("edit REVERTED: KiCad cannot load hw/x.kicad_pro after it: ")
    assert ran.exit_path is ExitPath.DONE and desk.unchanged()


def test_nothing_is_carried_out_after_finish_in_the_same_reply(desk: Desk) -> None:
    """An agent that goes on executes an unverified edit and commits it."""
    ran = desk.run(says(RENAME, PROPAGATE, DONE, call("edit_file", path=SCHEMATIC, old="10k", new="22k")))
    assert ran.results[3] == "error: not carried out: the run has ended"
    assert "10k" in (desk.root / SCHEMATIC).read_text() and desk.git("status", "--porcelain") == ""


# --- calls as models make them


@pytest.mark.parametrize(
    ("made", "result"),
    [
        (("read_file", "{"), "error: the arguments of read_file are unusable: not JSON"),
        (("read_file", "[]"), "error: the arguments of read_file are unusable: not a JSON object"),
        (("read_file", "{}"), "error: missing argument path"),
        (call("read_file", path=3), "error: argument path must be of type string"),
        (call("read_file", path="docs/BOM.md", start=True), "error: argument start must be of type integer"),
        (call("read_file", path="docs/BOM.md", limit=3), "error: unknown argument 'limit'"),
        (call("read_file", path="../x"), "error: path leaves the workspace"),
        (call("read_file", path=".git/HEAD"), "error: path is out of reach"),
        (call("read_file", path="docs"), "error: no file docs"),
        (call("bash", command="ls"), 'tool "bash" is not available'),
        (("", "{}"), 'tool "" is not available'),
        (call("edit_file", path="docs/BOM.md", old="zzz", new="y"), "error: old occurs 0 times"),
        (call("edit_file", path="docs/BOM.md", old="|", new="y"), "error: old occurs 12 times"),
        (call("edit_file", path="docs/BOM.md", old="", new="y"), "error: old occurs 0 times"),
        (
            call("edit_file", path="docs/BOM.md", old="10k", new="\ud800"),
            "error: a text holds half a character",
        ),
        (
            call("edit_file", path=".copperhead/config.json", old="12", new="99"),
            "error: .copperhead/config.json is not",
        ),
        (
            call("edit_file", path=".copperhead/constraints.json", old="5", new="9"),
            "error: .copperhead/constraints.json",
        ),
        (
            call("write_file", path="hw/new.kicad_sch", content="()"),
            "error: write_file writes documents in docs/",
        ),
        (call("write_file", path="notes.md", content="x"), "error: write_file writes documents in docs/"),
        (call("write_file", path="docs/BOM.md", content="x"), "error: docs/BOM.md exists; use edit_file"),
        (call("write_file", path="docs/" + "x" * 300, content="x"), "error: "),
        (call("search", pattern=""), "error: argument pattern is empty"),
        (call("finish", outcome="maybe", summary="x"), "error: outcome must be one of done, refuse, flag"),
        (call("finish", outcome="refuse", summary=" "), "error: summary is empty"),
        (call("record_constraint", key="k_mA", source="s", max=9), "error: k_mA is recorded with max 5"),
        (call("record_constraint", key="x", source="s"), "error: record_constraint needs a key and one of"),
    ],
)
def test_a_call_that_is_off_is_answered_and_changes_nothing(
    desk: Desk, made: tuple[str, str], result: str
) -> None:
    ran = desk.run(says(made), says(call("finish", outcome="refuse", summary="x")))
    assert ran.results[0].startswith(result)
    assert ran.exit_path is ExitPath.REFUSED and desk.unchanged()
    assert tool_errors(ran.transcript.data("tool")) == {Category.TOOL_PROTOCOL: 1}
    assert ran.provider.results()[0] == ran.results[0]


@pytest.mark.parametrize(
    ("made", "result"),
    [
        (call("list_files", folder="docs"), "docs/BOM.md\ndocs/CHANGELOG.md\ndocs/PINOUT.md\ndocs/SPEC.md"),
        (call("read_file", path="docs/SPEC.md", start=3, end=3), "lines 3 to 3 of 3\n3: - k_mA: 5"),
        (
            call("search", pattern="SENSE"),
            'docs/PINOUT.md:5: | R1 | 1 | SENSE |\nhw/x.kicad_sch:3: (on "R1" "1" "/SENSE")',
        ),
        (call("search", pattern="SENSE", path="docs"), "docs/PINOUT.md:5: | R1 | 1 | SENSE |"),
        (call("search", pattern="10.", path="docs/BOM.md"), "no match"),
        (call("list_nets"), "/SENSE: R1.1\nGND: R1.2"),
        (call("list_nets", filter="SEN"), "/SENSE: R1.1"),
        (call("list_symbols"), "R1: 10k fp"),
        (call("list_symbols", filter="C"), "none"),
        (call("run_drc"), "DRC: 0 new findings, 0 in all"),
        (call("check_drift"), "drift: none"),
    ],
)
def test_what_reading_tools_say(desk: Desk, made: tuple[str, str], result: str) -> None:
    ran = desk.run(says(made), says(DONE))
    assert ran.results[0] == result


def test_a_requirement_can_be_recorded_and_tightened(desk: Desk) -> None:
    tighter = call("record_constraint", key="k_mA", source="docs/SPEC.md", max=4, affects=["R1"])
    ran = desk.run(says(tighter, call("record_constraint", key="x", source="s", value="1 W")), says(DONE))
    assert json.loads((desk.root / ".copperhead/constraints.json").read_text()) == {
        "k_mA": {"max": 4, "source": "docs/SPEC.md", "affects": ["R1"]},
        "x": {"value": "1 W", "source": "s", "affects": []},
    }
    assert ran.exit_path is ExitPath.DONE and desk.git("status", "--porcelain") == ""


def test_line_ends_of_a_file_are_kept(desk: Desk) -> None:
    desk.files[SCHEMATIC] = DRAWN.replace("\n", "\r\n")
    desk.commit()
    edit = call("edit_file", path=SCHEMATIC, old='"/SENSE")\n (on "R1"', new='"/VDIV")\n (on "R1"')
    desk.run(says(edit, PROPAGATE), says(DONE))
    assert (desk.root / SCHEMATIC).read_bytes() == desk.files[SCHEMATIC].replace("SENSE", "VDIV").encode()


def test_huge_results_and_broken_texts_stay_within_the_contract(desk: Desk) -> None:
    desk.files["docs/BIG.md"] = ("x" * 10_000 + "\n") * 600
    desk.commit()
    odd = says(
        call("read_file", path="docs/BIG.md"),
        call("search", pattern="x"),
        ("search", '{"pattern": "\\ud800"}'),
        ("search", '{"pattern": "' + "y" * 600_000 + '"}'),
        text="\udfff half",
    )
    ran = desk.run(odd, says(*[call("list_files")] * 100), says(DONE), options=("--max-turns=5",))
    assert all(len(result) < 31_000 for result in ran.results)
    # Calls past the 64th of one reply are not looked at.
    assert ran.exit_path is ExitPath.DONE and len(ran.results) == 4 + 64 + 1


def test_usage_that_is_not_told_is_null(desk: Desk) -> None:
    ran = desk.run(says(call("list_files"), tokens=None), says(DONE))
    end = ran.transcript.end
    assert end is not None and (end.tokens_in, end.tokens_out, len(end.per_turn)) == (None, None, 1)


def test_a_conversation_that_is_too_long_is_shortened_and_goes_on(desk: Desk) -> None:
    desk.files["docs/BIG.md"] = "0123456789\n" * 3000
    desk.commit()
    read = says(*[call("read_file", path="docs/BIG.md", start=start) for start in (1, 401, 801)])
    ran = desk.run(read, read, read, fails(400, "context_length_exceeded"), says(DONE))
    assert ran.exit_path is ExitPath.DONE
    before, after = (len(json.dumps(request)) for request in ran.provider.requests[-2:])
    assert after < before
    assert all("Rename it" in request["messages"][1]["content"] for request in ran.provider.requests)


# --- ablations


@pytest.mark.parametrize("subset", AGENT.conditions["tools"])
def test_a_subset_of_tools_is_all_the_model_is_offered(desk: Desk, subset: str) -> None:
    left_out = reference("tools").SUBSETS[subset]
    script = (says(*[call(name) for name in sorted(left_out)]), says(DONE)) if left_out else (says(DONE),)
    ran = desk.run(*script, options=(f"--tools={subset}",))
    offered = {tool["function"]["name"] for tool in ran.provider.requests[0]["tools"]}
    assert offered == reference("tools").SPECS.keys() - left_out
    assert [result.startswith('tool "') for result in ran.results[:-1]] == [True] * len(left_out)


def test_the_manifest_lists_the_switches_that_the_agent_has() -> None:
    assert AGENT.version == reference("cli").VERSION
    assert set(AGENT.conditions["tools"]) == reference("tools").SUBSETS.keys()
    assert AGENT.prompts is not None
    texts = {path.stem for path in (REFERENCE / AGENT.prompts).iterdir()}
    assert set(AGENT.conditions["prompt"]) == texts
    assert (AGENT.conditions["tools"][0], AGENT.conditions["prompt"][0]) == ("all", "default")


def test_the_manifests_commands_are_ones_the_agent_takes(desk: Desk) -> None:
    values = AGENT.settle({"tools": "no-lists"}, {"maxTurns": "7", "maxRepairCycles": "1"})
    values |= {"request": "--help {model}", "model": "a/b:c", "brief": "brief.md"}
    command = AGENT.command(Mode.DO, values)
    assert command[:4] == ["python3", "-I", "/opt/agent", "do"] and command[-1] == "--help {model}"
    with serving(says(DONE)) as provider:
        done = desk.start(*command[3:-2], f"--base-url={provider.base_url}", *command[-2:])
    assert done.returncode == 0, done.stderr
    assert provider.requests[0]["model"] == "a/b:c"
    assert provider.requests[0]["messages"][1]["content"].startswith("--help {model}\n")


@pytest.mark.parametrize(
    "wanted", [{"tools": "none"}, {"maxTurns": "-1"}, {"maxTurns": "1001"}, {"color": "red"}]
)
def test_a_condition_that_the_agent_does_not_know_is_refused_before_a_run(wanted: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        AGENT.settle(wanted, {})


# --- other modes


def test_sync_without_drift_asks_nobody(desk: Desk) -> None:
    ran = desk.run(says(DONE), mode="sync")
    assert (ran.code, ran.out, ran.provider.requests, ran.transcript.paths) == (0, "in line\n", [], ())


def test_sync_mends_drift_and_tells_the_model_what_drifts(desk: Desk) -> None:
    desk.files["docs/BOM.md"] = BOM.replace("10k", "22k")
    desk.commit()
    mend = call("edit_file", path="docs/BOM.md", old="22k", new="10k")
    ran = desk.run(says(mend), says(DONE), mode="sync")
    assert (ran.code, ran.exit_path) == (0, ExitPath.DONE)
    assert "- BOM.md R1 value: claims '22k', is '10k'" in ran.provider.requests[0]["messages"][1]["content"]
    assert ran.transcript.data("run-start")[0]["command"] == "sync"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "docs/SPEC.md",
            "- k_mA: 50\n",
            "k_mA is 50 in docs/SPEC.md and 5 in .copperhead/constraints.json\n",
        ),
        (
            ".copperhead/constraints.json",
            '{"c": {"forbidden": ["P1"]}}',
            "R1 pin P1 is on net /SENSE, forbidden by c\n",
        ),
    ],
)
def test_a_contradiction_is_for_a_person_and_no_model_is_asked(
    desk: Desk, name: str, text: str, said: str
) -> None:
    desk.files |= {name: text, "docs/BOM.md": BOM.replace("10k", "22k")}
    desk.commit()
    ran = desk.run(says(DONE), mode="sync")
    assert (ran.code, ran.out, ran.provider.requests, ran.transcript.paths) == (2, said, [], ())
    assert AGENT.exit_codes == {"0": ExitPath.DONE, "2": ExitPath.FLAGGED}


def test_check_lists_everything_and_changes_nothing(desk: Desk) -> None:
    done = desk.start("check")
    assert (done.returncode, done.stdout) == (2, "[warning] t: d; i\n")
    desk.files[SCHEMATIC] = DRAWN.replace('(warning "w1")', "")
    desk.commit()
    done = desk.start("check")
    assert (done.returncode, done.stdout) == (0, "clean\n")
    assert desk.unchanged()


def test_create_reads_the_brief_and_may_draw(desk: Desk) -> None:
    desk.files |= {"brief.md": "# A divider\n"}
    del desk.files[SCHEMATIC]
    (desk.root / SCHEMATIC).unlink()
    desk.commit()
    draw = call("write_file", path=SCHEMATIC, content=DRAWN)
    ran = desk.run(says(draw), says(DONE), mode="create", request="brief.md")
    assert (ran.code, ran.exit_path) == (0, ExitPath.DONE)
    data = ran.transcript.data("run-start")[0]
    assert data["brief"] == {"path": "brief.md", "sha256": sha256(b"# A divider\n")}
    assert ran.provider.requests[0]["messages"][1]["content"].startswith("# A divider\n")


def test_init_writes_documents_for_a_project_that_has_none(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for name in ("docs", ".copperhead"):
        subprocess.run(["rm", "-r", str(desk.root / name)], check=True)
    done = desk.start("init", SCHEMATIC)
    assert (done.returncode, done.stderr) == (0, "")
    assert "| R1 | 10k | fp |" in (desk.root / "docs/BOM.md").read_text()
    assert json.loads((desk.root / ".copperhead/config.json").read_text())["schematic"] == SCHEMATIC


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("do", "x"), 64),
        (("do", "--model=m", "--tools=some", "x"), 64),
        (("do", "--model=m", "--max-turns=-1", "x"), 64),
        ((), 64),
        (("create", "--model=m", "nowhere.md"), 1),
        (("do", "--model=m", "--base-url=https://example.invalid/v1", "x"), 1),
        (("init", "nowhere.kicad_sch"), 1),
    ],
)
def test_a_wrong_command_line_is_one_line_and_no_transcript(
    desk: Desk, command: tuple[str, ...], code: int
) -> None:
    done = desk.start(*command)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (code, "", 1)
    assert desk.unchanged() and not (desk.root / ".copperhead/runs").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schematic": 3}'])
def test_settings_that_are_off_are_one_line(desk: Desk, text: str) -> None:
    (desk.root / ".copperhead/config.json").write_text(text)
    done = desk.start("check")
    assert done.returncode == 1 and done.stderr.startswith("reference: .copperhead/config.json: ")


def test_without_kicad_the_run_goes_on_and_cannot_be_done(desk: Desk) -> None:
    (desk.programs / "kicad-cli").unlink()
    edit = call("edit_file", path="docs/SPEC.md", old="# Spec", new="# Specification")
    ran = desk.run(
        says(call("list_nets"), edit), says(DONE), says(call("finish", outcome="flag", summary="x"))
    )
    assert ran.results[0] == "list_nets cannot be carried out: kicad-cli is not installed"
    assert ran.results[2].startswith("cannot finish yet") and ran.exit_path is ExitPath.FLAGGED
