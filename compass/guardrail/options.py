"""Command-line options as getopt reads them: bundled letters, ``--``, values attached or apart,
abbreviations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compass.guardrail.words import known


@dataclass(slots=True)
class Options:
    """Flags that were set, values by option name, and the operands, all in order of appearance."""

    flags: set[str] = field(default_factory=set)
    values: dict[str, list[str]] = field(default_factory=dict)
    operands: list[str] = field(default_factory=list)
    #: Where the first operand stands in the words given, or their number.
    rest: int = 0

    def has(self, *names: str) -> bool:
        """Whether any of ``names`` was given, with or without a value."""
        return any(name in self.flags or name in self.values for name in names)

    def value(self, *names: str) -> str | None:
        """The last value given for any of ``names``."""
        found = [value for name in names for value in self.values.get(name, ())]
        return found[-1] if found else None

    def all(self, *names: str) -> list[str]:
        """Every value given for any of ``names``."""
        return [value for name in names for value in self.values.get(name, ())]


def _complete(name: str, longs: Sequence[str]) -> str:
    """``name`` completed to the one long option it abbreviates, as GNU getopt_long does."""
    if name in longs:
        return name
    matches = [long for long in longs if long.startswith(name)]
    return matches[0] if len(matches) == 1 else name


def read(  # noqa: PLR0912
    words: Sequence[str],
    *,
    short: str = "",
    long: Iterable[str] = (),
    flags: Iterable[str] = (),
    permute: bool = True,
    single: bool = False,
) -> Options:
    """Read ``words`` (without the command's name).

    ``short`` are the letters that take a value, ``long`` the long options that do (without dashes),
    ``flags`` the
    long options that do not (for abbreviations). ``permute=False`` stops at the first operand, as wrappers
    do.
    ``single`` reads ``-name`` like ``--name``.
    """
    with_value = tuple(long)
    longs = (*with_value, *flags)
    found = Options(rest=len(words))
    at = 0
    first = True
    while at < len(words):
        # Origin marks in a value must survive; in an option's own name they mean nothing.
        given = words[at]
        word = known(given)
        at += 1
        if word == "--":
            if first:
                found.rest = at
            found.operands += words[at:]
            return found
        if word.startswith("--") or (single and word.startswith("-") and len(word) > 2):
            name, equals, value = given.lstrip("-").partition("=")
            name = _complete(known(name), longs)
            if equals:
                found.values.setdefault(name, []).append(value)
            elif name in with_value and at < len(words):
                found.values.setdefault(name, []).append(words[at])
                at += 1
            else:
                found.flags.add(name)
        elif word.startswith("-") and len(word) > 1:
            for index, letter in enumerate(given):
                if letter not in short:
                    found.flags.add(letter)
                    continue
                if given[index + 1 :]:
                    found.values.setdefault(letter, []).append(given[index + 1 :])
                elif at < len(words):
                    found.values.setdefault(letter, []).append(words[at])
                    at += 1
                break
            found.flags.discard("-")
        else:
            if first:
                found.rest = at - 1
                first = False
            if not permute:
                found.operands += words[at - 1 :]
                return found
            found.operands.append(words[at - 1])
    return found
