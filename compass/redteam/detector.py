"""The injection detector: readings of a text (``layers``) × rules over words (``rules``) and over markup."""

from collections import defaultdict
from collections.abc import Iterator, MutableMapping
from itertools import islice
from typing import NamedTuple, Protocol

from compass.redteam import cues, lexicon, markup
from compass.redteam.fold import View
from compass.redteam.layers import readings
from compass.redteam.reading import Reading
from compass.redteam.rules import TOLERATED, Rule, codes, rules
from compass.scoring import Finding

#: Findings of one rule in one text past this many say nothing new: the rule is not looked for any more.
PER_RULE = 5


#: The rule id of what the cue model finds.
CUES = "composite/cues"


class Named(Protocol):
    """What every kind of hit says about itself."""

    @property
    def rule(self) -> str:
        """The rule's id."""

    @property
    def family(self) -> str:
        """Its family."""

    @property
    def why(self) -> str:
        """What it means."""


class Cue(NamedTuple):
    """A hit of the cue model."""

    rule: str
    family: str
    why: str


def injection_findings(text: str) -> list[Finding]:
    """Every way in which ``text`` tries to give orders to a model that reads it.

    Spans are code-point offsets into ``text``; what was found inside an encoding carries the span of the
    encoded run, and ``via`` names the layers from the outside in. Never raises; time and memory are linear in
    ``len(text)``. An empty list is not a proof of harmlessness.
    """
    # Half a character is no text: RE2 refuses it, and a reader sees a sign of damage in its place.
    text = text.encode("utf-8", "replace").decode("utf-8")
    found: dict[tuple[str, int, int], Finding] = {}
    left: defaultdict[str, int] = defaultdict(lambda: PER_RULE)
    for reading in readings(text):
        for finding in _in_reading(reading, len(text), left):
            found.setdefault((finding.rule, finding.start, finding.end), finding)
    return sorted(found.values(), key=lambda f: (f.start, f.end, f.rule))


def _in_reading(reading: Reading, size: int, left: MutableMapping[str, int]) -> Iterator[Finding]:
    for view in (reading.view,) if reading.text.isascii() else (reading.view, reading.folded):
        for hit in markup.hits(view.text, left):
            yield _finding(view, hit, (hit.start, hit.end), size)
    coded = lexicon.encode(reading.tokens)
    covered: list[tuple[int, int]] = []
    for rule, first, last in _matches(coded, left):
        covered.append((first, last))
        yield _at(reading, rule, first, last, size)
    for judgement in islice(cues.judge(coded.decode()), left[CUES]):
        if not any(first < judgement.last and judgement.first < last for first, last in covered):
            left[CUES] -= 1
            cue = Cue(CUES, "composite", judgement.why)
            yield _at(reading, cue, judgement.first, judgement.last, size)


def _at(reading: Reading, rule: Named, first: int, last: int, size: int) -> Finding:
    return _finding(reading.folded, rule, reading.span(first, last), size)


def _finding(view: View, rule: Named, span: tuple[int, int], size: int) -> Finding:
    start, end, layers = view.locate(*span)
    start = min(max(start, 0), max(size - 1, 0))
    return Finding(rule.rule, rule.family, start, max(min(end, size), start), rule.why, (*view.via, *layers))


def _matches(coded: bytes, left: MutableMapping[str, int]) -> Iterator[tuple[Rule, int, int]]:
    """Rules that hold somewhere, with the half-open token span; vetoed matches are dropped."""
    line = coded.decode()
    present = frozenset(line)
    for rule in rules():
        if left[rule.rule] and not any(present.isdisjoint(needed) for needed in rule.needed):
            for first, last in islice(_spans_of(rule, coded, line), left[rule.rule]):
                left[rule.rule] -= 1
                yield rule, first, last


def _spans_of(rule: Rule, coded: bytes, line: str) -> Iterator[tuple[int, int]]:
    for number, match in enumerate(rule.pattern.finditer(coded)):
        first, last = match.start() // 2, match.end() // 2
        while first < last - 1 and line[first] == lexicon.BREAK:
            first += 1
        # A veto repeated so often is no way of writing: it is there to hide something behind it.
        if number < TOLERATED and (_vetoed(rule, line, first, last) or _mentioned(line, first, last)):
            continue
        yield first, last


def _left(line: str, first: int, width: int) -> str:
    return line[max(0, first - width) : first].rpartition(lexicon.BREAK)[2]


def _right(line: str, last: int, width: int) -> str:
    return line[last : last + width].partition(lexicon.BREAK)[0]


def _vetoed(rule: Rule, line: str, first: int, last: int) -> bool:
    return (
        ("third" in rule.vetoes and _third(line, first, last))
        or ("negated" in rule.vetoes and _negated(line, first))
        or ("scoped" in rule.vetoes and _scoped(line, last))
        or ("defence" in rule.vetoes and _defence(line, first, last))
    )


def _third(line: str, first: int, last: int) -> bool:
    """The verb belongs to somebody else: a helper verb or pronoun stands before it, and no "you" does."""
    before = _left(line, first, 5)
    if before and before[-1] in codes("YOU") and not codes("COND").isdisjoint(before):
        return True
    if not before or before[-1] not in codes("AUX|CAN"):
        return False
    if not codes("YOU|YOUR").isdisjoint(before):
        return bool(codes("CAN") & set(before[-2:])) and codes("YOUR|SYS|GUARDX").isdisjoint(line[first:last])
    return codes("I_|AIN").isdisjoint(before)


def _negated(line: str, first: int) -> bool:
    return not codes("NEG").isdisjoint(_left(line, first, 3))


def _scoped(line: str, last: int) -> bool:
    after = _right(line, last, 8)
    if not after:
        return False
    placed = after[0] in codes("PLACED") and after[1:2] in codes("COND")
    return (
        after[0] in codes("COND")
        or not codes("DOC").isdisjoint(after[:2])
        or (placed and codes("YOUR|SYSTEMX|PROMPT|AI").isdisjoint(after))
    )


def _defence(line: str, first: int, last: int) -> bool:
    around = _left(line, first, 6) + line[first:last] + _right(line, last, 4)
    return not codes("DEFENCE").isdisjoint(around)


def _mentioned(line: str, first: int, last: int) -> bool:
    """The match stands in quotation marks, in a sentence that reports speech and orders nothing itself."""
    before, after = _left(line, first, 60), _right(line, last, 60)
    opened = before.count(lexicon.QUOTE) % 2
    if not opened or lexicon.QUOTE not in after or lexicon.QUOTE in line[first:last]:
        return False
    outside = before.rpartition(lexicon.QUOTE)[0] + after.partition(lexicon.QUOTE)[2]
    return not codes("MENTION").isdisjoint(outside) and codes("OBEY|IGN").isdisjoint(outside)
