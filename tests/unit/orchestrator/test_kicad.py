"""The environments: one table, from which images, tags and commands follow."""

import re
from pathlib import Path

import pytest

from orchestrator.images import specs
from orchestrator.kicad import ENVIRONMENTS, REFERENCE, environment
from orchestrator.project import Project
from schema.errors import UsageError

ROOT = Path(__file__).parents[3]


def test_an_unknown_major_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no environment for KiCad 8; use one of 9, 10"):
        environment("8")


def test_the_missing_image_says_what_to_build() -> None:
    assert str(environment("10").missing("not built")) == (
        "copperbench/grader:10: not built; run copperbench images build --kicad 10"
    )
    assert REFERENCE.build == "copperbench images build"


def test_the_second_environment_only_grades() -> None:
    images = specs(Project(ROOT), environment("10"))
    assert [(image.tag, image.parent) for image in images] == [
        ("copperbench/kicad:10", "copperbench/base:forky"),
        ("copperbench/grader:10", "copperbench/kicad:10"),
    ]
    assert images[0].args == {"KICAD_VERSION": "10.0.6"}


def test_no_image_is_built_twice_and_parents_come_first() -> None:
    seen = {each.base for each in ENVIRONMENTS.values()}
    for each in ENVIRONMENTS.values():
        for image in specs(Project(ROOT), each):
            assert image.tag not in seen and image.parent in seen
            seen.add(image.tag)


def test_the_reference_is_what_the_dockerfile_builds_by_default() -> None:
    """Who builds it by hand gets the same."""
    text = (ROOT / "Dockerfile.kicad").read_text()
    assert re.findall(r"^ARG (?:BASE|KICAD_VERSION)=(.*)", text, re.M) == [
        REFERENCE.upstream,
        REFERENCE.version,
    ]


def test_every_fixture_has_a_baseline_of_every_environment() -> None:
    project = Project(ROOT)
    for name in project.fixture_ids():
        fixture = project.fixture(name)
        assert {major: found.kicad_version for major, found in fixture.baseline.items()} == {
            major: each.version for major, each in ENVIRONMENTS.items()
        }
        assert fixture.kicad.verified_with_kicad_cli == [each.version for each in ENVIRONMENTS.values()]
