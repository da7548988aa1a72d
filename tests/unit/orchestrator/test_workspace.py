"""What a workspace is prepared from."""

import json
from pathlib import Path

import pytest

from orchestrator.project import Project
from orchestrator.workspace import inputs
from schema.errors import FixtureError
from schema.fixture import Fixture

ROOT = Path(__file__).resolve().parents[3]


def pin(monkeypatch: pytest.MonkeyPatch, fixture: Fixture) -> None:
    def pinned(_self: Project, _name: str) -> Fixture:
        return fixture

    monkeypatch.setattr(Project, "fixture", pinned)


def test_only_what_the_reference_environment_reports_is_silenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As text "10" comes before "9": the first of the majors was KiCad 10, which no agent runs."""
    project = Project(ROOT, tmp_path)
    fixture = project.fixture("pdm-microphone-board")
    there = fixture.baseline["10"].model_copy(deep=True)
    assert there.drc is not None
    there.drc.warning_types["zones_intersect"] = 1
    pin(monkeypatch, fixture.model_copy(update={"baseline": {**fixture.baseline, "10": there}}))

    prep = json.loads(inputs(project.task("rename-data-net"))["prep.json"].data)

    found = {(item["source"], item["type"]) for item in prep["quiet"]}
    assert ("drc", "copper_edge_clearance") in found
    assert ("drc", "zones_intersect") not in found


def test_a_fixture_without_the_references_baseline_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(ROOT, tmp_path)
    fixture = project.fixture("pdm-microphone-board")
    pin(monkeypatch, fixture.model_copy(update={"baseline": {"10": fixture.baseline["10"]}}))
    with pytest.raises(FixtureError, match="no baseline for KiCad 9"):
        inputs(project.task("rename-data-net"))
