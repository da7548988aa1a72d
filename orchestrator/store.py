"""Writing the evidence store with ``git fast-import``: unchanged files are named, not sent (DESIGN §3)."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from grader.evidence import Tree
from grader.git import CLEAN_ENVIRONMENT
from grader.store import BUNDLE, EvidenceStore, bundled, describe, evidence_id, refs, tree_ref
from orchestrator.records import sync_folder
from schema import SCHEMA_VERSION
from schema.errors import EnvironmentFault
from schema.hashing import git_blob_id, sha256, tree_hash
from schema.jsonfile import canonical, pretty
from schema.paths import encode_path
from schema.run import Evidence, EvidenceRef, RunFacts, RunId


def hash_tree(tree: Tree) -> str:
    """Tree hash (Standard §7) of an in-memory tree of regular files."""
    return tree_hash((path.encode("utf-8", "surrogateescape"), entry.data) for path, entry in tree.items())


def evidence_ref(run: RunId, claim: int) -> str:
    """Where one claim's evidence is kept: no later run of the same name can replace it."""
    return f"refs/runs/{run.ref}/c{claim}"


class EvidenceWriter:
    """Write access to one evidence store; any number of writers may work at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reader = EvidenceStore(path)
        self._kept: set[str] = set()
        with self._lock(exclusive=True) as lock:
            if not (path / "HEAD").exists():
                self._create(lock)
            self._sweep()
        bundle = path.parent / BUNDLE
        if bundle.is_file() and not bundled(bundle).items() <= refs(path).items():
            self._take(bundle)

    def put_tree(self, tree: Tree, digest: str) -> None:
        """Keep a fixture or baseline tree under its tree hash, once."""
        if digest in self._kept:
            return
        # Two imports of one tree at once would make two packs of one name.
        with self._lock(exclusive=True) as lock:
            if not self._has(tree_ref(digest), lock):
                self._import(tree_ref(digest), tree, {}, frozenset(), lock)
        self._kept.add(digest)

    def put_run(
        self,
        facts: RunFacts,
        tree: Tree,
        *,
        known: frozenset[str],
        ledgers: Mapping[str, bytes] | None = None,
    ) -> EvidenceRef:
        """Keep one run's facts and end tree.

        Args:
            facts: what becomes ``run.json``.
            tree: the end tree.
            known: git blob ids that the store already holds (the baseline's).
            ledgers: what the gateway wrote, by name.
        """
        ledgers = ledgers or {}
        run = facts.to_json()
        manifest = Evidence(
            schema_version=SCHEMA_VERSION,
            run_sha256=sha256(canonical(run)),
            entries=describe(tree),
            ledgers={name: sha256(data) for name, data in sorted(ledgers.items())},
        )
        ref = evidence_ref(facts.run, facts.claim)
        fixed = {
            "run.json": pretty(run).encode(),
            "manifest.json": pretty(manifest.to_json()).encode(),
            **ledgers,
        }
        with self._lock(exclusive=False) as lock:
            self._import(ref, tree, fixed, known, lock)
        return EvidenceRef(id=evidence_id(manifest), ref=ref)

    def drop(self, ref: str) -> None:
        """Remove what must not be kept, its bytes too."""
        with self._lock(exclusive=True) as lock:
            self._run("cannot be removed", lock, "update-ref", "-d", ref)
            self._run("cannot be removed", lock, "repack", "-a", "-d", "-q")
            self._run("cannot be removed", lock, "prune", "--expire=now")

    def make_bundle(self, bundle: Path, wanted: Iterable[str]) -> None:
        """Write refs and all they need as one file that git reads."""
        with self._lock(exclusive=True) as lock:
            names = "".join(f"{ref}\n" for ref in sorted(wanted)).encode()
            # One thread: the same objects give the same file.
            create = ("-c", "pack.threads=1", "bundle", "create", "-q", str(bundle), "--stdin")
            self._run("cannot be bundled", lock, *create, stdin=names)

    def _take(self, bundle: Path) -> None:
        """Take in a committed bundle; a ref that is here already stays what it is."""
        with self._lock(exclusive=True) as lock:
            self._run("of the bundle cannot be read", lock, "fetch", "-q", str(bundle), "refs/*:refs/*")

    def _create(self, lock: IO[str]) -> None:
        # Made beside its place: a git that is killed leaves half a repository, which no later one would mend.
        new = self.path.with_name(f".{self.path.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        init = ("init", "-q", "--bare", "--template=", "--object-format=sha1")
        # One small pack a run instead of loose objects: 19 ms against 276 on a 5.6 MB board.
        settings = (("fastimport.unpackLimit", "1"), ("gc.auto", "0"), ("core.fsync", "all"))
        for arguments in (init, *(("config", key, value) for key, value in settings)):
            self._run("cannot be created", lock, *arguments, store=new)
        new.rename(self.path)
        sync_folder(self.path.parent)

    def _sweep(self) -> None:
        """What git processes that were killed left behind would stand in the way of the next."""
        for pattern in (
            "refs/**/*.lock",
            "*.lock",
            "objects/pack/tmp_*",
            "objects/pack/*.lock",
            "fast_import_crash_*",
        ):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)

    def _has(self, ref: str, lock: IO[str]) -> bool:
        return self._git(lock, "rev-parse", "-q", "--verify", f"{ref}^{{commit}}").returncode == 0

    def _import(
        self, ref: str, tree: Tree, fixed: dict[str, bytes], known: frozenset[str], lock: IO[str]
    ) -> None:
        stream = b"".join(_commands(ref, tree, fixed, known))
        # Without --done git would take the first half of a stream whose writer died for the whole.
        wanted = ("fast-import", "--quiet", "--force", "--done", "--date-format=raw")
        self._run("cannot be stored", lock, *wanted, stdin=stream)

    @contextmanager
    def _lock(self, *, exclusive: bool) -> Iterator[IO[str]]:
        """Shared for runs, exclusive for what must happen once: creation, a shared tree, repacking."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with (self.path.parent / f".{self.path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
            yield lock

    def _run(
        self, failure: str, lock: IO[str], *arguments: str, stdin: bytes = b"", store: Path | None = None
    ) -> None:
        done = self._git(lock, *arguments, stdin=stdin, store=store)
        if done.returncode:
            reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise EnvironmentFault(
                f"evidence {failure} ({reason[0] if reason else 'git failed'})",
                about=str(self.path),
                fix="check the disk",
            )

    def _git(
        self, lock: IO[str], *arguments: str, stdin: bytes = b"", store: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["git", "-c", "safe.directory=*", "--git-dir", str(store or self.path), *arguments],
            env=CLEAN_ENVIRONMENT,
            input=stdin,
            capture_output=True,
            check=False,
            # git keeps the lock when we are killed: nobody tidies up while it still writes.
            pass_fds=(lock.fileno(),),
        )


def _commands(ref: str, tree: Tree, fixed: dict[str, bytes], known: frozenset[str]) -> Iterable[bytes]:
    """The fast-import stream of one parentless commit with a fixed identity and date."""
    yield b"commit %s\n" % ref.encode()
    yield b"committer copperbench <evidence@copperbench.invalid> 0 +0000\ndata 0\n\n"
    for name, data in fixed.items():
        yield b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data)
    for path, entry in tree.items():
        where = f"tree/{encode_path(path)}".encode()
        mode = b"120000" if entry.kind == "symlink" else b"100755" if entry.mode & 0o100 else b"100644"
        blob = git_blob_id(entry.data)
        if blob in known:
            yield b"M %s %s %s\n" % (mode, blob.encode(), where)
        else:
            yield b"M %s inline %s\ndata %d\n%s\n" % (mode, where, len(entry.data), entry.data)
    yield b"\ndone\n"
