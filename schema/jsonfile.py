"""Strict JSON: no duplicate keys, no NaN, one line of error that names the file and the place."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from schema.errors import InvalidFile

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise ValueError(f"duplicate key {key!r}")
        seen[key] = value
    return seen


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def parse_json(data: bytes | str, about: str) -> Any:
    """Parse strict JSON. ``about`` names the source in the error.

    Raises:
        InvalidFile: not UTF-8, not JSON, duplicate keys, NaN or Infinity, nested too deeply.
    """
    try:
        return json.loads(data, object_pairs_hook=_unique, parse_constant=_reject_constant)
    except RecursionError:
        raise InvalidFile("nested too deeply for JSON", about=about, fix="flatten it") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidFile(f"not valid JSON ({error})", about=about, fix="mend the JSON") from None


def explain(error: ValidationError) -> str:
    """The first fault of a pydantic error as ``place: message``."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "top level"
    more = f" (+{error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{place}: {first['msg']}{more}"


def validate_as(kind: type[T], value: Any, about: str) -> T:
    """Validate parsed JSON against a model or type.

    Raises:
        InvalidFile: names the file, the field and what is wrong with it.
    """
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise InvalidFile(explain(error), about=about, fix="see schema/json for what is allowed") from None


def read_bytes(path: Path) -> bytes:
    """Read a file we expect to exist.

    Raises:
        InvalidFile: missing or unreadable.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidFile(f"cannot read ({error.strerror})", about=str(path), fix="create it") from None


def read_model(path: Path, kind: type[T]) -> T:
    """Read one JSON file as a model or type.

    Raises:
        InvalidFile: missing, not JSON, or breaking the schema.
    """
    return validate_as(kind, parse_json(read_bytes(path), str(path)), str(path))


def canonical(value: Any) -> bytes:
    """Canonical JSON bytes: sorted keys, no spaces, UTF-8. What digests are taken over."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def pretty(value: Any) -> str:
    """Two-space JSON with a final newline, as committed files hold it."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
