"""Reports as text: what people read where ``--json`` gives programs the same facts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compass.bench.router import RouterReport, quality
from compass.bench.tool import ToolReport
from compass.scoring import CaseResult, Gate, Proportion, Report, Score, table

#: Failing cases shown in full; the rest are counted (``--json`` has all).
SHOWN = 40


def percent(share: Proportion) -> str:
    """``97.5 % [95.1–98.8] (280/287)``."""
    if share.value is None:
        return "none observed"
    low, high = share.wilson
    return f"{100 * share.value:.1f} % [{100 * low:.1f}–{100 * high:.1f}] ({share.hits}/{share.total})"


def _state(ok: bool) -> str:
    return "ok" if ok else "BELOW ITS FLOOR"


def _share(part: Mapping[str, Any]) -> str:
    return f"{100 * (part['value'] or 0):.1f} % ({part['hits']}/{part['total']})"


def detector(report: Report) -> Iterator[str]:
    """A detector's report: score, floors, splits, families, failures."""
    score = Score.of(report.cases)
    yield f"{report.name}: {score.total} cases, {_state(report.ok)}"
    yield f"  precision {percent(score.precision)}  recall {percent(score.recall)}"
    yield from gates(report.gates)
    if report.unseen:
        yield (
            f"  unseen, reported only: recall {percent(report.unseen.recall)}  "
            f"false alarms {percent(report.unseen.false_alarms)}"
        )
    yield from _groups("split", table(report.cases, lambda case: case.split))
    yield from _groups("family", table(report.cases, lambda case: case.family))
    yield from failures(report.failures)


def attack(report: Report) -> Iterator[str]:
    """The robustness report: share still found, by transform and group."""
    yield f"{report.name}: {len(report.cases)} disguised injections, {_state(report.ok)}"
    yield from gates(report.gates)
    for name, score in table(report.cases, lambda case: f"{case.split}: {case.family}").items():
        yield f"  {name:<34} {percent(score.recall)}"


def gates(found: Iterable[Gate]) -> Iterator[str]:
    """One line a floor."""
    for gate in found:
        sign = "ok  " if gate.ok else "FAIL"
        yield f"  {sign} {gate.name} ≥ {100 * gate.floor:.0f} %: {percent(gate.measured)}"


def _groups(title: str, groups: Mapping[str, Score]) -> Iterator[str]:
    yield f"  {title:<20} {'cases':>5} {'missed':>6} {'false':>5}  recall"
    for name, score in groups.items():
        yield f"    {name:<18} {score.total:>5} {score.fn:>6} {score.fp:>5}  {percent(score.recall)}"


def failures(found: tuple[CaseResult, ...]) -> Iterator[str]:
    """Each failing case with its place and text."""
    for case in found[:SHOWN]:
        kind = "missed" if case.expected else "false alarm"
        detail = f"  [{case.detail}]" if case.detail else ""
        yield f"  {kind}: {case.case} {case.family}: {case.text[:120]!r}{detail}"
    if len(found) > SHOWN:
        yield f"  … and {len(found) - SHOWN} more"


def router(report: RouterReport) -> Iterator[str]:
    """The router's report: accuracy and serving by split, failures."""
    yield f"router: {len(report.routed)} tasks, {_state(report.ok)}"
    yield from gates(report.gates)
    for name in ("base", "holdout", "adversarial"):
        part = quality(report.split(name))
        yield (
            f"  {name:<12} accuracy {_share(part['accuracy'])}  under-served {_share(part['under_served'])}  "
            f"over-served {_share(part['over_served'])}  calibration error {part['calibration_error']:.3f}"
        )
    fresh = quality(report.unseen)
    shares = (f"accuracy {_share(fresh['accuracy'])}", f"under-served {_share(fresh['under_served'])}")
    yield f"  unseen, reported only: {'  '.join(shares)}"
    for one in report.failures[:SHOWN]:
        decision = one.decision
        yield f"  {one.needed} → {decision.tier} ({decision.confidence:.2f}): {one.case} {one.task[:100]!r}"


def cost(report: Mapping[str, Any]) -> Iterator[str]:
    """The cost comparison and the curve."""
    prices, profile = report["prices"], report["profile"]
    tokens = f"{profile['tok_in']} tokens in, {profile['tok_out']} out a task"
    yield f"cost: {prices['table']} ({prices['date']}), {tokens}"
    for tier, price in prices["usd_per_mtok"].items():
        yield f"  {tier:<8} ${price['input']:.2f} in, ${price['output']:.2f} out per million tokens"
    if prices["overridden"]:
        yield f"  overridden by {', '.join(prices['overridden'])}"
    if prices["savings_independent_of_profile"]:
        yield "  every tier has the same ratio of output to input price: savings do not depend on the profile"
    yield f"  {'split':<12} {'routed':>9} {'oracle':>9} {'cheapest':>9}   savings against all-strongest"
    for name, part in report["splits"].items():
        saved = part["savings_percent"]
        policies = (saved["routed"], saved["oracle"], saved["all_cheapest"])
        yield f"  {name:<12} " + " ".join(f"{policy:>7.1f} %" for policy in policies)
    yield "  the cheapest column shows why savings alone prove nothing: it is wrong about most tasks"
    yield f"  {'shift':>6} {'accuracy':>9} {'under':>7} {'over':>7} {'savings':>8}   the curve"
    for point in report["curve"]:
        shares = [100 * point[key] for key in ("accuracy", "under_served", "over_served")]
        columns = " ".join(f"{share:>7.1f} %" for share in [*shares, point["savings_percent"]])
        yield f"  {point['shift']:>+6.1f} {columns}"


def tool(report: ToolReport) -> Iterator[str]:
    """Another tool's report: the seed's block, then the same tables as ours."""
    yield report.block()
    if report.unanswered:
        yield f"  {report.unanswered} cases got no answer"
    yield from detector(report.report)
