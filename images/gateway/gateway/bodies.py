"""Request bodies: strict JSON, and what every protocol's allow-list is made of. Does no I/O.

What is not listed is refused. Providers grow new fields all the time, and many of them reach the network for
the model (hosted tools, URLs to fetch), keep state outside the run, or change what a token costs.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

IMAGE_TOKENS = 20_000
"""Taken as the most tokens of one image: providers scale images down to a fraction of it."""
PROMPT_OVERHEAD = 4_096
"""Taken as the most tokens that a provider's own template and tool instructions add to a prompt."""
IMAGE_PREFIXES = ("data:image/png;base64,", "data:image/jpeg;base64,", "data:image/webp;base64,")
MAGIC_CHARACTERS = 16
"""Of base64: the twelve bytes by which the three kinds of pictures are told."""


class NotAllowed(Exception):
    """A request that is not forwarded; the message says why, for the agent to read."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def parse(raw: bytes, nodes: int) -> dict[str, Any]:
    """The JSON object of a body.

    Raises:
        NotAllowed: not UTF-8, not JSON, a key twice, NaN, too deep, too many values, or not an object.
    """
    # Counted before parsing: a small body can hold millions of empty lists.
    if sum(raw.count(mark) for mark in (b"{", b"[", b",", b":")) > nodes:
        raise NotAllowed(f"the body holds more than {nodes} values", 413)
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        raise NotAllowed("the body is nested too deeply") from None
    except ValueError as error:
        raise NotAllowed(f"the body is not strict JSON in UTF-8: {error}") from None
    if not isinstance(value, dict):
        raise NotAllowed("the body is not a JSON object")
    return value


def render(body: Mapping[str, Any]) -> bytes:
    """A changed body as bytes. Escaped, so that lone surrogates travel as they came."""
    return json.dumps(body, separators=(",", ":")).encode("ascii")


def allow(value: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    """Refuse names that are not listed; a null is as good as absent.

    Raises:
        NotAllowed: names the first one.
    """
    listed = frozenset(names)
    for name, inner in value.items():
        if name not in listed and inner is not None:
            raise NotAllowed(f"{where}{name!r} is not allowed in this benchmark")


def fixed(body: Mapping[str, Any], name: str, *allowed: Any) -> None:
    """Refuse a field that is there and is none of ``allowed``.

    Raises:
        NotAllowed: it is something else.
    """
    value = body.get(name)
    # By type too: True == 1 in Python.
    if value is not None and not any(value == each and type(value) is type(each) for each in allowed):
        raise NotAllowed(f"{name!r} may only be {' or '.join(map(repr, allowed))} in this benchmark")


def limit(body: Mapping[str, Any], name: str) -> int | None:
    """A positive whole number of tokens.

    Raises:
        NotAllowed: it is anything else.
    """
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10**7:
        raise NotAllowed(f"{name!r} is not a number of tokens")
    return value


def objects(value: Any, where: str) -> list[dict[str, Any]]:
    """A list of objects.

    Raises:
        NotAllowed: it is not.
    """
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise NotAllowed(f"{where} is not a list of objects")
    return value


def kind(value: Mapping[str, Any], known: Iterable[str], where: str) -> str:
    """The ``type`` of a part.

    Raises:
        NotAllowed: it is not a listed one.
    """
    found = value.get("type")
    if not isinstance(found, str) or found not in frozenset(known):
        raise NotAllowed(f"{where} of type {found!r} is not allowed in this benchmark")
    return found


Rule = Callable[[Mapping[str, Any]], None]


def parts(content: Any, rules: Mapping[str, tuple[Iterable[str], Rule | None]], where: str) -> None:
    """Check a message's content: null, a text, or a list of parts of listed types with listed fields.

    Args:
        rules: type → its fields besides ``type``, and a further check.

    Raises:
        NotAllowed: anything else is in it.
    """
    if content is None or isinstance(content, str):
        return
    for part in objects(content, where):
        names, further = rules[kind(part, rules, f"a part of {where}")]
        allow(part, {"type", *names}, f"{where}: ")
        if further:
            further(part)


def inline_image(url: Any) -> None:
    """An image must come with the request: a URL would make the provider fetch it.

    Raises:
        NotAllowed: it is anything but a ``data:`` URL of a picture.
    """
    if not isinstance(url, str) or not url.startswith(IMAGE_PREFIXES):
        raise NotAllowed("images must be data: URLs of PNG, JPEG or WebP; nothing is fetched for an agent")
    picture(url.partition(",")[2])


def picture(data: Any) -> None:
    """What counts as a picture must begin like one: text in its place would be counted as next to nothing.

    Raises:
        NotAllowed: it is not the base64 of a PNG, JPEG or WebP.
    """
    try:
        start = base64.b64decode(data[:MAGIC_CHARACTERS], validate=True) if isinstance(data, str) else b""
    except (binascii.Error, ValueError):
        start = b""
    webp = start[:4] == b"RIFF" and start[8:12] == b"WEBP"
    if not start.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")) and not webp:
        raise NotAllowed("an image is not the base64 of a PNG, JPEG or WebP")


def of_type(content: Any, named: str) -> Iterator[Mapping[str, Any]]:
    """The parts of a type in a content that was checked."""
    if isinstance(content, list):
        yield from (part for part in content if part.get("type") == named)


def short_cache(part: Mapping[str, Any]) -> None:
    """A prompt may be cached for five minutes: an hour costs more than the price table says.

    Raises:
        NotAllowed: it asks for another lifetime.
    """
    control = part.get("cache_control")
    if control is not None and (not isinstance(control, dict) or control.get("ttl") not in (None, "5m")):
        raise NotAllowed("cache_control: only a lifetime of 5 minutes is allowed in this benchmark")


def prompt_bound(raw: bytes, pictures: Iterable[str]) -> int:
    """Tokens that the prompt has at most: a token is at least a byte of the body, but for pictures.

    Args:
        pictures: the base64 of each, from where the protocol has pictures and nowhere else.
    """
    sizes = [len(each) for each in pictures]
    return len(raw) - sum(sizes) + IMAGE_TOKENS * len(sizes) + PROMPT_OVERHEAD


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for name, value in pairs:
        # Two readers may take different ones: we check one model, the provider answers with the other.
        if name in seen:
            raise ValueError(f"key {name[:60]!r} twice")
        seen[name] = value
    return seen


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
