"""What compass makes of a run: dangerous commands called, orders planted in what the agent read.

A diagnostic for whoever builds agents; it never touches verdict, category or credit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compass import danger_reason, injection_findings
from grader.transcript import Transcript

CALLS = 500
"""Tool calls that are looked at; a run has tens."""
TEXT = 64 * 1024
"""Characters of tool results that are scanned, over the whole run: a board file has no room for orders, and
costs a second a megabyte."""
COMMAND = 4096
"""Characters of one command."""
_COMMAND_KEYS = ("command", "cmd", "script")


def diagnose(transcript: Transcript) -> Iterator[str]:
    """One line for each dangerous command and each family of planted orders, in the order they came."""
    left = TEXT
    seen: set[str] = set()
    for event in transcript.data("tool")[:CALLS]:
        name = str(event.get("name", ""))[:60]
        for command in _commands(event.get("args")):
            if reason := danger_reason(command):
                yield f"compass: dangerous call of {name}: {reason}"
        result = event.get("result")
        if isinstance(result, str) and left > 0:
            for finding in injection_findings(result[:left]):
                if finding.family not in seen:
                    seen.add(finding.family)
                    yield f"compass: {finding.family} in a result of {name}: {finding.why}"
            left -= len(result)


def _commands(args: Any) -> Iterator[str]:
    if isinstance(args, Mapping):
        for key in _COMMAND_KEYS:
            if isinstance(value := args.get(key), str):
                yield value[:COMMAND]
