"""Writes ``tests/data/kicad/*``: what kicad-cli says about our own project and its variants.

Run where kicad-cli is: ``python3 -m tests.unit.grader.kicad.capture FOLDER``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from grader.kicad.cli import Job, KicadCli
from tests.unit.grader.kicad import twins

TARGETS: dict[Job, str] = {
    "netlist": twins.ARTIFACTS.schematic,
    "erc": twins.ARTIFACTS.schematic,
    "drc": twins.ARTIFACTS.board or "",
}


def main(folder: Path) -> None:
    """Capture every job on every variant."""
    cli = KicadCli()
    for variant, files in twins.variants().items():
        for job, target in TARGETS.items():
            said = cli.run(job, target, files)
            # The folder of the copy and the time of day are not the design's.
            said = re.sub(rb"/[^\" ]*/(hw/twins)", rb"/\1", said)
            said = re.sub(rb"20\d\d-\d\d-\d\dT[0-9:+]+", b"2026-01-01T00:00:00+0000", said)
            suffix = "net" if job == "netlist" else "json"
            (folder / f"{variant}-{job}.{suffix}").write_bytes(said)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
