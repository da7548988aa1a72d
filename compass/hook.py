"""The hook protocol that coding agents share: a tool call as JSON on standard input, a decision as JSON out.

The input is the object Claude Code, Codex and Gemini CLI send before (or after) a tool runs: ``tool_name``,
``tool_input`` and ``cwd``. Before: a shell command or a file's path is put to the guardrail. After: the
tool's
output is searched for injections. What cannot be understood is denied, because a guard that fails open is
none.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compass.guardrail import danger_reason

#: Keys under which tools name a shell command, and a file that they write.
_COMMANDS = ("command", "cmd", "script", "bash_command")
_FILES = ("file_path", "path", "filename", "notebook_path", "target_file", "absolute_path")
_READERS = ("read", "glob", "grep", "ls", "list", "search", "view", "fetch")


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the call may go on, and why not."""

    allow: bool
    reason: str
    event: str

    def to_json(self) -> dict[str, Any]:
        """The decision in the agents' own words."""
        decision = "allow" if self.allow else "deny"
        if self.event == "PostToolUse":
            return {} if self.allow else {"decision": "block", "reason": self.reason}
        return {
            "hookSpecificOutput": {
                "hookEventName": self.event,
                "permissionDecision": decision,
                "permissionDecisionReason": self.reason,
            }
        }


def answer(text: str, branch: str | None = None) -> Answer:
    """Judge one hook call; never raises."""
    try:
        call = json.loads(text)
        event = str(call.get("hook_event_name", "PreToolUse"))
        tool = str(call.get("tool_name", ""))
        if event == "PostToolUse":
            return _after(call["tool_response"], event)
        given = call["tool_input"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return Answer(False, "the hook's input is not a tool call as JSON", "PreToolUse")
    if not isinstance(given, Mapping):
        return Answer(False, "tool_input is not an object", event)
    branch = branch or head_branch(Path(str(call.get("cwd", "."))))
    reason = _before(given, tool, branch)
    return Answer(reason is None, reason or "", event)


def _before(given: Mapping[str, Any], tool: str, branch: str | None) -> str | None:
    for key in _COMMANDS:
        command = given.get(key)
        if isinstance(command, list):
            command = shlex.join(str(word) for word in command)
        if isinstance(command, str) and (reason := danger_reason(command, branch)):
            return reason
    if any(word in tool.lower() for word in _READERS):
        return None
    for key in _FILES:
        path = given.get(key)
        # A tool that writes a file writes what a redirection there would.
        if isinstance(path, str) and (reason := danger_reason(f"printf x > {shlex.quote(path)}", branch)):
            return reason
    return None


def _after(response: Any, event: str) -> Answer:
    from compass.redteam import injection_findings

    text = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
    found = injection_findings(text)
    why = f"the tool's output tries to give orders ({found[0].rule}): {found[0].why}" if found else ""
    return Answer(not found, why, event)


def head_branch(folder: Path) -> str | None:
    """The branch checked out in ``folder`` or above it, read from ``.git/HEAD`` without running git."""
    try:
        for place in (folder, *folder.resolve().parents):
            git = place / ".git"
            if git.is_file():
                pointer = git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
                git = place / pointer
            head = git / "HEAD"
            if head.is_file():
                ref = head.read_text(encoding="utf-8").strip()
                return ref.partition("refs/heads/")[2] or None
    except (OSError, UnicodeDecodeError):
        return None
    return None
