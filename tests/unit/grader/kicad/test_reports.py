"""kicad-cli's reports as findings."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.kicad import reports
from grader.kicad.errors import Unjudgeable
from tests.unit.grader.kicad.support import sample


def test_erc_of_our_project() -> None:
    findings = reports.read_findings(sample("plain", "erc"), "erc", "erc")
    counts = Counter(finding.type for finding in findings)
    assert counts["power_pin_not_driven"] == 1
    assert {finding.source for finding in findings} == {"erc"}
    assert {finding.sheet for finding in findings} <= {"/", "/A/", "/B/"}
    assert all(finding.sheet_path.startswith("/") for finding in findings)


def test_drc_of_our_project() -> None:
    findings = reports.read_findings(sample("alias", "drc"), "drc", "drc")
    assert Counter(finding.source for finding in findings) == {"drc": 10, "unconnected": 12, "parity": 2}


def test_positions_and_wording_are_no_identity() -> None:
    """A naive grader compares descriptions and calls a moved part's old finding new."""
    report = json.loads(sample("crossing", "drc"))
    for entry in report["violations"]:
        entry["description"] = "other words"
        for item in entry["items"]:
            item["pos"] = {"x": 1, "y": 2}
    changed = reports.read_findings(json.dumps(report).encode(), "drc", "drc")
    before = reports.read_findings(sample("crossing", "drc"), "drc", "drc")
    assert [f.violation(None) for f in changed] == [f.violation(None) for f in before]


def test_excluded_findings_are_told_apart() -> None:
    """``--severity-all`` lists them as errors; a naive grader counts them."""
    report = json.loads(sample("plain", "drc"))
    report["violations"][0]["excluded"] = True
    findings = reports.read_findings(json.dumps(report).encode(), "drc", "drc")
    assert [finding.excluded for finding in findings].count(True) == 1


@pytest.mark.parametrize(
    ("kind", "count", "stopped"),
    [
        ("silk_overlap", 198, False),
        ("silk_overlap", 199, True),
        ("silk_overlap", 200, True),
        ("clearance", 199, False),
        ("clearance", 498, False),
        ("clearance", 499, True),
        ("clearance", 500, True),
        ("unconnected_items", 450, False),
        ("unconnected_items", 499, True),
    ],
)
def test_stops_of_the_drc(kind: str, count: int, stopped: bool) -> None:
    """A naive grader takes 199 for a count; it means 199 or more."""
    finding = reports.Finding("drc", kind, "error", "", "", (), (), "", False)
    assert bool(reports.stops([finding] * count)) is stopped


def test_erc_has_no_stop() -> None:
    finding = reports.Finding("erc", "endpoint_off_grid", "warning", "/", "/", (), (), "", False)
    assert reports.stops([finding] * 991) == frozenset()


def _broken(change: str) -> bytes:
    report: Any = json.loads(sample("plain", "drc"))
    match change:
        case "no section":
            del report["unconnected_items"]
        case "no list":
            report["violations"] = {"a": 1}
        case "no uuid":
            del report["violations"][0]["items"][0]["uuid"]
        case "severity":
            report["violations"][0]["severity"] = "exclusion"
        case "array":
            report = [report]
    return json.dumps(report).encode()


@pytest.mark.parametrize("change", ["no section", "no list", "no uuid", "severity", "array"])
def test_a_report_of_unknown_shape_is_not_judged(change: str) -> None:
    """A naive grader uses ``report.get("violations", [])`` and passes."""
    with pytest.raises(Unjudgeable, match="not a kicad-cli DRC report"):
        reports.read_findings(_broken(change), "drc", "drc")


@pytest.mark.parametrize("data", [b"", b"{", sample("plain", "drc")[:-5], b"\xff\xfe{\0}\0"])
def test_a_truncated_report_is_not_judged(data: bytes) -> None:
    with pytest.raises(Unjudgeable):
        reports.read_findings(data, "drc", "drc")


def test_an_erc_report_is_no_drc_report() -> None:
    with pytest.raises(Unjudgeable):
        reports.read_findings(sample("plain", "erc"), "drc", "drc")
    with pytest.raises(Unjudgeable):
        reports.read_findings(sample("plain", "drc"), "erc", "erc")


def test_order_does_not_matter() -> None:
    findings = reports.read_findings(sample("plain", "drc"), "drc", "drc")
    forward = reports.to_violations(findings, lambda _: None)
    assert reports.to_violations(reversed(findings), lambda _: None) == forward


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ENTRIES = st.fixed_dictionaries(
    {
        "type": WORDS,
        "severity": st.sampled_from(["error", "warning"]),
        "description": WORDS,
        "items": st.lists(st.fixed_dictionaries({"uuid": WORDS, "description": WORDS}), max_size=3),
    },
    optional={"excluded": st.booleans()},
)
FOUND = st.lists(ENTRIES, max_size=5)
ERC = st.fixed_dictionaries(
    {
        "sheets": st.lists(
            st.fixed_dictionaries({"path": WORDS, "uuid_path": WORDS, "violations": FOUND}), max_size=3
        )
    }
)
DRC = st.fixed_dictionaries({"violations": FOUND, "unconnected_items": FOUND, "schematic_parity": FOUND})
SECTIONS = {"violations": "drc", "unconnected_items": "unconnected", "schematic_parity": "parity"}


def told(finding: reports.Finding) -> tuple[object, ...]:
    """A finding but for where it stood."""
    return (
        finding.type,
        finding.severity,
        finding.text,
        finding.uuids,
        finding.descriptions,
        finding.excluded,
    )


def meant(entry: dict[str, Any]) -> tuple[object, ...]:
    """The same of an entry."""
    uuids, words = (tuple(item[key] for item in entry["items"]) for key in ("uuid", "description"))
    return (
        entry["type"],
        entry["severity"],
        entry["description"],
        uuids,
        words,
        entry.get("excluded", False),
    )


@given(ERC)
def test_every_entry_of_an_erc_report_is_one_finding(report: dict[str, Any]) -> None:
    found = reports.read_findings(json.dumps(report).encode(), "erc", "erc")
    assert [(f.source, f.sheet, f.sheet_path, *told(f)) for f in found] == [
        ("erc", sheet["path"], sheet["uuid_path"], *meant(entry))
        for sheet in report["sheets"]
        for entry in sheet["violations"]
    ]


@given(DRC)
def test_every_entry_of_a_drc_report_is_one_finding_of_its_section(report: dict[str, Any]) -> None:
    found = reports.read_findings(json.dumps(report).encode(), "drc", "drc")
    assert [(f.source, *told(f)) for f in found] == [
        (source, *meant(entry)) for section, source in SECTIONS.items() for entry in report[section]
    ]


@given(DRC, st.randoms(use_true_random=False))
def test_violations_are_the_same_in_any_order_and_none_is_lost(report: dict[str, Any], chance: Any) -> None:
    findings = reports.read_findings(json.dumps(report).encode(), "drc", "drc")
    shuffled = list(findings)
    chance.shuffle(shuffled)
    violations = reports.to_violations(findings, lambda _: None)
    assert reports.to_violations(shuffled, lambda _: None) == violations
    assert len(violations) == len(findings)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda below: st.lists(below) | st.dictionaries(WORDS, below),
)


@given(DRC, st.sampled_from([*SECTIONS]), JSON, st.data())
def test_a_report_with_a_part_of_another_kind_is_not_judged_or_loses_nothing(
    report: dict[str, Any], section: str, value: Any, data: st.DataObject
) -> None:
    """A naive grader skips what it does not understand, and passes."""
    entries: list[Any] = report[section]
    entries.insert(data.draw(st.integers(0, len(entries))), value)
    try:
        found = reports.read_findings(json.dumps(report).encode(), "drc", "drc")
    except Unjudgeable:
        return
    assert len(found) == sum(len(report[name]) for name in SECTIONS)


@given(ERC | DRC, st.data())
def test_a_report_cut_anywhere_is_not_judged(report: dict[str, Any], data: st.DataObject) -> None:
    whole = json.dumps(report).encode()
    kind = "erc" if "sheets" in report else "drc"
    with pytest.raises(Unjudgeable):
        reports.read_findings(whole[: data.draw(st.integers(0, len(whole) - 1))], kind, kind)  # type: ignore[arg-type]
