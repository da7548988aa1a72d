"""The constraint registry, ``.copperhead/constraints.json`` (Standard §4, constraint_registered).

The agent writes an object of key → entry; a list of entries that carry their ``key`` is read too. An entry
holds ``value``, ``min``, ``max``, ``source``, ``affects``, ``deferred`` and, for pins, ``forbidden``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import re2

from grader.documents import parse_json
from grader.evidence import Tree
from grader.kicad.errors import Unjudgeable
from schema.assertions import ConstraintArgs

REGISTRY = ".copperhead/constraints.json"
ENTRIES = 10_000
"""Most entries of a registry."""

_NUMBER = re2.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")

Scalar = Decimal | str | bool | None


@dataclass(frozen=True)
class Constraint:
    """One recorded constraint. Numbers are exact decimals."""

    key: str
    value: Scalar = None
    min: Scalar = None
    max: Scalar = None
    source: str | None = None
    affects: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    """Names of pins that must stay unconnected."""


def read_registry(tree: Tree) -> Mapping[str, Constraint]:
    """Key → entry of a tree's registry.

    Raises:
        Unjudgeable: missing, a symlink, not JSON, or not of the registry's form; a key that occurs twice.
    """
    entry = tree.get(REGISTRY)
    if entry is None:
        raise Unjudgeable(f"{REGISTRY}: no such file")
    if entry.kind != "file":
        raise Unjudgeable(f"{REGISTRY}: is a symlink, which is never followed")
    found: dict[str, Constraint] = {}
    for key, fields in _pairs(parse_json(entry.data, REGISTRY, exact=True)):
        if key in found:
            raise Unjudgeable(f"{REGISTRY}: key {key!r} occurs twice")
        found[key] = _constraint(key, fields)
    return found


def _pairs(document: Any) -> list[tuple[str, Any]]:
    if isinstance(document, dict):
        pairs = list(document.items())
    elif isinstance(document, list):
        pairs = []
        for item in document:
            if not isinstance(item, dict) or not isinstance(item.get("key"), str):
                raise Unjudgeable(f"{REGISTRY}: an entry of the list has no key")
            pairs.append((item["key"], item))
    else:
        raise Unjudgeable(f"{REGISTRY}: neither an object nor a list")
    if len(pairs) > ENTRIES:
        raise Unjudgeable(f"{REGISTRY}: more than {ENTRIES} entries")
    return pairs


def _constraint(key: str, fields: Any) -> Constraint:
    if not isinstance(fields, dict):
        raise Unjudgeable(f"{REGISTRY}: entry {key!r} is not an object")
    scalars: dict[str, Scalar] = {}
    for name in ("value", "min", "max"):
        value = fields.get(name)
        if not isinstance(value, Decimal | str | bool | None):
            raise Unjudgeable(f"{REGISTRY}: {name} of {key!r} is neither a number nor a text")
        scalars[name] = value
    source = fields.get("source")
    if not isinstance(source, str | None):
        raise Unjudgeable(f"{REGISTRY}: source of {key!r} is not a text")
    return Constraint(
        key=key,
        source=source,
        affects=_texts(key, fields, "affects"),
        forbidden=_texts(key, fields, "forbidden"),
        **scalars,
    )


def _texts(key: str, fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    items = fields.get(name)
    if items is None:
        return ()
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise Unjudgeable(f"{REGISTRY}: {name} of {key!r} is not a list of texts")
    return tuple(items)


def differences(constraint: Constraint, wanted: ConstraintArgs) -> list[str]:
    """What of the given arguments an entry does not hold, one line each; empty when all agree.

    ``source`` is compared as written; every item of ``affects`` must be listed, others may be.
    """
    out = []
    for name, expected in (("value", wanted.value), ("min", wanted.min), ("max", wanted.max)):
        if expected is not None and not same(getattr(constraint, name), expected):
            out.append(f"{name} is {_show(getattr(constraint, name))}, not {expected}")
    if wanted.source is not None and constraint.source != wanted.source:
        out.append(f"source is {_show(constraint.source)}, not {wanted.source!r}")
    missing = [item for item in wanted.affects or [] if item not in constraint.affects]
    if missing:
        out.append(f"affects lacks {', '.join(missing)}")
    return out


def same(found: Scalar, expected: float | Decimal | str) -> bool:
    """Whether a registry value is the expected one: texts as written, numbers exactly.

    A plain decimal number in quotes is that number, since the agent's tool stores every ``value`` as text.
    """
    if isinstance(expected, str):
        return isinstance(found, str) and found == expected
    if isinstance(found, str) and _NUMBER.fullmatch(found.strip()):
        found = Decimal(found.strip())
    # In Python True == 1; in a registry it is not.
    return isinstance(found, Decimal) and found == Decimal(str(expected))


def _show(value: Scalar) -> str:
    return "not given" if value is None else str(value) if isinstance(value, Decimal) else repr(value)[:200]
