"""What an image's programs say of themselves, for the stamp and for the wheels that fit."""

from __future__ import annotations

import re
from typing import NamedTuple

from orchestrator.engine import ContainerSpec, Engine, Limits
from orchestrator.project import Project
from schema.agent import Agent
from schema.errors import EnvironmentFault
from schema.hashing import sha256

SECONDS = 60
_LIMITS = Limits(memory=2**29, cpus=1, pids=64)


class _Program(NamedTuple):
    name: str
    command: tuple[str, ...]
    says: str
    """Pattern of what it may answer."""


_PYTHON = _Program(
    "python", ("python3", "-c", "import sys; print(*sys.version_info[:2], sep='.')"), r"3\.\d+"
)
_NODE = _Program(
    "node",
    ("sh", "-c", "command -v node >/dev/null || exit 0; exec node --version"),
    r"(v\d+\.\d+\.\d+\S*)?",
)


def python_version(project: Project, engine: Engine, image: str) -> str:
    """``3.13``: the Python that an image has.

    Raises:
        EnvironmentFault: it does not say.
    """
    return _said(project, engine, image, _PYTHON)


def node_version(project: Project, engine: Engine, agent: Agent) -> str | None:
    """``20.19.2``: the Node that runs an agent; None for one that brings no npm package, and without a Node.

    Raises:
        EnvironmentFault: it does not say.
    """
    if agent.package is None:
        return None
    said = _said(project, engine, agent.image, _NODE)
    return said.removeprefix("v") or None


def _said(project: Project, engine: Engine, image: str, program: _Program) -> str:
    """What a program in an image says, asked once for each content of the image."""
    known = project.cache / f"{program.name}s" / engine.digest(image).removeprefix("sha256:")
    if known.is_file():
        return known.read_text("utf-8")
    name = f"copperbench-{program.name}-{sha256(f'{project.root}|{image}|{engine.owner}'.encode())[:16]}"
    container = engine.create(ContainerSpec(name, image, program.command, _LIMITS, {"role": "build"}))
    try:
        engine.start(container)
        code = engine.wait(container, SECONDS)
        said = engine.output(container)[0].strip()
    finally:
        engine.remove(container)
    if code != 0 or not re.fullmatch(program.says, said):
        raise EnvironmentFault(
            f"its {program.name.capitalize()} does not say its version", about=image, fix="build it again"
        )
    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_text(said, "utf-8")
    return said
