"""Tree, manifest and object digests."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from schema.errors import FixtureError

MANIFEST_PARTS = ("task.json", "assertions.json", "brief.md", "overlay")
"""What of a task directory its manifest hash covers (Standard §8): not README, not solutions."""


def tree_hash(files: Iterable[tuple[bytes, bytes]]) -> str:
    """SHA-256 of a tree given as (POSIX path bytes, content) pairs in any order (Standard §7)."""
    digest = hashlib.sha256()
    for path, data in sorted(files):
        digest.update(path + b"\0" + str(len(data)).encode() + b"\0")
        digest.update(data)
    return digest.hexdigest()


def walk_files(root: Path) -> Iterator[tuple[bytes, Path]]:
    """Yield (relative POSIX path bytes, path) of every regular file under ``root``, dotfiles too.

    Raises:
        FixtureError: the root is missing, or holds a symlink or special file.
    """
    if not root.is_dir():
        raise FixtureError("no such folder", about=str(root), fix="run copperbench fixtures sync")
    for folder, names, files in os.walk(root):
        for name in [*files, *(n for n in names if (Path(folder) / n).is_symlink())]:
            path = Path(folder) / name
            if not stat.S_ISREG(path.lstat().st_mode):
                raise FixtureError("symlinks and special files are not allowed in a tree", about=str(path))
            yield os.fsencode(path.relative_to(root).as_posix()), path


def hash_folder(root: Path) -> str:
    """Tree hash of a folder on disk.

    Raises:
        FixtureError: as :func:`walk_files`.
    """
    return tree_hash((name, path.read_bytes()) for name, path in walk_files(root))


def code_hash(root: Path, packages: Iterable[str]) -> str:
    """Tree hash of packages' files as they stand below ``root``, compiled ones left out."""
    return tree_hash(
        (package.encode() + b"/" + name, path.read_bytes())
        for package in packages
        for name, path in walk_files(root / package)
        if b"__pycache__" not in name.split(b"/")
    )


def manifest_hash(task: Path) -> str:
    """Hash of all of a task directory that a run or its grade depends on (Standard §1, §8)."""
    covered = [
        (name, path) for name, path in walk_files(task) if os.fsdecode(name).split("/")[0] in MANIFEST_PARTS
    ]
    return tree_hash((name, path.read_bytes()) for name, path in covered)


def git_blob_id(data: bytes) -> str:
    """The object id git gives to a blob (SHA-1 object format)."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def sha256(data: bytes) -> str:
    """Hex SHA-256."""
    return hashlib.sha256(data).hexdigest()
