"""What is new against a baseline."""

from __future__ import annotations

import itertools
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.kicad.reports import Report, sort_key
from grader.kicad.violations import new_violations
from schema.fixture import Source, Violation


def violation(
    kind: str = "silk_overlap",
    items: str = "a b",
    severity: Literal["error", "warning"] = "error",
    *,
    source: Source = "drc",
    sheet: str = "",
    pins: str | None = None,
) -> Violation:
    """A violation, its items and pins given as words."""
    return Violation(
        source=source,
        type=kind,
        severity=severity,
        sheet=sheet,
        items=sorted(items.split()),
        pins=None if pins is None else sorted(pins.split()),
    )


def judge(
    before: list[Violation],
    after: list[Violation],
    severity: Literal["error", "warning"] = "error",
    *,
    unchanged: bool = False,
) -> tuple[list[str], list[str]]:
    """Compare two lists."""
    found = Report(tuple(sorted(after, key=sort_key)))
    return new_violations(before, found, severity=severity, file_unchanged=unchanged)


def test_nothing_new() -> None:
    assert judge([violation()], [violation()]) == ([], [])
    assert judge([violation()], []) == ([], [])
    assert judge([], []) == ([], [])


def test_one_more_is_new() -> None:
    new, _ = judge([violation()], [violation(), violation(items="c d")])
    assert new == ["drc error silk_overlap: 2, the baseline has 1 (silk_overlap, items c, d)"]


def test_a_swapped_violation_is_new() -> None:
    """A naive grader counts one before and one after, and passes."""
    new, _ = judge([violation(items="a b")], [violation(items="a c")])
    assert new == ["drc error silk_overlap: not in the baseline: silk_overlap, items a, c"]


def test_a_swap_under_a_lower_count_is_noted() -> None:
    new, notes = judge([violation(items="a b"), violation(items="c d")], [violation(items="e f")])
    assert new == []
    assert notes == ["drc error silk_overlap: 1 not in the baseline, within its count (1 of 2)"]


def test_an_error_does_not_hide_in_a_warning_s_allowance() -> None:
    """A naive grader counts by type: one before, one after."""
    new, _ = judge([violation(severity="warning")], [violation(severity="error")])
    assert len(new) == 1


def test_a_parity_finding_does_not_hide_in_a_drc_allowance() -> None:
    new, _ = judge([violation(source="drc")], [violation(source="parity")])
    assert len(new) == 1


def test_the_same_items_on_another_sheet_are_new() -> None:
    """A reused sheet has each item once; only the sheet tells the instances apart."""
    new, _ = judge([violation(source="erc", sheet="/A/")], [violation(source="erc", sheet="/B/")])
    assert len(new) == 1


def test_items_are_a_multiset() -> None:
    assert judge([violation(items="a a")], [violation(items="a")])[0]
    assert judge([violation(items="a b")], [violation(items="b a")])[0] == []


@pytest.mark.parametrize(("severity", "new"), [("error", 0), ("warning", 1)])
def test_warnings_count_when_asked_for(severity: Literal["error", "warning"], new: int) -> None:
    assert len(judge([], [violation(severity="warning")], severity)[0]) == new


ANEW = [
    "unconnected_items",
    "power_pin_not_driven",
    "pin_not_driven",
    "multiple_net_names",
    "same_local_global_label",
    "similar_labels",
]


@pytest.mark.parametrize("kind", ANEW)
def test_another_item_of_the_same_net_is_not_new(kind: str) -> None:
    """KiCad reports another pin after a part was re-referenced; a naive grader sees a new violation."""
    before = violation(kind, items="a", pins="U1.1 U2.1")
    after = violation(kind, items="b", pins="U1.1 U2.1")
    assert judge([before], [after]) == ([], [])


@pytest.mark.parametrize("kind", ANEW)
def test_another_net_is_new(kind: str) -> None:
    """A naive grader that gives up on items passes on the count."""
    before = violation(kind, items="a", pins="U1.1 U2.1")
    after = violation(kind, items="a", pins="U3.1 U4.1")
    assert len(judge([before], [after])[0]) == 1


@pytest.mark.parametrize("kind", ANEW)
def test_a_part_added_to_an_undriven_net_is_not_new(kind: str) -> None:
    before = violation(kind, items="a", pins="U1.1 U2.1")
    after = violation(kind, items="b", pins="U1.1 U2.1 R9.1")
    assert judge([before], [after]) == ([], [])


@pytest.mark.parametrize("kind", ANEW)
def test_the_count_decides_where_the_net_is_unknown(kind: str) -> None:
    before, after = violation(kind, items="a"), violation(kind, items="b", pins="U1.1")
    new, notes = judge([before], [after])
    assert new == []
    assert "decided by count (1 of 1)" in notes[0]
    assert judge([before], [after, after])[0]


@pytest.mark.parametrize("kind", ANEW)
def test_a_net_that_cannot_be_told_is_none_of_the_known_ones(kind: str) -> None:
    """Naive: count, so that a file without uuids hides which finding it is."""
    before, after = violation(kind, items="a", pins="U1.1"), violation(kind, items="b")
    assert len(judge([before], [after])[0]) == 1
    assert judge([before, before], [after])[0] == []


def test_pairing_finds_the_largest_matching() -> None:
    """Greedy pairing takes A for the first and leaves the second without."""
    kind = "unconnected_items"
    before = [violation(kind, "x", pins="A B"), violation(kind, "y", pins="B C")]
    after = [violation(kind, "p", pins="B"), violation(kind, "q", pins="A")]
    for order in itertools.permutations(after):
        assert judge(before, list(order))[0] == []


PINS = st.lists(st.sampled_from("ABCDE"), min_size=1, max_size=3, unique=True)


def _paired(before: list[frozenset[str]], after: list[frozenset[str]]) -> int:
    """Largest number of pairs, by trying all orders."""
    return max(
        sum(bool(a & b) for a, b in zip(order, after, strict=False))
        for order in itertools.permutations(before)
    )


@given(st.integers(1, 4).flatmap(lambda n: st.tuples(*[st.lists(PINS, min_size=n, max_size=n)] * 2)))
def test_pairing_is_maximal(sides: tuple[list[list[str]], list[list[str]]]) -> None:
    before, after = (
        [violation("unconnected_items", str(i), pins=" ".join(pins)) for i, pins in enumerate(side)]
        for side in sides
    )
    expected = len(after) - _paired([frozenset(s) for s in sides[0]], [frozenset(s) for s in sides[1]])
    assert len(judge(before, after)[0]) == expected


def test_a_type_at_its_stop_fails_unless_nothing_changed() -> None:
    """199 before and 199 after look equal; there may be three hundred."""
    many = [violation(items=str(number)) for number in range(199)]
    assert judge(many, many)[0] == ["drc silk_overlap: kicad-cli stopped counting, so it cannot be compared"]
    assert judge(many, many, unchanged=True)[0] == []
    assert judge(many, many[:5])[0]
    assert judge(many[:198], many[:198])[0] == []


def test_a_stop_of_a_severity_that_is_not_judged_does_not_matter() -> None:
    many = [violation(items=str(number), severity="warning") for number in range(199)]
    assert judge(many, many, "error")[0] == []
    assert judge(many, many, "warning")[0]


def test_a_stop_said_by_the_report_counts() -> None:
    """Excluded findings fill the quota too, though they are not in the list."""
    found = Report((violation(),), stopped=frozenset({("drc", "silk_overlap")}))
    new, _ = new_violations([violation()], found, severity="error", file_unchanged=False)
    assert new
    again, _ = new_violations(found, Report((violation(),)), severity="error", file_unchanged=False)
    assert again


VIOLATIONS = st.lists(
    st.builds(
        violation,
        st.sampled_from(["silk_overlap", "unconnected_items"]),
        st.sampled_from(["a", "b", "a b"]),
        st.sampled_from(["error", "warning"]),
        pins=st.sampled_from([None, "X", "Y", "X Y"]),
    ),
    max_size=6,
)


@given(VIOLATIONS)
def test_a_report_has_nothing_new_against_itself(found: list[Violation]) -> None:
    assert judge(found, found, "warning")[0] == []


@given(VIOLATIONS, VIOLATIONS)
def test_more_of_a_kind_is_always_new(before: list[Violation], extra: list[Violation]) -> None:
    assert bool(judge(before, before + extra, "warning")[0]) == bool(extra)


@given(VIOLATIONS, VIOLATIONS, st.randoms())
def test_order_never_matters(before: list[Violation], after: list[Violation], random: object) -> None:
    shuffled = list(after)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert judge(before, after, "warning") == judge(before[::-1], shuffled, "warning")
