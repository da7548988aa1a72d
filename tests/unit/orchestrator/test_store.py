"""The evidence store: what goes in comes out, and nothing else passes for it."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grader.store
import orchestrator.store
from grader.evidence import Entry, Tree
from grader.store import BUNDLE, EvidenceStore, describe, evidence_id, refs, whole_store
from orchestrator.store import EvidenceWriter, evidence_ref, hash_tree
from schema.errors import CheckFailed, EnvironmentFault
from schema.hashing import git_blob_id
from schema.paths import encode_path
from schema.run import EvidenceRef, History, RunFacts, RunId

RUN = RunId(suite_version="1.0.0", task="some-task", model="solution:gold", agent="solution", repeat=1)


def facts(**changes: object) -> RunFacts:
    base = RunFacts(
        run=RUN,
        claim=1,
        attempt=1,
        baseline_commit="0" * 40,
        baseline_sha256="0" * 64,
        started_at="a",
        ended_at="b",
        exit_code=0,
        evidence="kept",
        history=History(status="ok"),
    )
    return base.model_copy(update=changes)


@pytest.fixture
def writer(tmp_path: Path) -> EvidenceWriter:
    return EvidenceWriter(tmp_path / "with space" / "evidence.git")


@pytest.mark.parametrize("calls", range(4))
def test_a_store_whose_making_was_cut_short_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    """Naive: HEAD is there, so it is a repository; but git was killed before it wrote the rest."""
    run, made = EvidenceWriter._run, 0

    def cut(self: EvidenceWriter, failure: str, lock: Any, *arguments: str, **options: Any) -> None:
        nonlocal made
        if made == calls:
            raise InterruptedError
        made += 1
        run(self, failure, lock, *arguments, **options)
        if made == 1:
            # As git leaves it that is killed in the midst of init: a HEAD and hardly more.
            (Path(options["store"]) / "config").unlink()

    path = tmp_path / "evidence.git"
    with monkeypatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr(EvidenceWriter, "_run", cut)
        EvidenceWriter(path)
    EvidenceWriter(path).put_tree({"a": Entry(b"x")}, "0" * 64)
    git = ["git", "--git-dir", str(path), "config", "fastimport.unpackLimit"]
    assert subprocess.run(git, capture_output=True, check=True).stdout == b"1\n"
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".new")] == []


HARD: Tree = {
    "plain": Entry(b"x"),
    "empty": Entry(b""),
    "bin": Entry(b"\0\r\n\xff" * 100, 0o755),
    "setuid": Entry(b"s", 0o4755),
    "link": Entry(b"../../etc/passwd", 0o777, "symlink"),
    "sub/.git/config": Entry(b"[core]"),
    ".gitmodules": Entry(b"[submodule]"),
    "new\nline": Entry(b"1"),
    '"quoted" -dash': Entry(b"2"),
    "not utf8 \udcff\udcfe": Entry(b"3"),
    "e\u0301": Entry(b"decomposed"),
    "\u00e9": Entry(b"composed"),
    "A": Entry(b"upper"),
    "a": Entry(b"lower"),
    "%41": Entry(b"percent"),
}


def test_hard_names_modes_and_links_come_back_as_they_were(writer: EvidenceWriter) -> None:
    ref = writer.put_run(facts(), HARD, known=frozenset())
    assert writer.reader.evidence(ref) == (facts(), HARD)


@given(st.dictionaries(st.text("a~%7E", max_size=6), st.binary(max_size=2), max_size=4))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_evidence_from_when_tildes_were_not_encoded_reads_back(
    writer: EvidenceWriter, files: dict[str, bytes]
) -> None:
    def plain(path: str) -> str:
        return encode_path(path).replace("%7E", "~")

    tree: Tree = {f"f/x{path}": Entry(data) for path, data in files.items()}
    with pytest.MonkeyPatch.context() as patch:
        for module in (orchestrator.store, grader.store):
            patch.setattr(module, "encode_path", plain)
        old = writer.put_run(facts(), tree, known=frozenset())
    assert writer.reader.evidence(old)[1] == tree


@pytest.mark.parametrize("name", ["git~1/config", "GIT~1", "a/gitmod~1", "~", "a~"])
def test_a_name_that_newer_git_refuses_comes_back(writer: EvidenceWriter, name: str) -> None:
    """Naive: git 2.48 imports no ``git~1``, and the plan stops at this run each time that it is started."""
    tree: Tree = {name: Entry(b"x")}
    assert writer.reader.evidence(writer.put_run(facts(), tree, known=frozenset()))[1] == tree
    git = ["git", "--git-dir", str(writer.path), "ls-tree", "-r", "--name-only", evidence_ref(RUN, 1)]
    assert b"~" not in subprocess.run(git, capture_output=True, check=True).stdout


def test_unchanged_files_are_named_not_sent(writer: EvidenceWriter) -> None:
    base: Tree = {"board": Entry(b"B" * 100_000)}
    digest = hash_tree(base)
    writer.put_tree(base, digest)
    ref = writer.put_run(
        facts(), {**base, "new": Entry(b"n")}, known=frozenset([git_blob_id(b"B" * 100_000)])
    )
    assert writer.reader.tree(digest) == base
    assert writer.reader.evidence(ref)[1]["board"] == base["board"]


def test_many_writers_of_one_tree_keep_it_once(tmp_path: Path) -> None:
    """Naive: two imports of the same tree at once make packs of one name, and one of them fails."""
    tree: Tree = {str(n): Entry(b"%d" % n) for n in range(50)}
    writers = [EvidenceWriter(tmp_path / "evidence.git") for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda w: w.put_tree(tree, hash_tree(tree)), writers))
    assert writers[0].reader.tree(hash_tree(tree)) == tree


def test_the_evidence_id_survives_repacking(writer: EvidenceWriter) -> None:
    ref = writer.put_run(facts(), HARD, known=frozenset())
    subprocess.run(["git", "--git-dir", str(writer.path), "repack", "-qad"], check=True)
    assert writer.reader.evidence(ref)[1] == HARD


def test_other_facts_give_another_id(writer: EvidenceWriter) -> None:
    one = writer.put_run(facts(), HARD, known=frozenset())
    other = writer.put_run(facts(exit_code=1), HARD, known=frozenset())
    assert one.id != other.id
    with pytest.raises(CheckFailed, match="evidence id"):
        writer.reader.evidence(EvidenceRef(id=one.id, ref=one.ref))


def test_a_missing_ref_or_store_is_one_clear_line(writer: EvidenceWriter, tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="refs/runs/none"):
        writer.reader.evidence(EvidenceRef(id="0" * 64, ref="refs/runs/none"))
    with pytest.raises(CheckFailed, match="no such evidence store"):
        type(writer.reader)(tmp_path / "none").tree("0" * 64)


def test_many_writers_at_once_lose_nothing(writer: EvidenceWriter) -> None:
    runs = [facts(run=RUN.model_copy(update={"repeat": n})) for n in range(1, 13)]
    with ThreadPoolExecutor(4) as pool:
        refs = list(
            pool.map(
                lambda f: writer.put_run(f, {"n": Entry(str(f.run.repeat).encode())}, known=frozenset()), runs
            )
        )
    for run, ref in zip(runs, refs, strict=True):
        assert writer.reader.evidence(ref) == (run, {"n": Entry(str(run.run.repeat).encode())})


names = st.lists(
    st.binary(min_size=1, max_size=12).filter(
        lambda b: b"/" not in b and b"\0" not in b and b not in {b".", b".."}
    ),
    min_size=1,
    max_size=3,
).map(lambda parts: b"/".join(parts).decode("utf-8", "surrogateescape"))


def consistent(tree: dict[str, bytes]) -> bool:
    """A file system holds no file whose name is another's folder."""
    return not any(other != name and other.startswith(name + "/") for name in tree for other in tree)


@given(st.dictionaries(names, st.binary(max_size=30), max_size=6).filter(consistent))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_tree_comes_back(writer: EvidenceWriter, files: dict[str, bytes]) -> None:
    tree: Tree = {name: Entry(data) for name, data in files.items()}
    assert writer.reader.evidence(writer.put_run(facts(), tree, known=frozenset()))[1] == tree


def test_the_manifest_lists_paths_in_byte_order() -> None:
    assert [entry.path for entry in describe({"b": Entry(b""), "a/z": Entry(b""), "a-z": Entry(b"")})] == [
        "a-z",
        "a/z",
        "b",
    ]


def test_the_id_is_a_digest_of_the_canonical_manifest(writer: EvidenceWriter) -> None:
    ref = writer.put_run(facts(), {}, known=frozenset())
    out = subprocess.run(
        ["git", "--git-dir", str(writer.path), "show", f"{ref.ref}:manifest.json"],
        capture_output=True,
        check=True,
    )
    from schema.run import Evidence

    assert evidence_id(Evidence.model_validate_json(out.stdout)) == ref.id


def test_a_stream_that_ends_early_keeps_nothing(
    writer: EvidenceWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naive: git takes half a stream for the whole, and a harness killed while storing leaves half a tree."""
    real = EvidenceWriter._git

    def cut(self: EvidenceWriter, lock: Any, *arguments: str, stdin: bytes = b"", **options: Any) -> Any:
        short = stdin[: stdin.index(b"M 100644 inline tree/b")]
        return real(self, lock, *arguments, stdin=short, **options)

    monkeypatch.setattr(EvidenceWriter, "_git", cut)
    with pytest.raises(EnvironmentFault, match="cannot be stored"):
        writer.put_run(facts(), {"a": Entry(b"1"), "b": Entry(b"2")}, known=frozenset())
    assert writer.reader.find(evidence_ref(RUN, 1)) is None
    assert refs(writer.path) == {}


def test_evidence_that_is_there_is_found_by_its_claim(writer: EvidenceWriter) -> None:
    ref = writer.put_run(facts(), HARD, known=frozenset())
    assert writer.reader.find(evidence_ref(RUN, 1)) == ref
    assert writer.reader.find(evidence_ref(RUN, 2)) is None


def test_what_killed_git_processes_left_does_not_stand_in_the_way(writer: EvidenceWriter) -> None:
    ref = evidence_ref(RUN, 1)
    stale = writer.path / f"{ref}.lock"
    stale.parent.mkdir(parents=True)
    stale.touch()
    (writer.path / "objects" / "pack" / "tmp_pack_x").write_bytes(b"half")
    with pytest.raises(EnvironmentFault):
        writer.put_run(facts(), HARD, known=frozenset())
    again = EvidenceWriter(writer.path)
    assert again.reader.evidence(again.put_run(facts(), HARD, known=frozenset()))[1] == HARD
    assert not list(writer.path.rglob("tmp_*")) and not stale.exists()


def test_what_is_dropped_leaves_no_byte(writer: EvidenceWriter) -> None:
    """Naive: the ref goes and the objects stay, for anyone with git to read."""
    other = writer.put_run(facts(claim=2), {"a": Entry(b"kept")}, known=frozenset())
    ref = writer.put_run(facts(), {"a": Entry(b"a secret")}, known=frozenset())
    blob = git_blob_id(b"a secret")
    writer.drop(ref.ref)
    git = ["git", "--git-dir", str(writer.path), "cat-file", "-e", blob]
    assert subprocess.run(git, check=False, capture_output=True).returncode != 0
    assert writer.reader.evidence(other)[1] == {"a": Entry(b"kept")}


@pytest.fixture
def bundle(writer: EvidenceWriter, tmp_path: Path) -> tuple[Path, EvidenceRef, EvidenceRef]:
    """A results folder with a bundle of one of two runs."""
    one = writer.put_run(facts(), HARD, known=frozenset())
    other = writer.put_run(facts(claim=2), {"x": Entry(b"y")}, known=frozenset())
    results = tmp_path / "fresh clone"
    results.mkdir()
    writer.make_bundle(results / BUNDLE, [one.ref])
    return results, one, other


def test_a_bundle_alone_is_read_without_writing_beside_it(
    bundle: tuple[Path, EvidenceRef, EvidenceRef],
) -> None:
    results, one, other = bundle
    with whole_store(results) as path, EvidenceStore(path) as store:
        assert store.evidence(one)[1] == HARD
        assert store.find(other.ref) is None
    assert [path.name for path in results.iterdir()] == [BUNDLE]


def test_a_new_store_takes_in_the_bundle(bundle: tuple[Path, EvidenceRef, EvidenceRef]) -> None:
    results, one, _ = bundle
    for _ in range(2):
        assert EvidenceWriter(results / "evidence.git").reader.evidence(one)[1] == HARD


def test_a_store_and_a_bundle_are_read_as_one(
    bundle: tuple[Path, EvidenceRef, EvidenceRef], tmp_path: Path
) -> None:
    results, one, _ = bundle
    local = EvidenceWriter(tmp_path / "local" / "evidence.git")
    mine = local.put_run(facts(claim=3), {"m": Entry(b"n")}, known=frozenset())
    (results / BUNDLE).rename(tmp_path / "local" / BUNDLE)
    before = refs(local.path)
    with whole_store(tmp_path / "local") as path, EvidenceStore(path) as store:
        assert store.evidence(one)[1] == HARD and store.evidence(mine)[1] == {"m": Entry(b"n")}
    assert refs(local.path) == before


def test_a_bundle_that_contradicts_the_store_is_refused(
    bundle: tuple[Path, EvidenceRef, EvidenceRef], tmp_path: Path
) -> None:
    """Naive: the committed file wins, and a run's evidence is replaced."""
    results, one, _ = bundle
    other = EvidenceWriter(tmp_path / "other" / "evidence.git")
    mine = other.put_run(facts(exit_code=9), {"m": Entry(b"n")}, known=frozenset())
    assert mine.ref == one.ref
    (results / BUNDLE).rename(tmp_path / "other" / BUNDLE)
    with pytest.raises(EnvironmentFault, match="bundle"):
        EvidenceWriter(other.path)
    assert other.reader.evidence(mine)[1] == {"m": Entry(b"n")}


def test_the_same_evidence_gives_the_same_bundle(writer: EvidenceWriter, tmp_path: Path) -> None:
    one = writer.put_run(facts(), HARD, known=frozenset())
    for name in ("a", "b"):
        writer.make_bundle(tmp_path / name, [one.ref])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
