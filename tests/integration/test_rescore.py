"""Grading again gives the same, wherever and however it is done (Standard §14).

One results folder is made once. Every way of grading it again must find each record as recorded and
LEADERBOARD.md as it stands, byte for byte.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grader.rescore import Loader
from grader.results import read_records
from orchestrator.engine import Engine
from orchestrator.grading import GraderPool
from orchestrator.project import Project
from schema.jsonfile import canonical
from tests.integration.conftest import PARTS, ROOT
from tests.integration.test_runs import copperbench, play

IMAGE = "copperbench-grader"
PLAYED = {
    "rename-data-net": ("gold", "wrong-one-label", "wrong-drc-error"),
    "refuse-clock-pullup": ("gold", "wrong-complies", "wrong-secret"),
}


@dataclass(frozen=True)
class Graded:
    """One way of grading again: what it said, and the leaderboard that it made of it."""

    answer: dict[str, Any]
    code: int

    def check(self, records: int) -> None:
        """Everything matches."""
        differing = [row for row in self.answer["records"] if not row["match"]]
        assert differing == []
        assert (self.answer["matched"], self.answer["differing"]) == (records, 0)
        assert self.answer["leaderboardMatches"] is True
        assert self.code == 0


@dataclass(frozen=True)
class Made:
    """A checkout with results, and what stands in its leaderboard."""

    project: Project
    records: int
    leaderboard: bytes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> Iterator[Made]:
    """Solutions played once; passes, failures of several kinds, and a run whose evidence was not kept."""
    root = tmp_path_factory.mktemp("rescore") / "a b"
    for part in PARTS:
        target = root / part
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, target)
    (root / "results").mkdir()
    baselines = ROOT / ".cache" / "baselines"
    if baselines.is_dir():
        shutil.copytree(baselines, root / ".cache" / "baselines")
    project = Project(root)
    for task, solutions in PLAYED.items():
        play(project, engine, task, *solutions)
    assert copperbench(project, "leaderboard").returncode == 0
    # As a stranger's clone is: any user may read it.
    subprocess.run(["chmod", "-R", "a+rX", str(root.parent)], check=True)
    records = len(list(read_records(project.results)))
    yield Made(project, records, (root / "LEADERBOARD.md").read_bytes())


def in_image(root: Path, *options: str, image: str = IMAGE, **arguments: str) -> Graded:
    """In the grader image, no network, the checkout mounted read-only."""
    rescore = [part for name, value in arguments.items() for part in (f"--{name}", value)]
    command = ["docker", "run", "--rm", "--network", "none", "-v", f"{root}:/bench:ro", *options]
    return graded([*command, image, "--rescore", "--json", *rescore])


def graded(command: list[str]) -> Graded:
    """Run a command whose output is a rescore's JSON."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.stdout, done.stderr
    return Graded(json.loads(done.stdout), done.returncode)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--user", "12345:12345"),
        ("--user", "0:0"),
        ("-e", "LC_ALL=C", "-e", "LANG=C"),
        ("-e", "PYTHONHASHSEED=0"),
        ("-e", "PYTHONHASHSEED=4242"),
        ("-e", "TZ=Pacific/Chatham"),
        ("--cpus", "0.7"),
        ("--read-only", "--tmpfs", "/tmp:nosuid,nodev,mode=1777"),
        ("--workdir", "/usr"),
    ],
    ids=lambda options: " ".join(options) or "plain",
)
def test_any_surroundings_give_the_same(made: Made, options: tuple[str, ...]) -> None:
    """A naive grader's sets, sort orders, dates and number of threads are its surroundings'."""
    in_image(made.project.root, *options).check(made.records)


@pytest.mark.parametrize("jobs", ["1", "2", "5"])
def test_any_number_of_jobs_gives_the_same(made: Made, jobs: str) -> None:
    in_image(made.project.root, jobs=jobs).check(made.records)


def test_one_processor_or_all_give_the_same(made: Made) -> None:
    """kicad-cli's DRC has as many threads as there are processors, and a shorted board another count."""
    one = in_image(made.project.root, "--cpuset-cpus", "0", jobs="1")
    one.check(made.records)
    assert one.answer == in_image(made.project.root, jobs="1").answer


def test_the_host_and_the_image_say_the_same_twice(made: Made) -> None:
    host = [copperbench(made.project, "rescore", "results", "--jobs", "2", "--json") for _ in range(2)]
    assert [done.returncode for done in host] == [0, 0], host[0].stderr
    assert host[0].stdout == host[1].stdout
    assert json.loads(host[0].stdout) == in_image(made.project.root).answer


def verdicts(project: Project, engine: Engine, order: list[int], jobs: int) -> dict[str, bytes]:
    """Canonical bytes of every record's verdict, graded in fresh containers in an order, by run."""
    records = [record for _, record in read_records(project.results)]
    with (
        Loader(project.root, project.results) as loader,
        closing(GraderPool(engine, jobs, str(project.root))) as pool,
        ThreadPoolExecutor(jobs) as workers,
    ):
        bundles = [loader.bundle(records[index]) for index in order]
        graded_ = workers.map(pool.grade, bundles)
        return {
            str(bundle.facts.run): canonical(one.verdict.to_json())
            for bundle, one in zip(bundles, graded_, strict=True)
        }


def test_any_order_gives_the_same_bytes(made: Made, engine: Engine) -> None:
    """A naive grader keeps something of one record, a cache or a garbage heap, that the next one meets."""
    forward = list(range(made.records))
    recorded = {
        str(record.run): canonical(record.verdict.to_json())
        for _, record in read_records(made.project.results)
    }
    assert verdicts(made.project, engine, forward, jobs=1) == recorded
    assert verdicts(made.project, engine, forward[::-1], jobs=1) == recorded
    assert verdicts(made.project, engine, [*forward[1::2], *forward[::2]], jobs=3) == recorded


def test_another_directory_gives_the_same(made: Made, tmp_path: Path) -> None:
    """Moved, and called by another name: no path of the machine is in a record or a verdict."""
    root = tmp_path / "mövéd $HOME"
    shutil.copytree(made.project.root, root)
    tmp_path.chmod(0o755)
    moved = Project(root)
    host = copperbench(moved, "rescore", ".", "--json")
    assert host.returncode == 0, host.stdout + host.stderr
    again = in_image(root)
    again.check(made.records)
    assert again.answer == json.loads(host.stdout)
    assert copperbench(moved, "leaderboard", "--check").returncode == 0


def test_results_baked_into_an_image_give_the_same(made: Made, tmp_path: Path) -> None:
    """Nothing is mounted: a stranger pulls one image and runs it."""
    shutil.copytree(
        made.project.root, tmp_path / "bench", ignore=shutil.ignore_patterns("solutions", ".cache", "tree")
    )
    (tmp_path / "Dockerfile").write_text("FROM copperbench/grader\nCOPY bench/ /opt/copperbench/bench/\n")
    tag = "copperbench-test-baked"
    build = ["docker", "build", "-q", "-t", tag, str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True, env={**os.environ, "DOCKER_BUILDKIT": "0"})
    try:
        baked = graded(["docker", "run", "--rm", "--network", "none", tag, "--rescore", "--json"])
    finally:
        subprocess.run(["docker", "rmi", "-f", tag], check=True, capture_output=True)
    baked.check(made.records)
    assert baked.answer == in_image(made.project.root).answer


def test_the_leaderboard_is_the_same_bytes_when_it_is_made_again(made: Made, tmp_path: Path) -> None:
    """From the records alone, in another order of the file system, under another locale and hash seed."""
    root = tmp_path / "again"
    shutil.copytree(made.project.root, root)
    (root / "LEADERBOARD.md").unlink()
    project = Project(root)
    for name, value in (("PYTHONHASHSEED", "7"), ("LC_ALL", "C"), ("TZ", "Pacific/Chatham")):
        done = copperbench(project, "leaderboard", **{name: value})
        assert done.returncode == 0, done.stderr
        assert (root / "LEADERBOARD.md").read_bytes() == made.leaderboard, name


def test_a_record_graded_again_from_a_store_without_its_tree_says_so(made: Made, tmp_path: Path) -> None:
    """A tree kept under another one's hash: naive, the run is graded by other rules."""
    root = tmp_path / "swapped"
    shutil.copytree(made.project.root, root)
    git = ["git", "--git-dir", str(root / "results" / "evidence.git")]
    listing = subprocess.run(
        [*git, "for-each-ref", "--format=%(objectname) %(refname)", "refs/trees"],
        capture_output=True,
        text=True,
        check=True,
    )
    (one, name), (other, _), *_ = (line.split() for line in listing.stdout.splitlines())
    assert one != other
    subprocess.run([*git, "update-ref", name, other], check=True)
    done = copperbench(Project(root), "rescore", ".")
    assert done.returncode == 1
    assert "the tree does not have the hash it is kept under" in done.stdout
