"""The vocabulary is closed: 23 types, one function each."""

from typing import get_args, get_type_hints

import pytest

from grader.kicad.errors import Unjudgeable
from grader.vocabulary.context import Context, Outcome
from grader.vocabulary.registry import REGISTRY, types
from schema.assertions import Assertion
from tests.unit.grader.support import FakeDesign, assertion, outcome_of

UNREADABLE = Unjudgeable("demo.kicad_sch: truncated")


def test_registry_covers_exactly_the_types_of_the_schema() -> None:
    """A naive grader skips a type it does not know, so that a misspelt assertion passes."""
    assert len(types()) == 23
    assert sorted(types()) == sorted(REGISTRY)


@pytest.mark.parametrize("kind", sorted(REGISTRY))
def test_every_function_takes_the_arguments_of_its_type(kind: str) -> None:
    """Wiring a type to a neighbour's function would judge the wrong thing without an error."""
    hints = list(get_type_hints(REGISTRY[kind]).values())
    union = get_args(Assertion)[0]
    [model] = [m for m in get_args(union) if get_args(m.model_fields["type"].annotation) == (kind,)]
    assert hints == [model.model_fields["args"].annotation, Context, Outcome]
    assert REGISTRY[kind].__name__ == kind


NEEDS_A_DESIGN = [
    assertion("erc_no_new_violations"),
    assertion("drc_no_new_violations"),
    assertion("erc_clean"),
    assertion("drc_clean"),
    assertion("check_clean"),
    assertion("drift_clean"),
    assertion("net_present", net="DATA"),
    assertion("net_absent", net="DATA"),
    assertion("symbol_present", refdes="R1"),
    assertion("symbol_absent", refdes="R1"),
    assertion("pin_net_equals", refdes="R1", pin="1", net="DATA"),
]


@pytest.mark.parametrize("item", NEEDS_A_DESIGN, ids=lambda item: item.type)
def test_absence_needs_evidence_an_unreadable_design_fails(item: Assertion) -> None:
    """A naive grader finds no net, no symbol and no violation in a file it cannot read, and passes."""
    design = FakeDesign(UNREADABLE, UNREADABLE, UNREADABLE, UNREADABLE)
    outcome = outcome_of(item, design)
    assert not outcome.passed
    assert "truncated" in outcome.reason or "BOM" in outcome.reason
