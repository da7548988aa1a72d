"""Reading the evidence store: a bare git repository that the harness owns.

Layout: ``refs/runs/<run>/a<attempt>`` holds ``run.json``, ``manifest.json`` and ``tree/``;
``refs/trees/<tree hash>`` holds fixture and baseline trees. Path elements are percent-encoded, since git
takes ``..`` and ``.git`` and loses ``a`` beside ``a/b``.
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from grader.evidence import Entry, Tree
from grader.git import CLEAN_ENVIRONMENT
from schema.errors import CheckFailed
from schema.hashing import sha256
from schema.jsonfile import canonical, parse_json, validate_as
from schema.paths import decode_path, encode_path
from schema.run import Evidence, EvidenceEntry, EvidenceRef, RunFacts

STORE = "evidence.git"


def tree_ref(digest: str) -> str:
    """Ref of a fixture or baseline tree, by its tree hash."""
    return f"refs/trees/{digest}"


def describe(tree: Tree) -> list[EvidenceEntry]:
    """The manifest entries of a tree, sorted by path bytes."""
    return [
        EvidenceEntry(
            path=encode_path(path),
            kind=entry.kind,
            mode=f"{entry.mode:04o}",
            size=len(entry.data),
            sha256=sha256(entry.data),
        )
        for path, entry in sorted(tree.items(), key=lambda item: item[0].encode("utf-8", "surrogateescape"))
    ]


def evidence_id(evidence: Evidence) -> str:
    """SHA-256 of the canonical manifest: the same in any store (DESIGN §3)."""
    return sha256(canonical(evidence.to_json()))


class EvidenceStore:
    """Read access to one evidence store."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def tree(self, digest: str) -> Tree:
        """A fixture or baseline tree by its tree hash.

        Raises:
            CheckFailed: it is not in the store.
        """
        return self._entries(tree_ref(digest), prefix="tree/")[1]

    def evidence(self, ref: EvidenceRef) -> tuple[RunFacts, Tree]:
        """Run facts and end tree of one run, checked against the evidence id.

        Raises:
            CheckFailed: missing, or not what the record says.
        """
        about = f"evidence {ref.ref}"
        fixed, tree = self._entries(ref.ref, prefix="tree/")
        try:
            facts_value = parse_json(fixed["run.json"], about)
            manifest = validate_as(Evidence, parse_json(fixed["manifest.json"], about), about)
        except KeyError as missing:
            raise CheckFailed(f"{missing} is missing", about=about) from None
        if evidence_id(manifest) != ref.id:
            raise CheckFailed("manifest does not have the recorded evidence id", about=about)
        if sha256(canonical(facts_value)) != manifest.run_sha256:
            raise CheckFailed("run.json is not the one the manifest names", about=about)
        modes = {entry.path: int(entry.mode, 8) for entry in manifest.entries}
        # git keeps only the executable bit; the manifest has them all.
        tree = {
            path: Entry(data=entry.data, mode=modes.get(encode_path(path), entry.mode), kind=entry.kind)
            for path, entry in tree.items()
        }
        if describe(tree) != manifest.entries:
            raise CheckFailed("files are not those the manifest names", about=about)
        return validate_as(RunFacts, facts_value, about), tree

    def _entries(self, ref: str, *, prefix: str) -> tuple[dict[str, bytes], dict[str, Entry]]:
        """Files beside ``prefix`` by name, and entries below it by decoded path."""
        listing = self._git("ls-tree", "-r", "-z", "--full-tree", ref, about=ref)
        rows: list[tuple[str, str, str]] = []
        for line in listing.split(b"\0"):
            if line:
                head, _, path = line.partition(b"\t")
                mode, _, blob = head.decode().split(" ")
                rows.append((mode, blob, path.decode()))
        blobs = self._blobs({blob for _, blob, _ in rows}, about=ref)
        fixed = {path: blobs[blob] for _, blob, path in rows if not path.startswith(prefix)}
        tree = {
            decode_path(path.removeprefix(prefix)): Entry(
                data=blobs[blob],
                mode=0o777 if mode == "120000" else int(mode[-3:], 8),
                kind="symlink" if mode == "120000" else "file",
            )
            for mode, blob, path in rows
            if path.startswith(prefix)
        }
        return fixed, tree

    def _blobs(self, ids: Iterable[str], *, about: str) -> dict[str, bytes]:
        wanted = sorted(ids)
        data = self._git("cat-file", "--batch", about=about, stdin="".join(f"{i}\n" for i in wanted).encode())
        out: dict[str, bytes] = {}
        at = 0
        for blob in wanted:
            end = data.index(b"\n", at)
            head = data[at:end].split(b" ")
            if head[1] == b"missing":
                raise CheckFailed(f"object {blob} is missing", about=f"{self.path} {about}")
            size = int(head[2])
            out[blob] = data[end + 1 : end + 1 + size]
            at = end + 1 + size + 1
        return out

    def _git(self, *arguments: str, about: str, stdin: bytes = b"") -> bytes:
        if not self.path.is_dir():
            raise CheckFailed("no such evidence store", about=str(self.path), fix="run copperbench run first")
        done = subprocess.run(
            # The store may be mounted from another user's files; it is ours and holds no configuration.
            ["git", "-c", "safe.directory=*", "--git-dir", str(self.path), *arguments],
            env=CLEAN_ENVIRONMENT,
            input=stdin,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise CheckFailed(reason[-1] if reason else "git failed", about=f"{self.path} {about}")
        return done.stdout
