"""Facts of lost runs: what a plan's end says of them."""

from typing import Any

import pytest

from orchestrator.facts import require_clean_attempts
from schema.errors import InfrastructureLeft
from schema.run import RunFacts
from tests.unit.samples import facts, run_id


def seen(**changes: Any) -> RunFacts:
    return facts(run_id(), **changes)


ENGINE, PROVIDER = seen(infrastructure="no space left"), seen(provider_fault="provider: stalled (None)")


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        (
            [ENGINE, ENGINE],
            "2 runs never got a clean attempt (2 to engine or host) and are recorded as failures, shown "
            "apart; see copperbench doctor and .cache/logs for what failed",
        ),
        (
            [PROVIDER],
            "1 runs never got a clean attempt (1 to the provider) and are recorded as failures, shown apart; "
            "see providerFault in the records for what failed",
        ),
        (
            [ENGINE, PROVIDER],
            "2 runs never got a clean attempt (1 to engine or host, 1 to the provider) and are recorded as "
            "failures, shown apart; see copperbench doctor and .cache/logs and see providerFault in the "
            "records for what failed",
        ),
    ],
)
def test_lost_runs_are_one_line_and_exit_code_4(lost: list[RunFacts], says: str) -> None:
    """Naive: only those that the engine lost; a provider that was down all night ends as 0."""
    with pytest.raises(InfrastructureLeft) as told:
        require_clean_attempts([seen(), *lost])
    assert (str(told.value), told.value.exit_code) == (says, 4)


def test_failures_of_the_agent_are_no_loss() -> None:
    require_clean_attempts([seen(), seen(earlier_faults=["provider: reset (None)"], exit_code=1)])
    require_clean_attempts([])
