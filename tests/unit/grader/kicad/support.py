"""Stand-ins and samples for the tests of the KiCad readers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from grader.evidence import Tree
from grader.kicad.cli import Job, KicadCli
from grader.kicad.design import Design
from grader.kicad.sexpr import Atom, Nested, Node
from tests.unit.grader.kicad import twins

DATA = Path(__file__).parents[3] / "data" / "kicad"
"""Captured by ``capture.py`` from our own project."""


def sample(variant: str, job: Job) -> bytes:
    """What kicad-cli 9.0.2 said about a variant of our project."""
    return (DATA / f"{variant}-{job}.{'net' if job == 'netlist' else 'json'}").read_bytes()


class Replay(KicadCli):
    """A kicad-cli that answers from the captured samples and remembers what it was given."""

    def __init__(self, variant: str = "plain", version: str = "9.0.2") -> None:
        super().__init__(executable="/nonexistent/kicad-cli")
        self.__dict__["version"] = version
        self.variant = variant
        self.given: list[tuple[Job, str, dict[str, bytes]]] = []

    def run(self, job: Job, target: str, files: Mapping[str, bytes]) -> bytes:
        """Answer as kicad-cli did when the sample was taken."""
        self.given.append((job, target, self.inputs(job, files)))
        return sample(self.variant, job)


def design(tree: Tree | None = None, cli: KicadCli | None = None, pristine: Tree | None = None) -> Design:
    """Our project as a design; ``pristine`` is the plain one unless given."""
    return Design(
        tree if tree is not None else twins.tree(),
        artifacts=twins.ARTIFACTS,
        pristine=pristine if pristine is not None else twins.tree(),
        cli=cli or Replay(),
    )


def nested(node: Node) -> Nested:
    """A node and all below it as nested lists, by way of its items: the long way round ``tree()``."""
    top: Nested = []
    pending: list[tuple[Node, Nested]] = [(node, top)]
    while pending:
        current, target = pending.pop()
        for item in current.items():
            if isinstance(item, Atom):
                target.append(item.text)
            else:
                below: Nested = []
                target.append(below)
                pending.append((item, below))
    return top
