"""Live runs with stand-in agents: shell scripts that mend, idle, cheat, overspend or hang."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compass.cli import app
from compass.taskbench import agent, tasks
from schema.errors import EnvironmentFault, UsageError
from tests.unit.compass.taskbench_data import NAME, PROMPT, make

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def _outside_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("SDLC_BUDGET", raising=False)


class Bench:
    """The small task, a place for results, and agents written as shell scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = make(folder / "root")
        self.results = folder / "results.tsv"
        (folder / "runs").mkdir()

    def agent(self, text: str) -> str:
        path = self.folder / "agent.sh"
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def run(self, agent: str, *args: str, root: Path | None = None) -> tuple[int, str, str]:
        where = [
            "--root",
            str(root or self.root),
            "--results",
            str(self.results),
            "--runs",
            str(self.folder / "runs"),
        ]
        result = RUNNER.invoke(app, ["taskbench", "run", "--agent", agent, *where, *args])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.results.read_text(encoding="utf-8").splitlines()]

    @property
    def run_dir(self) -> Path:
        return Path(self.rows()[-1][3])


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


MEND = "echo 'echo hello' >greet.sh"


def test_an_agent_that_mends_passes_and_one_that_idles_fails(bench: Bench) -> None:
    code, said, warned = bench.run(bench.agent(MEND))
    assert code == 0
    assert said.splitlines()[-1] == f"1 of 1 mended, in one sample; see {bench.results}"
    assert warned.startswith("warning: this spends tokens, up to $4 for each of 1")
    code, _, warned = bench.run(bench.agent("true"))
    assert code == 1
    assert f"{NAME}: exit 1: no hello" in warned
    assert [row[:3] for row in bench.rows()] == [
        ["task", "result", "cost_usd"],
        [NAME, "PASS", "unknown"],
        [NAME, "FAIL", "unknown"],
    ]


def test_shipped_task_with_its_reference_fix(bench: Bench) -> None:
    fix = bench.folder / "fix.patch"
    fix.write_text(tasks.load_fixes(tasks.shipped(), "03-regex").right, encoding="utf-8")
    shipped = Path(str(tasks.shipped()))
    assert bench.run(f"git apply {fix}", "03-regex", root=shipped)[0] == 0
    assert bench.run("true", "03-regex", root=shipped)[0] == 1
    assert [row[1] for row in bench.rows()] == ["result", "PASS", "FAIL"]


def test_the_prompt_comes_on_standard_input_or_as_a_word(bench: Bench) -> None:
    bench.run(bench.agent('cat; echo "[$#]"'))
    assert (bench.run_dir / "agent.log").read_text(encoding="utf-8") == PROMPT + "[0]\n"
    bench.run(bench.agent("cat; printf '%s' \"$2\"") + " -p {prompt}")
    assert (bench.run_dir / "agent.log").read_text(encoding="utf-8") == PROMPT
    bench.run(bench.agent("printf '%s' \"$1\"") + " --prompt={prompt}")
    assert (bench.run_dir / "agent.log").read_text(encoding="utf-8") == "--prompt=" + PROMPT


def test_budget_reaches_the_agent_and_cost_comes_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    spend = bench.agent(f'{MEND}; echo "$SDLC_BUDGET" >"$SDLC_COST_FILE"')
    code, said, _ = bench.run(spend, "--budget", "1.25", "--json")
    document = json.loads(said)
    assert (code, document["cost_usd"], document["budget_usd"]) == (0, 1.25, 1.25)
    assert bench.rows()[-1][2] == "1.25"
    monkeypatch.setenv("SDLC_BUDGET", "2")
    bench.run(spend)
    assert bench.rows()[-1][2] == "2"


def test_overspending_is_said(bench: Bench) -> None:
    code, said, warned = bench.run(
        bench.agent(f'{MEND}; echo 0.5 >"$SDLC_COST_FILE"'), "--budget", "0.25", "--json"
    )
    assert json.loads(said)["results"][0]["over_budget"] is True
    assert "spent more than its 0.25 USD" in warned
    assert code == 0


@pytest.mark.parametrize(
    ("said", "usd"),
    [
        ("0.4217\n", 0.4217),
        ("0", 0.0),
        ("1e-3", 0.001),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        ("$2", None),
        ("2 USD", None),
        ("1" * 64, float("1" * 64)),
        ("1" * 65, None),
        ("é", None),
    ],
)
def test_cost_is_one_number_that_makes_sense(tmp_path: Path, said: str, usd: float | None) -> None:
    path = tmp_path / "cost_usd"
    path.write_text(said, encoding="utf-8")
    assert agent.cost(path) == usd


def test_cost_follows_no_link_and_waits_for_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("1", encoding="utf-8")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert [agent.cost(tmp_path / name) for name in ("link", "pipe", "folder", "none")] == [None] * 4


def test_the_agent_has_the_callers_keys_but_not_its_repository(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(bench.folder))
    monkeypatch.setenv("PROVIDER_API_KEY", "x")
    bench.run(bench.agent("git rev-parse --show-toplevel; echo $PROVIDER_API_KEY; pwd; ls $TMPDIR"))
    repo = str(bench.run_dir / "work" / "repo")
    assert (bench.run_dir / "agent.log").read_text(encoding="utf-8").split() == [repo, "x", repo]


def test_the_oracle_is_nowhere_near_the_agent(bench: Bench) -> None:
    bench.run(bench.agent("cat; find ../.. -name 'check*' -o -name '*.patch' | grep ."))
    assert (bench.run_dir / "agent.log").read_text(encoding="utf-8") == PROMPT


@pytest.mark.parametrize(
    "cheat",
    [
        "rm -r tests; echo 'exit 0' >greet.sh",
        "rm -rf ../repo",
        "rm -r ../repo; ln -s / ../repo",
        "rm -r .git tests",
        "cd ../..; mv work elsewhere; ln -s elsewhere work",
        f"{MEND}; : >tests/run.sh",
    ],
)
def test_cheats_fail(bench: Bench, cheat: str) -> None:
    assert bench.run(bench.agent(cheat))[0] == 1
    assert bench.rows()[-1][1] == "FAIL"


@pytest.mark.parametrize("name", ["01-off-by-one", "02-unhandled-error", "04-refactor", "05-path-traversal"])
def test_code_that_ends_the_process_with_success_fools_no_shipped_oracle(bench: Bench, name: str) -> None:
    cheat = "for each in *.py tests/*.py; do echo 'import os; os._exit(0)' >$each; done"
    assert bench.run(bench.agent(cheat), name, root=Path(str(tasks.shipped())))[0] == 1


def test_the_time_limit_ends_the_agent_and_its_children(bench: Bench) -> None:
    started = time.monotonic()
    code, _, warned = bench.run(
        bench.agent(f"{MEND}; (sleep 3; echo late >../../late) & sleep 60"), "--timeout", "1"
    )
    assert (code, bench.rows()[-1][1]) == (1, "FAIL")
    assert "time limit of 1 s" in warned
    assert time.monotonic() - started < 30
    time.sleep(2.5)
    assert not (bench.run_dir / "late").exists()


def test_children_of_a_finished_agent_are_ended_too(bench: Bench) -> None:
    assert bench.run(bench.agent(f"{MEND}; (sleep 1; echo 'echo bad' >greet.sh) &"))[0] == 0
    time.sleep(1.2)
    assert (bench.run_dir / "work/repo/greet.sh").read_text(encoding="utf-8") == "echo hello\n"


def test_an_agent_that_ends_with_an_error_is_judged_by_its_work(bench: Bench) -> None:
    code, said, _ = bench.run(bench.agent(f"{MEND}; exit 7"), "--json")
    assert code == 0
    assert json.loads(said)["results"][0]["agent_exit"] == 7


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("rm -rf /", "refused: deletes /"),
        ("agent; rm -rf /usr", "refused"),
        ("agent | tee log", r"shell operator \|"),
        ("agent && other", "shell operator &&"),
        ("agent 'open", "cannot be split"),
        ("", "is empty"),
        ("sh -c 'agent \"{prompt}\"'", "make it a word of its own"),
    ],
)
def test_commands_that_are_refused(command: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        agent.parse(command)


def test_commands_that_are_taken() -> None:
    assert agent.parse("agent -p {prompt} --model 'a b'") == ["agent", "-p", "{prompt}", "--model", "a b"]
    assert agent.parse("sh -c 'agent | tee log'") == ["sh", "-c", "agent | tee log"]
    assert agent.fill(["agent", "--prompt={prompt}"], "a; b\n") == ["agent", "--prompt=a; b\n"]


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(EnvironmentFault, match="'no-such-agent' is not on PATH"):
        agent.locate(["no-such-agent"])
    assert agent.locate(["sh", "x"])[1:] == ["x"]


def test_refusals_spend_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    touch = bench.agent(f"touch {bench.folder}/started")
    assert bench.run(touch, "09-none")[0] == 2
    assert bench.run("git push --force origin main")[0] == 2
    assert bench.run("no-such-agent")[0] == 3
    monkeypatch.setenv("CI", "true")
    code, said, warned = bench.run(touch)
    assert (code, said) == (2, "")
    assert "does not run in CI" in warned
    assert not (bench.folder / "started").exists()
    assert not bench.results.exists()


def test_a_setup_that_fails_is_no_verdict(bench: Bench) -> None:
    make(bench.root, setup="echo broken; exit 1\n")
    code, _, warned = bench.run(bench.agent(MEND))
    assert code == 3
    assert f"tasks/{NAME}/setup.sh failed: exit 1: broken" in warned


def test_a_terminated_run_ends_its_agent(bench: Bench) -> None:
    started = bench.folder / "started"
    hang = bench.agent(f"echo $$ >{started}; exec sleep 60")
    where = ["--root", str(bench.root), "--results", str(bench.results), "--runs", str(bench.folder / "runs")]
    command = [
        sys.executable,
        "-c",
        "from compass.cli import main; main()",
        "taskbench",
        "run",
        "--agent",
        hang,
    ]
    process = subprocess.Popen([*command, *where], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (started.exists() and started.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    assert process.wait(timeout=30) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
