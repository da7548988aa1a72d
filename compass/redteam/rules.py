"""The rules, read from ``compass/data/redteam-rules.tsv`` and compiled once.

A rule says what kind of sentence gives orders to a model, not which phrase: verb × object × scope, an
addressee, a cue that something is to be kept from a person. Its vetoes tell use from description:

- ``third``: somebody else's verb ("the parser will ignore …", "how to ignore …");
- ``negated``: "never reveal …";
- ``scoped``: a condition or place that only documentation gives ("… if you use the old board");
- ``defence``: the sentence is about finding or stopping the thing.

A veto looks only at the words around its own match; nothing in a text can switch a rule off elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from compass.redteam import linear
from compass.redteam.lexicon import lexicon
from compass.redteam.pattern import compile_pattern

#: So many vetoed matches of one rule in one reading are taken for description; the next is reported.
TOLERATED = 500
VETOES = frozenset({"third", "negated", "scoped", "defence"})


@dataclass(frozen=True)
class Rule:
    """One compiled rule; ``needed`` holds, for each word it cannot do without, the codes that would serve."""

    rule: str
    family: str
    why: str
    vetoes: frozenset[str]
    pattern: linear.Pattern
    needed: tuple[frozenset[str], ...]


def source() -> str:
    """The text of the rules file."""
    return (files("compass") / "data" / "redteam-rules.tsv").read_text(encoding="utf-8")


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, compiled. Raises ValueError for a malformed row and KeyError for an unknown class."""
    macros: dict[str, str] = {}
    return tuple(_parse(source(), macros))


def _parse(text: str, macros: dict[str, str]) -> Iterator[Rule]:
    family = ""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            family = line.strip("[]")
        elif family == "macros":
            name, pattern = line.split("\t")
            macros[name] = pattern
        else:
            yield _rule(family, line, macros)


def _rule(family: str, line: str, macros: dict[str, str]) -> Rule:
    name, vetoes, why, pattern = line.split("\t")
    wanted = frozenset(vetoes.split()) - {"-"}
    if wanted - VETOES:
        raise ValueError(f"{family}/{name}: unknown veto in {vetoes!r}")
    compiled, needed = compile_pattern(pattern, macros)
    return Rule(f"{family}/{name}", family, why, wanted, compiled, tuple(map(frozenset, needed)))


@cache
def codes(names: str) -> frozenset[str]:
    """The codes of a class or of several joined by ``|``, for the veto checks."""
    return frozenset(lexicon().of(names))
