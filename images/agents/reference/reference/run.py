"""One run: ask, carry out, until the model finishes or a budget is used up; then keep the books."""

from __future__ import annotations

import time
from dataclasses import dataclass

from reference.checks import Settings
from reference.conversation import Conversation
from reference.errors import CommitFailed, ContextTooLong, ProviderError, ToolError
from reference.model import Client, Reply
from reference.tools import Toolbox
from reference.transcript import Transcript
from reference.workspace import Workspace

IDLE = 3
"""Replies in a row that call no tool, after which the run has stalled."""
REMINDER = "Call a tool. If the work is done, refused or has to be flagged, call finish."
EXIT_PATHS = {"done": "done", "refuse": "refused", "flag": "flagged"}
EXIT_CODES = {"done": 0, "refused": 0, "flagged": 2}
"""All others end with 1."""


@dataclass(frozen=True)
class Limits:
    """Budgets of a run."""

    turns: int
    repair_cycles: int


@dataclass(frozen=True)
class End:
    """How a run ended."""

    exit_path: str
    reason: str
    """A failure's reason, else the model's summary."""


class Run:
    """A conversation, its tools and its books."""

    def __init__(
        self,
        client: Client,
        conversation: Conversation,
        toolbox: Toolbox,
        transcript: Transcript,
        limits: Limits,
    ) -> None:
        self._client = client
        self._conversation = conversation
        self._toolbox = toolbox
        self._transcript = transcript
        self._limits = limits
        self._replies: list[Reply] = []
        self._repairs = 0

    def converse(self) -> End:
        """Until the model finishes or something is used up."""
        idle = 0
        while len(self._replies) < self._limits.turns:
            try:
                reply = self._client.ask(self._conversation.messages(), self._toolbox.schema())
            except ContextTooLong as error:
                if self._conversation.halve():
                    continue
                return End("provider-error", f"provider error: {error}")
            except ProviderError as error:
                return End("provider-error", f"provider error: {error}")
            self._take(reply)
            if self._toolbox.outcome is not None:
                ended = self._toolbox.outcome
                return End(EXIT_PATHS[ended.outcome], ended.summary)
            if self._repairs > self._limits.repair_cycles:
                return End(
                    "repair-cycles-exhausted", f"repair cycles exhausted ({self._limits.repair_cycles})"
                )
            idle = 0 if reply.calls else idle + 1
            if idle == IDLE:
                return End("stalled", "model stopped calling tools without finishing")
            if idle:
                self._conversation.remind(REMINDER)
        return End("turn-budget-exhausted", f"turn budget exhausted ({self._limits.turns} turns)")

    def _take(self, reply: Reply) -> None:
        """Log a reply and carry its calls out, one after the other."""
        self._replies.append(reply)
        listed = [{"id": call.id, "name": call.name, "args": call.args} for call in reply.calls]
        self._transcript.add("assistant", text=reply.text, toolCalls=listed)
        failed, results = self._toolbox.failed_checks, []
        for call in reply.calls:
            result = self._toolbox.call(call)
            self._transcript.add("tool", name=call.name, args=call.args, result=result)
            results.append(result)
        # However many checks one reply asks for, what they find is repaired in one go.
        self._repairs += self._toolbox.failed_checks > failed
        self._conversation.reply(reply, results)

    def close(self, end: End, workspace: Workspace, settings: Settings, request: str) -> int:
        """Commit, take back or leave as it is; write the end; return the process's exit code."""
        path = end.exit_path
        if path == "done":
            path = self._commit(end, workspace, settings, request)
        elif path in EXIT_CODES:
            workspace.restore()
            if path == "refused":
                self._transcript.add("run-refused", summary=end.reason)
        else:
            # Left in the tree, uncommitted: what a failed run had got to is evidence.
            self._transcript.add("run-failed", reason=end.reason, exitPath=path)
        self._end(path)
        return EXIT_CODES.get(path, 1)

    def _commit(self, end: End, workspace: Workspace, settings: Settings, request: str) -> str:
        if not workspace.touched:
            return "done"
        files = workspace.touched
        title = " ".join(request.split())[:120]
        try:
            log_change(workspace, f"{settings.docs}/CHANGELOG.md", title, files, end.reason)
        except ToolError as error:
            self._transcript.add("changelog-append-failed", reason=str(error))
        try:
            commit = workspace.commit(f"reference: {title}\n\n{end.reason}\n")
        except CommitFailed as error:
            self._transcript.add("run-failed", reason=str(error), exitPath="commit-failed")
            return "commit-failed"
        self._transcript.add("run-committed", commit=commit, files=files)
        return "done"

    def _end(self, exit_path: str) -> None:
        spent = [
            {"turn": turn, "in": reply.tokens_in, "out": reply.tokens_out}
            for turn, reply in enumerate(self._replies, 1)
            # A turn whose usage the provider did not tell is left out: unknown is not 0.
            if reply.tokens_in is not None and reply.tokens_out is not None
        ]
        known = len(spent) == len(self._replies)
        self._transcript.add(
            "run-end",
            exitPath=exit_path,
            turnsUsed=len(self._replies),
            maxTurns=self._limits.turns,
            repairCyclesUsed=self._repairs,
            maxRepairCycles=self._limits.repair_cycles,
            tokensIn=sum(turn["in"] or 0 for turn in spent) if known else None,
            tokensOut=sum(turn["out"] or 0 for turn in spent) if known else None,
            perTurn=spent,
            durationMs=self._transcript.milliseconds,
        )


def log_change(workspace: Workspace, path: str, title: str, files: list[str], summary: str) -> None:
    """Put an entry on top of the change log, unless the model has written one itself."""
    if path in files:
        return
    before = workspace.read(path).decode("utf-8", "replace") if workspace.exists(path) else "# Changelog\n\n"
    day = time.strftime("%Y-%m-%d", time.gmtime())
    first = " ".join(summary.split())
    entry = f"## {day} — {title}\n\n- {first}\n- Files: {', '.join(files)}\n\n"
    at = before.find("\n## ") + 1 or len(before)
    gap = "" if before[:at].endswith("\n\n") else "\n"
    text = f"{before[:at]}{gap}{entry}{before[at:]}".rstrip("\n") + "\n"
    workspace.write(path, text.encode("utf-8", "replace"))
