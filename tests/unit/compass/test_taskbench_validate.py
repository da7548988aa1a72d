"""Validation: the shipped tasks pass, and each way to break a task is seen."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compass.cli import app
from compass.taskbench import confine, lint, sandbox, tasks
from compass.taskbench.validate import Check, validate
from tests.unit.compass.taskbench_data import CHECK, NAME, PROMPT, SETUP, make, patch

RUNNER = CliRunner()
HELD = pytest.mark.skipif(not confine.version(), reason="this kernel has no Landlock")


def failed(root: Path) -> dict[str, str]:
    """The failed checks of the small task with their details."""
    return {check.name: check.detail for check in validate(root, [NAME]) if not check.ok}


@pytest.mark.parametrize("name", tasks.names(tasks.shipped()))
def test_shipped_task_is_sound(name: str) -> None:
    found = list(validate(tasks.shipped(), [name]))
    assert [check for check in found if not check.ok] == []
    names = {check.name for check in found}
    assert names >= {
        "structure",
        "setup",
        "pre-fix",
        "post-fix",
        "empty",
        "hollow",
        "untested",
        "fixed-untested",
    }
    assert sum(check.startswith("wrong-") for check in names) >= 3


def test_the_small_task_is_sound(tmp_path: Path) -> None:
    assert failed(make(tmp_path)) == {}


def test_an_oracle_that_accepts_everything(tmp_path: Path) -> None:
    found = failed(make(tmp_path, check="#!/bin/sh\nexit 0\n"))
    assert set(found) == {"pre-fix", "wrong-capital", "empty", "hollow", "untested", "fixed-untested"}
    assert f"tasks/{NAME}/check.sh accepts the seeded bug" in found["pre-fix"]


def test_an_oracle_that_accepts_nothing(tmp_path: Path) -> None:
    found = failed(make(tmp_path, check="#!/bin/sh\necho no; exit 1\n"))
    assert found == {"post-fix": f"tasks/{NAME}/check.sh refuses fixes/{NAME}/fix.patch: exit 1: no"}


def test_an_oracle_that_does_not_miss_the_tests(tmp_path: Path) -> None:
    found = failed(make(tmp_path, check=CHECK.replace("[ -s tests/run.sh ]\n", "")))
    assert set(found) == {"fixed-untested"}


def test_an_oracle_that_breaks_is_no_refusal(tmp_path: Path) -> None:
    found = failed(make(tmp_path, check="no-such-program-anywhere\n"))
    assert "breaks on the seeded bug: exit 127" in found["pre-fix"]


def test_an_oracle_that_changes_what_it_judges(tmp_path: Path) -> None:
    found = failed(make(tmp_path, check=CHECK + "touch judged\n"))
    assert list(found) == ["post-fix"]
    assert "changes the repository" in found["post-fix"]


def test_an_oracle_that_leaves_files(tmp_path: Path) -> None:
    found = failed(make(tmp_path, check=CHECK + 'touch "$TMPDIR/left"\n'))
    assert found == {"post-fix": f"tasks/{NAME}/check.sh leaves tmp/left behind"}


@pytest.mark.parametrize(
    ("addition", "what"),
    [
        ('touch "$HOME/.profile"\n', "leaves home/.profile outside the repository"),
        ("touch ../beside\n", "leaves beside outside the repository"),
        ("echo more >>greet.sh\n", "leaves changes uncommitted"),
        ("exit 3\n", "setup.sh failed: exit 3"),
        ("git rm -q -r tests; git commit -q -m none\n", "makes no tests"),
        ('echo $$ >pid; git add pid; git commit -q -m "pid"\n', "another commit each time"),
    ],
)
def test_a_setup_that_is_not_clean(tmp_path: Path, addition: str, what: str) -> None:
    assert what in failed(make(tmp_path, setup=SETUP + addition))["setup"]


@HELD
@pytest.mark.parametrize("quiet", ["", " || true"])
def test_no_script_can_write_outside(tmp_path: Path, quiet: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root = make(tmp_path / "root", setup=SETUP + f"(echo x >{outside}/file){quiet}\n")
    assert ("setup" in failed(root)) is not quiet.endswith("true")
    assert list(outside.iterdir()) == []


def test_scripts_see_nothing_of_the_callers_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_API_KEY", "x")
    with sandbox.opened() as box:
        ended = box.run("setup.sh", "env\n")
        said = ended.log.read_text(encoding="utf-8")
        assert f"HOME={box.root}/home" in said
    assert "PROVIDER_API_KEY" not in said
    assert not box.root.exists()


def test_a_script_ends_at_the_time_limit() -> None:
    with sandbox.opened() as box:
        ended = box.run("setup.sh", "echo started; sleep 60\n", limit=0.5)
        assert ended.code is None
        assert ended.seconds < 30
        assert ended.tail().startswith("ran into the time limit")


def test_a_prompt_that_gives_the_fix_away(tmp_path: Path) -> None:
    fix = patch("printf '%s\\n' hello")
    found = failed(make(tmp_path, fix=fix, prompt=PROMPT + "Write: printf '%s\\n' hello\n"))
    assert found == {"prompt": f"tasks/{NAME}/task.md gives the fix away: printf '%s\\n' hello"}


def test_what_the_guardrail_refuses_is_not_run(tmp_path: Path) -> None:
    found = list(validate(make(tmp_path, check="#!/bin/sh\ngit push --force origin main\n"), [NAME]))
    assert [check.name for check in found if not check.ok] == ["guardrail"]
    assert not {"setup", "pre-fix"} & {check.name for check in found}


def test_a_fix_that_does_not_apply(tmp_path: Path) -> None:
    assert (
        "does not apply"
        in failed(make(tmp_path, fix=patch("echo hello").replace("-echo helo", "-x")))["post-fix"]
    )


def test_a_broken_structure_is_one_failed_check(tmp_path: Path) -> None:
    root = make(tmp_path)
    (root / "tasks" / NAME / "check.sh").unlink()
    assert list(validate(root, [NAME])) == [
        Check(NAME, "structure", False, f"tasks/{NAME}/check.sh is missing")
    ]


@pytest.mark.skipif(not lint.installed(), reason="shellcheck is not installed")
def test_shellcheck_errors_name_file_and_line(tmp_path: Path) -> None:
    found = failed(make(tmp_path, check=CHECK + "if [ -f x ]\n"))
    assert found["shellcheck"].startswith(f"tasks/{NAME}/check.sh:")


def run(*args: str) -> tuple[int, str, str]:
    result = RUNNER.invoke(app, ["taskbench", "validate", *args])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_command_exits_by_finding_in_text_and_json_alike(tmp_path: Path) -> None:
    good, bad = make(tmp_path / "good"), make(tmp_path / "bad", check="#!/bin/sh\nexit 1\n")
    assert run("--root", str(good))[:2] == (0, f"{NAME}: {12 if lint.installed() else 11} checks ok\n")
    code, said, _ = run("--root", str(bad))
    assert code == 1
    assert f"  post-fix: tasks/{NAME}/check.sh refuses" in said
    code, said, _ = run("--root", str(bad), "--json")
    document = json.loads(said)
    assert (code, document["ok"], document["tasks"]) == (1, False, [NAME])
    assert [check["check"] for check in document["checks"] if not check["ok"]] == ["post-fix"]
    assert run("--root", str(good), "02-none")[0] == 2


def test_command_without_shellcheck_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "installed", lambda: False)
    root = make(tmp_path)
    code, said, warned = run("--root", str(root))
    assert (code, said) == (0, f"{NAME}: 11 checks ok\n")
    assert warned == lint.MISSING + "\n"
    assert run("--root", str(root), "--need-shellcheck") == (3, "", lint.MISSING + "\n")


def test_command_without_git_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, said = run("--root", str(make(tmp_path)))
    assert code == 3
    assert "is not on PATH" in said
