"""Commits counted, and objects searched, in a clean copy of the sandbox's objects."""

import hashlib
import io
import os
import shutil
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator import history, objects
from orchestrator.collect import Collected
from orchestrator.history import read_history
from schema.errors import EnvironmentFault
from schema.hashing import git_blob_id
from tests.unit.orchestrator.repos import Repo, bomb, loose, loose_file, pack


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


def test_no_commit_on_top_of_the_baseline(repo: Repo) -> None:
    base = repo.commit("a", "base")
    found = read_history(repo.collected(), base).history
    assert (found.status, found.commits) == ("ok", [])


def test_commits_are_listed_newest_first(repo: Repo) -> None:
    base = repo.commit("a", "base")
    one, two = repo.commit("a", "1"), repo.commit("a", "2")
    assert read_history(repo.collected(), base).history.commits == [two, one]


def test_packed_objects_and_packed_refs_count_too(repo: Repo) -> None:
    """Naive: read loose objects only, and an agent that runs ``git gc`` has no commits."""
    base = repo.commit("a", "base")
    one = repo.commit("a", "1")
    repo.git("gc", "-q", "--prune=now")
    got = repo.collected()
    assert not any(name.startswith("refs/heads") for name in got.git)
    assert read_history(got, base).history.commits == [one]


def test_an_amended_baseline_is_a_rewritten_history(repo: Repo) -> None:
    """Naive: count commits from the root, and an amended baseline counts as none."""
    base = repo.commit("a", "base")
    repo.git("commit", "-q", "--amend", "-m", "other")
    assert read_history(repo.collected(), base).history.status == "rewritten"


def test_replacement_objects_are_not_followed(repo: Repo) -> None:
    """Naive: ``git replace`` makes one commit look like another."""
    base = repo.commit("a", "base")
    one, two = repo.commit("a", "1"), repo.commit("a", "2")
    repo.git("replace", two, base)
    assert read_history(repo.collected(), base).history.commits == [two, one]


def test_another_branch_at_head_is_counted_from_head(repo: Repo) -> None:
    base = repo.commit("a", "base")
    repo.git("checkout", "-q", "-b", "side/branch")
    one = repo.commit("a", "1")
    assert read_history(repo.collected(), base).history.commits == [one]


def test_a_detached_head_is_read(repo: Repo) -> None:
    base = repo.commit("a", "base")
    one = repo.commit("a", "1")
    repo.git("checkout", "-q", "--detach", one)
    assert read_history(repo.collected(), base).history.commits == [one]


@pytest.mark.parametrize(
    "head",
    [b"", b"ref: refs/heads/../../../etc/passwd", b"ref: refs/tags/x", b"\xff\xfe", b"ref: /abs", b"0" * 39],
)
def test_a_head_that_names_no_commit_is_unreadable(repo: Repo, head: bytes) -> None:
    base = repo.commit("a", "base")
    got = repo.collected()
    got.git["HEAD"] = head
    assert read_history(got, base).history.status == "unreadable"


def test_missing_objects_are_unreadable_not_zero(repo: Repo) -> None:
    """Naive: a failed rev-list prints nothing, which reads as no commits."""
    base = repo.commit("a", "base")
    repo.commit("a", "1")
    repo.commit("a", "2")
    middle = repo.git("rev-parse", "HEAD~1")
    got = repo.collected()
    del got.git[f"objects/{middle[:2]}/{middle[2:]}"]
    assert read_history(got, base).history.status in {"unreadable", "rewritten"}


@pytest.mark.parametrize("kind", ["missing", "other"])
def test_without_a_repository_there_is_no_history(kind: str) -> None:
    assert read_history(Collected(git_kind=kind), "0" * 40).history.status == "missing"  # type: ignore[arg-type]


def test_configuration_planted_in_the_sandbox_is_never_read(repo: Repo, tmp_path: Path) -> None:
    """Naive: run git in the agent's tree, and its fsmonitor, pager or alias runs on the host."""
    base = repo.commit("a", "base")
    one = repo.commit("a", "1")
    sign = tmp_path / "ran"
    with (repo.root / ".git" / "config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = "touch {sign}; false"\n\thooksPath = /tmp\n')
    assert read_history(repo.collected(), base).history.commits == [one]
    assert not sign.exists()


KEY = "sk-" + "this-is-an-example-and-no-key"


def test_a_credential_that_was_committed_and_deleted_again_is_found(repo: Repo) -> None:
    """Naive: scan the files that are left."""
    base = repo.commit("a", "base")
    repo.commit("key.txt", KEY)
    (repo.root / "key.txt").unlink()
    repo.commit("a", "gone")
    read = read_history(repo.collected(), base)
    assert read.secret is not None and read.secret.pattern == "sk"
    assert KEY not in read.history.model_dump_json()


@pytest.mark.parametrize("where", ["message", "name", "branch", "packed", "unreachable", "tag"])
def test_every_kind_of_object_is_searched(repo: Repo, where: str) -> None:
    base = repo.commit("a", "base")
    match where:
        case "message":
            repo.commit("a", f"use {KEY}")
        case "name":
            repo.commit(KEY, "x")
        case "tag":
            repo.git("tag", "-a", "v1", "-m", KEY)
        case _:
            repo.git("checkout", "-q", "-b", "side")
            repo.commit("key.txt", KEY)
            repo.git("checkout", "-q", "main")
            if where == "packed":
                repo.git("gc", "-q", "--prune=now")
            if where == "unreachable":
                repo.git("branch", "-D", "side")
    read = read_history(repo.collected(), base)
    assert read.secret is not None and read.secret.pattern == "sk"


def test_content_that_is_ours_is_not_held_against_a_run(repo: Repo) -> None:
    (repo.root / "key.txt").write_text(KEY)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "base")
    base = repo.git("rev-parse", "HEAD")
    assert read_history(repo.collected(), base, {git_blob_id(KEY.encode())}).secret is None
    assert read_history(repo.collected(), base).secret is not None


@pytest.mark.parametrize(("more", "status"), [(-1, "unreadable"), (0, "ok"), (1, "ok")])
def test_objects_are_searched_up_to_a_limit(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, more: int, status: str
) -> None:
    base = repo.commit("a", "base")
    repo.commit("a", "x" * 5000)
    sizes = repo.git("cat-file", "--batch-all-objects", "--batch-check=%(objectsize)").split()
    monkeypatch.setattr(history, "OBJECT_BYTES", sum(map(int, sizes)) + more)
    assert read_history(repo.collected(), base).history.status == status


def test_an_object_that_inflates_past_every_limit_is_not_inflated(repo: Repo) -> None:
    """Naive: inflate what is four kilobytes on disk."""
    base = repo.commit("a", "base")
    header = b"blob %d\0" % 2**40
    name = hashlib.sha1(header, usedforsecurity=False).hexdigest()
    got = repo.collected()
    got.git[f"objects/{name[:2]}/{name[2:]}"] = zlib.compress(header + b"\0" * 2**20)
    read = read_history(got, base)
    assert read.history.status == "unreadable" and "bytes" in read.history.detail


@pytest.mark.parametrize(("made", "counted"), [(2, 2), (3, 3), (4, 4), (6, 4)])
def test_commits_are_counted_up_to_one_past_the_limit(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, made: int, counted: int
) -> None:
    monkeypatch.setattr(history, "COMMITS", 3)
    base = repo.commit("a", "base")
    for number in range(made):
        repo.commit("a", str(number))
    assert len(read_history(repo.collected(), base).history.commits) == counted


DAMAGED = {
    "garbage": b"garbage",
    "empty": b"",
    "no size": zlib.compress(b"blob xyz\0hello"),
    "no type": zlib.compress(b"foo 5\0hello"),
    "a size of many digits": zlib.compress(b"blob " + b"9" * 24 + b"\0hello"),
    "cut": zlib.compress(b"blob 5000\0" + bytes(range(256)) * 20)[:100],
}


@pytest.mark.parametrize("how", DAMAGED)
@pytest.mark.parametrize("name", ["new", "of a commit"])
def test_a_damaged_object_is_unreadable_history_and_ends_nothing(repo: Repo, how: str, name: str) -> None:
    """Naive: ``int("missing")``, and the plan stops at this run each time that it is started."""
    base = repo.commit("a", "base")
    one = repo.commit("a", "1")
    got = repo.collected()
    got.git[f"objects/{one[:2]}/{one[2:]}" if name == "of a commit" else f"objects/aa/{'b' * 38}"] = DAMAGED[
        how
    ]
    assert read_history(got, base).history.status == "unreadable"


def test_whatever_a_reader_did_not_foresee_is_unreadable_history(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise LookupError("a word of the agent's")

    base = repo.commit("a", "base")
    monkeypatch.setattr(history, "scan", broken)
    assert read_history(repo.collected(), base).history.detail == "cannot be read (LookupError)"


def _no_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/prlimit").symlink_to(shutil.which("prlimit") or "")
    monkeypatch.setitem(objects._ENVIRONMENT, "PATH", str(tmp_path / "bin"))


def _no_prlimit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(objects._ENVIRONMENT, "PATH", str(tmp_path / "none"))


def _disk_that_refuses(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)


def _disk_full_for_git(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=objects.ROOM - 1))


@pytest.mark.parametrize("fault", [_no_git, _no_prlimit, _disk_that_refuses, _disk_full_for_git])
def test_a_fault_of_our_own_host_is_no_run_of_the_agents(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: object
) -> None:
    """Naive: catch everything, and a full disk fails every run of a plan."""
    base = repo.commit("a", "base")
    got = repo.collected()
    got.git[f"objects/aa/{'b' * 38}"] = b"garbage"
    assert callable(fault)
    fault(monkeypatch, tmp_path)
    with pytest.raises(EnvironmentFault):
        read_history(got, base)


@pytest.mark.parametrize(("more", "status"), [(-1, "ok"), (0, "ok"), (1, "unreadable")])
def test_packs_are_read_up_to_a_limit(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, more: int, status: str
) -> None:
    monkeypatch.setattr(objects, "PACKS", 3)
    base = repo.commit("a", "base")
    got = repo.collected()
    for number in range(3 + more):
        got.git[f"objects/pack/pack-{number:040x}.pack"] = pack(loose("blob", b"%d" % number)[2])
    read = read_history(got, base).history
    assert read.status == status
    assert status == "ok" or "packs" in read.detail


@pytest.mark.parametrize(("more", "status"), [(-1, "unreadable"), (0, "ok"), (1, "ok")])
@pytest.mark.parametrize("packed", [False, True])
def test_objects_are_looked_at_up_to_a_limit(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, more: int, status: str, packed: bool
) -> None:
    base = repo.commit("a", "base")
    repo.commit("a", "1")
    if packed:
        repo.git("gc", "-q", "--prune=now")
    count = len(repo.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split())
    monkeypatch.setattr(history, "OBJECTS", count + more)
    read = read_history(repo.collected(), base).history
    assert read.status == status
    assert status == "ok" or read.detail == f"more than {count + more} objects"


def test_all_git_calls_of_a_run_have_one_deadline(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Naive: a limit a call, and an agent makes as many calls as it has packs."""
    base = repo.commit("a", "base")
    got = repo.collected()
    for number in range(3):
        got.git[f"objects/pack/pack-{number:040x}.pack"] = pack(loose("blob", b"%d" % number)[2])
    # Of a fourth of the time each.
    asked = iter(range(0, 10_000, objects.SECONDS // 4))
    monkeypatch.setattr(objects, "time", SimpleNamespace(monotonic=lambda: float(next(asked))))
    assert read_history(got, base).history.detail == f"git took more than {objects.SECONDS} s"


@pytest.mark.parametrize("where", ["a pack", "the objects"])
def test_a_git_that_is_busy_is_ended_at_the_deadline(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    base = repo.commit("a", "base")
    got = repo.collected()
    monkeypatch.setattr(objects, "SECONDS", 0.4)
    if where == "a pack":
        got.git[f"objects/pack/pack-{'a' * 40}.pack"] = bomb(50 * 2**20, 30)
    else:
        monkeypatch.setattr(objects, "_command", _busy)
    assert read_history(got, base).history.detail == "git took more than 0.4 s"


def _busy(arguments: tuple[str, ...]) -> list[str]:
    """git, but for an answer that never ends."""
    if arguments[0] == "cat-file":
        return ["sh", "-c", "echo " + "a" * 40 + " 3; exec sleep 60"]
    return ["git", *arguments]


# --- commits that hold what they claim


def written(base: str, tree: str) -> tuple[str, dict[str, bytes]]:
    """A commit on top of ``base``, written by hand."""
    person = "t <t@example.invalid> 0 +0000"
    text = f"tree {tree}\nparent {base}\nauthor {person}\ncommitter {person}\n\nx\n"
    return loose_file("commit", text.encode())


@pytest.mark.parametrize(
    "tree", ["none", "a file", "a commit", "a folder that is none", "a file that is none"]
)
def test_a_commit_that_is_not_whole_is_unreadable(repo: Repo, tree: str) -> None:
    """Naive: rev-list lists commits, and never looks at a tree."""
    base = repo.commit("a", "base")
    got = repo.collected()
    made: dict[str, bytes] = {}
    match tree:
        case "none":
            named = "1" * 40
        case "a file":
            named, made = loose_file("blob", b"x")
        case "a commit":
            named = base
        case "a folder that is none":
            named, made = loose_file("tree", b"40000 d\0" + b"\x11" * 20)
        case _:
            named, made = loose_file("tree", b"100644 f\0" + b"\x11" * 20)
    head, commit = written(base, named)
    got.git |= made | commit | {"refs/heads/main": head.encode()}
    assert read_history(got, base).history.status == "unreadable"


def test_every_commit_has_to_be_whole(repo: Repo) -> None:
    """Naive: look at HEAD's tree only, and count commits below it that are none."""
    base = repo.commit("a", "base")
    tree = repo.git("rev-parse", "HEAD^{tree}")
    got = repo.collected()
    middle, one = written(base, "1" * 40)
    head, two = written(middle, tree)
    got.git |= one | two | {"refs/heads/main": head.encode()}
    assert read_history(got, base).history.status == "unreadable"


ASIDE = (".copperhead/runs/**", "docs/CHANGELOG.md")


def ended(repo: Repo, base: str) -> tuple[str, int]:
    """Status and number of commits."""
    found = read_history(repo.collected(), base, aside=ASIDE).history
    return found.status, len(found.commits)


@pytest.fixture
def edited(repo: Repo) -> tuple[Repo, str]:
    """A baseline with two files, and both edited."""
    (repo.root / "b").write_text("base")
    base = repo.commit("a", "base")
    (repo.root / "a").write_text("edited")
    (repo.root / "b").write_text("edited")
    return repo, base


def test_an_empty_commit_does_not_commit_the_edits(edited: tuple[Repo, str]) -> None:
    """Naive: one commit was asked for, and there is one."""
    repo, base = edited
    repo.git("commit", "-q", "--allow-empty", "-m", "done")
    assert ended(repo, base) == ("uncommitted", 1)


@pytest.mark.parametrize(
    "then",
    [
        lambda root: (root / "b").write_text("more"),
        lambda root: (root / "b").unlink(),
        lambda root: (root / "new").write_text("x"),
        lambda root: (root / "ignored").write_text("x"),
        lambda root: ((root / "b").unlink(), (root / "b").symlink_to("edited")),
        lambda root: ((root / "b").unlink(), (root / "b").mkdir(), (root / "b/c").write_text("x")),
    ],
    ids=["changed", "deleted", "new", "new and ignored", "now a link", "now a folder"],
)
def test_what_was_edited_after_the_commit_is_not_committed(edited: tuple[Repo, str], then: object) -> None:
    repo, base = edited
    (repo.root / ".gitignore").write_text("ignored\n")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "done")
    assert ended(repo, base) == ("ok", 1)
    assert callable(then)
    then(repo.root)
    assert ended(repo, base) == ("uncommitted", 1)


def test_half_of_the_edits_is_not_the_end_state(edited: tuple[Repo, str]) -> None:
    repo, base = edited
    repo.git("commit", "-q", "-m", "half", "a")
    assert ended(repo, base) == ("uncommitted", 1)
    repo.git("commit", "-q", "-m", "rest", "b")
    assert ended(repo, base) == ("ok", 2)


def test_a_file_that_was_taken_out_of_the_index_is_not_committed(edited: tuple[Repo, str]) -> None:
    """Naive: what git does not track has no changes."""
    repo, base = edited
    repo.git("rm", "-q", "--cached", "-f", "a")
    repo.git("commit", "-q", "-m", "b", "-a")
    assert ended(repo, base) == ("uncommitted", 1)


def test_bookkeeping_and_side_files_need_no_commit(edited: tuple[Repo, str]) -> None:
    """Naive: an honest run fails, since its transcript ends after its commit."""
    repo, base = edited
    repo.git("commit", "-q", "-a", "-m", "done")
    for name in (".copperhead/runs/r/transcript.jsonl", "docs/CHANGELOG.md", "hw/x.kicad_prl"):
        (repo.root / name).parent.mkdir(parents=True, exist_ok=True)
        (repo.root / name).write_text("x")
    (repo.root / "a").chmod(0o600)
    assert ended(repo, base) == ("ok", 1)
    (repo.root / "hw/x-backups").mkdir()
    (repo.root / "hw/x-backups/new.kicad_sch").write_text("(kicad_sch)")
    assert ended(repo, base) == ("uncommitted", 1)


def test_without_a_commit_nothing_is_held_against_one(edited: tuple[Repo, str]) -> None:
    assert ended(*edited) == ("ok", 0)


def test_odd_names_are_committed_like_others(repo: Repo) -> None:
    base = repo.commit("a", "base")
    for name in (b"\xff", b"a\nb", b"-rf", b"\xc3\xbc", b'"q"'):
        (repo.root / os.fsdecode(name)).write_text("x")
    (repo.root / "link").symlink_to("a")
    repo.commit("a", "1")
    assert ended(repo, base) == ("ok", 1)


@pytest.mark.parametrize(("more", "status"), [(-1, "unreadable"), (0, "ok"), (1, "ok")])
def test_files_of_a_commit_are_read_up_to_a_limit(
    edited: tuple[Repo, str], monkeypatch: pytest.MonkeyPatch, more: int, status: str
) -> None:
    repo, base = edited
    repo.git("commit", "-q", "-a", "-m", "done")
    monkeypatch.setattr(history, "FILES", 2 + more)
    assert ended(repo, base)[0] == status


@pytest.mark.parametrize("before", [0, 1, 100])
@pytest.mark.parametrize(("more", "read"), [(-1, True), (0, True), (1, False), (history.ITEM, False)])
def test_a_line_of_a_commits_list_is_read_up_to_a_limit(before: int, more: int, read: bool) -> None:
    """Wherever it lies between two pieces of the stream."""
    fields = b"100644 blob " + b"1" * 40 + b"\t"
    long = fields + b"n" * (history.ITEM + more - len(fields)) + b"\0"
    listing = io.BytesIO((fields + b"a\0") * before + long + fields + b"z\0")
    if read:
        assert [path for path, _, _ in history._files(listing)][-1] == "z"
        return
    with pytest.raises(objects.Unreadable):
        list(history._files(listing))


@pytest.mark.parametrize(("name", "says"), [("d", "more than"), ("n" * 250, "too long")])
def test_a_tree_that_holds_itself_over_and_over_is_not_listed(repo: Repo, name: str, says: str) -> None:
    """Naive: forty small trees, a million million files."""
    base = repo.commit("a", "base")
    got = repo.collected()
    below, made = loose_file("tree", b"100644 f\0" + bytes.fromhex(git_blob_id(b"base")))
    for _ in range(40):
        entries = b"".join(b"40000 %s%d\0" % (name.encode(), n) + bytes.fromhex(below) for n in range(2))
        below, one = loose_file("tree", entries)
        made |= one
    head, commit = written(base, below)
    # As an end tree that agrees as far as anybody looks.
    got.git |= made | commit | {"refs/heads/main": head.encode()}
    read = read_history(got, base, aside=("**",)).history
    assert read.status == "unreadable" and says in read.detail
