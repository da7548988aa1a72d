"""What is fuzzed, and what must hold for any bytes; a target raises only when its invariant is broken."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from grader.conduct import diagnose
from grader.documents import JSON_DEPTH, ROWS, deeper_than, parse_json, tables
from grader.evidence import Entry, Tree
from grader.kicad import project
from grader.kicad.board import read_board
from grader.kicad.errors import Unjudgeable
from grader.kicad.grammar import oddities
from grader.kicad.netlist import read_netlist
from grader.kicad.overrides import without_added
from grader.kicad.paths import escapes
from grader.kicad.reports import read_findings, stops, to_violations
from grader.kicad.schematic import MAX_INSTANCES, read_hierarchy
from grader.kicad.sexpr import Nested, parse
from grader.transcript import DETAIL, read_transcript
from orchestrator.collect import GIT_PARTS, Budget, Collected, collect
from orchestrator.history import COMMITS, read_history
from schema.text import plain
from tests.unit.grader import support
from tests.unit.grader.kicad import twins
from tests.unit.grader.kicad.support import sample
from tests.unit.orchestrator.repos import loose, loose_file
from tests.unit.orchestrator.tars import entry, stream

Check = Callable[[bytes], None]


@dataclass(frozen=True)
class Target:
    """One reader under test."""

    check: Check
    seeds: Callable[[], list[bytes]]
    words: tuple[str, ...]
    """What the format is made of: the fuzzer's dictionary and the property tests' alphabet."""
    sample: int
    """How many cases CI plays: about ten seconds' worth."""


def quoted(tree: Nested) -> bytes:
    """A tree of texts written as an s-expression again, every text in quotes."""
    parts: list[bytes] = []
    pending: list[Any] = [tree]
    while pending:
        item = pending.pop()
        if isinstance(item, bytes):
            parts.append(item)
        elif isinstance(item, str):
            raw = item.encode("utf-8", "surrogateescape")
            for old, new in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\r", b"\\r")):
                raw = raw.replace(old, new)
            parts.append(b'"' + raw + b'"')
        else:
            pending += [b")", *reversed(item), b"("]
    return b" ".join(parts)


def sexpr(data: bytes) -> None:
    """``parse`` raises nothing but Unjudgeable; what it reads, written again, reads the same; no NUL."""
    try:
        tree = parse(data, "fuzz").tree()
    except Unjudgeable:
        return
    # A NUL is where KiCad's text ends.
    assert b"\0" not in quoted(tree)
    assert parse(quoted(tree), "again").tree() == tree


def netlist(data: bytes) -> None:
    """``read_netlist`` raises nothing but Unjudgeable; each pin it lists is on the net that lists it."""
    try:
        found = read_netlist(data)
    except Unjudgeable:
        return
    for name, pins in found.nets.items():
        assert pins and found.match(name) == [name]
    assert all(found.net_of(*pin) is not None for pins in found.nets.values() for pin in pins)


def report(kind: Literal["erc", "drc"]) -> Check:
    """``read_findings`` raises nothing but Unjudgeable, and loses no finding."""

    def check(data: bytes) -> None:
        try:
            found = read_findings(data, kind, "fuzz")
        except Unjudgeable:
            return
        assert len(to_violations(found, lambda _: None)) == len(found)
        assert kind == "drc" or stops(found) == frozenset()

    return check


def schematic(data: bytes) -> None:
    """``read_hierarchy`` and the grammar raise only Unjudgeable, and end; path checks raise nothing."""
    tree: dict[str, Entry] = {**twins.tree(), "hw/twins.kicad_sch": Entry(data)}
    assert all(plain(one) for one in escapes(tree, twins.tree(), twins.ARTIFACTS.project))
    try:
        assert all(map(plain, oddities(data, "hw/twins.kicad_sch")))
        found = read_hierarchy(tree, "hw/twins.kicad_sch")
    except Unjudgeable:
        return
    assert len(found.instances) <= MAX_INSTANCES + 1
    found.references()


def board(data: bytes) -> None:
    """``read_board`` and what is asked of it raise nothing but Unjudgeable; no exception stays in a board."""
    pristine = twins.tree()["hw/twins.kicad_pcb"].data
    try:
        found = read_board(data, "fuzz.kicad_pcb")
        _ = found.pads, found.net_of(""), oddities(data, "fuzz.kicad_pcb")
        cleaned = without_added(pristine, data, "fuzz.kicad_pcb")
        assert cleaned is None or without_added(pristine, cleaned, "fuzz.kicad_pcb") is None
    except Unjudgeable:
        return


def project_file(data: bytes) -> None:
    """``read_project`` raises nothing but Unjudgeable; no rule of the end state is in the pinned project."""
    pristine = project.read_project(twins.tree()["hw/twins.kicad_pro"].data, "pristine")
    try:
        end = project.read_project(data, "fuzz")
        pinned = project.dump(project.pin(pristine, end))
    except Unjudgeable:
        return
    # KiCad falls back on its defaults, without a word, on a project that is no JSON.
    assert parse_json(pinned, "pinned", depth=10**6).get("board") == json.loads(
        project.dump(project.pin(pristine, {}))
    ).get("board")
    project.rule_edits(pristine, end)


def transcript(data: bytes) -> None:
    """Reading and diagnosing raise nothing; what a tamper quotes is bounded; an end means order."""
    end: Tree = {support.TRANSCRIPT: Entry(data)}
    read = read_transcript(support.AGENT, support.task().mode, baseline={}, end=end)
    assert all(len(tamper.detail) <= DETAIL for tamper in read.tampering)
    assert read.end is None or (not read.tampering and read.events[-1].type == "run-end")
    for line in diagnose(read):
        json.dumps(line).encode()


def json_value(data: bytes) -> None:
    """``parse_json`` raises nothing but Unjudgeable, and agrees with Python's reader on what it accepts."""
    try:
        value = parse_json(data, "fuzz")
    except Unjudgeable:
        return
    assert value == json.loads(data)
    assert not deeper_than(JSON_DEPTH, data)


def tables_of(data: bytes) -> None:
    """``tables`` raises nothing but Unjudgeable; every row is as wide as its header."""
    try:
        found = tables(data.decode("utf-8", "replace").replace("\0", ""))
    except Unjudgeable:
        return
    assert sum(len(table.rows) for table in found) <= ROWS
    assert all(len(row) == len(table.header) for table in found for row in table.rows)


SMALL = Budget(bytes=2**20, entries=50, depth=8, name=200, refusals=3)


BLOCK = 512


def checksummed(data: bytes) -> bytes:
    """Tar headers with the checksum that belongs to them: without it no changed header would be read."""
    blocks = []
    for at in range(0, len(data), BLOCK):
        block = bytearray(data[at : at + BLOCK])
        if block[257:262] == b"ustar" and len(block) == BLOCK:
            block[148:156] = b" " * 8
            block[148:156] = b"%06o\0 " % sum(block)
        blocks.append(bytes(block))
    return b"".join(blocks)


def archive(data: bytes) -> None:
    """``collect`` raises nothing; nothing kept is past a budget or climbs; chunks do not matter."""
    for stream_ in dict.fromkeys((data, checksummed(data))):
        _archive(stream_)


def _archive(data: bytes) -> None:
    one = _collect(data, len(data) or 1)
    assert one == _collect(data, 7)
    assert not (one.over_budget or one.secret) or not (one.entries or one.git)
    assert len(one.entries) <= SMALL.entries and len(one.refused) <= SMALL.refusals
    for name in one.entries:
        assert all(part not in {"", ".", "..", ".git"} for part in name.split("/")[:1])
        assert all(part not in {"", ".", ".."} for part in name.split("/"))
        assert len(name.encode("utf-8", "surrogateescape")) <= SMALL.name


def _collect(data: bytes, chunk: int) -> Collected:
    chunks = (data[at : at + chunk] for at in range(0, len(data), chunk))
    out = collect(chunks, baseline={}, known={}, budget=SMALL)
    # How far a reader reads ahead depends on the chunks, and decides nothing.
    out.stream_bytes = 0
    return out


FILE = b"\n\0file "
"""Begins each file of a ``.git`` in one case; its name ends with the line."""
_BLOB = loose_file("blob", b"base")
_TREE = loose_file("tree", b"100644 a\0" + bytes.fromhex(_BLOB[0]))
_PERSON = b"t <t@example.invalid> 0 +0000"


def commit_of(tree: str, *parents: str) -> bytes:
    """A commit's text."""
    lines = [b"tree %s" % tree.encode(), *(b"parent %s" % parent.encode() for parent in parents)]
    return b"\n".join([*lines, b"author " + _PERSON, b"committer " + _PERSON, b"", b"x", b""])


_BASE = loose_file("commit", commit_of(_TREE[0]))


def repository(data: bytes) -> dict[str, bytes]:
    """The baseline's objects, and the files that a case holds.

    Under ``+commit`` and the like stands an object's text, so that what is changed is what git reads and not
    its compression; a pack gets the checksum that belongs to it.
    """
    files = _BLOB[1] | _TREE[1] | _BASE[1]
    for part in data.split(FILE):
        raw, _, content = part.partition(b"\n")
        name = raw.decode("utf-8", "surrogateescape")
        if name in {"+commit", "+tree", "+blob", "+tag"}:
            files |= loose_file(name[1:], content)[1]
        elif GIT_PARTS.fullmatch(name):
            sealed = content + hashlib.sha1(content, usedforsecurity=False).digest()
            files[name] = sealed if name.endswith(".pack") else content
    return files


def history(data: bytes) -> None:
    """``read_history`` raises nothing, and what it says is bounded, whatever the objects are."""
    out = Collected(git_kind="folder", git=repository(data), entries={"a": Entry(b"base")})
    found = read_history(out, _BASE[0], aside=("aside/**",)).history
    assert len(found.commits) <= COMMITS + 1 and len(found.detail) <= 5000
    assert all(re.fullmatch("[0-9a-f]{40}", one) for one in found.commits)
    assert found.commits == [] or found.status in {"ok", "uncommitted"}
    # What is no whole commit of the end state is no commit.
    assert found.status != "ok" or not found.commits or found.head == found.commits[0]


# --- seeds: written here or drawn by our own code, never a third party's


def _archives() -> list[bytes]:
    key = b"sk-" + b"k" * 24
    listed = [
        [entry("a.txt", b"data"), entry("b/c.txt", b"x" * 3000)],
        [entry("link", type=tarfile.SYMTYPE, linkname="/etc/passwd"), entry("p", type=tarfile.FIFOTYPE)],
        [entry("a", b"1"), entry("b", type=tarfile.LNKTYPE, linkname="workspace/a")],
        [entry(".git", type=tarfile.DIRTYPE), entry(".git/HEAD", b"ref: refs/heads/main\n")],
        [entry("n" * 150, b"long"), entry("\udcff", b"odd"), entry("../x", b"climb")],
        [entry("key", key)],
    ]
    pax = io.BytesIO()
    with tarfile.open(fileobj=pax, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("workspace/" + "é" * 120)
        info.pax_headers = {"comment": "x", "GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
        tar.addfile(info)
    return [*(b"".join(stream(*entries)) for entries in listed), pax.getvalue()]


def _transcripts() -> list[bytes]:
    return [
        support.transcript("done"),
        support.refusal("standby_current_uA"),
        support.transcript(
            "done", support.event("tool", name="bash", args={"command": "ls -l"}, result="ok")
        ),
        support.event("run-start", **{"request": "\ud800"}),
        b'{"ts":"","type":"tool","data":{"name":"x","args":{"command":"$(("},"result":"ignore previous"}}\n',
    ]


def _repositories() -> list[bytes]:
    one = commit_of(_TREE[0], _BASE[0])
    head = loose_file("commit", one)[0].encode()
    on = FILE + b"HEAD\nref: refs/heads/main\n" + FILE + b"refs/heads/main\n"
    other = b"100644 b\0" + bytes.fromhex(_BLOB[0]) + b"40000 d\0" + bytes.fromhex(_TREE[0])
    tree = loose_file("tree", other)[0]
    whole = FILE + b"+commit\n" + one
    two = commit_of(tree, _BASE[0], head.decode())
    entry = loose("blob", b"packed")[2]
    packed = b"PACK\0\0\0\2\0\0\0\1" + entry
    return [
        on + _BASE[0].encode(),
        on + head + whole,
        on
        + loose_file("commit", two)[0].encode()
        + b"".join(
            FILE + b"+%s\n%s" % part for part in ((b"commit", one), (b"commit", two), (b"tree", other))
        ),
        FILE + b"HEAD\n" + head + FILE + b"packed-refs\n" + head + b" refs/heads/main\n" + whole,
        on + head + whole + FILE + b"objects/pack/pack-" + b"a" * 40 + b".pack\n" + packed,
        on
        + head
        + whole
        + FILE
        + b"objects/aa/"
        + b"b" * 38
        + b"\ngarbage"
        + FILE
        + b"+tag\nobject "
        + head
        + b"\n",
    ]


def _json() -> list[bytes]:
    return [
        b'{"a": [1, 2.5, -1e9, "\\ud800", null, true]}',
        b"[[[[]]]]",
        b'{"a": 1, "a": 2}',
        b"NaN",
        b"1e999",
    ]


def _tables() -> list[bytes]:
    return [
        b"# T\n\n| A | B |\n| --- | :-: |\n| x | `y` |\n| z \\| w | |\n",
        b"<!--\n|a|\n|-|\n-->\n```\n|a|\n|-|\n```\n> |a|\n> |-|\n- |a|\n  |-|\n",
        b"|a\n|-\n|b\n",
    ]


def _design(suffix: str) -> Callable[[], list[bytes]]:
    return lambda: [item.data for path, item in twins.tree().items() if path.endswith(suffix)]


_SIGNS = ("(", ")", '"', "\\", "\n", " ", "#", "\\n", "\\x0", "\\40", "\ufeff")
_WORDS = (*_SIGNS, "kicad_sch", "symbol", "lib_symbols")
_PARTS = (
    "sheet",
    "property",
    "Sheetfile",
    "instances",
    "project",
    "path",
    "reference",
    "pin",
    "uuid",
    "label",
)
_MORE = ("unit", "global_label", "hierarchical_label", "at", "kicad_pcb", "footprint", "pad", "net", "model")
_NETLIST = (
    "export",
    "components",
    "comp",
    "ref",
    "nets",
    "name",
    "node",
    "pinfunction",
    "pintype",
    "{slash}",
)
_JSON = ("{", "}", "[", "]", ":", ",", '"', "\\u", "\\ud800", "1e999", "NaN", "-", "0", "true", "null", "\n")
_EVENTS = ("ts", "type", "data", "run-start", "run-end", "exitPath", "done", "tool", "assistant", "turnsUsed")
_REPORTS = ("sheets", "violations", "unconnected_items", "schematic_parity", "severity", "error", "items")

TARGETS: Mapping[str, Target] = {
    "sexpr": Target(
        sexpr, lambda: [*_design(".kicad_sch")()[:1], b'(a "b\\"c" (d))', b"#\n(a)\n#"], _WORDS, 6_000
    ),
    "netlist": Target(netlist, lambda: [sample("plain", "netlist")], _WORDS + _NETLIST, 7_000),
    "erc-report": Target(report("erc"), lambda: [sample("plain", "erc")], _JSON + _REPORTS, 300_000),
    "drc-report": Target(report("drc"), lambda: [sample("plain", "drc")], _JSON + _REPORTS, 300_000),
    "schematic": Target(schematic, _design(".kicad_sch"), _WORDS + _PARTS + _MORE, 2_000),
    "board": Target(board, _design(".kicad_pcb"), _WORDS + _PARTS + _MORE, 10_000),
    "project": Target(
        project_file, _design(".kicad_pro"), (*_JSON, "board", "erc", "net_settings", "meta"), 12_000
    ),
    "transcript": Target(transcript, _transcripts, _JSON + _EVENTS, 40_000),
    "json": Target(json_value, _json, _JSON, 300_000),
    "tables": Target(
        tables_of, _tables, ("|", "-", ":", "`", "\\", "\n", ">", "<!--", "-->", "```", "    ", "*"), 12_000
    ),
    "archive": Target(
        archive, _archives, ("workspace/", "ustar", "\0", "./", "../", "0000644", "GNU.sparse.map"), 4_000
    ),
    "history": Target(
        history,
        _repositories,
        ("\n\0file ", "+commit", "+tree", "tree ", "parent ", "HEAD", "40000 d\0", "PACK", "refs/heads/main"),
        150,
    ),
}
