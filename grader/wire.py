"""A bundle as bytes: how evidence enters a grader that mounts nothing.

A frame is two big-endian 64-bit lengths, a JSON header of the first length, and the blobs, back to back, of
the second. Each blob is sent once however many trees hold it.
"""

import json
import struct
from collections.abc import Callable, Container
from itertools import accumulate
from typing import Any

from pydantic import TypeAdapter

from grader.evidence import Bundle, Entry, Tree
from schema.agent import Agent
from schema.assertions import ASSERTION_LIST
from schema.fixture import BaselineReport, Fixture
from schema.paths import decode_path, encode_path
from schema.run import RunFacts
from schema.task import Task

LENGTHS = struct.Struct(">QQ")
Read = Callable[[int], bytes]
"""``read(n)`` gives n bytes, or raises EOFError."""

_MODELS: dict[str, TypeAdapter[Any]] = {
    "task": TypeAdapter(Task),
    "agent": TypeAdapter(Agent),
    "fixture": TypeAdapter(Fixture),
    "erc_baseline": TypeAdapter(BaselineReport),
    "drc_baseline": TypeAdapter(BaselineReport),
    "facts": TypeAdapter(RunFacts),
}
_TREES = ("pristine", "baseline", "end")


def encode(bundle: Bundle) -> bytes:
    """Pack a bundle into one frame."""
    blobs: dict[bytes, int] = {}
    header: dict[str, Any] = {name: getattr(bundle, name).to_json() for name in _MODELS}
    header["assertions"] = [assertion.to_json() for assertion in bundle.assertions]
    for name in _TREES:
        tree: Tree = getattr(bundle, name)
        header[name] = [
            [encode_path(path), entry.kind, entry.mode, blobs.setdefault(entry.data, len(blobs))]
            for path, entry in tree.items()
        ]
    header["blobs"] = [len(blob) for blob in blobs]
    text = json.dumps(header).encode()
    body = b"".join(blobs)
    return LENGTHS.pack(len(text), len(body)) + text + body


def decode(frame: bytes) -> Bundle:
    """Unpack one frame."""
    head, _ = LENGTHS.unpack_from(frame)
    at = LENGTHS.size + head
    header = json.loads(frame[LENGTHS.size : at])
    blobs: list[bytes] = []
    for size in header["blobs"]:
        blobs.append(frame[at : at + size])
        at += size
    parts: dict[str, Any] = {name: adapter.validate_python(header[name]) for name, adapter in _MODELS.items()}
    for name in _TREES:
        parts[name] = {
            decode_path(path): Entry(data=blobs[blob], mode=mode, kind=kind)
            for path, kind, mode, blob in header[name]
        }
    return Bundle(assertions=tuple(ASSERTION_LIST.validate_python(header["assertions"])), **parts)


def decode_pristine(frame: bytes, known: Container[str]) -> tuple[Fixture, Tree] | None:
    """Of one frame only the fixture and its tree; None when its pinned tree hash is ``known``."""
    head, _ = LENGTHS.unpack_from(frame)
    at = LENGTHS.size + head
    header = json.loads(frame[LENGTHS.size : at])
    if header["fixture"]["sha256"] in known:
        return None
    spans = list(accumulate(header["blobs"], initial=at))
    tree = {
        decode_path(path): Entry(data=frame[spans[blob] : spans[blob + 1]], mode=mode, kind=kind)
        for path, kind, mode, blob in header["pristine"]
    }
    return _MODELS["fixture"].validate_python(header["fixture"]), tree


def read_frame(read: Read) -> bytes | None:
    """Read one whole frame with ``read(n)``; None at the end of the input."""
    lengths = read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    head, body = LENGTHS.unpack(lengths)
    return lengths + read(head + body)


def encode_answer(answer: dict[str, Any]) -> bytes:
    """Pack an answer: a length pair whose second is 0, and JSON."""
    text = json.dumps(answer).encode()
    return LENGTHS.pack(len(text), 0) + text


def decode_answer(read: Read) -> dict[str, Any]:
    """Read one answer with an exact ``read(n)``."""
    head, _ = LENGTHS.unpack(read(LENGTHS.size))
    answer = json.loads(read(head))
    if not isinstance(answer, dict):
        raise TypeError("an answer is an object")
    return answer
