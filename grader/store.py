"""Reading the evidence store: a bare git repository that the harness owns.

Layout: ``refs/runs/<run>/a<attempt>`` holds ``run.json``, ``manifest.json`` and ``tree/``;
``refs/trees/<tree hash>`` holds fixture and baseline trees. Path elements are percent-encoded, since git
takes ``..`` and ``.git`` and loses ``a`` beside ``a/b``.
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from grader.evidence import Entry, Tree
from grader.git import CLEAN_ENVIRONMENT
from schema.errors import CheckFailed
from schema.hashing import sha256, tree_hash
from schema.jsonfile import canonical, parse_json, validate_as
from schema.paths import decode_path, encode_path
from schema.run import Evidence, EvidenceEntry, EvidenceRef, RunFacts

STORE = "evidence.git"
BUNDLE = "evidence.bundle"
"""Beside the store: evidence as one committed file. The store itself is never committed."""
OWN = ("run.json", "manifest.json")
KEPT_BYTES = 256 * 2**20
"""Of files' contents that an open store keeps."""


def tree_ref(digest: str) -> str:
    """Ref of a fixture or baseline tree, by its tree hash."""
    return f"refs/trees/{digest}"


def describe(tree: Tree, known: Mapping[str, str] | None = None) -> list[EvidenceEntry]:
    """The manifest entries of a tree, sorted by path bytes; ``known``: path → SHA-256 computed already."""
    digests = known or {}
    return [
        EvidenceEntry(
            path=encode_path(path),
            kind=entry.kind,
            mode=f"{entry.mode:04o}",
            size=len(entry.data),
            sha256=digests.get(path) or sha256(entry.data),
        )
        for path, entry in sorted(tree.items(), key=lambda item: item[0].encode("utf-8", "surrogateescape"))
    ]


def evidence_id(evidence: Evidence) -> str:
    """SHA-256 of the canonical manifest: the same in any store (DESIGN §3)."""
    return sha256(canonical(evidence.to_json()))


def refs(git_dir: Path) -> dict[str, str]:
    """Ref → object of a store."""
    return _pairs("--git-dir", str(git_dir), "for-each-ref", "--format=%(objectname) %(refname)")


def bundled(bundle: Path) -> dict[str, str]:
    """Ref → object of a bundle."""
    return _pairs("bundle", "list-heads", str(bundle))


def _pairs(*arguments: str) -> dict[str, str]:
    lines = run_git(*arguments).decode().splitlines()
    return {name: found for found, _, name in (line.partition(" ") for line in lines)}


def run_git(*arguments: str, stdin: bytes = b"") -> bytes:
    """What a git command prints.

    Raises:
        CheckFailed: it failed.
    """
    # Stores may be mounted from another user's files; they are ours and hold no configuration of others.
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", *arguments],
        env=CLEAN_ENVIRONMENT,
        input=stdin,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise CheckFailed(f"git {arguments[0]} failed ({said[-1] if said else done.returncode})")
    return done.stdout


@contextmanager
def whole_store(results: Path) -> Iterator[Path]:
    """A store that holds all evidence of a results folder, a committed bundle's too. Writes nothing there."""
    store, bundle = results / STORE, results / BUNDLE
    here = refs(store) if store.is_dir() else {}
    if not bundle.is_file() or (here and bundled(bundle).items() <= here.items()):
        yield store
        return
    with tempfile.TemporaryDirectory(prefix="evidence-") as folder:
        joined = Path(folder) / STORE
        run_git("init", "-q", "--bare", "--template=", "--object-format=sha1", str(joined))
        if here:
            (joined / "objects" / "info" / "alternates").write_text(f"{store.resolve()}/objects\n", "utf-8")
            updates = "".join(f"create {name} {found}\n" for name, found in here.items())
            run_git("--git-dir", str(joined), "update-ref", "--stdin", stdin=updates.encode())
        run_git("--git-dir", str(joined), "fetch", "-q", str(bundle.resolve()), "+refs/*:refs/*")
        yield joined


class EvidenceStore:
    """Read access to one evidence store.

    Used as a context manager it keeps one git process and what it read for all calls: runs of a task share
    nearly every file. Any number of threads may read at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept: Objects | None = None
        self._trees: dict[str, Tree] = {}

    def __enter__(self) -> Self:
        self._kept = Objects(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        if self._kept:
            self._kept.close()
        self._kept = None
        self._trees.clear()

    def tree(self, digest: str) -> Tree:
        """A fixture or baseline tree by its tree hash.

        Raises:
            CheckFailed: it is not in the store, or is another one.
        """
        if digest in self._trees:
            return self._trees[digest]
        ref = tree_ref(digest)
        with self._objects() as objects:
            tree = {path: entry for path, (entry, _) in _below(objects, ref).items()}
        pairs = ((path.encode("utf-8", "surrogateescape"), entry.data) for path, entry in tree.items())
        if tree_hash(pairs) != digest:
            raise CheckFailed("the tree does not have the hash it is kept under", about=f"{self.path} {ref}")
        if self._kept:
            self._trees[digest] = tree
        return tree

    def find(self, ref: str) -> EvidenceRef | None:
        """The evidence kept under a ref, if any is."""
        with self._objects() as objects:
            try:
                files = {name: blob for _, blob, name in objects.tree(f"{ref}^{{tree}}")[0]}
                data = objects.data(files["manifest.json"])
            except (CheckFailed, KeyError):
                return None
        about = f"evidence {ref}"
        manifest = validate_as(Evidence, parse_json(data, about), about)
        return EvidenceRef(id=evidence_id(manifest), ref=ref)

    def evidence(self, ref: EvidenceRef) -> tuple[RunFacts, Tree]:
        """Run facts and end tree of one run, checked against the evidence id.

        Raises:
            CheckFailed: missing, or not what the record says.
        """
        about = f"evidence {ref.ref}"
        with self._objects() as objects:
            fixed = {name: objects.data(blob) for _, blob, name in objects.tree(f"{ref.ref}^{{tree}}")[0]}
            below = _below(objects, ref.ref)
        try:
            facts_value = parse_json(fixed["run.json"], about)
            manifest = validate_as(Evidence, parse_json(fixed["manifest.json"], about), about)
        except KeyError as missing:
            raise CheckFailed(f"{missing} is missing", about=about) from None
        if evidence_id(manifest) != ref.id:
            raise CheckFailed("manifest does not have the recorded evidence id", about=about)
        if sha256(canonical(facts_value)) != manifest.run_sha256:
            raise CheckFailed("run.json is not the one the manifest names", about=about)
        if {name: sha256(data) for name, data in fixed.items() if name not in OWN} != manifest.ledgers:
            raise CheckFailed("the gateway's ledger is not the one the manifest names", about=about)
        # Tildes were not encoded once; the evidence id above is of the manifest as it stands.
        listed = [
            entry.model_copy(update={"path": entry.path.replace("~", "%7E")}) for entry in manifest.entries
        ]
        # git keeps only the executable bit; the manifest has them all.
        modes = {entry.path: int(entry.mode, 8) for entry in listed}
        tree = {
            path: Entry(data=entry.data, mode=modes.get(encode_path(path), entry.mode), kind=entry.kind)
            for path, (entry, _) in below.items()
        }
        if describe(tree, {path: digest for path, (_, digest) in below.items()}) != listed:
            raise CheckFailed("files are not those the manifest names", about=about)
        return validate_as(RunFacts, facts_value, about), tree

    @contextmanager
    def _objects(self) -> Iterator[Objects]:
        if self._kept:
            yield self._kept
            return
        objects = Objects(self.path)
        try:
            yield objects
        finally:
            objects.close()


def _below(objects: Objects, ref: str) -> dict[str, tuple[Entry, str]]:
    """Entry and SHA-256 of every file below ``tree/`` of a commit, by decoded path."""
    found: dict[str, tuple[Entry, str]] = {}
    # A commit of nothing has no tree/ at all.
    pending = [(blob, "") for name, blob in objects.tree(f"{ref}^{{tree}}")[1] if name == "tree"]
    while pending:
        tree, prefix = pending.pop()
        files, folders = objects.tree(tree)
        pending += [(below, f"{prefix}{name}/") for name, below in folders]
        for mode, blob, name in files:
            link = mode == "120000"
            entry = Entry(
                data=objects.data(blob),
                mode=0o777 if link else int(mode[-3:], 8),
                kind="symlink" if link else "file",
            )
            found[decode_path(prefix + name)] = entry, objects.sha256(blob)
    return found


class Objects:
    """One ``git cat-file``: objects of a store by name, kept as far as there is room."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise CheckFailed("no such evidence store", about=str(path), fix="run copperbench run first")
        self._path = path
        self._lock = threading.Lock()
        self._blobs: OrderedDict[str, tuple[bytes, str]] = OrderedDict()
        self._bytes = 0
        self._process = subprocess.Popen(
            # The store may be mounted from another user's files; it is ours and holds no configuration.
            ["git", "-c", "safe.directory=*", "--git-dir", str(path), "cat-file", "--batch"],
            env=CLEAN_ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def close(self) -> None:
        """End git."""
        self._process.communicate()

    def tree(self, name: str) -> tuple[list[tuple[str, str, str]], list[tuple[str, str]]]:
        """Files as (mode, object, name), and folders as (name, object), of one tree object."""
        data = self._read(name, "tree")
        files: list[tuple[str, str, str]] = []
        folders: list[tuple[str, str]] = []
        at = 0
        while at < len(data):
            end = data.index(b"\0", at)
            mode, _, raw = data[at:end].partition(b" ")
            blob = data[end + 1 : end + 21].hex()
            if mode == b"40000":
                folders.append((raw.decode(), blob))
            else:
                files.append((mode.decode(), blob, raw.decode()))
            at = end + 21
        return files, folders

    def data(self, blob: str) -> bytes:
        """A file's content; one object however often it is asked for."""
        return self._blob(blob)[0]

    def sha256(self, blob: str) -> str:
        """SHA-256 of a file's content."""
        return self._blob(blob)[1]

    def _blob(self, blob: str) -> tuple[bytes, str]:
        with self._lock:
            if blob in self._blobs:
                self._blobs.move_to_end(blob)
                return self._blobs[blob]
        data = self._read(blob, "blob")
        found = data, sha256(data)
        with self._lock:
            if blob not in self._blobs:
                self._blobs[blob] = found
                self._bytes += len(data)
            while self._bytes > KEPT_BYTES and len(self._blobs) > 1:
                self._bytes -= len(self._blobs.popitem(last=False)[1][0])
        return found

    def _read(self, name: str, kind: str) -> bytes:
        asked, answer = self._process.stdin, self._process.stdout
        if asked is None or answer is None:
            raise CheckFailed("git does not run", about=str(self._path))
        with self._lock:
            try:
                asked.write(f"{name}\n".encode())
                asked.flush()
                head = answer.readline().split(b" ")
                if len(head) != 3 or not head[-1].strip().isdigit():
                    raise CheckFailed(f"object {name} is missing", about=str(self._path))
                size = int(head[2])
                data = answer.read(size)
                answer.read(1)
            except OSError:
                raise CheckFailed("git ended", about=f"{self._path} {name}") from None
        if head[1].decode() != kind or len(data) != size:
            raise CheckFailed(f"object {name} is no whole {kind}", about=str(self._path))
        return data
