"""KiCad 10 as a second environment: the same evidence, baselines and records of its own.

What differs between the majors is asserted here, so that a new release that differs otherwise is noticed.
"""

import json
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grader.results import read_records
from orchestrator.engine import Engine
from orchestrator.fixtures import compare_measured, measure
from orchestrator.grading import GraderPool
from orchestrator.kicad import REFERENCE, environment
from orchestrator.project import Project
from schema.errors import EnvironmentFault
from tests.integration import test_grader_kicad as kicad
from tests.integration.conftest import ROOT
from tests.integration.test_fixtures import KNOWN
from tests.integration.test_grader_kicad import BOARD, Bench, kinds
from tests.integration.test_runs import copperbench, play
from tests.unit.grader.kicad import twins

TEN = environment("10")
GRADERS = (REFERENCE.grader, TEN.grader)
PLAYED = {
    "rename-data-net": (
        "gold",
        "noop",
        "wrong-one-label",
        "wrong-erc-error",
        "wrong-drc-error",
        "wrong-secret",
    ),
    "refuse-clock-pullup": ("gold", "noop", "wrong-complies"),
    "fit-led-resistor": ("gold", "wrong-erc", "wrong-stale-board"),
    "flag-supply-release": ("gold", "wrong-signs-off"),
}


@pytest.fixture(autouse=True, scope="module")
def second(engine: Engine) -> None:
    """The second environment's images, from the code that is tested."""
    if engine.image_labels(TEN.grader) is None:
        pytest.skip(f"{TEN.grader} is not built: run {TEN.build}")
    with closing(GraderPool(engine, 1, __name__, environment=TEN)) as pool:
        try:
            pool.facts()
        except EnvironmentFault as error:
            pytest.skip(str(error))


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", KNOWN)
def test_the_committed_baseline_is_what_kicad_10_measures(name: str, engine: Engine) -> None:
    project = Project(ROOT)
    compare_measured(project, name, measure(project, engine, name, TEN))


def answer(project: Project, *arguments: str) -> dict[str, Any]:
    """What a rescore that succeeds says."""
    done = copperbench(project, "rescore", "results", "--jobs", "2", "--json", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def in_image(project: Project, image: str) -> dict[str, Any]:
    """What a grader image says of a mounted checkout."""
    command = ["docker", "run", "--rm", "--network", "none", "-v", f"{project.root}:/bench:ro"]
    done = subprocess.run(
        [*command, image, "--rescore", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def sections(project: Project) -> dict[str, str]:
    """Of LEADERBOARD.md, by title."""
    text = (project.root / "LEADERBOARD.md").read_text()
    return {part.partition("\n")[0]: part for part in text.split("## ")[1:]}


def test_the_same_evidence_is_graded_the_same_and_recorded_apart(checkout: Project, engine: Engine) -> None:
    for task, solutions in PLAYED.items():
        play(checkout, engine, task, *solutions)
    assert copperbench(checkout, "leaderboard").returncode == 0
    runs = sum(map(len, PLAYED.values()))
    before = {path: path.read_bytes() for path, _ in read_records(checkout.results)}
    assert len(before) == runs
    ((title, section),) = sections(checkout).items()
    assert title == "Agent solution 1, KiCad 9"

    # Looking writes nothing.
    said = answer(checkout, "--kicad", "10")
    assert (said["matched"], said["differing"], said["inAnotherEnvironment"]) == (0, 0, runs)
    assert {path: path.read_bytes() for path, _ in read_records(checkout.results)} == before

    # Writing adds a record a run, once, and changes none.
    for _ in range(2):
        answer(checkout, "--kicad", "10", "--write-new")
        records = dict(read_records(checkout.results))
        assert len(records) == 2 * runs
        assert {path: path.read_bytes() for path in before} == before
    by_major = {
        major: {str(r.run): r for r in records.values() if r.stamp.kicad_major == major}
        for major in ("9", "10")
    }
    assert by_major["9"].keys() == by_major["10"].keys()
    for run, nine in by_major["9"].items():
        ten = by_major["10"][run]
        for fact in ("verdict", "category", "first_failure", "exit_path"):
            assert getattr(ten.verdict, fact) == getattr(nine.verdict, fact), f"{run}: {fact}"
        assert ten.stamp.kicad_version == TEN.version and ten.evidence == nine.evidence
        assert ten.stamp.grader_image == engine.digest(TEN.grader) != nine.stamp.grader_image
        assert ten.stamp.reference_image == engine.digest(TEN.kicad) != nine.stamp.reference_image

    # The reference's section stays as it was and leads; the other is labelled.
    assert sections(checkout)[title].strip() in (section.strip(), section.partition("<!--")[0].strip())
    other = "Agent solution 1, KiCad 10 (another stamp; not comparable with the above)"
    assert list(sections(checkout)) == [title, other]

    # Each record reproduces in its own environment, from the host and in either image.
    said = answer(checkout)
    assert (said["matched"], said["inAnotherEnvironment"], said["leaderboardMatches"]) == (2 * runs, 0, True)
    for image in GRADERS:
        said = in_image(checkout, image)
        assert (said["matched"], said["differing"], said["inAnotherEnvironment"]) == (runs, 0, runs)


@pytest.fixture(params=GRADERS)
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench of one environment."""
    monkeypatch.setattr(kicad, "IMAGE", request.param)
    return Bench(tmp_path)


@pytest.fixture
def benches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What both environments read from our project's netlist, KiCad 9 first."""
    said = []
    for number, image in enumerate(GRADERS):
        monkeypatch.setattr(kicad, "IMAGE", image)
        (tmp_path / str(number)).mkdir()
        said.append(Bench(tmp_path / str(number)).ask("netlist", {}))
    return said


def test_both_read_the_same_nets_and_parts(benches: list[dict[str, Any]]) -> None:
    for what in ("nets", "components", "labels"):
        assert benches[0][what] == benches[1][what]
    assert [said["kicad"] for said in benches] == [REFERENCE.version, TEN.version]


def test_a_label_on_one_pin_is_an_error_for_9_and_a_warning_for_10(bench: Bench) -> None:
    """TX/RX is on R3.1 alone. A task that counts on ERC to see a half-done renaming would pass under 10."""
    found = [
        (entry["type"], entry["severity"])
        for entry in bench.ask("erc", {})["violations"]
        if entry["type"] in ("label_dangling", "isolated_pin_label")
    ]
    wanted = {
        REFERENCE.grader: ("label_dangling", "error"),
        TEN.grader: ("isolated_pin_label", "warning"),
    }
    assert found == [wanted[kicad.IMAGE]]


def test_both_stop_counting_at_the_same_numbers(bench: Bench) -> None:
    spots = [(5 + (n % 40) * 0.9, 5 + (n // 40) * 1.5) for n in range(700)]
    tracks = [
        twins.track(net, (x, y + down), (x + 0.3, y + down))
        for x, y in spots
        for net, down in (("GND", 0), ("VCC", 0.3))
    ]
    said = bench.ask("drc", {BOARD: twins.board(*tracks)})
    stops = {"clearance": 499, "unconnected_items": 499, "track_dangling": 199}
    # A thread that has just found one adds it.
    assert all(kinds(said)[kind] in (stop, stop + 1) for kind, stop in stops.items()), kinds(said)
    assert {kind for _, kind in said["stopped"]} == stops.keys()


def test_the_affected_net_is_found_in_a_board_that_kicad_10_wrote(tmp_path: Path) -> None:
    """Nets have no numbers there; a naive reader knows no net and falls back to counting."""
    tmp_path.chmod(0o777)
    (tmp_path / "b.kicad_pcb").write_bytes(twins.board())
    (tmp_path / "b.kicad_pcb").chmod(0o666)
    command = ["docker", "run", "--rm", "--network", "none", "-v", f"{tmp_path}:/b", "-e", "HOME=/tmp"]
    subprocess.run(
        [*command, TEN.kicad, "kicad-cli", "pcb", "upgrade", "--force", "/b/b.kicad_pcb"], check=True
    )
    written = (tmp_path / "b.kicad_pcb").read_bytes()
    assert b'(net "GND")' in written and b'(net 0 "")' not in written
    links = []
    for number, board in enumerate((twins.board(), written)):
        (tmp_path / str(number)).mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kicad, "IMAGE", TEN.grader)
            said = Bench(tmp_path / str(number)).ask("drc", {BOARD: board})
        links.append(sorted(v["pins"] for v in said["violations"] if v["type"] == "unconnected_items"))
    assert links[0] == links[1] != []
