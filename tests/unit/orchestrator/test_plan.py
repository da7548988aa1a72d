"""Plans fix the denominator."""

from pathlib import Path

import pytest

from orchestrator.plan import expand, join, write
from orchestrator.project import LoadedTask
from schema.errors import UsageError
from tests.unit.samples import ZERO, bundle, task


def loaded(name: str, repeats: int | None = None) -> LoadedTask:
    parts = bundle()
    return LoadedTask(
        task=task(id=name, repeats=repeats),
        assertions=parts.assertions,
        fixture=parts.fixture,
        erc_baseline=parts.erc_baseline,
        drc_baseline=parts.drc_baseline,
        folder=Path(),
        manifest_sha256=ZERO,
    )


def test_every_task_model_and_repeat_is_one_spec_in_a_fixed_order() -> None:
    plan = expand([loaded("a"), loaded("b", repeats=1)], ["m:x", "m:y"], "agent", 2, "s")
    runs = [(s.run.task, s.run.model, s.run.repeat) for s in plan.specs]
    assert runs == [
        ("a", "m:x", 1),
        ("a", "m:x", 2),
        ("a", "m:y", 1),
        ("a", "m:y", 2),
        ("b", "m:x", 1),
        ("b", "m:y", 1),
    ]


def test_the_id_is_a_function_of_the_specs_alone() -> None:
    one, other = (expand([loaded("a")], ["m:x"], "agent", 1, "s") for _ in range(2))
    assert one.id == other.id
    assert one.id != expand([loaded("a")], ["m:x"], "agent", 2, "s").id


def test_the_same_plan_is_written_once(tmp_path: Path) -> None:
    plan = expand([loaded("a")], ["m:x"], "agent", 1, "s")
    first = write(plan, tmp_path).read_bytes()
    later = plan.model_copy(update={"created_at": "2027-01-01T00:00:00.000Z"})
    assert write(later, tmp_path).read_bytes() == first


def test_an_empty_plan_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to run"):
        join([])
