"""``copperbench doctor``: what is there, what is missing, how to mend it, each in a line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from orchestrator.engine import Engine
from orchestrator.images import BASE, RESULTS_IMAGE, specs
from orchestrator.project import Project
from schema.errors import CopperbenchError
from schema.hashing import hash_folder

State = Literal["ok", "missing", "note"]


@dataclass(frozen=True)
class Line:
    """One thing looked at."""

    state: State
    what: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.state:8}{self.what}" + (f"; {self.fix}" if self.fix else "")


def examine(project: Project) -> Iterator[Line]:
    """Look at everything a run needs. ``missing`` lines keep runs from working, ``note`` lines do not."""
    yield from _programs()
    yield from _disk(project)
    try:
        engine = Engine.connect()
    except CopperbenchError as error:
        yield Line("missing", f"Docker engine: {error.what}", error.fix)
    else:
        yield from _engine(engine)
        yield from _images(project, engine)
    yield from _fixtures(project)


def _programs() -> Iterator[Line]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Line("ok", f"Python {version}")
    if shutil.which("git"):
        done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False)
        yield Line("ok", done.stdout.strip())
    else:
        yield Line("missing", "git", "apt-get install git")


def _disk(project: Project) -> Iterator[Line]:
    free = shutil.disk_usage(project.root).free / 1e9
    if free < 8:
        yield Line("missing", f"disk: {free:.1f} GB free", "free 8 GB for images and evidence")
    else:
        yield Line("ok", f"disk: {free:.0f} GB free")


def _engine(engine: Engine) -> Iterator[Line]:
    facts = engine.facts()
    yield Line(
        "ok",
        f"Docker engine {engine.version()}, {facts['NCPU']} cores, {facts['MemTotal'] / 2**30:.0f} GiB, "
        f"storage {facts['Driver']}, cgroup v{facts.get('CgroupVersion', '1')}",
    )
    security = [str(option) for option in facts.get("SecurityOptions") or []]
    for name, what in (("seccomp", "seccomp profile"), ("apparmor", "AppArmor"), ("userns", "userns-remap")):
        if any(name in option for option in security):
            yield Line("ok", f"{what} in force")
        else:
            yield Line("note", f"{what} not available on this engine")
    if "runsc" in engine.runtimes():
        yield Line("ok", "gVisor (runsc) is configured: --runtime runsc")
    else:
        yield Line("note", "gVisor (runsc) is not configured", "see docs/isolation.md")
    if facts.get("MemoryLimit") is False or facts.get("PidsLimit") is False:
        yield Line(
            "missing", "the engine cannot limit memory or processes", "enable these cgroup controllers"
        )


def _images(project: Project, engine: Engine) -> Iterator[Line]:
    optional = {spec.tag: spec.package for spec in specs(project) if spec.package}
    for tag in (BASE, *(spec.tag for spec in specs(project)), RESULTS_IMAGE):
        if engine.image_labels(tag) is None and tag in optional:
            yield Line("note", f"image {tag} is not built: it needs {optional[tag]} from npm")
        elif engine.image_labels(tag) is None:
            yield Line("missing", f"image {tag}", "run make images")
        else:
            yield Line("ok", f"image {tag}, {engine.image_bytes(tag) / 1e6:.0f} MB")


def _fixtures(project: Project) -> Iterator[Line]:
    used = _used(project)
    for name in project.fixture_ids():
        tree = project.fixture_tree(name)
        try:
            fixture = project.fixture(name)
            if not tree.is_dir() and name not in used:
                yield Line("note", f"fixture {name} is not here; no task uses it")
            elif not tree.is_dir():
                yield Line("missing", f"fixture {name}", "run make fixtures")
            elif hash_folder(tree) != fixture.sha256:
                yield Line("missing", f"fixture {name}: other bytes than pinned", "run make fixtures")
            else:
                yield Line("ok", f"fixture {name}, {len(fixture.files)} files")
        except CopperbenchError as error:
            yield Line("missing", error.what, error.fix)


def _used(project: Project) -> set[str]:
    """Fixtures that tasks name; a task that cannot be read is ``validate``'s to report."""
    used = set()
    for name in project.task_ids():
        with suppress(CopperbenchError):
            used.add(project.task(name).fixture.id)
    return used
