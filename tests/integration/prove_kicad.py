"""Proves that the stripped kicad image gives the outputs of a full Debian install.

    python -m tests.integration.prove_kicad MIRROR [--board NAME]... [--write]

Builds the full image, runs every check on every board in both, and compares: texts byte by byte once dates
are taken out, pictures pixel by pixel. --write keeps what the full image gave in
tests/data/kicad-image.json, for test_kicad_image.py to hold the stripped image against.
"""

import argparse
import hashlib
import io
import json
import re
import struct
import sys
import tarfile
import zlib
from pathlib import Path
from typing import Any

import docker

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "tests/data/kicad-image.json"
BOARDS = ("pdm-microphone-board", "mikoto", "rp2040-dmxsun")
STRIPPED = "copperbench/kicad:latest"
FULL = "copperbench/kicad-full:latest"
NOBODY = 65534
# The ray tracer shoots rays at random offsets, so two renders of one image differ along edges. With smoothing
# and shadows off few pixels do, and what RENDERS renders agree on can be compared exactly.
RENDERS = 16
# At full quality all edges are noisy: there the mean colours of GRID x GRID cells are compared. Renders of
# one image differed by up to 2 of 255.
GRID = 12
GRID_TOLERANCE = 6

# As the grader runs kicad-cli: on a copy, with an own writable HOME whose global library tables are empty.
SCRIPT = r"""
set -u
project=$1 renders=$2
export HOME=/work/home
config=$HOME/.config/kicad/$(kicad-cli version | cut -d. -f1).0
mkdir -p "$config"
for kind in sym fp; do printf '(%s_lib_table (version 7))\n' $kind > "$config/$kind-lib-table"; done
flat=
for switch in anti_aliasing backfloor post_processing procedural_textures reflections refractions shadows; do
    flat="$flat${flat:+,}\"raytrace_$switch\":false"
done
printf '{"meta":{"version":4},"render":{%s}}' "$flat" > "$config/3d_viewer.json"
check() {
    name=$1; shift
    mkdir -p "/work/out/$name"; cd "/work/out/$name"
    "$@" > /dev/null 2>&1; echo $? > exit
}
layers=F.Cu,B.Cu,F.SilkS,B.SilkS,F.Mask,Edge.Cuts
check erc kicad-cli sch erc --format json --severity-all -o erc.json "$project.kicad_sch"
check drc kicad-cli pcb drc --schematic-parity --severity-all --format json -o drc.json "$project.kicad_pcb"
check netlist kicad-cli sch export netlist --format kicadsexpr -o netlist.net "$project.kicad_sch"
check sch-svg kicad-cli sch export svg -o . "$project.kicad_sch"
check sch-pdf kicad-cli sch export pdf -o sch.pdf "$project.kicad_sch"
check pcb-svg kicad-cli pcb export svg --mode-multi --layers $layers -o . "$project.kicad_pcb"
check pcb-pdf kicad-cli pcb export pdf --layers $layers -o pcb.pdf "$project.kicad_pcb"
check gerbers kicad-cli pcb export gerbers -o . "$project.kicad_pcb"
check drill kicad-cli pcb export drill -o ./ "$project.kicad_pcb"
check step kicad-cli pcb export step -o board.step "$project.kicad_pcb"
render() { kicad-cli pcb render -w 480 -h 360 "$@" -o board.png "$project.kicad_pcb"; }
# Flat first: kicad-cli saves the quality it was called with as the user's settings.
for side in top bottom; do
    i=0
    while [ $i -lt "$renders" ]; do
        check flat-$side-$i render --quality user --side $side
        i=$((i + 1))
    done
done
for side in top bottom; do
    check render-$side render --quality high --side $side
done
"""

Outputs = dict[str, dict[str, bytes]]  # check → file name → content


def run_checks(client: docker.DockerClient, image: str, tree: Path, renders: int) -> Outputs:
    """Runs every check on the one project in `tree` and returns what kicad-cli wrote."""
    project = next(tree.rglob("*.kicad_pro")).relative_to(tree).with_suffix("")
    volume = client.volumes.create()
    try:
        container = client.containers.create(
            image,
            ["sh", "-c", SCRIPT, "sh", f"/work/board/{project}", str(renders)],
            user=f"{NOBODY}:{NOBODY}",
            network_mode="none",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            read_only=True,
            tmpfs={"/tmp": "nosuid,nodev,noexec"},
            volumes={volume.name: {"bind": "/work"}},
        )
        try:
            container.put_archive("/work", _tar(tree))
            container.start()
            container.wait(timeout=600)
            stream, _ = container.get_archive("/work/out")
            return _untar(b"".join(stream))
        finally:
            container.remove(force=True)
    finally:
        volume.remove()


def _tar(tree: Path) -> bytes:
    def own(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = NOBODY
        return entry

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("home", "out"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(own(entry))
        tar.add(tree, "board", filter=own)
    return buffer.getvalue()


def _untar(data: bytes) -> Outputs:
    outputs: Outputs = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for entry in tar:
            if file := tar.extractfile(entry) if entry.isfile() else None:
                _, check, name = entry.name.split("/", 2)
                outputs.setdefault(check, {})[name] = file.read()
    return outputs


DATES = re.compile(rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d([+-]\d\d:?\d\d)?|D:\d{14}")
DEBIAN_REVISION = re.compile(rb"(\d+\.\d+\.\d+)\+dfsg-[\w.+~]+")


def normalise(name: str, content: bytes) -> bytes:
    """Takes out what changes from call to call: dates, the package's revision, the order of findings."""
    content = DEBIAN_REVISION.sub(rb"\1", DATES.sub(b"DATE", content))
    if name in ("erc.json", "drc.json"):
        return json.dumps(_sorted(json.loads(content)), sort_keys=True).encode()
    return content


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(member) for key, member in value.items()}
    if isinstance(value, list):
        return sorted(
            (_sorted(member) for member in value), key=lambda member: json.dumps(member, sort_keys=True)
        )
    return value


def digest(files: dict[str, bytes]) -> str:
    """SHA-256 over the names and normalised contents of one check's files."""
    total = hashlib.sha256()
    for name in sorted(files):
        content = normalise(name, files[name])
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def pixels(png: bytes) -> tuple[int, int, bytes]:
    """Width, height and RGBA bytes of a picture as KiCad writes it: 8-bit RGBA, not interlaced."""
    at, packed, header = 8, b"", (0, 0, 0, 0)
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        if kind == b"IHDR":
            header = struct.unpack_from(">IIBB", png, at + 8)
        elif kind == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += length + 12
    width, height, depth, colour = header
    assert (depth, colour) == (8, 6), "not an 8-bit RGBA picture"
    stride = width * 4
    raw, above, rows = zlib.decompress(packed), bytearray(stride), bytearray()
    for y in range(height):
        start = y * (stride + 1)
        row = bytearray(raw[start + 1 : start + 1 + stride])
        _unfilter(raw[start], row, above)
        rows += row
        above = row
    return width, height, bytes(rows)


def _unfilter(kind: int, row: bytearray, above: bytearray) -> None:
    for i in range(len(row)):
        left, corner = (row[i - 4], above[i - 4]) if i >= 4 else (0, 0)
        if kind == 1:
            row[i] = (row[i] + left) & 255
        elif kind == 2:
            row[i] = (row[i] + above[i]) & 255
        elif kind == 3:
            row[i] = (row[i] + (left + above[i]) // 2) & 255
        elif kind == 4:
            a, b, c = abs(above[i] - corner), abs(left - corner), abs(left + above[i] - 2 * corner)
            row[i] = (row[i] + (left if a <= b and a <= c else above[i] if b <= c else corner)) & 255


def grid(png: bytes) -> bytes:
    """Mean RGBA (0–255) of each of GRID × GRID cells: too coarse to be a picture of the board."""
    width, height, data = pixels(png)
    means: list[int] = []
    for row in range(GRID):
        for column in range(GRID):
            x0, x1 = width * column // GRID, width * (column + 1) // GRID
            lines = range(height * row // GRID, height * (row + 1) // GRID)
            for channel in range(4):
                total = sum(
                    sum(data[(y * width + x0) * 4 + channel : (y * width + x1) * 4 : 4]) for y in lines
                )
                means.append(round(total / (len(lines) * (x1 - x0))))
    return bytes(means)


def stable_differences(ours: list[bytes], theirs: list[bytes]) -> tuple[int, int, int]:
    """Pixels; those that all renders of each side agree on; those of them that differ between the sides."""
    left, right = ([pixels(png)[2] for png in side] for side in (ours, theirs))
    total = len(left[0]) // 4
    stable = differ = 0
    for at in range(0, total * 4, 4):
        colours = ({picture[at : at + 4] for picture in side} for side in (left, right))
        mine, other = colours
        if len(mine) == len(other) == 1:
            stable += 1
            differ += mine != other
    return total, stable, differ


def grids_agree(ours: bytes, theirs: bytes) -> bool:
    """Whether no cell's mean colour is further off than the renderer's own noise."""
    return len(ours) == len(theirs) and all(
        abs(mine - other) <= GRID_TOLERANCE for mine, other in zip(ours, theirs, strict=True)
    )


def compare(board: str, stripped: Outputs, full: Outputs) -> tuple[bool, dict[str, str]]:
    """Prints a line a check; returns whether all are equal and the reference entry."""
    verdicts: list[bool] = []
    reference: dict[str, str] = {}

    def say(check: str, same: bool, detail: str) -> None:
        verdicts.append(same)
        print(f"{board:24} {check:14} {'same' if same else 'DIFFERS':8} {detail}")

    for check in sorted(full):
        if check.startswith("flat-"):
            continue
        if check.startswith("render-"):
            ours, theirs = (grid(outputs[check]["board.png"]) for outputs in (stripped, full))
            reference[check] = theirs.hex()
            same = grids_agree(ours, theirs)
            say(check, same, f"mean colours of {GRID * GRID} cells within {GRID_TOLERANCE}/255")
        else:
            reference[check] = digest(full[check])
            size = sum(map(len, full[check].values()))
            say(
                check,
                digest(stripped[check]) == reference[check],
                f"{len(full[check]) - 1} files, {size} bytes",
            )
    for side in ("top", "bottom"):
        left, right = (
            [outputs[f"flat-{side}-{i}"]["board.png"] for i in range(RENDERS)] for outputs in (stripped, full)
        )
        total, stable, differ = stable_differences(left, right)
        say(
            f"flat-{side}",
            differ == 0 and stable > total * 0.98,
            f"{differ} of {stable} steady pixels differ",
        )
    return all(verdicts), reference


def build_full(client: docker.DockerClient, base: str) -> None:
    """Builds Dockerfile.kicad with STRIP=no."""
    client.images.build(
        fileobj=io.BytesIO((ROOT / "Dockerfile.kicad").read_bytes()),
        tag=FULL,
        network_mode="host",
        buildargs={"BASE": base, "STRIP": "no"},
    )


def main() -> int:
    """Exit 0 if all outputs are the same, 1 if not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("mirror", type=Path, help="folder with NAME/tree for each board")
    parser.add_argument("--board", action="append", help=f"default: {', '.join(BOARDS)}")
    parser.add_argument("--base", default="copperbench/base:trixie")
    parser.add_argument("--write", action="store_true", help=f"write {REFERENCE.relative_to(ROOT)}")
    arguments = parser.parse_args()

    client = docker.from_env(timeout=3600)
    build_full(client, arguments.base)
    sizes = [client.images.get(tag).attrs["Size"] for tag in (STRIPPED, FULL)]
    print(f"stripped {sizes[0] / 1e6:.0f} MB, full {sizes[1] / 1e6:.0f} MB")
    equal = True
    reference: dict[str, dict[str, str]] = {}
    for board in arguments.board or BOARDS:
        tree = arguments.mirror / board / "tree"
        stripped, full = (run_checks(client, tag, tree, RENDERS) for tag in (STRIPPED, FULL))
        same, reference[board] = compare(board, stripped, full)
        equal &= same
    if arguments.write and equal:
        REFERENCE.parent.mkdir(parents=True, exist_ok=True)
        REFERENCE.write_text(json.dumps(reference, sort_keys=True, indent=1) + "\n")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
