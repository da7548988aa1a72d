"""Tree and manifest hashes (Standard §7, §8). The boards' known answers are in tests/integration."""

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.errors import FixtureError
from schema.hashing import git_blob_id, hash_folder, manifest_hash, tree_hash

files = st.dictionaries(st.binary(min_size=1).filter(lambda b: b"\0" not in b), st.binary())


def test_the_serialisation_is_path_nul_length_nul_bytes() -> None:
    wanted = hashlib.sha256(b"a\0" + b"2\0xy" + b"b/c\0" + b"0\0").hexdigest()
    assert tree_hash([(b"b/c", b""), (b"a", b"xy")]) == wanted


def test_paths_sort_as_bytes_not_as_folders() -> None:
    """``a-b`` sorts before ``a/b`` as bytes; a folder-first walk would put it behind."""
    both = [(b"a/b", b"1"), (b"a-b", b"2")]
    wanted = hashlib.sha256(b"a-b\x001\x002" + b"a/b\x001\x001").hexdigest()
    assert tree_hash(both) == wanted


@given(files)
def test_order_does_not_matter(tree: dict[bytes, bytes]) -> None:
    assert tree_hash(tree.items()) == tree_hash(reversed(tree.items()))


@given(files, st.binary(min_size=1), st.binary())
def test_any_change_of_content_changes_the_hash(tree: dict[bytes, bytes], path: bytes, data: bytes) -> None:
    path = path.replace(b"\0", b"x")
    changed = {**tree, path: tree.get(path, b"") + b"!" + data}
    assert tree_hash(tree.items()) != tree_hash(changed.items())


def test_a_folder_hashes_as_its_files_modes_and_empty_folders_aside(tmp_path: Path) -> None:
    (tmp_path / "d" / "empty").mkdir(parents=True)
    (tmp_path / ".dot").write_bytes(b"1\r\n")
    (tmp_path / "d" / "f").write_bytes(b"2")
    (tmp_path / "d" / "f").chmod(0o755)
    assert hash_folder(tmp_path) == tree_hash([(b".dot", b"1\r\n"), (b"d/f", b"2")])


@pytest.mark.parametrize("kind", ["file-link", "folder-link", "pipe"])
def test_links_and_special_files_are_errors(tmp_path: Path, kind: str) -> None:
    (tmp_path / "tree").mkdir()
    odd = tmp_path / "tree" / "odd"
    if kind == "pipe":
        os.mkfifo(odd)
    else:
        odd.symlink_to(tmp_path if kind == "folder-link" else "/etc/hostname")
    with pytest.raises(FixtureError, match="odd"):
        hash_folder(tmp_path / "tree")


def test_a_missing_folder_is_an_error_not_an_empty_tree(tmp_path: Path) -> None:
    with pytest.raises(FixtureError, match="no such folder"):
        hash_folder(tmp_path / "none")


def test_the_manifest_covers_task_assertions_brief_and_overlay_only(tmp_path: Path) -> None:
    for name in (
        "task.json",
        "assertions.json",
        "README.md",
        "overlay/docs/x.md",
        "solutions/gold/solution.json",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    before = manifest_hash(tmp_path)
    for name in ("README.md", "solutions/gold/solution.json"):
        (tmp_path / name).write_text("other")
        assert manifest_hash(tmp_path) == before
    for name in ("task.json", "assertions.json", "overlay/docs/x.md", "brief.md"):
        last = manifest_hash(tmp_path)
        (tmp_path / name).write_text("other")
        assert manifest_hash(tmp_path) != last


def test_git_blob_id_is_what_git_says() -> None:
    assert git_blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert git_blob_id(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"
