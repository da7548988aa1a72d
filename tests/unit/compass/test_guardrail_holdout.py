"""Holdout rows test the rules only while the rules do not contain them."""

import re
from pathlib import Path

import compass
from compass.bench.guardrail import cases
from compass.bench.router import evaluate

PACKAGE = Path(compass.__file__).parent
#: Words in a row that would show a text was copied; shorter runs are the language itself.
WINDOW = 4
#: Characters such a run has at least; ``rm -rf / x`` is nobody's property.
LENGTH = 24


def windows(text: str) -> set[str]:
    """Every run of ``WINDOW`` words of ``text`` that is long enough to be told apart."""
    words = re.findall(r"[\w/.~$-]+", text.lower())
    runs = {" ".join(words[at : at + WINDOW]) for at in range(len(words) - WINDOW + 1)}
    return {run for run in runs if len(run) >= LENGTH}


def rules(folder: str) -> str:
    """The source of a detector, as words."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted((PACKAGE / folder).rglob("*.py")))
    return " ".join(re.findall(r"[\w/.~$-]+", source.lower()))


def test_guardrail_rules_hold_no_holdout_text() -> None:
    source = rules("guardrail")
    held = [command for row, _, command, _ in cases() if row.split == "holdout"]
    assert len(held) > 200
    copied = [(run, command) for command in held for run in windows(command) if run in source]
    assert not copied


def test_router_rules_hold_no_holdout_text() -> None:
    source = rules("router")
    held = [one.task for one in evaluate().routed if one.split == "holdout"]
    copied = [(run, task) for task in held for run in windows(task) if run in source]
    assert not copied
