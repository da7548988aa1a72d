"""Assertions on the files as the run left them: nets, symbols, documents, constraints (Standard §4)."""

from __future__ import annotations

import re2

from grader import drift
from grader.constraints import differences, read_registry
from grader.diff import printable
from grader.documents import Table, locate, read_tables, read_text
from grader.vocabulary.context import Context, Outcome, check, failed, passed
from schema.assertions import (
    ConstraintArgs,
    DocContainsArgs,
    DocRowArgs,
    DriftArgs,
    NetArgs,
    PinNetArgs,
    SymbolAbsentArgs,
    SymbolPresentArgs,
)

MATCH_LIMIT = 5
"""How many names a reason lists."""


def net_present(args: NetArgs, context: Context) -> Outcome:
    """The net exists and has a pin; an ambiguous name fails."""
    found = context.design.netlist.match(args.net)
    if len(found) > 1:
        return failed(f"{args.net} is ambiguous: {_some(found)}")
    return check(bool(found), f"net {found[0]} exists" if found else f"no net {args.net}")


def net_absent(args: NetArgs, context: Context) -> Outcome:
    """No net of that name has a pin, and no label gives a net that name.

    Labels are looked at too: KiCad keeps only one name of a net that has several, so the old name can live on
    unseen in the netlist.
    """
    netlist, labels = context.design.netlist, context.design.labels
    if found := netlist.match(args.net):
        return failed(f"net {_some(found)} exists")
    if not args.net.startswith("/"):
        left = args.net in labels
        return check(
            not left, f"a label still names {args.net}" if left else f"no net and no label {args.net}"
        )
    # A sheet path says where the net was; labels are known without their sheet. One that another net of the
    # same last element explains is that net's.
    parts = args.net.split("/")[1:]
    for leaf in ("/".join(parts[at:]) for at in range(len(parts))):
        if leaf in labels and not netlist.match(leaf):
            return failed(f"a label still names {leaf}")
    return passed(f"no net {args.net}, and no label that only it could explain")


def pin_net_equals(args: PinNetArgs, context: Context) -> Outcome:
    """That pin is on that net; an ambiguous net name fails."""
    netlist = context.design.netlist
    pin = f"{args.refdes}.{args.pin}"
    if args.refdes not in netlist.components:
        return failed(f"no symbol {args.refdes}")
    actual = netlist.net_of(args.refdes, args.pin)
    if actual is None:
        return failed(f"{pin} is on no net")
    wanted = netlist.match(args.net)
    if len(wanted) > 1:
        return failed(f"{args.net} is ambiguous: {_some(wanted)}")
    return check(wanted == [actual], f"{pin} is on {actual}")


def symbol_present(args: SymbolPresentArgs, context: Context) -> Outcome:
    """The symbol exists; value and footprint, where given, are exactly those."""
    component = context.design.netlist.components.get(args.refdes)
    if component is None:
        return failed(f"no symbol {args.refdes}")
    for name, wanted, actual in (
        ("value", args.value, component.value),
        ("footprint", args.footprint, component.footprint),
    ):
        if wanted is not None and actual != wanted:
            return failed(f"{name} of {args.refdes} is {actual!r}, not {wanted!r}")
    return passed(f"{args.refdes}: {component.value}, {component.footprint}")


def symbol_absent(args: SymbolAbsentArgs, context: Context) -> Outcome:
    """No symbol has that reference, kept off the board or not.

    The schematic is looked at too: KiCad leaves a part that is kept off the board out of the netlist.
    """
    if args.refdes in context.design.netlist.components:
        return failed(f"{args.refdes} exists")
    hidden = args.refdes in context.design.references
    return check(not hidden, f"{args.refdes} is kept off the board" if hidden else f"no symbol {args.refdes}")


def doc_row_matches(args: DocRowArgs, context: Context) -> Outcome:
    """Exactly one table row has that key, and its cell in the column matches the pattern."""
    path = locate(args.doc, baseline=context.bundle.baseline, end=context.bundle.end)
    if path is None:
        return failed(f"{args.doc}: no such document")
    fitting = [row for table in read_tables(context.bundle.end, path) for row in _rows(table, args)]
    name = printable(path)
    if len(fitting) != 1:
        return failed(f"{name}: {len(fitting) or 'no'} rows with key {_key(args)} and a column {args.column}")
    cell = fitting[0]
    return check(_search(args.pattern, cell), f"{name}: {args.column} of {_key(args)} is {cell[:200]!r}")


def _rows(table: Table, args: DocRowArgs) -> list[str]:
    """The cell in the asked column of every row with the key."""
    column = table.column(args.column)
    if isinstance(args.key, str):
        wanted, keys = [args.key], [0] if table.header else None
    else:
        wanted, keys = list(args.key.values()), table.columns(args.key)
    if column is None or keys is None:
        return []
    return [row[column] for row in table.rows if [row[key] for key in keys] == wanted]


def _key(args: DocRowArgs) -> str:
    if isinstance(args.key, str):
        return args.key
    return ", ".join(f"{column}={value}" for column, value in args.key.items())


def doc_contains(args: DocContainsArgs, context: Context) -> Outcome:
    """The document matches the pattern somewhere, or with ``absent`` nowhere. It must exist either way."""
    path = locate(args.doc, baseline=context.bundle.baseline, end=context.bundle.end)
    if path is None:
        return failed(f"{args.doc}: no such document")
    context.design.check_text(path)
    there = _search(args.pattern, read_text(context.bundle.end, path))
    return check(there != args.absent, f"{printable(path)} {'matches' if there else 'does not match'}")


def _search(pattern: str, text: str) -> bool:
    return re2.search(pattern, text) is not None


def drift_clean(args: DriftArgs, context: Context) -> Outcome:
    """Documents and schematic agree; with ``newOnly``, except where they did not in the baseline."""
    found = drift.mismatches(context.bundle.end, context.docs, context.design.netlist)
    notes: list[str] = []
    if found and args.new_only:
        old = drift.mismatches(context.bundle.baseline, context.docs, context.baseline_design.netlist)
        known = {mismatch.place for mismatch in old if mismatch.row}
        notes = [f"{len(known)} rows were wrong in the baseline"] if known else []
        found = [mismatch for mismatch in found if mismatch.place not in known]
    if not found:
        return passed("documents agree with the schematic", notes)
    more = f" (+{len(found) - 1} more)" if len(found) > 1 else ""
    return failed(f"{found[0]}{more}", [*notes, *(str(item) for item in found[1:20])])


def constraint_registered(args: ConstraintArgs, context: Context) -> Outcome:
    """The registry holds the entry, and every given argument is the entry's."""
    constraint = read_registry(context.bundle.end).get(args.key)
    if constraint is None:
        return failed(f"no constraint {args.key}")
    wrong = differences(constraint, args)
    return failed(f"{args.key}: {'; '.join(wrong)}") if wrong else passed(f"{args.key} is recorded as asked")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MATCH_LIMIT} more" if len(names) > MATCH_LIMIT else ""
    return ", ".join(names[:MATCH_LIMIT]) + more
