"""What the processes of records inherit: readings of pinned fixtures, and of nothing else."""

from __future__ import annotations

from dataclasses import replace

from grader import wire
from grader.evidence import Bundle, Entry
from grader.grade import grade
from grader.kicad.sexpr import parse
from grader.warm import Fixtures, _bundle, _Canned
from orchestrator.store import hash_tree
from tests.unit.grader import support
from tests.unit.grader.kicad import twins


def frame(tree: dict[str, Entry], digest: str) -> bytes:
    """A run on our own project that left another schematic."""
    end = {**tree, "hw/twins.kicad_sch": Entry(twins.root_sheet(twins.wire((1, 1), (2, 2))))}
    fixture = support.FIXTURE.model_copy(update={"artifacts": twins.ARTIFACTS, "sha256": digest})
    given: Bundle = replace(support.bundle(baseline=tree, end=end), fixture=fixture)
    return wire.encode(given)


def reads(given: bytes) -> int:
    """How many files a frame's fixture costs to read."""
    before = parse.cache_info().misses
    Fixtures().read(given)
    return parse.cache_info().misses - before


def test_only_the_pinned_fixture_is_read_outside_of_a_jail() -> None:
    """Naive: the parent reads what an agent wrote, and one record's file ends the grader of all."""
    tree = {path: Entry(entry.data + b"\n") for path, entry in twins.tree().items()}
    digest = hash_tree(tree)
    parse.cache_clear()
    assert reads(frame(tree, "0" * 64)) == 0
    assert reads(frame({**tree, "x.kicad_sch": Entry(b"(")}, digest)) == 0
    assert reads(frame(tree, digest)) == 3
    assert reads(frame(tree, digest)) == 0


def test_a_fixture_that_cannot_be_read_does_no_harm() -> None:
    tree = {"hw/twins.kicad_sch": Entry(b"(" * 1000), "hw/twins.kicad_pro": Entry(b"{")}
    assert reads(frame(tree, hash_tree(tree))) > 0


def test_the_run_that_warms_reaches_every_reader() -> None:
    """A made-up run that counts as tampered would compile nothing."""
    verdict = grade(_bundle(), _Canned())
    assert not any("tampered" in outcome.reason for outcome in verdict.assertions)
    assert not any("cannot be judged" in outcome.reason for outcome in verdict.assertions)
