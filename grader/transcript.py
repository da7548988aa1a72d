"""The transcript an agent leaves: read within bounds, and checked against the contract (Standard §11).

An agent writes it and a model may write into it, so nothing here raises for any bytes. What an honest run
cannot have left is named as a :class:`~schema.run.Tamper`; a transcript that merely stops is a killed or
crashed run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from grader.documents import parse_json
from grader.evidence import Entry, Tree, path_bytes, printable
from grader.globs import matches
from grader.kicad.errors import Unjudgeable
from schema.agent import Agent
from schema.run import RunFacts, Tamper
from schema.task import Mode
from schema.transcript import Event, EventType, ExitPath, RunEnd

BYTES = 32 * 1024 * 1024
"""Most bytes of a run's transcripts: what a model reads is in them, and no model reads more."""
LINE_BYTES = 16 * 1024 * 1024
"""Largest event: a whole board of 10 MB in one answer."""
EVENTS = 200_000
"""Most events of a run."""
DEPTH = 100
"""Most nested lists and objects of an event."""

EVENT_TYPES = frozenset(get_args(EventType))

FINISHED = frozenset({ExitPath.DONE, ExitPath.REFUSED, ExitPath.FLAGGED})
FINISHED_CODES = frozenset({0, 2})
"""Exit codes of a run that came to an end of its own: 2 is a flag (Standard §10)."""

DETAIL = 200
"""Characters of an agent's text that a tamper's detail may quote."""


@dataclass(frozen=True)
class Transcript:
    """All that one run's transcripts say, and what is wrong with them."""

    paths: tuple[str, ...] = ()
    """Transcript files in order; one for ``do``, one a stage attempt for ``create``."""
    events: tuple[Event, ...] = ()
    end: RunEnd | None = None
    """The last transcript's ``run-end``; None when it has none."""
    tampering: tuple[Tamper, ...] = ()
    too_large: str = ""
    """Which limit the transcripts are above; then nothing of them is read."""
    notes: tuple[str, ...] = ()

    def data(self, event: EventType) -> list[Mapping[str, Any]]:
        """The data of every event of one type, in order."""
        return [item.data for item in self.events if item.type == event]


def read_transcript(agent: Agent, mode: Mode, *, baseline: Tree, end: Tree) -> Transcript:
    """Read a run's transcripts from its end tree. Never raises for any content.

    Run directories that the baseline already held, unchanged, belong to no run and are left aside.
    """
    depth, named = _run_depth(agent.transcripts)
    folders = _run_folders(agent.transcripts, depth, baseline, end)
    paths = sorted((path for paths in folders.values() for path in paths), key=path_bytes)
    tampering: list[Tamper] = []
    if mode is not Mode.CREATE and max(len(folders), len(paths)) > 1:
        names = ", ".join(printable(name) for name in sorted(folders, key=path_bytes))
        tampering.append(_tamper("several-run-directories", f"{max(len(folders), len(paths))}: {names}"))
    if large := _too_large([end[path].data for path in paths]):
        return Transcript(paths=tuple(paths), tampering=tuple(tampering), too_large=large)
    read = [_read(path, end[path], path.split("/")[depth - 1] if named else None) for path in paths]
    for transcript in read:
        tampering.extend(transcript.tampering)
    return Transcript(
        paths=tuple(paths),
        events=tuple(event for transcript in read for event in transcript.events),
        end=read[-1].end if read else None,
        tampering=tuple(tampering),
        notes=tuple(note for transcript in read for note in transcript.notes),
    )


def _run_depth(glob: str) -> tuple[int, bool]:
    """Elements of a run directory's path, and whether its name is the run's own.

    The directory is the element of the glob with the first wildcard. Its name says nothing of the run where
    only the file's has one, or where any folders may lie between.
    """
    elements = glob.split("/")
    wild = next((i for i, part in enumerate(elements) if "*" in part or "?" in part), len(elements))
    return min(wild + 1, len(elements) - 1), "**" not in elements and wild < len(elements) - 1


def _run_folders(glob: str, depth: int, baseline: Tree, end: Tree) -> dict[str, list[str]]:
    """Run directory → its transcripts."""
    parent = "/".join(glob.split("/")[:depth])
    folders: dict[str, list[str]] = {}
    for path, entry in end.items():
        parts = path.split("/")
        folder = "/".join(parts[:depth])
        if len(parts) > depth and matches(parent, folder):
            transcripts = folders.setdefault(folder, [])
            if matches(glob, path) and baseline.get(path) != entry:
                transcripts.append(path)
    old = {"/".join(path.split("/")[:depth]) for path in baseline}
    return {folder: paths for folder, paths in folders.items() if paths or folder not in old}


def _too_large(contents: Sequence[bytes]) -> str:
    """Which limit is passed. Foolish reading can do that to an honest run, so it is no tampering."""
    total, lines = sum(map(len, contents)), sum(data.count(b"\n") for data in contents)
    if total > BYTES:
        return f"transcripts of {total} bytes, more than {BYTES}"
    if lines > EVENTS:
        return f"transcripts of {lines} lines, more than {EVENTS}"
    longest = max((len(line) for data in contents for line in data.split(b"\n")), default=0)
    return f"a transcript line of {longest} bytes, more than {LINE_BYTES}" if longest > LINE_BYTES else ""


def _read(path: str, entry: Entry, run_id: str | None) -> Transcript:
    """``run_id``: what ``run-start`` must call the run; None where its directory's name does not say."""
    if entry.kind != "file":
        tamper = _tamper("transcript-not-a-file", printable(path))
        return Transcript(tampering=(tamper,))
    lines = entry.data.split(b"\n")
    # What follows the last newline is a line that was never finished: a run that died while writing it.
    rest = lines.pop()
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(_event(line, number))
        except Unjudgeable as error:
            return Transcript(events=tuple(events), tampering=(_tamper("transcript-unreadable", str(error)),))
    tampering = [*_order(events), *(_identity(events, run_id) if run_id is not None else ())]
    end: RunEnd | None = None
    notes: list[str] = []
    if events and events[-1].type == "run-end":
        try:
            end = RunEnd.model_validate(events[-1].data)
        except ValidationError as error:
            place = ".".join(str(part) for part in error.errors()[0]["loc"])
            tampering.append(_tamper("run-end-malformed", place))
    if rest:
        notes.append(f"transcript ends in an unfinished line of {len(rest)} bytes")
        if end is not None:
            tampering.append(_tamper("events-after-run-end", "an unfinished line"))
    if end is not None and end.exit_path is ExitPath.KILLED:
        tampering.append(_tamper("run-end-malformed", "only the harness may say killed"))
    return Transcript(
        events=tuple(events), end=None if tampering else end, tampering=tuple(tampering), notes=tuple(notes)
    )


def _event(line: bytes, number: int) -> Event:
    about = f"line {number}"
    value = parse_json(line, about, limit=LINE_BYTES, depth=DEPTH)
    if not isinstance(value, dict) or set(value) != {"ts", "type", "data"}:
        raise Unjudgeable(f"{about}: not an object of ts, type and data")
    if not isinstance(value["ts"], str) or not isinstance(value["data"], dict):
        raise Unjudgeable(f"{about}: ts is not a text, or data not an object")
    if not isinstance(value["type"], str) or value["type"] not in EVENT_TYPES:
        raise Unjudgeable(f"{about}: no event type {value['type']!r:.60}")
    kind: Any = value["type"]
    # Not validated by pydantic: it refuses the lone surrogates that a model's broken text may hold.
    return Event.model_construct(ts=value["ts"], type=kind, data=value["data"])


def _order(events: Sequence[Event]) -> Iterator[Tamper]:
    """What breaks the order: run-start (after at most deferred-affects-reopened) … run-end, one each."""
    types = [event.type for event in events]
    for name in ("run-start", "run-end"):
        if types.count(name) > 1:
            yield _tamper(f"several-{name}s", str(types.count(name)))
    if "run-end" in types[:-1]:
        yield _tamper("events-after-run-end", types[types.index("run-end") + 1])
    before = types[: types.index("run-start")] if "run-start" in types else types
    if early := [name for name in before if name != "deferred-affects-reopened"]:
        yield _tamper("events-before-run-start", early[0])


def _identity(events: Sequence[Event], run_id: str) -> Iterator[Tamper]:
    """A transcript of another run, laid into this one's directory."""
    for event in events:
        if event.type == "run-start" and (said := event.data.get("runId")) != run_id:
            yield _tamper("run-id-differs", f"{said!r:.60} in the directory {printable(run_id)}")


def _tamper(kind: str, detail: str) -> Tamper:
    clean = detail.encode("utf-8", "backslashreplace").decode("utf-8")
    return Tamper(kind=kind, detail=clean[:DETAIL])


def forged_replies(transcripts: Transcript, facts: RunFacts, agent: Agent) -> Tamper | None:
    """A transcript that claims more model replies than the gateway gave was not written by the run alone."""
    if facts.usage is None or agent.protocol == "none":
        return None
    claimed = len(transcripts.data("assistant"))
    if claimed <= facts.usage.replies:
        return None
    return Tamper(
        kind="more-replies-than-given", detail=f"{claimed} in the transcript, {facts.usage.replies} given"
    )


def mismatches(transcript: Transcript, facts: RunFacts) -> Iterator[str]:
    """Where the account of an end and what the harness saw of it do not fit; it may be careless or worse."""
    end = transcript.end
    if end is None:
        return
    if facts.usage is not None and end.turns_used < facts.usage.replies:
        yield f"run-end counts {end.turns_used} model replies, the gateway gave {facts.usage.replies}"
    code, finished = facts.exit_code, end.exit_path in FINISHED
    if facts.killed_by is None and code is not None and finished != (code in FINISHED_CODES):
        yield f"run-end says {end.exit_path}, the process ended with exit code {code}"


def failed_over(transcript: Transcript) -> bool:
    """Whether the agent says that it changed its provider: then the run is not the planned model's."""
    return any(event.type == "provider-failover" for event in transcript.events)


def resolve_exit_path(facts: RunFacts, transcript: Transcript, agent: Agent, mode: Mode) -> ExitPath | None:
    """How the run ended: the harness's facts first, then ``run-end``, then the process's exit code.

    Exit codes speak only where the contract allows a run without a transcript: ``sync`` and ``check`` that
    called no model. None means that the run ended without an account: it crashed.
    """
    if facts.killed_by is not None:
        return ExitPath.KILLED
    if transcript.end is not None:
        return transcript.end.exit_path
    by_contract = mode in {Mode.SYNC, Mode.CHECK} and not transcript.paths
    if by_contract and not (facts.usage and facts.usage.replies) and facts.exit_code is not None:
        return agent.exit_codes.get(str(facts.exit_code))
    return None
