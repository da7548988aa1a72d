"""What a task's text says about its size: features with the words that gave them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from compass.router import lexicon

#: Longest task that is read; the rest of it says little about its kind.
LONGEST = 20_000

_QUOTED = re.compile(r"\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”|`[^`\n]{0,300}`|(?<!\w)'[^'\n]{1,300}'(?!\w)")
_FILE = re.compile(
    r"(?<![\w/])(?:[\w.-]+/)*[\w-]*\.?[\w-]+\.(?:py|js|ts|tsx|c|h|cpp|rs|go|java|md|txt|toml|ya?ml|"
    r"json|ini|cfg|sh|"
    r"html|css|sql|csv|am|kicad_\w+|gitignore|lock|xml|bat|rb)\b|(?<![\w/])(?:[\w.-]+/){1,}[\w.-]*|"
    r"\B\.\w{3,}\b|"
    r"\b(?:LICENSE|README|Makefile)\b"
)
_IDENTIFIER = re.compile(
    r"\b\w+_\w+\b|\b[a-z]+[A-Z]\w+\b|\b\w+\(\)|\b[A-Z][a-z]+[A-Z]\w+\b|\b[A-Z]{1,3}\d+(?:\.\d+)?\b"
)
_LINE = re.compile(r"\blines? \d+|\bline \w+\b|\bsheet \d+\b")
_NAMED = re.compile(
    r"\b(?:named|called|titled|headed)\b|\b(?:the )?(?:word|string|title|button|heading|menu)\b"
)
_SENTENCE = re.compile(r"[.;!?]+(?:\s|$)|,? and then |: (?=[a-z])")
_LEAD = re.compile(
    r"^(?:please|can you|could you|would you|let'?s|we (?:must|need to|want to|should|have to)|"
    r"i (?:want|need) (?:you )?to|"
    r"now|then|also|just|quick(?: one| fix)?|only|so|security|urgent|tiny task|one line|easy|"
    r"simple question|to)[\s,:!-]+"
)
_TRIVIAL_ADD = re.compile(
    r"\badd (?:a |an |the )?(?:missing |trailing |single |one |short )?(?:comma|comment|docstring|"
    r"newline|space|line|word|"
    r"semicolon|period|dot|link|label|note|title|date|entry|header|import|X)\b(?! (?:feature|"
    r"component|system|box|parser|"
    r"field|page|form|editor|service|command))|\badd X to X\b"
)


_LABEL = re.compile(r"^[\w ]{1,24}(?:: | - )(?=\w)")
_LIGHT = (
    ("looking-verb", lexicon.LOOKING),
    ("touching-verb", lexicon.TOUCHING),
    ("neutral-verb", lexicon.NEUTRAL),
)


@dataclass(frozen=True, slots=True)
class Feature:
    """One thing noticed: its name, how strongly (1 is normal), and the words that show it."""

    name: str
    strength: float
    because: str


def features(task: str) -> list[Feature]:
    """Everything noticed in ``task``, in reading order within each kind."""
    return list(_features(task[:LONGEST]))


def strip(task: str) -> tuple[str, int, int]:
    """The task without names and quotations (``X`` stands for each), and how many of each were removed."""
    quoted = len(_QUOTED.findall(task))
    text = _QUOTED.sub(" X ", task)
    named = len(_FILE.findall(text)) + len(_IDENTIFIER.findall(text))
    text = _IDENTIFIER.sub(" X ", _FILE.sub(" X ", text))
    text = re.sub(r"\s+", " ", text.replace("’", "'")).strip().lower()
    return text.replace(" x ", " X "), quoted, named


def _features(task: str) -> Iterator[Feature]:
    text, quoted, named = strip(task)
    turn = lexicon.TURN.search(text)
    if turn:
        text = text[turn.start() :]
        yield Feature("narrowed", 1, turn.group())
    negated = lexicon.NEGATION.findall(text)
    asked = lexicon.NEGATION.sub(" ", text)
    if any(lexicon.DEEP.search(part) or "investigation" in part for part in negated):
        yield Feature("declined", 1, "; ".join(part.strip() for part in negated))
    clauses = [_lead(clause) for clause in _SENTENCE.split(_LABEL.sub("", asked)) if clause.strip()]
    verbs = list(_verbs(clauses))
    context = [
        *_found("wide", lexicon.WIDE, text),
        *_parts(text),
        *_found("unsure", lexicon.UNSURE, text),
        *_found("risk", lexicon.RISK, text),
        *_found("deep-phrase", lexicon.DEEP_PHRASES, asked),
    ]
    names = {feature.name for feature in verbs}
    only_light = bool(names & {"looking-verb", "touching-verb"}) and not names & {
        "deep-verb",
        "constructive-verb",
    }
    if not only_light:
        # "Count … and draw": the look serves the work.
        verbs = [
            f for f in verbs if f.name != "looking-verb" or not names & {"deep-verb", "constructive-verb"}
        ]
    yield from verbs
    yield from _objects(asked, mentioned=only_light, alone="deep-verb" not in names and not context)
    yield from context
    yield from _shape(clauses, text, quoted, named, task, light=only_light or not names - {"neutral-verb"})


def _lead(clause: str) -> str:
    """A clause without its polite or hurried opening."""
    clause = clause.strip()
    for _ in range(4):
        shorter = _LEAD.sub("", clause)
        if shorter == clause:
            break
        clause = shorter
    return clause


def _found(name: str, pattern: re.Pattern[str], text: str) -> Iterator[Feature]:
    words = list(dict.fromkeys(found.group().strip() for found in pattern.finditer(text)))
    if words:
        yield Feature(name, min(len(words), 3), ", ".join(words[:4]))


def _verbs(clauses: list[str]) -> Iterator[Feature]:
    """The class of the verb that opens each clause, and of verbs joined to it."""
    for number, clause in enumerate(clauses):
        head = clause.split(" ", 1)[0]
        joined = re.findall(r"(?:\band |, |\bto )(\w[\w-]*)", clause)
        for position, verb in enumerate([head, *joined[:6]]):
            weight = 1.0 if position == 0 and number == 0 else 0.6
            if lexicon.DEEP.fullmatch(verb):
                yield Feature("deep-verb", weight, verb)
            elif lexicon.CONSTRUCTIVE.fullmatch(verb):
                yield Feature("constructive-verb", weight, verb)
            elif position == 0:
                for name, verbs in _LIGHT:
                    if verbs.fullmatch(verb):
                        yield Feature(name, weight, verb)


def _parts(text: str) -> Iterator[Feature]:
    parts = list(dict.fromkeys(lexicon.PARTS.findall(text)))
    if len(parts) > 2:
        yield Feature("wide", 1, ", ".join(parts))


def _objects(asked: str, *, mentioned: bool, alone: bool) -> Iterator[Feature]:
    """Things named. A large thing that is only looked at or touched in a word is a mention, not the work."""
    for feature in _found("large-object", lexicon.LARGE, asked):
        strength = (
            feature.strength * 0.3 if mentioned else feature.strength - 0.4 if alone else feature.strength
        )
        yield Feature(feature.name, round(strength, 2), feature.because)
    yield from _found("medium-object", lexicon.MEDIUM, asked)
    yield from _found("small-object", lexicon.SMALL, asked)
    if _TRIVIAL_ADD.search(asked):
        yield Feature("trivial-add", 1, _TRIVIAL_ADD.search(asked).group())  # type: ignore[union-attr]


def _shape(
    clauses: list[str], text: str, quoted: int, named: int, task: str, *, light: bool
) -> Iterator[Feature]:
    first = clauses[0] if clauses else ""
    judgement = lexicon.JUDGEMENT.search(text)
    if judgement and not (light and judgement.group() == "strategy"):
        yield Feature("judgement", 1, judgement.group())
    elif light and any(lexicon.LOOKUP.match(clause) for clause in [*clauses[-1:], first]):
        yield Feature("lookup", 1, first[:40])
    if quoted:
        yield Feature("literal", min(quoted, 2), f"{quoted} quoted")
    if named:
        yield Feature("named", min(named, 3), f"{named} file or identifier")
    place = _LINE.search(text)
    if place:
        yield Feature("place", 1, place.group())
    steps = len(clauses) + len(re.findall(r",? and (?:\w+)", text))
    if steps > 1:
        yield Feature("steps", min(steps - 1, 4), f"{steps} clauses")
    words = len(task.split())
    yield Feature("length", min(words / 10, 4), f"{words} words")
    played = lexicon.PLAYED_DOWN.findall(text)
    if played:
        yield Feature("played-down", min(len(played), 2), ", ".join(dict.fromkeys(played)))
    if _NAMED.search(text):
        yield Feature("naming", 1, _NAMED.search(text).group())  # type: ignore[union-attr]
