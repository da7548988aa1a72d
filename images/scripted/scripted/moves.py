"""From a task's right answer to the tool calls by which an agent would give it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from scripted.job import Job

REGISTRY = ".copperhead/constraints.json"
WINDOW = 40
"""Lines of a file that a script reads before it edits it."""


@dataclass(frozen=True)
class Call:
    """One tool call; ``arguments`` is JSON text, or what passes for it."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Move:
    """One reply."""

    text: str
    calls: list[Call] = field(default_factory=list)


def call(name: str, **arguments: Any) -> Call:
    """A well-formed call."""
    return Call(name, json.dumps(arguments, ensure_ascii=False))


def finish(job: Job, summary: str | None = None) -> Call:
    """The call by which the run ends as the answer does."""
    outcome = {"done": "done", "refused": "refuse", "flagged": "flag"}.get(job.exit_path, "done")
    return call("finish", outcome=outcome, summary=job.summary if summary is None else summary)


def looks(job: Job) -> list[Call]:
    """What an agent reads before it changes anything."""
    paths = [path for path in job.before if path != REGISTRY] or ["docs/SPEC.md"]
    return [call("list_files"), *(call("read_file", path=path, start=1, end=WINDOW) for path in paths)]


def changes(job: Job) -> list[Call]:
    """The answer's changes as tool calls, each anchored where its text occurs once.

    Raises:
        ValueError: an edit's text does not occur in the baseline.
    """
    texts = dict(job.before)
    calls: list[Call] = []
    for edit in job.edits:
        text = texts.get(edit.path, "")
        places = _places(text, edit.find)
        if not places:
            raise ValueError(f"{edit.path}: the text to replace is not in the baseline")
        # From the end, so that earlier places stay where they are.
        for place in reversed(places):
            anchor = _unique(text, place, place + len(edit.find))
            old = text[anchor[0] : anchor[1]]
            after = text[:place] + edit.replace + text[place + len(edit.find) :]
            new = after[anchor[0] : anchor[1] + len(edit.replace) - len(edit.find)]
            calls.append(call("edit_file", path=edit.path, old=old, new=new))
            text = after
        texts[edit.path] = text
    for path, wanted in job.files.items():
        calls += _constraints(texts.get(path), wanted) if path == REGISTRY else [_whole(path, texts, wanted)]
    return [each for each in calls if each.name]


def checks() -> list[Call]:
    """What an agent verifies before it says that it is done."""
    return [call("run_erc"), call("run_drc"), call("check_drift")]


def _whole(path: str, texts: dict[str, str], wanted: str) -> Call:
    """A whole file: written when it is new, else one edit of the part that differs."""
    text = texts.get(path)
    if text is None:
        return call("write_file", path=path, content=wanted)
    start = 0
    while start < min(len(text), len(wanted)) and text[start] == wanted[start]:
        start += 1
    tail = 0
    while tail < min(len(text), len(wanted)) - start and text[-1 - tail] == wanted[-1 - tail]:
        tail += 1
    first, last = _unique(text, start, len(text) - tail)
    new = wanted[first : last + len(wanted) - len(text)]
    return call("edit_file", path=path, old=text[first:last], new=new)


def _constraints(before: str | None, after: str) -> list[Call]:
    """The registry is written by its own tool."""
    old = _entries(before or "{}")
    return [
        call("record_constraint", key=key, **fields)
        for key, fields in _entries(after).items()
        if old.get(key) != fields
    ]


def _entries(text: str) -> dict[str, dict[str, Any]]:
    registry = json.loads(text)
    if isinstance(registry, dict):
        return registry
    return {entry["key"]: {k: v for k, v in entry.items() if k != "key"} for entry in registry}


def _places(text: str, find: str) -> list[int]:
    places, at = [], text.find(find)
    while at >= 0:
        places.append(at)
        at = text.find(find, at + len(find))
    return places


def _unique(text: str, start: int, end: int) -> tuple[int, int]:
    """The part from ``start`` to ``end``, grown by whole lines until it occurs once and is not empty."""
    while start == end or text.find(text[start:end]) != start or text.find(text[start:end], start + 1) >= 0:
        if (start, end) == (0, len(text)):
            break
        if end < len(text):
            line = text.find("\n", end)
            end = len(text) if line < 0 else line + 1
        else:
            start = text.rfind("\n", 0, max(start - 1, 0)) + 1 if start else 0
    return start, end
