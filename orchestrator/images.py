"""Images: what they are built from, and building only what changed (DESIGN §6)."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.engine import LABEL, Engine
from orchestrator.project import Project
from schema.errors import EnvironmentFault
from schema.hashing import sha256, tree_hash
from schema.jsonfile import canonical

BASE = "copperbench/base:trixie"
UPSTREAM_BASE = "debian:trixie-slim"
RESULTS_IMAGE = "copperbench-grader"
"""What strangers run: the grader's code image with this checkout's results baked in, if there are any."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class ImageSpec:
    """One image as data."""

    tag: str
    dockerfile: str
    parent: str
    context: tuple[str, ...] = ()
    """Files and folders of the checkout, each laid into the context under the name given by ``renamed``."""
    strip: str = ""
    """Prefix removed from context paths."""
    lock: str = ""
    """Lock file whose wheels are laid into the context as ``wheels/``."""
    args: Mapping[str, str] = field(default_factory=dict)


def specs(project: Project) -> list[ImageSpec]:
    """Every image, parents first."""
    agents = [
        ImageSpec(
            tag=project.agent(path.parent.name).image,
            dockerfile=f"images/agents/{path.parent.name}/Dockerfile",
            parent="copperbench/agent-base",
            context=(f"images/agents/{path.parent.name}",),
            strip=f"images/agents/{path.parent.name}/",
        )
        for path in sorted(project.root.glob("images/agents/*/agent.json"))
    ]
    return [
        ImageSpec("copperbench/kicad", "Dockerfile.kicad", BASE),
        ImageSpec("copperbench/holder", "images/holder/Dockerfile", BASE),
        ImageSpec(
            "copperbench/agent-base",
            "images/agents/base/Dockerfile",
            "copperbench/kicad",
            context=("images/agents/base",),
            strip="images/agents/base/",
        ),
        *agents,
        ImageSpec(
            "copperbench/grader",
            "images/grader/Dockerfile",
            "copperbench/kicad",
            context=("schema", "compass", "grader"),
            lock="images/grader/requirements.lock",
        ),
    ]


def build_all(project: Project, engine: Engine, say: Say) -> None:
    """Bring every image up to date; what has not changed is reused.

    Raises:
        EngineError: a build failed.
        EnvironmentFault: base or wheels cannot be had.
    """
    _ensure_base(project, engine, say)
    for spec in specs(project):
        _build(project, engine, spec, say)
    bake(project, engine, say)


def bake(project: Project, engine: Engine, say: Say) -> None:
    """``copperbench-grader``: the code image, and this checkout's tasks, fixtures' metadata and results."""
    parts = ("tasks", "suites", "fixtures", "images/agents", "models.json", "results", "LEADERBOARD.md")
    tree = {
        f"bench/{name}": data
        for name, data in _context(project.root, parts, "").items()
        if not name.startswith("tasks/") or "/solutions/" not in name
    }
    dockerfile = b"FROM copperbench/grader\nCOPY bench/ /opt/copperbench/bench/\n"
    _build_tree(
        engine,
        RESULTS_IMAGE,
        dockerfile=dockerfile,
        tree=tree,
        args={},
        parent="copperbench/grader",
        say=say,
    )


def _ensure_base(project: Project, engine: Engine, say: Say) -> None:
    if engine.image_labels(BASE) is not None:
        say(f"{BASE}: reused")
        return
    if engine.pull(UPSTREAM_BASE):
        engine.tag(UPSTREAM_BASE, BASE)
        say(f"{BASE}: pulled {UPSTREAM_BASE}")
        return
    say(f"{BASE}: no registry gives {UPSTREAM_BASE}; making it from Debian packages")
    with tempfile.TemporaryDirectory(prefix="copperbench-base-") as folder:
        archive = Path(folder) / "root.tar"
        script = project.root / "images" / "base" / "bootstrap"
        done = subprocess.run([script, archive], capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise EnvironmentFault(
                f"the base image cannot be made ({said[-1] if said else 'bootstrap failed'})",
                about="images/base/bootstrap",
                fix="run it by hand to see why",
            )
        engine.import_root(archive, BASE)
    say(f"{BASE}: made")


def _build(project: Project, engine: Engine, spec: ImageSpec, say: Say) -> None:
    tree = _context(project.root, spec.context, spec.strip)
    if spec.lock:
        tree |= _wheels(project, spec.lock)
    dockerfile = (project.root / spec.dockerfile).read_bytes()
    args = {"BASE": spec.parent, **spec.args}
    _build_tree(engine, spec.tag, dockerfile=dockerfile, tree=tree, args=args, parent=spec.parent, say=say)


def _build_tree(
    engine: Engine,
    tag: str,
    *,
    dockerfile: bytes,
    tree: Mapping[str, bytes],
    args: Mapping[str, str],
    parent: str,
    say: Say,
) -> None:
    """Build unless an image of the same inputs is there. Inputs: context, arguments, the parent's layers."""
    inputs = sha256(
        canonical(
            [
                tree_hash((name.encode(), data) for name, data in tree.items()),
                sha256(dockerfile),
                dict(args),
                engine.digest(parent),
            ]
        )
    )
    if (engine.image_labels(tag) or {}).get(f"{LABEL}.inputs") == inputs:
        say(f"{tag}: reused")
        return
    say(f"{tag}: building")
    # Scripts keep their executable bit through git; in the context it follows the shebang.
    context = _pack({**tree, ".Dockerfile": dockerfile})
    for line in engine.build(
        context,
        tag=tag,
        dockerfile=".Dockerfile",
        args=args,
        labels={f"{LABEL}.inputs": inputs},
        network="host",
    ):
        if line.startswith("Step "):
            say(f"{tag}: {line}")
    say(f"{tag}: built, {engine.image_bytes(tag) / 1e6:.0f} MB")


def _context(root: Path, parts: tuple[str, ...], strip: str) -> dict[str, bytes]:
    return {name.removeprefix(strip): path.read_bytes() for name, path in _files(root, parts)}


def _files(root: Path, parts: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    for part in parts:
        path = root / part
        if path.is_file():
            yield part, path
        for folder, names, files in os.walk(path):
            names[:] = sorted(name for name in names if name != "__pycache__")
            for name in sorted(files):
                if not name.endswith((".pyc", ".lock.tmp")):
                    file = Path(folder) / name
                    yield file.relative_to(root).as_posix(), file


def _wheels(project: Project, lock: str) -> dict[str, bytes]:
    """The wheels of a lock file for the image's Python, downloaded once on the host."""
    path = project.root / lock
    folder = project.cache / "wheels" / sha256(path.read_bytes())[:16]
    if not (folder / ".complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--require-hashes",
            "--no-deps",
            "--only-binary=:all:",
            "--python-version",
            "3.13",
            "--implementation",
            "cp",
            "--abi",
            "cp313",
            "--abi",
            "abi3",
            "--abi",
            "none",
            *(f"--platform=manylinux_2_{n}_x86_64" for n in (17, 24, 26, 27, 28, 34)),
            "--platform=manylinux2014_x86_64",
            "--platform=any",
            "--requirement",
            str(path),
            "--dest",
            str(folder),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in done.stderr.strip().splitlines() if line.startswith("ERROR")]
            raise EnvironmentFault(
                f"wheels cannot be downloaded ({said[-1] if said else 'pip failed'})", about=lock
            )
        (folder / ".complete").touch()
    return {f"wheels/{wheel.name}": wheel.read_bytes() for wheel in sorted(folder.glob("*.whl"))}


def _pack(tree: Mapping[str, bytes]) -> io.BytesIO:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in sorted(tree.items()):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mode = 0o755 if data.startswith(b"#!") else 0o644
            tar.addfile(info, io.BytesIO(data))
    out.seek(0)
    return out
