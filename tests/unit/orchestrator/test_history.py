"""Commits counted from a clean copy of the sandbox's objects."""

from pathlib import Path

import pytest

from orchestrator.collect import Collected
from orchestrator.history import read_history
from tests.unit.orchestrator.repos import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


def test_no_commit_on_top_of_the_baseline(repo: Repo) -> None:
    base = repo.commit("a", "base")
    history = read_history(repo.collected(), base)
    assert (history.status, history.commits) == ("ok", [])


def test_commits_are_listed_newest_first(repo: Repo) -> None:
    base = repo.commit("a", "base")
    one, two = repo.commit("a", "1"), repo.commit("a", "2")
    assert read_history(repo.collected(), base).commits == [two, one]


def test_packed_objects_and_packed_refs_count_too(repo: Repo) -> None:
    """Naive: read loose objects only, and an agent that runs ``git gc`` has no commits."""
    base = repo.commit("a", "base")
    one = repo.commit("a", "1")
    repo.git("gc", "-q", "--prune=now")
    got = repo.collected()
    assert not any(name.startswith("refs/heads") for name in got.git)
    assert read_history(got, base).commits == [one]


def test_an_amended_baseline_is_a_rewritten_history(repo: Repo) -> None:
    """Naive: count commits from the root, and an amended baseline counts as none."""
    base = repo.commit("a", "base")
    repo.git("commit", "-q", "--amend", "-m", "other")
    assert read_history(repo.collected(), base).status == "rewritten"


def test_replacement_objects_are_not_followed(repo: Repo) -> None:
    """Naive: ``git replace`` makes one commit look like another."""
    base = repo.commit("a", "base")
    one, two = repo.commit("a", "1"), repo.commit("a", "2")
    repo.git("replace", two, base)
    assert read_history(repo.collected(), base).commits == [two, one]


def test_another_branch_at_head_is_counted_from_head(repo: Repo) -> None:
    base = repo.commit("a", "base")
    repo.git("checkout", "-q", "-b", "side/branch")
    one = repo.commit("a", "1")
    assert read_history(repo.collected(), base).commits == [one]


def test_a_detached_head_is_read(repo: Repo) -> None:
    base = repo.commit("a", "base")
    one = repo.commit("a", "1")
    repo.git("checkout", "-q", "--detach", one)
    assert read_history(repo.collected(), base).commits == [one]


@pytest.mark.parametrize(
    "head",
    [b"", b"ref: refs/heads/../../../etc/passwd", b"ref: refs/tags/x", b"\xff\xfe", b"ref: /abs", b"0" * 39],
)
def test_a_head_that_names_no_commit_is_unreadable(repo: Repo, head: bytes) -> None:
    base = repo.commit("a", "base")
    got = repo.collected()
    got.git["HEAD"] = head
    assert read_history(got, base).status == "unreadable"


def test_missing_objects_are_unreadable_not_zero(repo: Repo) -> None:
    """Naive: a failed rev-list prints nothing, which reads as no commits."""
    base = repo.commit("a", "base")
    repo.commit("a", "1")
    repo.commit("a", "2")
    middle = repo.git("rev-parse", "HEAD~1")
    got = repo.collected()
    del got.git[f"objects/{middle[:2]}/{middle[2:]}"]
    assert read_history(got, base).status in {"unreadable", "rewritten"}


@pytest.mark.parametrize("kind", ["missing", "other"])
def test_without_a_repository_there_is_no_history(kind: str) -> None:
    assert read_history(Collected(git_kind=kind), "0" * 40).status == "missing"  # type: ignore[arg-type]


def test_configuration_planted_in_the_sandbox_is_never_read(repo: Repo, tmp_path: Path) -> None:
    """Naive: run git in the agent's tree, and its fsmonitor, pager or alias runs on the host."""
    base = repo.commit("a", "base")
    one = repo.commit("a", "1")
    sign = tmp_path / "ran"
    with (repo.root / ".git" / "config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = "touch {sign}; false"\n\thooksPath = /tmp\n')
    assert read_history(repo.collected(), base).commits == [one]
    assert not sign.exists()
