"""Vetting of what people add to the benchmark: agents' commands and documents that an agent will read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from compass import danger_reason, injection_findings
from orchestrator.project import Project
from schema.agent import Agent
from schema.errors import UsageError

PROSE = {".md", ".txt", ".rst"}
DESIGN = {".kicad_sch", ".kicad_pcb", ".kicad_sym", ".kicad_pro", ".kicad_dru"}
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.){16,2000})"')


def vet_agent(agent: Agent) -> None:
    """Refuse an agent whose command would harm what it runs in.

    Raises:
        UsageError: names the agent, the mode and why.
    """
    for mode, command in agent.commands.items():
        if reason := danger_reason(shlex.join(command)):
            raise UsageError(
                f"its command for {mode} is dangerous: {reason}",
                about=f"images/agents/{agent.name}/agent.json",
                fix="change the command",
            )


def planted_orders(project: Project, tasks: list[str]) -> Iterator[str]:
    """A line for each document of tasks and fixtures that tries to give an agent orders."""
    for name in tasks:
        loaded = project.task(name)
        yield from _findings(f"tasks/{name}/task.json", loaded.task.request)
        for path in sorted(loaded.folder.rglob("*")):
            if path.is_file() and "solutions" not in path.relative_to(loaded.folder).parts:
                yield from _file(project, path)
    for name in project.fixture_ids():
        for path in sorted((project.root / "fixtures" / name).rglob("*")):
            if path.is_file() and "baseline" not in path.parts:
                yield from _file(project, path)


def _file(project: Project, path: Path) -> Iterator[str]:
    if path.suffix in PROSE:
        text = path.read_text("utf-8", "replace")
    elif path.suffix in DESIGN:
        # Of a design file only what a person wrote into it: a board's numbers give no orders.
        quoted = dict.fromkeys(_QUOTED.findall(path.read_text("utf-8", "replace")))
        text = "\n".join(words for words in quoted if " " in words)
    else:
        return
    yield from _findings(str(path.relative_to(project.root)), text)


def _findings(about: str, text: str) -> Iterator[str]:
    for finding in injection_findings(text):
        line = text.count("\n", 0, finding.start) + 1
        yield f"{about}: line {line} gives orders to its reader ({finding.family}: {finding.why}); reword it"
