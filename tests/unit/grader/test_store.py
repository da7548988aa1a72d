"""Reading the evidence store: what several runs share is read once, and is what its name says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grader.evidence import Entry
from grader.store import EvidenceStore
from orchestrator.store import EvidenceWriter, hash_tree
from schema.errors import CheckFailed
from tests.unit.samples import facts, run_id

TREE = {"a": Entry(b"1"), "d/e/\udcff": Entry(b"2", 0o755), "d/.git/x": Entry(b"")}


@pytest.fixture
def writer(tmp_path: Path) -> EvidenceWriter:
    """A store with one tree."""
    made = EvidenceWriter(tmp_path / "evidence.git")
    made.put_tree(TREE, hash_tree(TREE))
    return made


def test_a_tree_is_what_its_hash_says(writer: EvidenceWriter) -> None:
    """Naive: whatever is kept under a fixture's name is what runs are judged by."""
    digest = hash_tree(TREE)
    assert EvidenceStore(writer.path).tree(digest) == TREE
    writer.put_tree(TREE, "0" * 64)
    with pytest.raises(CheckFailed, match="does not have the hash"):
        EvidenceStore(writer.path).tree("0" * 64)


def test_an_open_store_gives_the_same_as_a_closed_one(writer: EvidenceWriter) -> None:
    end = {**TREE, "link": Entry(b"../x", 0o777, "symlink"), "setuid": Entry(b"3", 0o4755)}
    given = [facts(run_id(repeat=number)) for number in range(1, 9)]
    refs = [
        writer.put_run(one, {**end, "n": Entry(b"%d" % one.run.repeat)}, known=frozenset()) for one in given
    ]
    closed = [EvidenceStore(writer.path).evidence(ref) for ref in refs]
    with EvidenceStore(writer.path) as store, ThreadPoolExecutor(4) as workers:
        assert list(workers.map(store.evidence, refs)) == closed
        assert store.tree(hash_tree(TREE)) is store.tree(hash_tree(TREE))
    assert [one for one, _ in closed] == given


@pytest.mark.parametrize("digest", ["1" * 64, "nothing of that name", "HEAD"])
def test_what_is_not_there_is_said(writer: EvidenceWriter, digest: str) -> None:
    with EvidenceStore(writer.path) as store, pytest.raises(CheckFailed, match="missing"):
        store.tree(digest)


def test_a_folder_that_is_no_store_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="no such evidence store"):
        EvidenceStore(tmp_path / "none").tree("0" * 64)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckFailed):
        EvidenceStore(tmp_path / "empty").tree("0" * 64)
