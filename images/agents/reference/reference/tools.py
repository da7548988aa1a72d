"""What the model can do, and the words it is told in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaffold.errors import Off

from reference.checks import DESIGN, REGISTRY, Checks, Report
from reference.drift import plain
from reference.errors import ToolError
from reference.model import Call
from reference.workspace import Workspace

RESULT = 30_000
"""Characters of a result; the model is told how to see the rest."""
LINES = 400
"""Lines that one read_file gives."""
MATCHES = 100
LINE = 500
"""Characters of a line that read_file and search show."""

OUTCOMES = ("done", "refuse", "flag")

SUBSETS: Mapping[str, frozenset[str]] = {
    "all": frozenset(),
    "no-lists": frozenset({"list_nets", "list_symbols"}),
    "no-checks": frozenset({"run_erc", "run_drc", "check_drift"}),
    "files-only": frozenset(
        {"list_nets", "list_symbols", "run_erc", "run_drc", "check_drift", "record_constraint"}
    ),
}
"""Name of a subset → the tools it leaves out."""


@dataclass(frozen=True)
class Spec:
    """A tool as the model sees it."""

    text: str
    parameters: Mapping[str, str]
    """Name → JSON type; a closing ``?`` marks one that may be left out."""


SPECS: Mapping[str, Spec] = {
    "list_files": Spec("List the project's files, all or those of one folder.", {"folder": "string?"}),
    "read_file": Spec(
        f"Read a text file, {LINES} lines at most a call. The number before each line is not part of it.",
        {"path": "string", "start": "integer?", "end": "integer?"},
    ),
    "search": Spec(
        "Find a text (literally, case matters) in all files, or in one file or folder.",
        {"pattern": "string", "path": "string?"},
    ),
    "edit_file": Spec(
        "Replace an exact piece of text that occurs once in a file; take in neighbouring lines until it "
        "does. An edit after which KiCad cannot load the file is reverted.",
        {"path": "string", "old": "string", "new": "string"},
    ),
    "write_file": Spec(
        "Write a new document in the documents folder. Existing files are changed with edit_file.",
        {"path": "string", "content": "string"},
    ),
    "list_nets": Spec(
        "Nets and their pins, read by KiCad; all, or those whose name holds a text.", {"filter": "string?"}
    ),
    "list_symbols": Spec(
        "Parts with value and footprint, read by KiCad; all, or those whose reference starts with a text.",
        {"filter": "string?"},
    ),
    "run_erc": Spec("Check the electrical rules; says what is new since the start.", {}),
    "run_drc": Spec(
        "Check the board's design rules and that it matches the schematic; says what is new since the start.",
        {},
    ),
    "check_drift": Spec("Compare BOM.md and PINOUT.md with the schematic.", {}),
    "record_constraint": Spec(
        "Record a requirement under a key. A recorded one can be tightened, never loosened.",
        {
            "key": "string",
            "source": "string",
            "max": "number?",
            "min": "number?",
            "value": "string?",
            "affects": "array?",
        },
    ),
    "finish": Spec(
        "End the run. done: the change is made; it is checked again and committed. refuse: no change meets "
        "the recorded requirements. flag: the project contradicts itself and a person has to decide. "
        "refuse and flag take every edit back.",
        {"outcome": "string", "summary": "string"},
    ),
}

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
}


@dataclass(frozen=True)
class Outcome:
    """How the model ended the run."""

    outcome: str
    summary: str


class Toolbox:
    """Carries calls out over one workspace."""

    def __init__(
        self, workspace: Workspace, checks: Checks, *, subset: str = "all", create: bool = False
    ) -> None:
        """``create``: design files may be written new, since there are none yet."""
        self._workspace = workspace
        self._checks = checks
        self._create = create
        self.specs = {name: spec for name, spec in SPECS.items() if name not in SUBSETS[subset]}
        self.outcome: Outcome | None = None
        self.failed_checks = 0
        """ERC and DRC runs and finishes that found something new."""

    def schema(self) -> list[dict[str, Any]]:
        """The tools in OpenAI's form."""
        return [_schema(name, spec) for name, spec in self.specs.items()]

    def call(self, call: Call) -> str:
        """Carry one call out; whatever is wrong with it is said in the result."""
        if self.outcome is not None:
            return "error: not carried out: the run has ended"
        if call.name not in self.specs:
            return f'tool "{call.name}" is not available; there are {", ".join(self.specs)}'
        if call.fault:
            return f"error: the arguments of {call.name} are unusable: {call.fault}"
        method: Callable[..., str] = getattr(self, f"_{call.name}")
        try:
            result = method(**_checked(self.specs[call.name], call.args))
        except ToolError as error:
            result = str(error)
        except Off as error:
            result = f"{call.name} cannot be carried out: {error}"
        except OSError as error:
            result = f"error: {call.name}: {error.strerror}"
        return (
            result
            if len(result) <= RESULT
            else f"{result[:RESULT]}\n… {len(result)} characters; ask for less"
        )

    # --- reading

    def _list_files(self, folder: str = "") -> str:
        return "\n".join(self._workspace.files(folder)) or "no files"

    def _read_file(self, path: str, start: int = 1, end: int | None = None) -> str:
        lines = self._workspace.read(path).decode("utf-8", "replace").splitlines()
        first = max(start, 1)
        last = min(len(lines), first + LINES - 1, end if end is not None else len(lines))
        shown = [f"{number}: {_short(lines[number - 1])}" for number in range(first, last + 1)]
        return "\n".join([f"lines {first} to {last} of {len(lines)}", *shown])

    def _search(self, pattern: str, path: str = "") -> str:
        if not pattern:
            raise ToolError("argument pattern is empty")
        names = [path] if path and self._workspace.exists(path) else self._workspace.files(path)
        found: list[str] = []
        for name in names:
            text = self._workspace.read(name).decode("utf-8", "replace")
            for number, line in enumerate(text.splitlines(), 1) if pattern in text else ():
                if pattern in line:
                    found.append(f"{name}:{number}: {_short(line.strip())}")
        more = f"\n… {len(found)} matches; name a file or a longer text" if len(found) > MATCHES else ""
        return "\n".join(found[:MATCHES]) + more if found else "no match"

    def _list_nets(self, filter: str = "") -> str:
        pins: dict[str, list[str]] = {}
        for (refdes, pin), net in self._checks.netlist().nets.items():
            pins.setdefault(plain(net), []).append(f"{refdes}.{pin}")
        return _listed(f"{net}: {' '.join(on)}" for net, on in sorted(pins.items()) if filter in net)

    def _list_symbols(self, filter: str = "") -> str:
        return _listed(
            f"{part.refdes}: {part.value} {part.footprint}"
            for part in self._checks.netlist().parts
            if part.refdes.startswith(filter)
        )

    # --- changing

    def _edit_file(self, path: str, old: str, new: str) -> str:
        name = self._changeable(path)
        before = self._workspace.read(name)
        find, replacement = _bytes(old), _bytes(new)
        if b"\r\n" in before and find not in before:
            # The model reads lines, not their ends.
            find, replacement = (data.replace(b"\n", b"\r\n") for data in (find, replacement))
        count = before.count(find) if find else 0
        if count != 1:
            fix = "read the lines again and copy them exactly" if count == 0 else "take in neighbouring lines"
            raise ToolError(f"old occurs {count} times in {name}, not once; {fix}")
        self._workspace.write(name, before.replace(find, replacement))
        self._must_load(name, before)
        return f"edited {name}"

    def _write_file(self, path: str, content: str) -> str:
        name = self._changeable(path)
        design = Path(name).suffix in DESIGN
        if not name.startswith(f"{self._checks.settings.docs}/") and not (design and self._create):
            raise ToolError(
                f"write_file writes documents in {self._checks.settings.docs}/ only; use edit_file"
            )
        if self._workspace.exists(name) and self._workspace.originals.get(name, b"") is not None:
            raise ToolError(f"{name} exists; use edit_file")
        before = self._workspace.read(name) if self._workspace.exists(name) else None
        self._workspace.write(name, _bytes(content))
        self._must_load(name, before)
        return f"wrote {name}"

    def _record_constraint(self, key: str, source: str, **given: Any) -> str:
        bounds: dict[str, Any] = {name: given[name] for name in ("max", "min", "value") if name in given}
        if not key or not bounds:
            raise ToolError("record_constraint needs a key and one of max, min, value")
        registry = self._checks.registry()
        if looser := _loosened(registry.get(key), bounds):
            raise ToolError(f"{key} is recorded with {looser}; it is not yours to loosen")
        registry[key] = {
            **bounds,
            "source": source,
            "affects": [str(item) for item in given.get("affects", [])],
        }
        self._workspace.write(REGISTRY, _bytes(json.dumps(registry, indent=2, ensure_ascii=False) + "\n"))
        return f"recorded {key}"

    def _changeable(self, path: str) -> str:
        name = self._workspace.name(path)
        if name.split("/")[0].casefold() == ".copperhead":
            raise ToolError(f"{name} is not for editing; record_constraint records requirements")
        return name

    def _must_load(self, name: str, before: bytes | None) -> None:
        try:
            self._checks.load(name)
        except Off as error:
            self._workspace.put_back(name, before)
            raise ToolError(f"KiCad cannot load {name} after it: {error}", kind="edit REVERTED: ") from None

    # --- checking

    def _run_erc(self) -> str:
        return self._told("ERC", self._checks.erc())

    def _run_drc(self) -> str:
        return self._told("DRC", self._checks.drc())

    def _told(self, what: str, report: Report) -> str:
        if report.errors:
            self.failed_checks += 1
        lines = [str(finding) for finding in report.new]
        return "\n".join([f"{what}: {len(report.new)} new findings, {len(report.now)} in all", *lines])

    def _check_drift(self) -> str:
        now, new = self._checks.drift()
        if not now:
            return "drift: none"
        lines = [f"{item}{'' if item in new else ' (was so at the start)'}" for item in now]
        return "\n".join([f"drift: {len(new)} new, {len(now)} in all", *lines])

    def _finish(self, outcome: str, summary: str) -> str:
        if outcome not in OUTCOMES:
            raise ToolError(f"outcome must be one of {', '.join(OUTCOMES)}")
        if not summary.strip():
            raise ToolError("summary is empty: say what was done, or why not")
        open_ = self._open() if outcome == "done" and self._workspace.touched else []
        if open_:
            self.failed_checks += 1
            return "\n".join(["cannot finish yet: new since the start:", *open_[:MATCHES]])
        self.outcome = Outcome(outcome, summary)
        return {"done": "verified; committing", "refuse": "refusal recorded", "flag": "flag recorded"}[
            outcome
        ]

    def _open(self) -> list[str]:
        """What must not be left behind; what was there at the start may."""
        try:
            errors = [*self._checks.erc().errors, *self._checks.drc().errors]
            return [*map(str, errors), *map(str, self._checks.drift()[1])]
        except Off as error:
            return [str(error)]


def _schema(name: str, spec: Spec) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for parameter, kind in spec.parameters.items():
        properties[parameter] = {"type": kind.rstrip("?")}
        if kind.startswith("array"):
            properties[parameter]["items"] = {"type": "string"}
        if parameter == "outcome":
            properties[parameter]["enum"] = list(OUTCOMES)
    parameters = {
        "type": "object",
        "properties": properties,
        "required": [parameter for parameter, kind in spec.parameters.items() if not kind.endswith("?")],
    }
    return {
        "type": "function",
        "function": {"name": name, "description": spec.text, "parameters": parameters},
    }


def _checked(spec: Spec, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments a tool takes; a null means one left out."""
    given = {name: value for name, value in args.items() if value is not None}
    if unknown := sorted(given.keys() - spec.parameters.keys()):
        raise ToolError(
            f"unknown argument {unknown[0]!r:.60}; there are {', '.join(spec.parameters) or 'none'}"
        )
    for name, kind in spec.parameters.items():
        if name not in given:
            if not kind.endswith("?"):
                raise ToolError(f"missing argument {name}")
            continue
        value = given[name]
        if not isinstance(value, _TYPES[kind.rstrip("?")]) or isinstance(value, bool):
            raise ToolError(f"argument {name} must be of type {kind.rstrip('?')}")
    return given


def _loosened(recorded: Any, bounds: Mapping[str, Any]) -> str:
    """Which recorded bound the new ones would give up; empty when none."""
    for name, bound in recorded.items() if isinstance(recorded, Mapping) else ():
        if name not in {"max", "min", "value", "forbidden"}:
            continue
        given = bounds.get(name)
        kept = given == bound
        if isinstance(given, int | float) and isinstance(bound, int | float):
            kept = (name == "max" and given <= bound) or (name == "min" and given >= bound) or kept
        if not kept:
            return f"{name} {bound}"
    return ""


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError("a text holds half a character (a lone surrogate); send it again") from None


def _short(line: str) -> str:
    return line if len(line) <= LINE else f"{line[:LINE]}… ({len(line)} characters)"


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(lines) or "none"
