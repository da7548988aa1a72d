"""Assertions on KiCad's own checks of the final files: ERC, DRC, and the whole ``check`` (Standard §4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Literal

from grader import drift
from grader.constraints import REGISTRY, Constraint, read_registry, same
from grader.documents import CONFIG, parse_json
from grader.evidence import Tree
from grader.kicad.errors import Unjudgeable
from grader.vocabulary.context import Context, Netlist, Outcome, Report, failed, passed
from schema.assertions import NoArgs, Severity, SeverityArgs
from schema.fixture import Violation

LISTED = 20
"""How many findings an outcome lists in its notes."""


def erc_no_new_violations(args: SeverityArgs, context: Context) -> Outcome:
    """No ERC violation beyond the fixture's recorded baseline."""
    return _no_new("erc", context.design.erc, context.erc_baseline, args.severity, context)


def drc_no_new_violations(args: SeverityArgs, context: Context) -> Outcome:
    """No DRC violation, unconnected item or parity finding beyond the fixture's recorded baseline."""
    return _no_new("drc", context.design.drc, context.drc_baseline, args.severity, context)


def _no_new(
    kind: Literal["erc", "drc"],
    read: Callable[[], Report],
    recorded: Sequence[Violation] | None,
    severity: Severity,
    context: Context,
) -> Outcome:
    name = kind.upper()
    if recorded is None:
        return failed(f"the fixture has no {name} baseline for this kicad-cli")
    report = read()
    new, notes = context.new_violations(recorded, report, severity=severity, file_unchanged=False)
    # Asked last, because it fingerprints two trees: only a type at kicad-cli's stop depends on it.
    if new and context.design.unchanged(kind):
        new, notes = context.new_violations(recorded, report, severity=severity, file_unchanged=True)
    if not new:
        return passed(f"no new {name} violation of severity {severity} or above", notes)
    more = f" (+{len(new) - 1} more)" if len(new) > 1 else ""
    return failed(f"new {name} violation: {new[0]}{more}", [*new[1:LISTED], *notes])


def erc_clean(_args: NoArgs, context: Context) -> Outcome:
    """The ERC report lists nothing of any severity but what the pristine project excludes."""
    return _clean("ERC", context.design.erc(exclusions=True))


def drc_clean(_args: NoArgs, context: Context) -> Outcome:
    """The DRC report lists nothing, unconnected items and parity included, but the pristine exclusions."""
    return _clean("DRC", context.design.drc(exclusions=True))


def _clean(name: str, report: Report) -> Outcome:
    found = [f"{item.source} {item.severity} {item.type}" for item in report.violations]
    if not found:
        return passed(f"{name} is clean")
    return failed(f"{name}: {len(found)} violations, the first {found[0]}", found[1:LISTED])


def check_clean(_args: NoArgs, context: Context) -> Outcome:
    """ERC, DRC, drift and constraints are all clean; the reason names every part that is not."""
    board = context.bundle.fixture.artifacts.board
    parts: list[tuple[str, Callable[[], list[str]]]] = [
        ("ERC", lambda: _findings(erc_clean(NoArgs(), context))),
        ("DRC", lambda: _findings(drc_clean(NoArgs(), context)) if board else []),
        ("drift", lambda: [str(item) for item in _drift(context)]),
        ("constraints", lambda: list(broken_constraints(context))),
    ]
    wrong: list[str] = []
    for name, read in parts:
        try:
            found = read()
        except Unjudgeable as error:
            found = [str(error)]
        if found:
            wrong.append(f"{name}: {found[0]}" + (f" (+{len(found) - 1} more)" if len(found) > 1 else ""))
    return failed("; ".join(wrong), wrong) if wrong else passed("ERC, DRC, drift and constraints are clean")


def _drift(context: Context) -> list[drift.Mismatch]:
    return drift.mismatches(context.bundle.end, context.docs, context.design.netlist)


def _findings(outcome: Outcome) -> list[str]:
    return [] if outcome.passed else [outcome.reason]


def broken_constraints(context: Context) -> Iterator[str]:
    """What is wrong with the constraint registry of the end tree, one line each.

    It must keep every key of the baseline's registry, hold every budget of the baseline's configuration with
    its number, not contradict itself, and no pin whose name an entry forbids (now or in the baseline) may be
    on a named net. Where the baseline has neither registry nor budgets, and the end no registry, nothing is
    recorded that could be broken.

    Raises:
        Unjudgeable: a registry or the netlist cannot be read.
    """
    bundle = context.bundle
    budgets = _budgets(bundle.baseline)
    before = read_registry(bundle.baseline) if REGISTRY in bundle.baseline else {}
    if not before and not budgets and REGISTRY not in bundle.end:
        return
    now = read_registry(bundle.end)
    yield from (f"constraint {key} was removed" for key in before if key not in now)
    for key, number in budgets.items():
        entry = now.get(key)
        if entry is None:
            yield f"budget {key} is not in the registry"
        elif not any(same(limit, number) for limit in (entry.value, entry.min, entry.max)):
            yield f"budget {key} is {number} in the configuration, and not in the registry"
    for entry in now.values():
        yield from _contradictions(entry)
    yield from _forbidden([*before.values(), *now.values()], context.design.netlist)


def _budgets(baseline: Tree) -> Mapping[str, Decimal]:
    """Budgets of the baseline's configuration, as exact numbers; the end's could have been raised."""
    entry = baseline.get(CONFIG)
    config = parse_json(entry.data, CONFIG, exact=True) if entry is not None else None
    budgets = config.get("budgets") if isinstance(config, dict) else None
    if not isinstance(budgets, dict):
        return {}
    return {key: number for key, number in budgets.items() if isinstance(number, Decimal)}


def _contradictions(entry: Constraint) -> Iterator[str]:
    low, high, value = entry.min, entry.max, entry.value
    if isinstance(low, Decimal) and isinstance(high, Decimal) and low > high:
        yield f"constraint {entry.key} has min {low} above max {high}"
    if isinstance(value, Decimal):
        if isinstance(low, Decimal) and value < low:
            yield f"constraint {entry.key} has value {value} below min {low}"
        if isinstance(high, Decimal) and value > high:
            yield f"constraint {entry.key} has value {value} above max {high}"


def _forbidden(entries: Iterable[Constraint], netlist: Netlist) -> Iterator[str]:
    """Pins of a forbidden name on a net that somebody named. Pins are meant by name, of any part."""
    governed = {name: entry.key for entry in entries for name in entry.forbidden}
    if not governed:
        return
    for net, pins in sorted(netlist.nets.items()):
        if net.startswith(drift.AUTOMATIC):
            continue
        for refdes, pin in sorted(pins):
            name = netlist.pin_names.get((refdes, pin), "")
            if name in governed:
                yield f"{refdes} pin {name} is on net {net}, forbidden by {governed[name]}"
