"""Records of old evidence: new ones beside the old, each once, with the stamp of what graded it."""

from pathlib import Path
from typing import cast

import pytest

from grader.rescore import Rescored
from grader.results import read_records
from orchestrator.engine import Engine
from orchestrator.ledger import Ledger
from orchestrator.regrade import Graders, Recorder
from schema.errors import EnvironmentFault
from schema.record import Record, Stamp
from schema.run import RunFacts
from tests.unit.samples import facts, record, records, run_id, verdict


class TenGraders(Graders):
    """The second environment, without an engine."""

    def __init__(self) -> None:
        self.image = "sha256:ten"

    def stamp(self, stamp: Stamp, major: str) -> Stamp:
        """As the grader of that major says."""
        return stamp.model_copy(update={"kicad_version": f"{major}.0.6", "grader_image": self.image})

    def timings(self, _facts: RunFacts, _major: str) -> dict[str, float]:
        """A grade of two seconds."""
        return {"grade": 2.0, "kicad": 1.0}


def graded(old: Record, passed: bool = True) -> Rescored:
    """A record, graded by KiCad 10."""
    return Rescored(Path("x"), old, verdict(passed), (), "10")


class NoImages:
    """An engine that has none of our images."""

    def image_labels(self, _image: str) -> None:
        """None: no such image."""


def test_a_missing_grader_is_one_line_that_says_what_to_build() -> None:
    graders = Graders(cast(Engine, NoImages()), 1, "x")
    with pytest.raises(EnvironmentFault) as fault:
        graders.provide(["10"])
    assert str(fault.value) == (
        "copperbench/grader:10: not built, and KiCad 10 is to grade; run copperbench images build --kicad 10"
    )


def test_a_new_record_stands_beside_the_old_one(tmp_path: Path) -> None:
    old = record()
    first = records(tmp_path).write(old)
    before = first.read_bytes()
    path = Recorder(tmp_path, Ledger(tmp_path), TenGraders()).record(graded(old, passed=False))
    assert path is not None and path != first and first.read_bytes() == before
    new = Record.model_validate_json(path.read_bytes())
    assert (new.stamp.kicad_version, new.stamp.grader_image) == ("10.0.6", "sha256:ten")
    assert new.stamp.agent_image == old.stamp.agent_image and new.facts == old.facts
    assert new.verdict.verdict == "fail" and new.recorded_at > old.recorded_at
    assert (new.timings.grade, new.timings.kicad) == (2.0, 1.0)


def test_a_second_time_writes_nothing(tmp_path: Path) -> None:
    old = record()
    records(tmp_path).write(old)
    for _ in range(2):
        recorder = Recorder(tmp_path, Ledger(tmp_path), TenGraders())
        for _, found in list(read_records(tmp_path)):
            recorder.record(graded(found))
    assert len(list(read_records(tmp_path))) == 2


def test_another_grader_writes_again(tmp_path: Path) -> None:
    old, graders = record(), TenGraders()
    recorder = Recorder(tmp_path, Ledger(tmp_path), graders)
    assert recorder.record(graded(old)) is not None
    graders.image = "sha256:newer"
    assert recorder.record(graded(old)) is not None


def test_two_executions_of_a_run_stay_two(tmp_path: Path) -> None:
    """Naive: found by run and stamp, the second execution is taken for the first."""
    recorder = Recorder(tmp_path, Ledger(tmp_path), TenGraders())
    again = facts(run_id(), started_at="2026-01-02T00:00:00.000Z", ended_at="2026-01-02T00:00:01.000Z")
    assert recorder.record(graded(record())) is not None
    assert recorder.record(graded(record(facts=again))) is not None


def test_what_was_not_graded_is_not_recorded(tmp_path: Path) -> None:
    lost = Rescored(Path("x"), record(), None, ("cannot be graded again",), "10")
    assert Recorder(tmp_path, Ledger(tmp_path), TenGraders()).record(lost) is None
    assert not list(read_records(tmp_path))
