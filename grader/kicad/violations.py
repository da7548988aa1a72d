"""What a report holds beyond a baseline: by count, and at equal count by identity (Standard §4)."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from itertools import groupby

from grader.kicad.reports import Report, at_stop, sort_key
from schema.assertions import Severity
from schema.fixture import Violation

ONE_NET = frozenset({"unconnected_items", "power_pin_not_driven", "pin_not_driven", "multiple_net_names"})
"""Types about one net, whose items KiCad picks anew on every change."""
ALIKE = frozenset({"same_local_global_label", "similar_labels", "similar_power", "similar_label_and_power"})
"""Types about names that are alike: KiCad reports those it meets first in a hash table, another pair in some
runs on an unchanged file (2 of 24 on 9.0.2)."""
ANEW = ONE_NET | ALIKE
"""Their affected nets' pin sets identify them; their items do not."""

Group = tuple[str, str, str]
"""(source, type, severity)."""
Pins = frozenset[str]


def new_violations(
    baseline: Report | Sequence[Violation],
    found: Report,
    *,
    severity: Severity,
    file_unchanged: bool,
) -> tuple[list[str], list[str]]:
    """Compare a report with a baseline.

    Args:
        baseline: what the untouched fixture shows.
        found: what the end state shows.
        severity: lowest severity that is judged; an error never hides in a warning's allowance, nor the
            other way round, because each severity is counted for itself.
        file_unchanged: whether everything kicad-cli reads is byte for byte the fixture's; only then is a
            type at kicad-cli's stop comparable.

    Returns:
        What is new, one line each (empty: nothing), and notes on how it was decided.
    """
    before = baseline.violations if isinstance(baseline, Report) else tuple(baseline)
    judged = {"error"} if severity == "error" else {"error", "warning"}
    old, now = _grouped(before, judged), _grouped(found.violations, judged)
    new: list[str] = []
    notes: list[str] = []
    if not file_unchanged:
        new += _stopped(baseline, found, judged)
    for group in sorted(now):
        lines, remarks = _compare(group, old.get(group, []), now[group])
        new += lines
        notes += remarks
    return new, notes


def _compare(group: Group, old: list[Violation], now: list[Violation]) -> tuple[list[str], list[str]]:
    source, kind, severity = group
    label = f"{source} {severity} {kind}"
    if len(now) > len(old):
        shown = [_describe(violation) for violation in _surplus(old, now)[:5]]
        return [f"{label}: {len(now)}, the baseline has {len(old)} ({'; '.join(shown)})"], []
    # One whose net is not known is none of a baseline whose nets all are: else a file without uuids hides it.
    if kind in ANEW and any(violation.pins is None for violation in old):
        note = f"{label}: decided by count ({len(now)} of {len(old)}), the affected nets are not known"
        return [], [note]
    surplus = _surplus(old, now)
    if len(now) == len(old):
        return [f"{label}: not in the baseline: {_describe(violation)}" for violation in surplus], []
    note = f"{label}: {len(surplus)} not in the baseline, within its count ({len(now)} of {len(old)})"
    return [], [note] if surplus else []


def _surplus(old: list[Violation], now: list[Violation]) -> list[Violation]:
    """Those of ``now`` that cannot be paired with one of ``old``."""
    if now and now[0].type in ANEW:
        return _unpaired(old, now)
    left = Counter(map(_identity, old))
    surplus = []
    for violation in now:
        identity = _identity(violation)
        if left[identity] > 0:
            left[identity] -= 1
        else:
            surplus.append(violation)
    return surplus


def _identity(violation: Violation) -> tuple[str, tuple[str, ...]]:
    return violation.sheet, tuple(violation.items)


def _unpaired(old: list[Violation], now: list[Violation]) -> list[Violation]:
    """Pair findings whose affected nets share a pin, as many as possible; return those of ``now`` left over.

    Sharing a pin, not equality: a part added to a net that was undriven before leaves it the same finding.
    """
    before = [frozenset(violation.pins or ()) for violation in old]
    after = [frozenset(violation.pins or ()) for violation in now]
    partner: dict[int, int] = {}
    surplus = []
    # Equal pin sets first: the rest is then small.
    equal: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for index, pins in enumerate(before):
        equal[pins].append(index)
    rest = []
    for index, pins in enumerate(after):
        if equal[pins]:
            partner[equal[pins].pop()] = index
        else:
            rest.append(index)
    for index in rest:
        if not _augment(index, before, after, partner):
            surplus.append(now[index])
    return surplus


def _augment(start: int, before: list[Pins], after: list[Pins], partner: dict[int, int]) -> bool:
    """Find a partner for ``start``, moving earlier pairs if needed (a breadth-first augmenting path)."""
    came_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        current = queue.popleft()
        for index, pins in enumerate(before):
            if index in came_from or not pins & after[current]:
                continue
            came_from[index] = current
            if index in partner:
                queue.append(partner[index])
                continue
            _flip(index, start, came_from, partner)
            return True
    return False


def _flip(free: int, start: int, came_from: dict[int, int], partner: dict[int, int]) -> None:
    """Pair along the path that ends in ``free``."""
    previous = {after: before for before, after in partner.items()}
    index: int | None = free
    while index is not None:
        taker = came_from[index]
        given_up = previous.get(taker)
        partner[index] = taker
        index = given_up if taker != start else None


def _grouped(violations: Sequence[Violation], judged: set[str]) -> dict[Group, list[Violation]]:
    def group(violation: Violation) -> Group:
        return violation.source, violation.type, violation.severity

    chosen = sorted((v for v in violations if v.severity in judged), key=lambda v: (group(v), sort_key(v)))
    return {key: list(members) for key, members in groupby(chosen, key=group)}


def _stopped(baseline: Report | Sequence[Violation], found: Report, judged: set[str]) -> list[str]:
    """Types at kicad-cli's stop in either report: how many more there are is unknown."""
    before = baseline.violations if isinstance(baseline, Report) else baseline
    stopped = set(found.stopped)
    if isinstance(baseline, Report):
        stopped |= baseline.stopped
    counts = Counter((v.source, v.type) for v in before if v.source != "erc")
    stopped |= {key for key, count in counts.items() if at_stop(key[1], count)}
    severities: dict[tuple[str, str], set[str]] = {}
    for violation in (*before, *found.violations):
        severities.setdefault((violation.source, violation.type), set()).add(violation.severity)
    return [
        f"{source} {kind}: kicad-cli stopped counting, so it cannot be compared"
        for source, kind in sorted(stopped)
        if severities.get((source, kind), judged) & judged
    ]


def _describe(violation: Violation) -> str:
    where = f" on {violation.sheet}" if violation.sheet else ""
    what = f"pins {', '.join(violation.pins)}" if violation.pins else f"items {', '.join(violation.items)}"
    return f"{violation.type}{where}, {what}"
