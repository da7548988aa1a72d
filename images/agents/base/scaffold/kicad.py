"""Ask kicad-cli, on a copy: it may write beside what it reads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scaffold import netlist
from scaffold.errors import Off

_SECONDS = 600
# A locale or a time zone of the host must not show in what is written.
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "TZ": "UTC"}


class Kicad:
    """kicad-cli on a private copy of a project."""

    def __init__(self, project: Path, scratch: Path) -> None:
        self.project = project
        self._scratch = scratch

    def netlist(self, schematic: str) -> netlist.Netlist:
        """The design's netlist."""
        out = self._scratch / "netlist"
        self._run("sch", "export", "netlist", "--format", "kicadsexpr", "-o", str(out), schematic)
        return netlist.read(out)

    def violations(self, schematic: str, board: str | None) -> set[tuple[str, str]]:
        """(source, type) of every ERC and DRC finding that is not excluded."""
        found: set[tuple[str, str]] = set()
        for sheet in self.report("sch", "erc", schematic)["sheets"]:
            found |= _kinds("erc", sheet["violations"])
        if board is not None:
            drc = self.report("pcb", "drc", "--schematic-parity", board)
            for key in ("violations", "unconnected_items", "schematic_parity"):
                found |= _kinds("drc", drc.get(key, []))
        return found

    def load_board(self, board: str) -> None:
        """Raise :class:`Off` for a board that KiCad cannot load; positions are the cheapest to ask for."""
        self._run("pcb", "export", "pos", "-o", str(self._scratch / "positions"), board)

    def report(self, *command: str) -> dict[str, list[dict[str, Any]]]:
        """The JSON report of a check, such as ``sch erc FILE``."""
        out = self._scratch / "report.json"
        self._run(*command[:-1], "--format", "json", "-o", str(out), command[-1])
        report: dict[str, list[dict[str, Any]]] = json.loads(out.read_bytes())
        return report

    def _run(self, *arguments: str) -> None:
        what = "kicad-cli " + " ".join(arguments[:3])
        try:
            done = subprocess.run(
                ["kicad-cli", *arguments],
                cwd=self.project,
                env=os.environ | _ENVIRONMENT,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise Off("kicad-cli is not installed") from None
        except subprocess.TimeoutExpired:
            raise Off(f"{what}: no end after {_SECONDS} s") from None
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["nothing said"]
            raise Off(f"{what}: exit {done.returncode}: {said[-1]}")


@contextmanager
def copied(workspace: Path) -> Iterator[Kicad]:
    """kicad-cli on a copy of the workspace."""
    with tempfile.TemporaryDirectory(prefix="scaffold-") as name:
        project = Path(name) / "project"
        shutil.copytree(workspace, project)
        yield Kicad(project, Path(name))


def _kinds(source: str, items: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(source, str(item["type"])) for item in items if not item.get("excluded")}
