"""Fixtures: had from a mirror folder or from upstream, verified byte for byte, measured (Standard §7)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import git

from orchestrator.engine import ContainerSpec, Engine
from orchestrator.grading import LIMITS
from orchestrator.kicad import REFERENCE, Environment
from orchestrator.project import Project, read_tree
from orchestrator.sandbox import pack
from schema.errors import CheckFailed, CopperbenchError, EnvironmentFault, FixtureError
from schema.fixture import (
    PERMITTED_LICENSES,
    RATIONALE_LICENSES,
    BaselineCounts,
    BaselineReport,
    Fixture,
    Scale,
    Violation,
)
from schema.hashing import hash_folder, sha256, tree_hash
from schema.jsonfile import parse_json, pretty, read_model

MIRROR = "COPPERBENCH_FIXTURE_MIRROR"
MEASURE_SECONDS = 600
MEASURE = """
mkdir /tmp/tree && head -c "$1" | tar -xf - -C /tmp/tree || exit 1; shift
python3 -m grader.kicad measure /tmp/tree "$@" >/tmp/answer
wc -c </tmp/answer; cat /tmp/answer
"""
"""Through its streams: what the engine keeps of a container's output is bounded."""
STRUCTURAL = frozenset({"duplicate_footprints", "extra_footprint", "missing_footprint"})
"""Parity findings that disqualify a board as a fixture."""


def sync(project: Project, name: str) -> str:
    """Materialise one fixture's tree; returns where it came from.

    The tree is written aside, verified, and moved into place whole: a failure leaves what was there.

    Raises:
        FixtureError: no source has it, or a byte differs; the file is named.
    """
    fixture = project.fixture(name)
    target = project.fixture_tree(name)
    if target.is_dir() and hash_folder(target) == fixture.sha256:
        return "already here"
    if fixture.vendored:
        raise FixtureError(
            "the committed tree is not what its manifest pins",
            about=f"fixtures/{name}/tree",
            fix=f"git checkout fixtures/{name}",
        )
    mirror = os.environ.get(MIRROR)
    files = dict(_from_mirror(Path(mirror), fixture) if mirror else _from_upstream(fixture))
    source = f"mirror {mirror}" if mirror else "{} at {:.12}".format(*fixture.upstream.pin)
    _verify(fixture, files, source)
    _place(target, files)
    return source


def _from_mirror(mirror: Path, fixture: Fixture) -> Iterator[tuple[str, bytes]]:
    root = mirror / fixture.id / "tree"
    if not root.is_dir():
        raise FixtureError(
            f"the mirror has no {fixture.id}/tree", about=str(mirror), fix=f"unset {MIRROR} or add it"
        )
    for path in fixture.files:
        try:
            yield path, (root / path).read_bytes()
        except OSError as error:
            raise FixtureError(f"cannot read ({error.strerror})", about=str(root / path)) from None


def _from_upstream(fixture: Fixture) -> Iterator[tuple[str, bytes]]:
    url, commit = fixture.upstream.pin
    with (
        tempfile.TemporaryDirectory(prefix="copperbench-fixture-") as folder,
        # Only upstreams named in committed manifests are fetched, into a bare repository.
        git.Repo.init(folder, bare=True) as repo,
    ):
        try:
            repo.git.fetch("--quiet", "--depth=1", "--no-tags", url, commit)
            root = repo.commit(commit).tree
        except (git.GitCommandError, ValueError) as error:
            words = str(getattr(error, "stderr", error)).partition("fatal: ")[2]
            said = words.strip().rstrip("'").splitlines()
            raise FixtureError(
                f"upstream does not give the commit ({said[0] if said else 'git failed'})",
                about=f"{url} for fixture {fixture.id}",
                fix=f"connect, or set {MIRROR} to a folder that holds {fixture.id}/tree",
            ) from None
        for path, theirs in fixture.upstream.paths.items():
            try:
                yield path, (root / theirs).data_stream.read()
            except KeyError:
                raise FixtureError(
                    f"upstream has no {theirs} at {commit[:12]}", about=f"fixture {fixture.id}"
                ) from None


def _verify(fixture: Fixture, files: Mapping[str, bytes], source: str) -> None:
    for path, wanted in fixture.files.items():
        if sha256(files[path]) != wanted:
            raise FixtureError(
                "bytes differ from what the manifest pins",
                about=f"{fixture.id}: {path} from {source}",
                fix="get the pinned commit; the tree was left as it was",
            )
    found = tree_hash((path.encode(), data) for path, data in files.items())
    if found != fixture.sha256:
        raise FixtureError(
            f"tree hash is {found}, fixture.json says {fixture.sha256}",
            about=f"fixtures/{fixture.id}",
            fix="mend fixture.json",
        )


def _place(target: Path, files: Mapping[str, bytes]) -> None:
    part = target.with_name(f".tree.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    for path, data in files.items():
        file = part / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)


def check(project: Project, name: str) -> list[str]:
    """Everything wrong with one fixture, a line each; empty when it is fit."""
    about = f"fixtures/{name}"
    faults: list[str] = []
    try:
        fixture = project.fixture(name)
    except CopperbenchError as error:
        return [str(error)]
    folder = project.root / "fixtures" / name
    if fixture.id != name:
        faults.append(f"{about}/fixture.json: id is {fixture.id!r}; make it the folder's name")
    faults += [
        f"{about}/{file}: missing" for file in ("README.md", "LICENSE") if not (folder / file).is_file()
    ]
    faults += _license_faults(fixture, about)
    tree = project.fixture_tree(name)
    if not tree.is_dir():
        faults.append(f"{about}/tree: not here; run copperbench fixtures sync")
    elif (found := hash_folder(tree)) != fixture.sha256:
        faults.append(f"{about}/tree: hash is {found}, fixture.json pins {fixture.sha256}; sync again")
    faults += _baseline_faults(fixture, folder, about)
    return faults


def _license_faults(fixture: Fixture, about: str) -> list[str]:
    license_ = fixture.upstream.license
    if license_ in PERMITTED_LICENSES:
        return []
    if license_ in RATIONALE_LICENSES and fixture.upstream.license_rationale:
        return []
    return [f"{about}/fixture.json: license {license_!r} is not permitted (Standard §7)"]


def _baseline_faults(fixture: Fixture, folder: Path, about: str) -> list[str]:
    faults = [] if fixture.baseline else [f"{about}/fixture.json: no baseline; run fixtures measure --write"]
    readme = (folder / "README.md").read_text("utf-8") if (folder / "README.md").is_file() else ""
    for major, counts in fixture.baseline.items():
        for source, errors in (("erc", counts.erc), ("drc", counts.drc)):
            for kind in errors.error_types if errors else ():
                if kind not in readme:
                    faults.append(f"{about}/README.md: does not explain the baseline {source} error {kind}")
        if counts.drc:
            bad = STRUCTURAL & counts.drc.schematic_parity_types.keys()
            faults += [f"{about}/fixture.json: parity finding {kind} disqualifies the board" for kind in bad]
            if counts.drc.unconnected_items and "unconnected" not in readme:
                faults.append(f"{about}/README.md: does not argue for its unconnected items")
        for file in ("erc.json", "drc.json"):
            try:
                report = read_model(folder / "baseline" / file, BaselineReport)
            except CopperbenchError as error:
                faults.append(str(error))
                continue
            if major not in report.kicad:
                faults.append(f"{about}/baseline/{file}: nothing for KiCad {major}; run fixtures measure")
    return faults


@dataclass(frozen=True)
class Measured:
    """A fixture as the grader's environment sees it."""

    counts: BaselineCounts
    scale: Scale
    reports: dict[Literal["erc", "drc"], list[Violation]]
    escapes: list[str]
    """Paths in the design that lead out of its tree, such as models of a library that is not there."""

    @property
    def major(self) -> str:
        """kicad-cli's major version: baselines are kept per major."""
        return self.counts.kicad_version.split(".")[0]


def artifact_options(fixture: Fixture) -> list[str]:
    """A fixture's design files as options of the grader's own commands."""
    artifacts = fixture.artifacts
    roles = (("schematic", artifacts.schematic), ("board", artifacts.board), ("project", artifacts.project))
    return [f"--{role}={path}" for role, path in roles if path is not None]


def measure(project: Project, engine: Engine, name: str, environment: Environment = REFERENCE) -> Measured:
    """Measure a fixture's scale and baseline in a grader's environment.

    Raises:
        EnvironmentFault: kicad-cli cannot read it, or the environment's images are not built.
    """
    if engine.image_labels(environment.grader) is None:
        raise environment.missing("not built")
    options = artifact_options(project.fixture(name))
    tree = pack(read_tree(project.fixture_tree(name)))
    spec = ContainerSpec(
        name=f"copperbench-measure-{sha256(f'{project.root}|{name}|{engine.owner}'.encode())[:16]}",
        image=environment.grader,
        command=["sh", "-c", MEASURE, "sh", str(len(tree)), *options],
        limits=LIMITS,
        labels={"role": "measure", "fixture": name},
        environment={"HOME": "/tmp"},  # noqa: S108  # in the container
        stdin=True,
    )
    try:
        answer = parse_json(_ask(engine, spec, tree), f"measurement of {name}")
    except (OSError, EOFError) as error:
        raise EnvironmentFault(f"cannot be measured ({error!r})", about=f"fixtures/{name}") from None
    if "counts" not in answer:
        raise EnvironmentFault(f"cannot be measured ({answer})", about=f"fixtures/{name}")
    return Measured(
        counts=BaselineCounts.model_validate(answer["counts"]),
        scale=Scale.model_validate(answer["scale"]),
        reports={
            "erc": [Violation.model_validate(item) for item in answer["erc"]],
            "drc": [Violation.model_validate(item) for item in answer["drc"]],
        },
        escapes=answer["escapes"],
    )


def _ask(engine: Engine, spec: ContainerSpec, given: bytes) -> bytes:
    """What a container answers to what it is given on standard input."""
    container = engine.create(spec)
    try:
        streams = engine.attach(container)
        try:
            engine.start(container)
            streams.write(given, MEASURE_SECONDS)
            streams.patience(MEASURE_SECONDS)
            size = b""
            while not size.endswith(b"\n"):
                size += streams.read(1)
            return streams.read(int(size))
        finally:
            streams.close()
    finally:
        engine.remove(container)


def write_measured(project: Project, name: str, measured: Measured) -> list[str]:
    """Write a measurement into the fixture's manifest and baseline reports; returns the files changed."""
    folder = project.root / "fixtures" / name
    fixture = project.fixture(name)
    updates: dict[str, object] = {
        "baseline": {**fixture.baseline, measured.major: measured.counts},
        "kicad": fixture.kicad.model_copy(
            update={"verified_with_kicad_cli": _verified(fixture, measured.counts.kicad_version)}
        ),
    }
    if measured.major == REFERENCE.major:
        updates["scale"] = measured.scale
    updated = fixture.model_copy(update=updates)
    changed = _write(folder / "fixture.json", pretty(updated.to_json()))
    for source, findings in measured.reports.items():
        path = folder / "baseline" / f"{source}.json"
        kicad = read_model(path, BaselineReport).kicad if path.is_file() else {}
        report = BaselineReport(kicad={**kicad, measured.major: findings})
        changed += _write(path, pretty(report.to_json()))
    return changed


def _verified(fixture: Fixture, version: str) -> list[str]:
    """The versions that a fixture was verified by, this one in the place of any other of its major."""
    major = version.split(".", maxsplit=1)[0]
    others = [known for known in fixture.kicad.verified_with_kicad_cli if known.split(".")[0] != major]
    return sorted([*others, version], key=lambda known: [int(part) for part in known.split(".")])


def compare_measured(project: Project, name: str, measured: Measured) -> None:
    """Fail when the committed baseline is not what this environment measures.

    Raises:
        CheckFailed: counts, scale or findings differ.
    """
    fixture = project.fixture(name)
    folder = f"fixtures/{name}"
    wrong = []
    if fixture.baseline.get(measured.major) != measured.counts or fixture.scale != measured.scale:
        wrong.append(f"{folder}/fixture.json")
    for source, findings in measured.reports.items():
        path = project.root / folder / "baseline" / f"{source}.json"
        if not path.is_file() or read_model(path, BaselineReport).kicad.get(measured.major) != findings:
            wrong.append(f"{folder}/baseline/{source}.json")
    if wrong:
        raise CheckFailed(
            "not what this environment measures",
            about=", ".join(wrong),
            fix=f"look why, then copperbench fixtures measure {name} --write",
        )


def _write(path: Path, text: str) -> list[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.read_text("utf-8") == text:
        return []
    path.write_text(text, "utf-8")
    return [str(path)]
