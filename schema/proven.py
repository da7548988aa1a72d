"""``tasks/PROVEN.json``: what was proven of each task, by content: a later change shows (Standard §9)."""

from schema.base import Model
from schema.task import Sha256, TaskId


class ProvenTask(Model):
    """One task whose gold passed, whose noop failed and whose every requirement caught something."""

    manifest_sha256: Sha256
    fixture_sha256: Sha256
    solutions_sha256: Sha256
    """Tree hash of the task's ``solutions`` folder."""
    kicad_version: str
    solutions: dict[str, str]
    """Solution → its verdict, in words."""


class Proven(Model):
    """The file."""

    tasks: dict[TaskId, ProvenTask]
