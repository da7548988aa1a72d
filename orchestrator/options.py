"""Options that several commands share, each told once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Jobs = Annotated[int, typer.Option(min=1, max=64, help="Runs at a time.")]
Kicad = Annotated[str, typer.Option(help="Major of KiCad, the environment to use.")]
Condition = Annotated[
    list[str] | None,
    typer.Option(help="k=v: maxTurns, maxRepairCycles, or what the agent knows: prompt, tools."),
]
MaxUsd = Annotated[
    float | None, typer.Option(min=0, help="Most that the whole suite may cost; runs share it.")
]
Results = Annotated[Path | None, typer.Option(help="Results folder; default: results in the checkout.")]
Runtime = Annotated[
    str | None, typer.Option(help="OCI runtime of the agents' containers, such as runsc (gVisor).")
]
CORES = os.cpu_count() or 1
