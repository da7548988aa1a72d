"""Images: what they are built from, and building only what changed (DESIGN §6)."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.engine import LABEL, Engine
from orchestrator.kicad import REFERENCE, Environment
from orchestrator.project import Project
from orchestrator.versions import python_version
from schema.errors import EnvironmentFault
from schema.hashing import sha256, tree_hash
from schema.jsonfile import canonical

BASE = REFERENCE.base
PYTHON_IMAGE = "copperbench/python"
GATEWAY_IMAGE = "copperbench/gateway"
SCRIPTED_IMAGE = "copperbench/scripted"
RESULTS_IMAGE = "copperbench-grader"
"""What strangers run: the grader's code image with this checkout's results baked in, if there are any."""

ANY_AGE = 'Acquire::Check-Valid-Until "false";\n'
"""apt's setting for an archive whose Release file may have expired. Signatures are checked as ever."""
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
NPM_SECONDS = 300
COMMIT_LABEL = f"{LABEL}.commit"
"""Upstream commit of an agent's npm package, where the package says it."""
_NPM = (
    *("--omit=dev", "--omit=optional", "--omit=peer", "--ignore-scripts"),
    *("--no-audit", "--no-fund", "--fetch-retries=0", "--fetch-timeout=20000"),
)
_COMMIT = re.compile(r"[0-9a-f]{40}")

Say = Callable[[str], None]


class PackageMissing(EnvironmentFault):
    """An agent's npm package cannot be had: its image alone is not built."""


@dataclass(frozen=True)
class ImageSpec:
    """One image as data."""

    tag: str
    dockerfile: str
    parent: str
    context: tuple[str, ...] = ()
    """Files and folders of the checkout, each laid into the context under its own path."""
    strip: str = ""
    """Prefix removed from context paths."""
    lock: str = ""
    """Lock file whose wheels, for the parent's Python, are laid into the context as ``wheels/``."""
    args: Mapping[str, str] = field(default_factory=dict)
    package: str = ""
    """npm package ``name@version`` that is laid into the context as ``node_modules/``. An image whose package
    cannot be had is left out; the others don't need it."""
    package_variable: str = ""
    """Environment variable that names a tarball, or whatever else npm takes the package from instead."""


def specs(project: Project, environment: Environment = REFERENCE) -> list[ImageSpec]:
    """Every image of an environment, parents first. Agents run in the reference, any other only grades."""
    kicad = ImageSpec(
        environment.kicad,
        "Dockerfile.kicad",
        environment.base,
        args={"KICAD_VERSION": environment.version},
    )
    grader = ImageSpec(
        environment.grader,
        "images/grader/Dockerfile",
        environment.kicad,
        context=("schema", "compass", "grader"),
        lock="images/grader/requirements.lock",
    )
    if environment is not REFERENCE:
        return [kicad, grader]
    return [kicad, *_holder_and_agents(project), grader]


def _holder_and_agents(project: Project) -> list[ImageSpec]:
    names = [path.parent.name for path in sorted(project.root.glob("images/agents/*/agent.json"))]
    agents = [
        ImageSpec(
            tag=agent.image,
            dockerfile=f"images/agents/{agent.name}/Dockerfile",
            parent="copperbench/agent-base",
            context=(f"images/agents/{agent.name}",),
            strip=f"images/agents/{agent.name}/",
            package=agent.package or "",
            package_variable=f"{agent.name.upper().replace('-', '_')}_SPEC",
        )
        for agent in map(project.agent, names)
    ]
    return [
        ImageSpec(
            "copperbench/holder",
            "images/holder/Dockerfile",
            BASE,
            context=("images/holder",),
            strip="images/holder/",
        ),
        ImageSpec(PYTHON_IMAGE, "images/python/Dockerfile", BASE),
        ImageSpec(
            GATEWAY_IMAGE,
            "images/gateway/Dockerfile",
            PYTHON_IMAGE,
            context=("schema", "images/gateway/gateway"),
            strip="images/gateway/",
            lock="images/gateway/requirements.lock",
        ),
        ImageSpec(
            SCRIPTED_IMAGE,
            "images/scripted/Dockerfile",
            PYTHON_IMAGE,
            context=("images/scripted/scripted",),
            strip="images/scripted/",
        ),
        ImageSpec(
            "copperbench/agent-base",
            "images/agents/base/Dockerfile",
            REFERENCE.kicad,
            context=("images/agents/base",),
            strip="images/agents/base/",
        ),
        *agents,
    ]


def build_all(project: Project, engine: Engine, say: Say, environment: Environment = REFERENCE) -> None:
    """Bring every image of the reference up to date, and those of another environment if one is asked for.

    What has not changed is reused.

    Raises:
        EngineError: a build failed.
        EnvironmentFault: base or wheels cannot be had.
    """
    for each in dict.fromkeys((REFERENCE, environment)):
        _ensure_base(project, engine, each, say)
        for spec in specs(project, each):
            try:
                build(project, engine, spec, say)
            except PackageMissing as missing:
                say(f"{spec.tag}: not built: {missing}")
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


def _ensure_base(project: Project, engine: Engine, environment: Environment, say: Say) -> None:
    base, upstream = environment.base, environment.upstream
    if engine.image_labels(base) is not None:
        say(f"{base}: reused")
    elif engine.pull(upstream):
        say(f"{base}: pulled {upstream}")
        if environment.released:
            engine.tag(upstream, base)
        else:
            dockerfile = f"FROM {upstream}\nCOPY any-age /etc/apt/apt.conf.d/99any-age\n".encode()
            tree = {"any-age": ANY_AGE.encode()}
            _build_tree(engine, base, dockerfile=dockerfile, tree=tree, args={}, parent=upstream, say=say)
    else:
        say(f"{base}: no registry gives {upstream}; making it from Debian packages")
        _bootstrap(project, engine, environment)
        say(f"{base}: made")


def _bootstrap(project: Project, engine: Engine, environment: Environment) -> None:
    with tempfile.TemporaryDirectory(prefix="copperbench-base-") as folder:
        archive, settings = Path(folder) / "root.tar", Path(folder) / "apt.conf"
        surroundings = dict(os.environ)
        if not environment.released:
            # The script hands this machine's setting on to the new root.
            settings.write_text(ANY_AGE, "utf-8")
            surroundings["APT_CONFIG"] = str(settings)
        script = project.root / "images" / "base" / "bootstrap"
        done = subprocess.run(
            [script, archive, environment.suite],
            env=surroundings,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise EnvironmentFault(
                f"the base image cannot be made ({said[-1] if said else 'bootstrap failed'})",
                about="images/base/bootstrap",
                fix=f"run it by hand for {environment.suite} to see why",
            )
        engine.import_root(archive, environment.base)


def build(project: Project, engine: Engine, spec: ImageSpec, say: Say) -> None:
    """Bring one image up to date; its parent must be there.

    Raises:
        EngineError: the build failed, or there is no parent.
        EnvironmentFault: wheels cannot be had.
    """
    tree = _context(project.root, spec.context, spec.strip)
    if spec.lock:
        tree |= _wheels(project, spec.lock, python_version(project, engine, spec.parent))
    labels: dict[str, str] = {}
    if spec.package:
        modules = _node_modules(project, spec)
        tree |= modules
        if commit := _commit(modules, spec):
            labels[COMMIT_LABEL] = commit
    dockerfile = (project.root / spec.dockerfile).read_bytes()
    args = {"BASE": spec.parent, **spec.args}
    _build_tree(
        engine,
        spec.tag,
        dockerfile=dockerfile,
        tree=tree,
        args=args,
        parent=spec.parent,
        say=say,
        labels=labels,
    )


def _build_tree(
    engine: Engine,
    tag: str,
    *,
    dockerfile: bytes,
    tree: Mapping[str, bytes],
    args: Mapping[str, str],
    parent: str,
    say: Say,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Build unless an image of the same inputs and labels is there.

    Inputs: context, arguments, the parent's layers.
    """
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
    wanted = {f"{LABEL}.inputs": inputs, **(labels or {})}
    if wanted.items() <= (engine.image_labels(tag) or {}).items():
        say(f"{tag}: reused")
        return
    say(f"{tag}: building")
    # Scripts keep their executable bit through git; in the context it follows the shebang.
    context = _pack({**tree, ".Dockerfile": dockerfile})
    for line in engine.build(
        context,
        tag=tag,
        dockerfile=".Dockerfile",
        # A proxy is the machine's, not the image's: builders know these names and keep them out of it.
        args={**args, **{name: os.environ[name] for name in PROXIES if name in os.environ}},
        labels=wanted,
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


def _wheels(project: Project, lock: str, python: str) -> dict[str, bytes]:
    """The wheels of a lock file for one Python, such as ``3.13``, downloaded once on the host.

    The lock holds the hashes of every wheel of a version, so one serves all Pythons.
    """
    path = project.root / lock
    folder = project.cache / "wheels" / f"{sha256(path.read_bytes())[:16]}-{python}"
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
            f"--python-version={python}",
            "--implementation=cp",
            *(f"--abi={abi}" for abi in (f"cp{python.replace('.', '')}", "abi3", "none")),
            *(f"--platform=manylinux_2_{n}_x86_64" for n in (17, 24, 26, 27, 28, 34)),
            "--platform=manylinux2014_x86_64",
            "--platform=any",
            f"--requirement={path}",
            f"--dest={folder}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in done.stderr.strip().splitlines() if line.startswith("ERROR")]
            raise EnvironmentFault(
                f"wheels for Python {python} cannot be downloaded ({said[-1] if said else 'pip failed'})",
                about=lock,
            )
        (folder / ".complete").touch()
    return {f"wheels/{wheel.name}": wheel.read_bytes() for wheel in sorted(folder.glob("*.whl"))}


def _node_modules(project: Project, spec: ImageSpec) -> dict[str, bytes]:
    """An npm package and what it depends on, downloaded once on the host; no script of theirs is run.

    Raises:
        PackageMissing: npm is not here, does not get it, or gets something else.
    """
    source = os.environ.get(spec.package_variable) or spec.package
    tarball = Path(source)
    if tarball.is_file():
        source = str(tarball.resolve())
    key = sha256(tarball.read_bytes() if tarball.is_file() else source.encode())
    folder = project.cache / "npm" / key[:16]
    if not (folder / ".complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", str(folder), *_NPM, source]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=NPM_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PackageMissing(
                f"npm does not answer ({error.__class__.__name__})", fix=f"install npm to get {source}"
            ) from None
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
            reason = said[0].removeprefix("npm error ") if said else f"exit {done.returncode}"
            raise PackageMissing(
                f"npm cannot get {source} ({reason})", fix=f"set {spec.package_variable} to a tarball of it"
            )
        (folder / ".complete").touch()
    _must_be(folder, spec)
    # Links in .bin are for npm's own use; a context holds files only.
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted((folder / "node_modules").rglob("*"))
        if path.is_file() and not path.is_symlink() and ".bin" not in path.parts
    }


def _commit(modules: Mapping[str, bytes], spec: ImageSpec) -> str | None:
    """What npm's ``gitHead`` says the package was published from; None where it says nothing of use."""
    name = spec.package.rpartition("@")[0]
    # Read before by _must_be: it is an object.
    said = json.loads(modules[f"node_modules/{name}/package.json"]).get("gitHead")
    return said if isinstance(said, str) and _COMMIT.fullmatch(said) else None


def _must_be(folder: Path, spec: ImageSpec) -> None:
    """Whether what npm laid down is the package and version that agent.json names, for the record's stamp."""
    name, _, version = spec.package.rpartition("@")
    try:
        found = json.loads((folder / "node_modules" / name / "package.json").read_bytes())["version"]
    except (OSError, ValueError, LookupError, TypeError):
        found = None
    if found != version:
        raise PackageMissing(
            f"npm gave {name} {found or 'nothing'}, agent.json says {version}",
            fix="change version and package in agent.json",
        )


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
