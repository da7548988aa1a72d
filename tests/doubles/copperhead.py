"""A double of the agent copperhead 0.9: small, and as the real one is where that decides a run.

It stands in for a package that cannot always be had. What it copies are measured facts (Standard §10): a
naive reading of a schematic, a gate that counts every warning, edit tools that are locked until a proposal
validates, obligations before ``finish``, exit paths and codes, the transcript, what it leaves in the tree.
It shares no code with the scaffolder, whose documents it judges. Standard library only: it runs in the image.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unicodedata
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VERSION = "0.9.0"
TOKEN = re.compile(r'[()]|"((?:[^"\\]|\\.)*)"|[^\s()"]+')
Net = dict[tuple[str, str], str]


# --- the naive reader


def expression(text: str) -> list[Any]:
    """Nested lists of texts."""
    stack: list[list[Any]] = [[]]
    for token in TOKEN.finditer(text):
        if token[0] == "(":
            stack.append([])
        elif token[0] == ")":
            inner = stack.pop()
            stack[-1].append(inner)
        else:
            stack[-1].append(
                token[0] if token[1] is None else token[1].replace('\\"', '"').replace("\\\\", "\\")
            )
    whole: list[Any] = stack[0][0]
    return whole


def every(node: list[Any], name: str) -> Iterator[list[Any]]:
    """The sub-expressions of one name."""
    return (item for item in node if isinstance(item, list) and item and item[0] == name)


def one(node: list[Any], name: str) -> list[Any]:
    """The first of them, or an empty one."""
    return next(every(node, name), [name])


def fields(node: list[Any]) -> dict[str, str]:
    """A symbol's properties."""
    return {
        item[1]: item[2] for item in every(node, "property") if len(item) > 2 and isinstance(item[2], str)
    }


def point(node: list[Any]) -> tuple[float, float]:
    """A position."""
    return round(float(node[1]), 3), round(float(node[2]), 3)


class Design:
    """Parts and nets as copperhead sees them: each sheet file once, joined at end points only."""

    def __init__(self, root: Path) -> None:
        self.parts: dict[str, tuple[str, str]] = {}
        self.pins: dict[tuple[str, str], str] = {}
        self.names: set[str] = set()
        self._seen: set[Path] = set()
        self._read(root)

    def _read(self, path: Path) -> None:
        path = path.resolve()
        if path in self._seen:
            return
        self._seen.add(path)
        sheet = expression(path.read_text("utf-8"))
        library = {symbol[1]: symbol for symbol in every(one(sheet, "lib_symbols"), "symbol")}
        above: dict[tuple[float, float], tuple[float, float]] = {}

        def group(place: tuple[float, float]) -> tuple[float, float]:
            while place in above:
                place = above[place]
            return place

        for wire in every(sheet, "wire"):
            first, *others = (point(xy) for xy in every(one(wire, "pts"), "xy"))
            for other in others:
                if group(first) != group(other):
                    above[group(first)] = group(other)
        named: list[tuple[tuple[float, float], str]] = []
        pins: list[tuple[tuple[float, float], str, str]] = []
        for item in sheet:
            if not isinstance(item, list):
                continue
            if item[0] in {"label", "global_label", "hierarchical_label"}:
                named.append((point(one(item, "at")), item[1]))
            elif item[0] == "symbol":
                self._place(item, library, named, pins)
        # The last label of a group wins.
        names = {group(place): name for place, name in named}
        self.names |= set(names.values())
        for place, refdes, pin in pins:
            self.pins[refdes, pin] = names.get(group(place), "")
        for item in every(sheet, "sheet"):
            file = fields(item).get("Sheetfile") or fields(item).get("Sheet file")
            if file:
                self._read(path.parent / file)

    def _place(
        self, item: list[Any], library: dict[str, list[Any]], named: list[Any], pins: list[Any]
    ) -> None:
        name = one(item, "lib_name")[1] if len(one(item, "lib_name")) > 1 else one(item, "lib_id")[1]
        symbol, said = library.get(name, []), fields(item)
        refdes = said.get("Reference", "")
        at = one(item, "at")
        turn = int(float(at[3])) % 360 if len(at) > 3 else 0
        mirror = one(item, "mirror")[1] if len(one(item, "mirror")) > 1 else ""
        power = refdes.startswith("#") or bool(list(every(symbol, "power")))
        if not power:
            self.parts[refdes] = said.get("Value", ""), said.get("Footprint", "")
        for body in every(symbol, "symbol"):
            for pin in every(body, "pin"):
                x, y = point(one(pin, "at"))
                y = -y
                # Mirrored first, then turned: KiCad does it the other way round.
                x, y = (-x if mirror == "y" else x), (-y if mirror == "x" else y)
                for _ in range(turn // 90):
                    x, y = y, -x
                place = round(float(at[1]) + x, 3), round(float(at[2]) + y, 3)
                if power:
                    named.append((place, said.get("Value", "")))
                else:
                    pins.append((place, refdes, one(pin, "number")[1]))


def tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Header and rows of each pipe table."""
    header: list[str] = []
    rows: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
            if not header:
                header = cells
            elif not set("".join(cells)) <= set("-: "):
                rows.append(cells)
        elif header:
            yield [cell.lower() for cell in header], rows
            header, rows = [], []


def fold(text: str) -> str:
    """A value as it is compared."""
    plain = "".join(unicodedata.normalize("NFKC", text).casefold().split())
    return plain.replace("ω", "ohm").replace("μ", "u")


def drift(docs: Path, design: Design) -> list[str]:
    """BOM both ways, PINOUT one way; a document that is missing or has no table is clean."""
    found: list[str] = []

    def differs(doc: str, claim: str, actual: str) -> None:
        found.append(f'{doc}: claims "{claim}" but actual is "{actual}"')

    listed: set[str] = set()
    for header, rows in tables((docs / "BOM.md").read_text()) if (docs / "BOM.md").exists() else ():
        if "refdes" not in header:
            continue
        for row in rows:
            cells = dict(zip(header, row, strict=False))
            refdes = cells["refdes"]
            listed.add(refdes)
            if refdes not in design.parts:
                differs("BOM.md", f"{refdes} exists", "no such symbol")
                continue
            value, footprint = design.parts[refdes]
            if fold(cells.get("value", "")) != fold(value):
                differs("BOM.md", f"{refdes} value {cells.get('value')}", f"{refdes} value {value}")
            if cells.get("footprint", "") != footprint:
                differs(
                    "BOM.md",
                    f"{refdes} footprint {cells.get('footprint')}",
                    f"{refdes} footprint {footprint}",
                )
    for refdes in sorted(design.parts.keys() - listed) if listed else ():
        differs("BOM.md", f"no row for {refdes}", f"{refdes} exists")
    for header, rows in tables((docs / "PINOUT.md").read_text()) if (docs / "PINOUT.md").exists() else ():
        if "refdes" not in header or "pin" not in header:
            continue
        for row in rows:
            cells = dict(zip(header, row, strict=False))
            key = cells["refdes"], cells["pin"]
            claim, actual = cells.get("net", "?"), design.pins.get(key)
            if claim != actual:
                pin = ":".join(key)
                differs("PINOUT.md", f"{pin} net {claim or 'NC'}", f"{pin} net {actual or 'NC'}")
    return found


# --- the run


class Fail(Exception):
    """Ends a run without success; the text is the reason."""

    def __init__(self, exit_path: str, reason: str) -> None:
        super().__init__(reason)
        self.exit_path = exit_path


class Copperhead:
    """One process: a repository, its settings, and what a run has done so far."""

    def __init__(self) -> None:
        self.root = Path.cwd()
        self.environment = {**self._dotenv(), **os.environ}
        self.config = json.loads((self.root / ".copperhead/config.json").read_bytes())
        self.docs = self.root / self.config["docs"]
        self.turns: list[dict[str, int]] = []
        self.repairs = 0
        self.unlocked = False
        self.open: set[str] = set()
        self.touched: dict[str, None] = {}
        self.change = ""
        self.finished: tuple[str, str] | None = None

    def _dotenv(self) -> dict[str, str]:
        """The real one reads a .env of the repository; the environment wins over it."""
        path = self.root / ".env"
        lines = path.read_text().splitlines() if path.exists() else []
        return dict(line.split("=", 1) for line in lines if "=" in line)

    # --- checks

    def kicad(self, *command: str) -> list[Any]:
        """Violations of a report, warnings included."""
        with tempfile.TemporaryDirectory(prefix="copperhead-") as folder:
            out = Path(folder) / "report.json"
            program = self.environment.get("COPPERHEAD_KICAD_CLI", "kicad-cli")
            line = [program, *command[:-1], "--format", "json", "-o", str(out), command[-1]]
            subprocess.run(line, cwd=self.root, capture_output=True, check=False)
            report = json.loads(out.read_bytes())
        sheets = [item for sheet in report.get("sheets", []) for item in sheet["violations"]]
        found = [*sheets, *report.get("violations", []), *report.get("unconnected_items", [])]
        return [item for item in found if not item.get("excluded")]

    def erc(self) -> list[Any]:
        """ERC."""
        return self.kicad("sch", "erc", self.config["schematic"])

    def drc(self) -> list[Any]:
        """DRC, without schematic parity."""
        return self.kicad("pcb", "drc", self.config["board"]) if self.config.get("board") else []

    def drift(self) -> list[str]:
        """Documents against its own reading."""
        return drift(self.docs, Design(self.root / self.config["schematic"]))

    def violations(self) -> list[dict[str, str]]:
        """Forbidden pins that are there, by pin name: a violated requirement is for nobody to resolve."""
        path = self.root / ".copperhead/constraints.json"
        registry = json.loads(path.read_bytes()) if path.exists() else {}
        names = {name: key for key, entry in registry.items() for name in entry.get("forbidden", [])}
        sheet = expression((self.root / self.config["schematic"]).read_text())
        pins = [
            one(pin, "name")[1]
            for s in every(one(sheet, "lib_symbols"), "symbol")
            for b in every(s, "symbol")
            for pin in every(b, "pin")
        ]
        return [
            {
                "kind": "requirement-violation",
                "description": f"pin {name} is connected, forbidden by {names[name]}",
            }
            for name in pins
            if name in names
        ]

    # --- transcript

    def start(self, request: str, command: str) -> None:
        """Make the run directory; the first event."""
        self.began = time.time()
        self.run_id = clock().replace(":", "-").replace(".", "-")
        self.folder = self.root / ".copperhead/runs" / self.run_id
        self.folder.mkdir(parents=True)
        self.base = self.git("rev-parse", "HEAD")
        echoed = ("schematic", "board", "docs", "maxTurns", "maxRepairCycles", "budgets")
        self.event(
            "run-start",
            request=request,
            model=self.environment["COPPERHEAD_MODEL"],
            provider="openai-compat",
            modelSource="env",
            runId=self.run_id,
            startedAt=clock(),
            command=command,
            interactive=False,
            stage=None,
            brief=None,
            versions={"copperhead": VERSION, "node": "v20"},
            config={key: self.config.get(key) for key in echoed},
            git={"commit": self.base, "branch": "main", "dirty": False},
            openConstraints=0,
            priorRuns=0,
        )

    def event(self, kind: str, **data: Any) -> None:
        """One line of the transcript."""
        with (self.folder / "transcript.jsonl").open("a") as file:
            file.write(json.dumps({"ts": clock(), "type": kind, "data": data}, ensure_ascii=False) + "\n")

    def git(self, *arguments: str) -> str:
        """git, in the repository."""
        done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Fail("commit-failed", done.stderr.strip())
        return done.stdout.strip()

    # --- conversation

    def ask(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """One reply; three tries for faults."""
        body = json.dumps(
            {
                "model": self.environment["COPPERHEAD_MODEL"].removeprefix("compat:"),
                "messages": messages,
                "max_completion_tokens": 8192,
                "tools": [
                    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
                    for name in sorted(READ_TOOLS | (EDIT_TOOLS if self.unlocked else set()))
                ],
            }
        ).encode()
        url = f"{self.environment['COPPERHEAD_BASE_URL']}/chat/completions"
        said = ""
        for _ in range(3):
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310
            try:
                with urllib.request.urlopen(request, timeout=self.config["turnTimeoutMs"] / 1000) as reply:  # noqa: S310
                    whole: dict[str, Any] = json.loads(reply.read())
            except urllib.error.HTTPError as error:
                said = f"{error.code} {error.reason}"
                error.close()
                if error.code < 500 and error.code != 429:
                    break
            except (OSError, ValueError) as error:
                said = str(error)
            else:
                usage = whole.get("usage") or {}
                spent = {"in": usage.get("prompt_tokens", 0), "out": usage.get("completion_tokens", 0)}
                self.turns.append({"turn": len(self.turns) + 1, **spent})
                message: dict[str, Any] = whole["choices"][0]["message"] if whole.get("choices") else {}
                return message
        raise Fail("provider-error", f"provider error: {said}")

    def converse(self, request: str, max_turns: int) -> None:
        """Until finish, or Fail."""
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "copperhead"},
            {"role": "user", "content": request},
        ]
        idle = 0
        while len(self.turns) < max_turns:
            message = self.ask(messages)
            calls = [
                (c["id"], c["function"]["name"], c["function"]["arguments"])
                for c in message.get("tool_calls") or []
            ]
            parsed = [(identity, name, arguments(text)) for identity, name, text in calls]
            listed = [{"id": identity, "name": name, "args": args} for identity, name, args in parsed]
            self.event("assistant", text=message.get("content"), toolCalls=listed)
            messages.append({"role": "assistant", **message})
            idle = 0 if calls else idle + 1
            if idle == 3:
                raise Fail("stalled", "model stopped calling tools without finishing")
            for identity, name, args in parsed:
                result = self.call(name, args)
                self.event("tool", name=name, args=args, result=result)
                messages.append({"role": "tool", "tool_call_id": identity, "content": result})
            if self.finished:
                return
            if self.repairs > self.config["maxRepairCycles"]:
                raise Fail("repair-cycles-exhausted", f"repair cycles exhausted ({self.repairs})")
            if not calls:
                messages.append({"role": "user", "content": "Call a tool."})
        raise Fail("turn-budget-exhausted", f"turn budget exhausted ({max_turns} turns)")

    def call(self, name: str, args: Any) -> str:
        """One tool's result."""
        if name not in READ_TOOLS and not (name in EDIT_TOOLS and self.unlocked):
            return f'tool "{name}" is not available (edit tools unlock after the proposal validates)'
        given = args if isinstance(args, dict) else {}
        try:
            return str(getattr(self, f"tool_{name}")(given))
        except KeyError as error:
            return f"error: missing required string arg {json.dumps(error.args[0])}"

    def tool_list_nets(self, _: dict[str, Any]) -> str:
        return json.dumps(sorted(Design(self.root / self.config["schematic"]).names))

    def tool_read_file(self, args: dict[str, Any]) -> str:
        return (self.root / str(args["path"])).read_text()

    def tool_propose_change(self, args: dict[str, Any]) -> str:
        self.change = args["id"]
        folder = self.root / "openspec/changes" / self.change
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "proposal.md").write_text(f"# {self.change}\n\n{args['why']}\n\n{args['what_changes']}\n")
        (folder / "tasks.md").write_text(f"{args['tasks']}\n")
        return f"proposal written to openspec/changes/{self.change}/ — now call validate_change"

    def tool_validate_change(self, _: dict[str, Any]) -> str:
        if not self.change:
            return "error: no proposal"
        self.unlocked = True
        self.event("edit-tools-unlocked", changeId=self.change)
        return "validation passed; edit tools are now unlocked"

    def tool_edit_file(self, args: dict[str, Any]) -> str:
        path = self.root / args["path"]
        before, old = path.read_text(), args["old_string"]
        count = before.count(old)
        if count == 0:
            return f"error: edit_file: anchor not found in {args['path']}"
        if count > 1 and not args.get("replace_all"):
            return f"error: edit_file: anchor matched {count} times in {args['path']}"
        path.write_text(before.replace(old, args["new_string"]))
        self.touched[args["path"]] = None
        if path.suffix == ".kicad_sch":
            self.open |= {"erc", "drift after KiCad edits"}
        elif path.suffix == ".kicad_pcb":
            self.open |= {"drc", "drift after KiCad edits"}
        elif path.suffix == ".md":
            self.open |= {"drift after doc edits"}
        return f"edited {args['path']} ({count} occurrence(s) replaced)"

    def tool_run_erc(self, _: dict[str, Any]) -> str:
        return self._gate("erc", "ERC", self.erc())

    def tool_run_drc(self, _: dict[str, Any]) -> str:
        return self._gate("drc", "DRC", self.drc())

    def _gate(self, obligation: str, name: str, found: list[Any]) -> str:
        if found:
            self.repairs += 1
            return f"{name}: {len(found)} violation(s)"
        self.open.discard(obligation)
        return f"{name}: clean"

    def tool_check_drift(self, _: dict[str, Any]) -> str:
        found = self.drift()
        if not found:
            self.open = {item for item in self.open if not item.startswith("drift")}
        return "\n".join(found) or "drift: clean"

    def tool_finish(self, args: dict[str, Any]) -> str:
        if not args["summary"]:
            return "error: finish needs a summary"
        if args["outcome"] == "refuse":
            self.finished = "refused", args["summary"]
            return "refusal recorded; run will end"
        if self.open:
            lines = [f"  - [{item.split()[0]}] {item} must run clean" for item in sorted(self.open)]
            return "\n".join(["cannot finish yet:", "- open sync obligations:", *lines])
        # Any other word counts as done.
        self.finished = "done", args["summary"]
        return "all gates satisfied; run will commit"

    # --- ends

    def perform(self, request: str, command: str, max_turns: int) -> int:
        """A whole run; the exit code."""
        if self.git("status", "--porcelain"):
            sys.stderr.write("working tree is dirty\n")
            return 1
        self.start(request, command)
        try:
            self.converse(request, max_turns)
            assert self.finished is not None
            exit_path, summary = self.finished
            if exit_path == "refused":
                self._roll_back()
                self.event("run-refused", summary=summary)
            else:
                self._commit(request, summary)
        except Fail as failure:
            exit_path, summary = failure.exit_path, str(failure)
            self.event("run-failed", reason=summary, exitPath=exit_path)
            if self.git("status", "--porcelain"):
                self.git("stash", "push", "-u", "-m", f"copperhead failed run {self.run_id}")
                self.event("work-preserved", stash=self.git("rev-parse", "refs/stash"))
        self.event(
            "run-end",
            exitPath=exit_path,
            turnsUsed=len(self.turns),
            maxTurns=max_turns,
            repairCyclesUsed=self.repairs,
            maxRepairCycles=self.config["maxRepairCycles"],
            tokensIn=sum(turn["in"] for turn in self.turns),
            tokensOut=sum(turn["out"] for turn in self.turns),
            perTurn=self.turns,
            durationMs=int((time.time() - self.began) * 1000),
        )
        (self.folder / "summary.md").write_text(f"{summary}\n")
        return 0 if exit_path in {"done", "refused"} else 1

    def _roll_back(self) -> None:
        self.git("reset", "-q", "--hard", self.base)
        self.git("clean", "-q", "-fd")

    def _commit(self, request: str, summary: str) -> None:
        log = self.docs / "CHANGELOG.md"
        before = log.read_text()
        at = before.find("\n## ") + 1 or len(before)
        day = clock()[:10]
        lines = [
            f"- Change: {self.change}",
            f"- Files: {', '.join(self.touched)}",
            "- Verification: ERC clean",
        ]
        entry = "\n".join([f"## {day} — {request}", "", *lines, "", ""])
        log.write_text(f"{before[:at]}\n{entry}{before[at:]}")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"copperhead: {request}\n\n{summary}\n\nVerification: ERC clean")
        self.event("run-committed", commit=self.git("rev-parse", "HEAD"), files=list(self.touched))


READ_TOOLS = {name.removeprefix("tool_") for name in vars(Copperhead) if name.startswith("tool_")} - {
    "edit_file"
}
EDIT_TOOLS = {"edit_file"}


def arguments(text: str) -> Any:
    """A call's arguments; what is not JSON is kept as it came."""
    try:
        return json.loads(text)
    except ValueError:
        return {"_raw": text}


def clock() -> str:
    """UTC, milliseconds."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"


def check(this: Copperhead) -> int:
    """``check --json``: counts only."""
    erc, drc, mismatches, broken = this.erc(), this.drc(), this.drift(), this.violations()
    ok = not (erc or drc or mismatches or broken)
    report = {
        "ok": ok,
        "erc": {"ok": not erc, "violations": len(erc)},
        "drc": {"ok": not drc, "violations": len(drc)},
        "drift": {"ok": not mismatches, "mismatches": mismatches},
        "constraints": {"ok": not broken, "violations": broken},
    }
    sys.stdout.write(json.dumps(report) + "\n")
    return 0 if ok else 1


def sync(this: Copperhead) -> int:
    """``sync --json``: exit 2 on a violated requirement, without a model; a run when something drifts."""
    resolvable, violations = this.drift(), this.violations()
    sys.stdout.write(json.dumps({"resolvable": resolvable, "violations": violations}) + "\n")
    if violations:
        return 2
    if not resolvable:
        return 0
    request = "resolve design-state inconsistencies found by copperhead sync"
    return this.perform(request, "sync", this.config["maxTurns"])


def main(argv: list[str]) -> int:
    """The command line, as far as the adapter uses it."""
    if argv == ["--version"]:
        sys.stdout.write(f"{VERSION}\n")
        return 0
    this = Copperhead()
    command, *rest = argv
    if command == "check":
        return check(this)
    if command == "sync":
        return sync(this)
    if not re.fullmatch(r"compat:.+", this.environment.get("COPPERHEAD_MODEL", "")):
        sys.stderr.write("no model: set COPPERHEAD_MODEL=compat:<id>\n")
        return 1
    turns = int(rest[rest.index("--max-turns") + 1]) if "--max-turns" in rest else this.config["maxTurns"]
    return this.perform(rest[0], "do", turns)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
