"""How fast the s-expression reader is, against sexpdata and json.loads, in one run on one machine.

    python3 bench/readers.py [FILE …] [--sizes 0.3 5.8 70] [--repeats 3]

Without files, boards in the layout that KiCad writes are generated. Rates are MB of the s-expression a second
(for json.loads: MB of its JSON twin); the best of the repeats counts. ``check`` is the one pass that every
file gets; ``nets`` is check, pads and tracks; ``tree`` is check and every node and text as nested lists.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
import tracemalloc
import uuid
from collections.abc import Callable
from pathlib import Path

import sexpdata  # type: ignore[import-untyped]

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from grader.kicad.board import read_board
from grader.kicad.sexpr import parse

_ORACLE_LIMIT = 8_000_000
"""Bytes above which sexpdata is left out: it would take most of a minute and a gigabyte."""


def board(size: int) -> bytes:
    """A board of about ``size`` bytes in KiCad's layout: footprints, tracks, vias and a filled zone."""
    rng = random.Random(7)  # noqa: S311  # test data
    number = 0

    def uid() -> str:
        return str(uuid.UUID(int=rng.getrandbits(128)))

    def spot() -> str:
        return f"{rng.uniform(0, 200):.6g} {rng.uniform(0, 200):.6g}"

    parts = ['(kicad_pcb\n\t(version 20241229)\n\t(generator "pcbnew")\n\t(net 0 "")\n\t(net 1 "/N_1")\n']
    length = len(parts[0])
    while length < size:
        number += 1
        pads = "".join(
            f'\t\t(pad "{pad}" smd roundrect\n\t\t\t(at {spot()})\n\t\t\t(size 0.54 0.64)\n'
            f'\t\t\t(layers "F.Cu" "F.Mask")\n\t\t\t(net 1 "/N_1")\n'
            f'\t\t\t(pintype "passive")\n\t\t\t(uuid "{uid()}")\n\t\t)\n'
            for pad in (1, 2)
        )
        tracks = "".join(
            f'\t(segment\n\t\t(start {spot()})\n\t\t(end {spot()})\n\t\t(width 0.2)\n\t\t(layer "F.Cu")\n'
            f'\t\t(net 1)\n\t\t(uuid "{uid()}")\n\t)\n'
            for _ in range(6)
        )
        points = "\n".join("\t\t\t\t" + " ".join(f"(xy {spot()})" for _ in range(5)) for _ in range(8))
        block = (
            f'\t(footprint "Resistor_SMD:R_0402"\n\t\t(layer "F.Cu")\n'
            f'\t\t(uuid "{uid()}")\n\t\t(at {spot()} 90)\n'
            f'\t\t(property "Reference" "R{number}"\n\t\t\t(at 0 -1.17 90)\n\t\t\t(layer "F.SilkS")\n'
            f'\t\t\t(uuid "{uid()}")\n\t\t\t(effects\n\t\t\t\t(font\n\t\t\t\t\t(size 1 1)\n'
            f"\t\t\t\t\t(thickness 0.15)\n\t\t\t\t)\n\t\t\t)\n\t\t)\n{pads}"
            '\t\t(model "${KICAD9_3DMODEL_DIR}/Resistor_SMD.3dshapes/R_0402.step"\n\t\t\t(offset\n'
            f"\t\t\t\t(xyz 0 0 0)\n\t\t\t)\n\t\t)\n\t)\n{tracks}"
            f'\t(zone\n\t\t(net 1)\n\t\t(net_name "/N_1")\n\t\t(layer "F.Cu")\n\t\t(uuid "{uid()}")\n'
            f'\t\t(filled_polygon\n\t\t\t(layer "F.Cu")\n\t\t\t(pts\n{points}\n\t\t\t)\n\t\t)\n\t)\n'
        )
        parts.append(block)
        length += len(block)
    return ("".join(parts) + ")\n").encode()


def nets(data: bytes, name: str) -> object:
    """What the grader reads of a board: every pad's net, and the net of one track."""
    board_ = read_board(data, name)
    board_.net_of("")
    return board_.pads


def forget() -> None:
    """Drop what was read before: a process reads a file once, and asks for it often."""
    parse.cache_clear()
    read_board.cache_clear()


def best(action: Callable[[], object], repeats: int) -> float:
    """Processor seconds of the fastest of some calls: others on the machine disturb these least."""
    times = []
    for _ in range(repeats):
        forget()
        gc.collect()
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return min(times)


def peak(action: Callable[[], object]) -> float:
    """Most memory in MB that one call holds beyond what was there before."""
    forget()
    tracemalloc.start()
    action()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


def measure(name: str, data: bytes, repeats: int) -> None:
    """Print one file's line."""
    root = parse(data, name)
    twin = json.dumps(root.tree())
    size = len(data) / 1e6
    rates = {
        "check": size / best(lambda: parse(data, name), repeats),
        "json.loads": len(twin) / 1e6 / best(lambda: json.loads(twin), repeats),
    }
    if root.name == "kicad_pcb":
        rates["nets"] = size / best(lambda: nets(data, name), repeats)
    rates["tree"] = size / best(lambda: parse(data, name).tree(), repeats)
    if len(data) < _ORACLE_LIMIT:
        text = data.decode()
        rates["sexpdata"] = size / best(lambda: sexpdata.loads(text), 1)
    line = "  ".join(f"{what} {rate:6.1f}" for what, rate in rates.items())
    ratio = rates["check"] / rates["json.loads"]
    most = peak(lambda: parse(data, name))
    print(f"{size:6.1f} MB {name:28} {line}  check/json {ratio:.1f}  peak of check {most:.1f} MB")


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--sizes", nargs="*", type=float, default=[0.3, 5.8, 70], help="MB")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.files:
        for path in options.files:
            measure(path.name[-28:], path.read_bytes(), options.repeats)
        return
    for size in options.sizes:
        measure(f"generated {size:g}", board(int(size * 1e6)), options.repeats)


if __name__ == "__main__":
    main()
