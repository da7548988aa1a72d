"""``python3 -m grader.kicad measure|netlist|erc|drc TREE --schematic S …``: JSON on standard output.

Exit code 0 with the answer, 1 with ``{"unjudgeable": reason}``, 3 when kicad-cli does not run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from grader.evidence import Entry, Tree
from grader.kicad.cache import FolderCache
from grader.kicad.cli import KicadCli
from grader.kicad.design import Design
from grader.kicad.errors import ToolUnavailable, Unjudgeable
from grader.kicad.measure import measure
from grader.kicad.reports import Report
from schema.fixture import Artifacts


def read_tree(root: Path) -> Tree:
    """A folder on disk as a tree of bytes; symlinks stay text."""
    tree: dict[str, Entry] = {}
    for folder, folders, files in os.walk(root):
        for name in [*files, *folders]:
            path = Path(folder) / name
            relative = path.relative_to(root).as_posix()
            mode = path.lstat().st_mode & 0o7777
            if path.is_symlink():
                tree[relative] = Entry(os.fsencode(path.readlink()), mode, "symlink")
            elif path.is_file():
                tree[relative] = Entry(path.read_bytes(), mode)
    return tree


def _report(report: Report) -> dict[str, Any]:
    return {
        "violations": [violation.to_json() for violation in report.violations],
        "stopped": sorted(report.stopped),
        "files": report.files,
    }


def _answer(options: argparse.Namespace) -> dict[str, Any]:
    tree = read_tree(options.tree)
    pristine = read_tree(options.pristine) if options.pristine else tree
    artifacts = Artifacts(schematic=options.schematic, board=options.board, project=options.project)
    cli = KicadCli(cache=FolderCache(options.cache) if options.cache else None, scratch=options.scratch)
    design = Design(tree, artifacts=artifacts, pristine=pristine, cli=cli)
    match options.command:
        case "measure":
            found = measure(tree, artifacts, cli)
            answer: dict[str, Any] = {
                "counts": found.counts.to_json(),
                "erc": [violation.to_json() for violation in found.erc],
                "drc": [violation.to_json() for violation in found.drc],
                "scale": found.scale.to_json(),
                "escapes": found.escapes,
            }
        case "netlist":
            netlist = design.netlist
            answer = {
                "nets": {name: sorted(pins) for name, pins in sorted(netlist.nets.items())},
                "components": {
                    name: {"value": part.value, "footprint": part.footprint, "library": part.library_id}
                    for name, part in sorted(netlist.components.items())
                },
                "labels": sorted(design.labels),
            }
        case "erc":
            answer = _report(design.erc())
        case _:
            answer = _report(design.drc())
    answer["kicad"] = cli.version
    answer["escapes"] = answer.get("escapes", design.escapes)
    answer["ruleChanges"] = design.rule_changes
    answer["kicadSeconds"] = round(cli.seconds, 3)
    answer["kicadRuns"] = cli.runs
    return answer


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="grader.kicad")
    parser.add_argument("command", choices=("measure", "netlist", "erc", "drc"))
    parser.add_argument("tree", type=Path)
    parser.add_argument("--schematic", required=True)
    parser.add_argument("--board")
    parser.add_argument("--project")
    parser.add_argument("--pristine", type=Path, help="the untouched fixture, when TREE is an end state")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--scratch", type=Path)
    options = parser.parse_args(arguments)
    try:
        answer = _answer(options)
    except Unjudgeable as reason:
        answer, code = {"unjudgeable": str(reason)}, 1
    except ToolUnavailable as reason:
        answer, code = {"unavailable": str(reason)}, 3
    else:
        code = 0
    json.dump(answer, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
