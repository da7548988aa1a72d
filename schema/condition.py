"""Conditions: ablations of one run, named on the command line and kept in its id (DESIGN §5).

Runs compare only within one condition. The name is canonical, so that the same ablation has one spelling:
``key=value`` pairs sorted by key, joined by commas.
"""

import re
from collections.abc import Iterable

from schema.errors import UsageError
from schema.task import Task

DEFAULT = "default"
TURNS, REPAIRS = "maxTurns", "maxRepairCycles"
AGENT_KEYS = ("prompt", "tools")
"""What is the agent's alone; the others are set in the task's configuration too."""
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


def parse(options: Iterable[str]) -> str:
    """The canonical name of ``k=v`` options; ``default`` without any.

    Raises:
        UsageError: an unknown key, a doubled one, or a value that cannot be.
    """
    values: dict[str, str] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if key not in {TURNS, REPAIRS, *AGENT_KEYS} or not equals:
            known = ", ".join(f"{name}=…" for name in (TURNS, REPAIRS, *AGENT_KEYS))
            raise UsageError(f"no condition {option!r}", fix=f"use {known}")
        if key in values:
            raise UsageError(f"condition {key} is given twice", fix="give it once")
        if key in {TURNS, REPAIRS} and not re.fullmatch(r"0|[1-9][0-9]{0,3}", value):
            raise UsageError(f"condition {option!r} is no count", fix="give a whole number below 10000")
        if not _VALUE.fullmatch(value):
            raise UsageError(f"condition {option!r} has no such value", fix="use letters, digits, . _ + -")
        values[key] = value
    return ",".join(f"{key}={values[key]}" for key in sorted(values)) or DEFAULT


def settings(condition: str) -> dict[str, str]:
    """Key → value of a canonical name."""
    return {} if condition == DEFAULT else dict(pair.split("=", 1) for pair in condition.split(","))


def apply(task: Task, condition: str) -> Task:
    """A task as it is set under a condition.

    Raises:
        UsageError: the task cannot be set so.
    """
    wanted = settings(condition)
    config = task.config.model_dump()
    for key, field in ((TURNS, "max_turns"), (REPAIRS, "max_repair_cycles")):
        if key in wanted:
            config[field] = int(wanted[key])
    if TURNS in wanted and not 1 <= config["max_turns"] <= task.caps.turns:
        raise UsageError(
            f"condition {TURNS}={wanted[TURNS]} is outside 1 to {task.caps.turns}, the task's hard cap",
            about=f"tasks/{task.id}",
            fix="choose fewer turns",
        )
    return Task.model_validate({**task.model_dump(), "config": config})
