"""One run and all that decides it, read and verified before it starts."""

from __future__ import annotations

from dataclasses import dataclass

from grader.evidence import Bundle, Tree
from orchestrator.access import Way
from orchestrator.project import LoadedTask
from orchestrator.workspace import Baseline
from schema.agent import Agent, Provider
from schema.record import Stamp
from schema.run import RunFacts, RunId


@dataclass(frozen=True)
class Job:
    """A run, its task, agent, model and baseline, and the stamp that these give its record."""

    run: RunId
    loaded: LoadedTask
    agent: Agent
    provider: Provider
    pristine: Tree
    baseline: Baseline
    stamp: Stamp
    inputs: bytes | None
    """Tar laid into ``/input``; None mounts nothing there."""
    way: Way | None
    """How the agent reaches its model; None for one that calls none."""

    def bundle(self, facts: RunFacts, end: Tree) -> Bundle:
        """All that the grader reads of a run that ended so."""
        return Bundle(
            task=self.loaded.task,
            assertions=self.loaded.assertions,
            agent=self.agent,
            fixture=self.loaded.fixture,
            erc_baseline=self.loaded.erc_baseline,
            drc_baseline=self.loaded.drc_baseline,
            facts=facts,
            pristine=self.pristine,
            baseline=self.baseline.tree,
            end=end,
        )
