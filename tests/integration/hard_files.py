"""Grading made-up runs end to end, by the grader image with its kicad-cli, as the orchestrator does.

A run is our own small project (or a pinned fixture) with changes. What the untouched project shows, which a
fixture keeps in ``baseline/``, is measured once for each project that a case starts from.
"""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from grader.evidence import Bundle, Entry, Tree
from orchestrator.grading import GraderPool
from orchestrator.project import read_tree
from schema.assertions import ASSERTION_LIST
from schema.fixture import Artifacts, BaselineReport, Fixture
from schema.hashing import sha256
from schema.jsonfile import read_model
from schema.run import RunFacts
from schema.verdict import AssertionOutcome, Verdict
from tests.unit.grader import support
from tests.unit.grader.kicad import twins

ROOT = Path(__file__).parents[2]
IMAGE = "copperbench/grader"
SHEET, BOARD, PROJECT = "hw/twins.kicad_sch", "hw/twins.kicad_pcb", "hw/twins.kicad_pro"
CHANNEL = "hw/channel.kicad_sch"

Changes = Mapping[str, bytes | Entry | None]
"""Path → new content, a whole entry, or None for a file taken away."""
Said = Mapping[str, Any]
"""An assertion as in ``assertions.json``, without id and weight."""


def symlink(target: str) -> Entry:
    """A symlink."""
    return Entry(target.encode(), 0o777, "symlink")


def changed(tree: Tree, changes: Changes) -> Tree:
    """A tree with changes laid over it."""
    out = dict(tree)
    for path, content in changes.items():
        if content is None:
            del out[path]
        else:
            out[path] = content if isinstance(content, Entry) else Entry(content)
    return out


@dataclass(frozen=True)
class Start:
    """A project that runs start from."""

    tree: Tree
    artifacts: Artifacts
    erc: BaselineReport | None = None
    """None is measured when it is needed."""
    drc: BaselineReport | None = None


@cache
def ours() -> Start:
    """Our own project with its documents."""
    return Start({**twins.tree(), **DOCUMENTS}, twins.ARTIFACTS)


DOCUMENTS = {
    path: Entry(text.encode())
    for path, text in {
        "docs/BOM.md": "# Parts\n\n| Refdes | Value | Footprint | MPN | Rationale |\n|---|---|---|---|---|\n"
        + "".join(
            f"| {reference} | {value} | {footprint} | | |\n"
            for reference, value, footprint in (
                ("R1", "10k", "own:R"),
                ("R2", "10k", "own:R"),
                ("R3", "10k", "own:R"),
                ("U1", "DUAL", "own:GATE"),
                *((f"R{number}", "1k", "own:R") for number in (10, 11, 12, 20, 21, 22)),
            )
        ),
        "docs/PINOUT.md": "# Pins\n\n| Refdes | Pin | Name | Net | Notes |\n|---|---|---|---|---|\n"
        "| U1 | 3 | IN | DATA | |\n| U1 | 5 | VCC | VCC | |\n",
        "docs/NOTES.md": "The data line is DATA.\n",
    }.items()
}


def fixture(name: str) -> Start:
    """A pinned fixture as it lies in this checkout, with its recorded baseline."""
    folder = ROOT / "fixtures" / name
    loaded = read_model(folder / "fixture.json", Fixture)
    erc, drc = (read_model(folder / "baseline" / f"{kind}.json", BaselineReport) for kind in ("erc", "drc"))
    return Start(dict(read_tree(folder / "tree")), loaded.artifacts, erc, drc)


def start(changes: Changes, base: Start | None = None) -> Start:
    """Our project with changes that were there before the run: a project of its own."""
    base = base or ours()
    return Start(changed(base.tree, changes), base.artifacts)


@dataclass
class Judged:
    """One graded run."""

    verdict: Verdict
    outcomes: dict[str, AssertionOutcome] = field(init=False)

    def __post_init__(self) -> None:
        self.outcomes = {outcome.id: outcome for outcome in self.verdict.assertions}

    @property
    def only(self) -> AssertionOutcome:
        """The one assertion's outcome."""
        (outcome,) = self.verdict.assertions
        return outcome


class Bench:
    """Grades made-up runs in one container."""

    def __init__(self, graders: GraderPool, folder: Path) -> None:
        self._graders = graders
        self._folder = folder
        self._measured: dict[tuple[str, str], BaselineReport] = {}

    def grade(
        self,
        asked: Iterable[Said],
        end: Changes,
        at: Start | None = None,
        facts: RunFacts | None = None,
        **fields: Any,
    ) -> Judged:
        """Grade a run that left the project at ``at`` with the changes ``end``."""
        begun = at or ours()
        items = list(asked)
        kinds = {item["type"].partition("_")[0] for item in items if "_no_new" in item["type"]}
        recorded = {kind: self._baseline(begun, kind) for kind in kinds}
        none = BaselineReport(kicad={})
        bundle = Bundle(
            task=support.task(**fields),
            assertions=tuple(
                ASSERTION_LIST.validate_python(
                    [
                        {"id": f"a{number}", "weight": 1, "required": True, **item}
                        for number, item in enumerate(items)
                    ]
                )
            ),
            agent=support.AGENT,
            fixture=support.FIXTURE.model_copy(update={"artifacts": begun.artifacts}),
            erc_baseline=recorded.get("erc", none),
            drc_baseline=recorded.get("drc", none),
            facts=facts or support.facts(),
            pristine=begun.tree,
            baseline=begun.tree,
            end={**changed(begun.tree, end), support.TRANSCRIPT: Entry(support.transcript())},
        )
        return Judged(self._graders.grade(bundle).verdict)

    def _baseline(self, begun: Start, kind: str) -> BaselineReport:
        if (given := begun.erc if kind == "erc" else begun.drc) is not None:
            return given
        key = kind, sha256(repr(sorted(begun.tree.items())).encode())
        if key not in self._measured:
            self._measured[key] = self._measure(begun, kind)
        return self._measured[key]

    def _measure(self, begun: Start, kind: str) -> BaselineReport:
        """What ``copperbench fixtures measure`` would record for this project."""
        root = self._folder / f"start {len(self._measured)}"
        for path, entry in begun.tree.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(entry.data)
        artifacts = begun.artifacts
        names = ["--schematic", artifacts.schematic, "--project", str(artifacts.project)]
        names += ["--board", artifacts.board] if artifacts.board else []
        options = ["--rm", "--network", "none", "-v", f"{root}:/start:ro", "--entrypoint", "python3", IMAGE]
        command = ["docker", "run", *options, "-m", "grader.kicad", kind, "/start", *names]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
        answer = json.loads(done.stdout)
        return BaselineReport.model_validate({"kicad": {answer["kicad"].split(".")[0]: answer["violations"]}})


def judged(outcome: AssertionOutcome, passes: bool, reason: str) -> None:
    """Check an outcome; ``reason`` is a regular expression that its reason must hold."""
    assert outcome.passed == passes, f"{outcome.type}: {outcome.reason} {outcome.notes}"
    assert re.search(reason, outcome.reason), f"{outcome.type}: {outcome.reason}"


def asserts(kind: str, /, **args: Any) -> Said:
    """An assertion of a type with its arguments."""
    return {"type": kind, "args": args}


def demo(name: str) -> Start:
    """A demo project of KiCad's, from Debian's package; downloaded once into ``.cache``, never committed.

    Raises:
        OSError: it cannot be had.
    """
    folder = ROOT / ".cache" / "demos"
    archive = folder / f"{name}.tar"
    if not archive.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        script = (
            "cd /tmp && apt-get update -qq >&2 && apt-get download -qq kicad-demos >&2 &&"
            " dpkg-deb -x kicad-demos_*.deb /tmp/x >&2 && tar -c -C /tmp/x/usr/share/kicad/demos " + name
        )
        base = "copperbench/base:trixie"
        command = ["docker", "run", "--rm", "--network", "host", base, "sh", "-c", script]
        done = subprocess.run(command, capture_output=True, check=False, timeout=600)
        if done.returncode:
            raise OSError(f"kicad-demos cannot be downloaded: {done.stderr.decode()[-200:]}")
        new = archive.with_suffix(".new")
        new.write_bytes(done.stdout)
        new.replace(archive)
    with tarfile.open(archive) as tar:
        tree = {
            member.name.partition("/")[2]: Entry(file.read())
            for member in tar
            if member.isfile() and (file := tar.extractfile(member)) is not None
        }
    return Start(
        tree,
        Artifacts(schematic=f"{name}.kicad_sch", board=f"{name}.kicad_pcb", project=f"{name}.kicad_pro"),
    )
