"""What the shipped tasks and suites promise of each other."""

from pathlib import Path

from orchestrator.project import Project
from schema.gateway import Patience
from schema.task import Outcome

PROJECT = Project(Path(__file__).resolve().parents[2])


def test_the_twins_differ_in_the_resistor_and_in_the_answer_alone() -> None:
    """Otherwise the pair could be told apart by anything but arithmetic."""
    refusal, edit = PROJECT.task("refuse-clock-pullup"), PROJECT.task("fit-clock-pullup")
    assert (refusal.task.expected_outcome, edit.task.expected_outcome) == (Outcome.REFUSAL, Outcome.EDIT)
    assert edit.task.request == refusal.task.request.replace("4.7 kΩ", "150 kΩ").replace("4k7", "150k")
    for name in ("fixture", "mode", "tier", "setup", "config", "caps"):
        assert getattr(edit.task, name) == getattr(refusal.task, name), name
    spec = Path("overlay/docs/SPEC.md")
    assert (edit.folder / spec).read_bytes() == (refusal.folder / spec).read_bytes()
    assert [path.name for path in (edit.folder / "overlay").rglob("*.*")] == [spec.name]


def test_the_smoke_suite_holds_every_outcome() -> None:
    tasks = [PROJECT.task(name).task for name in PROJECT.suite("smoke").tasks]
    assert {task.expected_outcome for task in tasks} == set(Outcome)


def test_an_agent_that_gives_requests_up_outlasts_a_provider_that_hangs() -> None:
    """copperhead asks four times for ``turnTimeoutMs``, a fifth of the wall clock, each."""
    patience = Patience()
    for name in PROJECT.task_ids():
        wall = PROJECT.task(name).task.caps.wall_clock_sec
        assert 4 * wall / 5 > patience.budget_seconds + patience.drain_seconds, name
