"""``python3 -m grader.validate_baseline TASK TREE --schematic S …``: what only a prepared baseline shows.

Runs in the grader image, where kicad-cli is. Prints ``{"faults": […]}`` and exits 0 whatever they are.
"""

import argparse
import json
from pathlib import Path

from grader.kicad.__main__ import read_tree
from grader.kicad.cli import KicadCli
from grader.kicad.design import Design
from grader.kicad.errors import Unjudgeable
from grader.validate import check_baseline
from schema.assertions import AssertionList
from schema.errors import InvalidFile
from schema.fixture import Artifacts
from schema.jsonfile import read_model
from schema.task import Task


def faults(folder: Path, root: Path, artifacts: Artifacts) -> list[InvalidFile]:
    """Faults of a task against its prepared baseline in ``root``."""
    task = read_model(folder / "task.json", Task)
    assertions = read_model(folder / "assertions.json", AssertionList)
    tree = read_tree(root)
    design = Design(tree, artifacts=artifacts, pristine=tree, cli=KicadCli())
    try:
        return check_baseline(folder, task, assertions, tree, design.netlist)
    except Unjudgeable as reason:
        return [InvalidFile(f"the baseline cannot be read ({reason})", about=str(folder))]


def main() -> int:
    """Parse the command line and print the faults."""
    parser = argparse.ArgumentParser(prog="python3 -m grader.validate_baseline")
    parser.add_argument("task", type=Path)
    parser.add_argument("tree", type=Path)
    for role in ("schematic", "board", "project"):
        parser.add_argument(f"--{role}", required=role == "schematic")
    options = parser.parse_args()
    artifacts = Artifacts(schematic=options.schematic, board=options.board, project=options.project)
    found = faults(options.task, options.tree, artifacts)
    print(json.dumps({"faults": [str(fault) for fault in found]}))  # noqa: T201  # its answer
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
