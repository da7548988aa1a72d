"""Carry out a task's ``solutions/<name>`` as if a model had decided it.

Reads ``/input``: ``solution.json``, ``run.json`` and, if they are there, ``files/`` and ``change.diff``.
Changes the workspace, commits, and writes a transcript in the contract's format (Standard §11).

Exit codes: 0 done, refused or flagged; 1 stalled; 1 with one line on standard error and no ``run-end`` in the
transcript when the solution cannot be carried out, so that its run can't be taken for a graded one.
"""

from __future__ import annotations

import json
import os
import platform
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VERSION = "1"

# The same solution on the same baseline gives the same commits: evidence of repeats is stored once.
_DAY = "2026-01-02"
_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "copperbench",
    "GIT_AUTHOR_EMAIL": "solution@copperbench.invalid",
    "GIT_AUTHOR_DATE": f"{_DAY}T00:00:00Z",
    "GIT_COMMITTER_NAME": "copperbench",
    "GIT_COMMITTER_EMAIL": "solution@copperbench.invalid",
    "GIT_COMMITTER_DATE": f"{_DAY}T00:00:00Z",
}
_LINK_MODE = re.compile(
    rb"^(?:new|new file|old) mode (?:120000|160000)$|^index \S+ (?:120000|160000)$", re.MULTILINE
)


class Unfit(Exception):
    """The solution does not fit this workspace."""


class Workspace:
    """The agent's folder; no path leads out of it or into git's own."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        """The file of a tree-relative POSIX path.

        Raises:
            Unfit: the path leaves the tree, passes a symlink, or is git's.
        """
        parts = name.split("/")
        if any(part in {"", ".", ".."} or part.lower() == ".git" or "\0" in part for part in parts):
            raise Unfit(f"{name!r} is not a path in the tree")
        path = self.root
        for part in parts:
            path = path / part
            if path.is_symlink():
                raise Unfit(f"{name!r} passes a symlink")
        return path

    def read(self, name: str) -> bytes:
        """A regular file's bytes."""
        path = self.path(name)
        if not path.is_file():
            raise Unfit(f"{name!r} is not a file in the workspace")
        return path.read_bytes()

    def git(self, *arguments: str) -> str:
        """Run git here, deaf to the machine's configuration and to hooks."""
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "-c", f"core.hooksPath={os.devnull}", *arguments],
            cwd=self.root,
            env=_ENVIRONMENT,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
            raise Unfit(f"git {arguments[0]}: {said[-1]}")
        return done.stdout


class Transcript:
    """Appends events as they happen and counts the replies."""

    def __init__(self, workspace: Workspace) -> None:
        self._start = time.time_ns()
        self.id = _clock(self._start).replace(":", "-").replace(".", "-").removesuffix("Z") + "Z"
        folder = workspace.path(f".copperhead/runs/{self.id}")
        folder.mkdir(parents=True)
        self._path = folder / "transcript.jsonl"
        self.turns = 0

    def add(self, kind: str, **data: Any) -> None:
        """One event, now."""
        event = {"ts": _clock(time.time_ns()), "type": kind, "data": data}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n")

    def reply(self, text: str | None, calls: list[tuple[str, dict[str, Any], str]]) -> None:
        """One model reply and the answers to its tool calls."""
        listed = [
            {"id": f"call_{self.turns}_{number}", "name": name, "args": args}
            for number, (name, args, _) in enumerate(calls)
        ]
        self.add("assistant", text=text, toolCalls=listed)
        self.turns += 1
        for name, args, result in calls:
            if name == "validate_change":
                self.add("edit-tools-unlocked", changeId=calls[0][1]["id"])
            self.add("tool", name=name, args=args, result=result)

    def end(self, exit_path: str, max_turns: int, max_repair_cycles: int) -> None:
        """The last event."""
        self.add(
            "run-end",
            exitPath=exit_path,
            turnsUsed=self.turns,
            maxTurns=max_turns,
            repairCyclesUsed=0,
            maxRepairCycles=max_repair_cycles,
            tokensIn=0,
            tokensOut=0,
            perTurn=[{"turn": turn, "in": 0, "out": 0} for turn in range(1, self.turns + 1)],
            durationMs=(time.time_ns() - self._start) // 1_000_000,
        )


def _clock(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds // 1_000_000, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03}Z"


Call = tuple[str, dict[str, Any], str]


def change(workspace: Workspace, solution: dict[str, Any], inputs: Path) -> tuple[list[Call], list[str]]:
    """Edits, diff, files, deletions, in this order; return them as tool calls, and the paths touched.

    Raises:
        Unfit: an anchor does not occur as often as said, a diff does not apply, or a path is not the tree's.
    """
    calls: list[Call] = []
    touched: dict[str, None] = {}
    for edit in solution.get("edits", []):
        count = _edit(workspace, edit)
        args = {"path": edit["path"], "old_string": edit["find"], "new_string": edit["replace"]}
        args |= {"replace_all": True} if count > 1 else {}
        calls.append(("edit_file", args, f"edited {edit['path']} ({count} occurrence(s) replaced)"))
        touched[edit["path"]] = None
    diff = inputs / "change.diff"
    if diff.exists():
        names = _apply(workspace, diff)
        calls.append(("apply_diff", {"paths": names}, f"applied to {len(names)} file(s)"))
        touched |= dict.fromkeys(names)
    for name, source in _files(inputs / "files"):
        target = workspace.path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        data = source.read_bytes()
        target.write_bytes(data)
        calls.append(("write_file", {"path": name, "bytes": len(data)}, f"wrote {name}"))
        touched[name] = None
    for name in solution.get("delete", []):
        workspace.read(name)
        workspace.path(name).unlink()
        calls.append(("delete_file", {"path": name}, f"deleted {name}"))
        touched[name] = None
    return calls, list(touched)


def _edit(workspace: Workspace, edit: dict[str, Any]) -> int:
    name, wanted = edit["path"], edit.get("count", 1)
    before = workspace.read(name)
    find = edit["find"].encode()
    found = before.count(find) if find else 0
    if found == 0 or wanted not in {"all", found}:
        raise Unfit(f"{name}: anchor occurs {found} times, not {wanted}: {edit['find'][:60]!r}")
    workspace.path(name).write_bytes(before.replace(find, edit["replace"].encode()))
    return found


def _apply(workspace: Workspace, diff: Path) -> list[str]:
    if _LINK_MODE.search(diff.read_bytes()):
        raise Unfit("change.diff: makes or changes a symlink or a submodule")
    listed = workspace.git("apply", "--numstat", "-z", "--unidiff-zero", str(diff.resolve()))
    names = [entry.split("\t", 2)[2] for entry in listed.split("\0") if entry]
    for name in names:
        workspace.path(name)
    workspace.git("apply", "--unidiff-zero", "--whitespace=nowarn", str(diff.resolve()))
    return names


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    for folder, names, files in os.walk(root):
        names.sort()
        for name in sorted([*files, *(name for name in names if (Path(folder) / name).is_symlink())]):
            path = Path(folder) / name
            if not stat.S_ISREG(path.lstat().st_mode):
                raise Unfit(f"files/{path.relative_to(root)}: not a regular file")
            yield path.relative_to(root).as_posix(), path


def keep_books(
    workspace: Workspace, slug: str, request: str, solution: dict[str, Any], touched: list[str]
) -> None:
    """What an honest finished run leaves beside its work: change log entry, proposal and tasks."""
    work = "".join(f"- {name}\n" for name in touched) or "- no file\n"
    entry = f"## {_DAY} — {request}\n\n- Change: {slug}\n- Files: {', '.join(touched) or 'none'}\n\n"
    proposal = f"# {slug}\n\n## Why\n\n{request}\n\n## What changes\n\n{work}\n{solution['summary']}\n"
    tasks = "# Tasks\n\n" + work.replace("- ", "- [x] ")
    log = workspace.path("docs/CHANGELOG.md")
    before = log.read_text(encoding="utf-8") if log.exists() else "# Changelog\n\n"
    at = before.find("\n## ") + 1 or len(before)
    gap = "" if before[:at].endswith("\n\n") else "\n"
    for name, text in (
        ("docs/CHANGELOG.md", f"{before[:at]}{gap}{entry}{before[at:]}".rstrip("\n") + "\n"),
        (f"openspec/changes/{slug}/proposal.md", proposal),
        (f"openspec/changes/{slug}/tasks.md", tasks),
    ):
        path = workspace.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def commit(workspace: Workspace, count: int, message: str) -> str:
    """Make that many commits, the last with all changes; return its id."""
    for number in range(1, count):
        workspace.git("commit", "-q", "--allow-empty", "--no-gpg-sign", "-m", f"step {number}")
    workspace.git("add", "-A")
    workspace.git("commit", "-q", "--allow-empty", "--no-gpg-sign", "-m", message)
    return workspace.git("rev-parse", "HEAD").strip()


def run_start(workspace: Workspace, transcript: Transcript, run: dict[str, Any], mode: str) -> dict[str, Any]:
    """Say what was asked and with what this runs; return the workspace's configuration."""
    config: dict[str, Any] = json.loads(workspace.read(".copperhead/config.json")) | run.get("config", {})
    config["maxTurns"] = run.get("maxTurns", config.get("maxTurns", 40))
    config.setdefault("maxRepairCycles", 5)
    echoed = ("schematic", "board", "docs", "maxTurns", "maxRepairCycles", "budgets")
    head = workspace.root / ".git/refs/heads/main"
    registry = workspace.path(".copperhead/constraints.json")
    transcript.add(
        "run-start",
        request=run["request"],
        model=run.get("model", "none"),
        provider="none",
        modelSource="none",
        runId=transcript.id,
        startedAt=_clock(time.time_ns()),
        command=mode,
        interactive=False,
        stage=None,
        brief={"path": run["request"]} if mode == "create" else None,
        versions={
            "solution": VERSION,
            "python": platform.python_version(),
            "platform": f"{sys.platform}-{platform.machine()}",
        },
        config={key: config.get(key) for key in echoed},
        git={"commit": head.read_text().strip() if head.exists() else None, "branch": "main", "dirty": False},
        openConstraints=len(json.loads(registry.read_bytes())) if registry.is_file() else 0,
        priorRuns=0,
    )
    return config


def perform(inputs: Path, root: Path, mode: str) -> int:
    """Carry the solution out; return the exit code.

    Raises:
        Unfit: it does not fit this workspace.
    """
    solution = json.loads((inputs / "solution.json").read_bytes())
    run = json.loads((inputs / "run.json").read_bytes())
    summary, exit_path = solution["summary"], solution["exitPath"]
    outcome = {"done": "done", "refused": "refuse", "flagged": "flag", "stalled": None}[exit_path]
    workspace = Workspace(root)
    transcript = Transcript(workspace)
    config = run_start(workspace, transcript, run, mode)
    request = " ".join(run["request"].split())
    slug = "-".join(re.findall(r"[a-z0-9]+", request.lower())[:6]) or "change"

    calls, touched = change(workspace, solution, inputs)
    if solution.get("bookkeeping"):
        keep_books(workspace, slug, request[:120], solution, touched)
        proposed = {"id": slug, "why": request, "what_changes": ", ".join(touched), "tasks": ""}
        said = f"proposal written to openspec/changes/{slug}/"
        transcript.reply(
            None,
            [
                ("propose_change", proposed, said),
                ("validate_change", {}, "validation passed; edit tools are now unlocked"),
            ],
        )
    if calls:
        transcript.reply(None, calls)
    if outcome is None:
        transcript.reply(summary, [])
    else:
        transcript.reply(None, [("finish", {"outcome": outcome, "summary": summary}, "finish accepted")])
    if solution["commits"]:
        made = commit(workspace, solution["commits"], f"solution: {request[:120]}\n\n{summary}")
        transcript.add("run-committed", commit=made, files=touched)
    if exit_path == "refused":
        transcript.add("run-refused", summary=summary)
    if exit_path == "stalled":
        transcript.add(
            "run-failed", reason="model stopped calling tools without finishing", exitPath=exit_path
        )
    transcript.end(exit_path, config["maxTurns"], config["maxRepairCycles"])
    return 1 if exit_path == "stalled" else 0


def main(arguments: list[str]) -> int:
    """``apply.py MODE [INPUT WORKSPACE]``."""
    if len(arguments) not in {1, 3}:
        sys.stderr.write("usage: apply.py MODE [INPUT WORKSPACE]\n")
        return 2
    mode, *folders = arguments
    inputs, workspace = folders or ("/input", "/workspace")
    try:
        return perform(Path(inputs), Path(workspace), mode)
    except (Unfit, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        said = str(error) if isinstance(error, Unfit) else f"{error.__class__.__name__}: {error}"
        sys.stderr.write(f"solution: cannot be carried out: {' '.join(said.split())}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
