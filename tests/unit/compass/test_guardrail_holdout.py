"""Holdout rows test the rules only while the rules do not contain them."""

import json
import re
from pathlib import Path

import compass
from compass.bench import guardrail
from compass.bench.guardrail import cases
from compass.bench.router import evaluate
from compass.corpus import UNSEEN

#: Splits whose text no rule may hold.
HELD = {"holdout", "unseen"}
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
    held = [
        command for row, _, command, _ in (*cases(), *cases(UNSEEN / "guardrail.tsv")) if row.split in HELD
    ]
    assert len(held) > 300
    copied = [(run, command) for command in held for run in windows(command) if run in source]
    assert not copied


def test_router_rules_hold_no_holdout_text() -> None:
    source = rules("router")
    report = evaluate()
    held = [one.task for one in (*report.routed, *report.unseen) if one.split in HELD]
    copied = [(run, task) for task in held for run in windows(task) if run in source]
    assert not copied


def test_unseen_commands_and_tasks_are_counted_but_neither_gated_nor_listed() -> None:
    shell, routed = guardrail.evaluate(), evaluate()
    commands = [command for _, _, command, _ in cases(UNSEEN / "guardrail.tsv")]
    tasks = [one.task for one in routed.unseen]
    assert shell.unseen is not None
    assert shell.unseen.total == len(commands) >= 100
    assert len(tasks) >= 40
    assert sum(gate.measured.total for gate in routed.gates) == sum(
        one.split in {"base", "holdout"} for one in routed.routed
    )
    told = json.dumps([shell.to_json(), routed.to_json()], ensure_ascii=False)
    for text in (*commands, *tasks):
        assert json.dumps(text, ensure_ascii=False) not in told
    assert not set(commands) & {case.text for case in shell.cases}
    assert not set(tasks) & {one.task for one in routed.routed}
