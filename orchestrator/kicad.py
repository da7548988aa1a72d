"""The KiCad environments, one a major of kicad-cli (DESIGN §6).

Runs happen and are graded in the reference. Any other grades the same evidence once more, against its own
baselines, into records of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from schema.errors import EnvironmentFault, UsageError


@dataclass(frozen=True)
class Environment:
    """One major of kicad-cli: where its packages come from and what its images are called."""

    major: str
    version: str
    """What the base must install; building fails when Debian has moved on."""
    suite: str
    """Debian's name for the release that carries it."""
    kicad: str
    """Tag of the image that holds kicad-cli."""
    grader: str
    """Tag of the image that grades with it."""
    released: bool
    """Whether the suite is. A copy of one that is not may be older than its Release file allows."""

    @property
    def base(self) -> str:
        """Tag of the Debian root that everything of this environment is built on."""
        return f"copperbench/base:{self.suite}"

    @property
    def upstream(self) -> str:
        """The same root as a registry calls it."""
        return f"debian:{self.suite}-slim"

    @property
    def build(self) -> str:
        """The command that makes its images."""
        other = "" if self is REFERENCE else f" --kicad {self.major}"
        return f"copperbench images build{other}"

    def missing(self, what: str) -> EnvironmentFault:
        """The one line for whoever needs an image of this environment and has none."""
        return EnvironmentFault(what, about=self.grader, fix=f"run {self.build}")


REFERENCE = Environment("9", "9.0.2", "trixie", "copperbench/kicad", "copperbench/grader", released=True)
ENVIRONMENTS = {
    environment.major: environment
    for environment in (
        REFERENCE,
        Environment("10", "10.0.6", "forky", "copperbench/kicad:10", "copperbench/grader:10", released=False),
    )
}


def environment(major: str) -> Environment:
    """The environment of a major of kicad-cli.

    Raises:
        UsageError: there is none.
    """
    if major not in ENVIRONMENTS:
        raise UsageError(f"no environment for KiCad {major}", fix=f"use one of {', '.join(ENVIRONMENTS)}")
    return ENVIRONMENTS[major]
