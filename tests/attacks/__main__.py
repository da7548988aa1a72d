"""``python -m tests.attacks [NAME or FAMILY word …]``: play attacks, a line each, and count them."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from orchestrator.engine import Engine
from orchestrator.grading import IMAGE as GRADER
from orchestrator.images import GATEWAY_IMAGE, SCRIPTED_IMAGE
from orchestrator.sandbox import HOLDER_IMAGE
from schema.errors import CopperbenchError, UsageError
from schema.text import plain
from tests.attacks import surroundings
from tests.attacks.attack import Attack
from tests.attacks.families import ATTACKS, FAMILIES
from tests.attacks.suite import IMAGE, Outcome, checkout, make_image, play

READ_WHOLE = {IMAGE.tag, GRADER, GATEWAY_IMAGE, SCRIPTED_IMAGE, HOLDER_IMAGE}
"""Images of every kind of container that a run has; of each one is read to its last byte."""
JOBS = 3
"""Runs at a time: a run waits as often as it computes."""


def chosen(words: Iterable[str]) -> list[Attack]:
    """Attacks by name, or all of a family by a word of its title.

    Raises:
        UsageError: neither is called so.
    """
    found: dict[str, Attack] = {}
    for word in words:
        families = [attacks for title, attacks in FAMILIES.items() if word in title.split()]
        matching = [ATTACKS[word]] if word in ATTACKS else [one for attacks in families for one in attacks]
        if not matching:
            raise UsageError(f"no attack and no family {word!r}", fix="see tests/attacks/families")
        found |= {attack.name: attack for attack in matching}
    return list(found.values()) or list(ATTACKS.values())


def main(words: list[str]) -> int:
    """Exit code: 0 when every attack failed, 1 otherwise."""
    began = time.monotonic()
    attacks = chosen(words)
    surroundings.plant()
    engine = Engine.connect()
    make_image(engine)
    counts = {True: 0, False: 0}

    def line(name: str, expected: str, got: str, faults: list[str]) -> None:
        counts[not faults] += 1
        print(f"{name:34} {expected:28} {got:28} {'ok' if not faults else 'FAILED'}", flush=True)
        for fault in faults:
            print(f"    {plain(fault)}", flush=True)

    def say(outcome: Outcome) -> None:
        line(outcome.attack.name, str(outcome.attack.expect), outcome.got, outcome.faults)

    with tempfile.TemporaryDirectory(prefix="copperbench attacks ") as folder:
        root = Path(folder)
        project = checkout(root / "checkout", attacks)
        sentinel = surroundings.Sentinel(root, project)
        watch = surroundings.Watch(engine, READ_WHOLE)
        watch.start()
        try:
            play(project, engine, attacks, jobs=JOBS, say=say)
        finally:
            watch.stop()
        played = time.monotonic() - began
        seen = f"({watch.inspected} seen)"
        unread = READ_WHOLE - watch.exported if len(attacks) == len(ATTACKS) else set()
        missing = [f"no container of {image} was read whole" for image in sorted(unread)]
        checks: list[tuple[str, str, Iterable[str]]] = [
            (f"canary: containers {seen}", "nowhere", [*watch.found, *missing]),
            ("canary: all that was left", "nowhere", surroundings.leaked(project)),
            ("shown and reported", "plain text", surroundings.shown(project)),
            ("graded again", "the same", surroundings.graded_again(project)),
            ("host", "as before", sentinel.faults()),
            ("engine", "as before", surroundings.left_in_the_engine(engine)),
        ]
        for name, expected, found in checks:
            faults = list(found)
            line(name, expected, "not so" if faults else expected, faults)
    print(f"{len(attacks)} attacks in {played:.0f} s, {time.monotonic() - began:.0f} s with the checks")
    print(f"{counts[True]} passed, {counts[False]} failed")
    return 1 if counts[False] else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except CopperbenchError as error:
        print(f"attacks: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
