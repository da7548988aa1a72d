"""The injection detector: readings of a text (``layers``) × rules over words (``rules``) and over markup."""

from collections.abc import Iterator

from compass.redteam import lexicon, markup
from compass.redteam.fold import View, fold
from compass.redteam.layers import views
from compass.redteam.rules import Rule, codes, rules
from compass.scoring import Finding

#: Findings of one rule in one reading past this many say nothing new.
PER_RULE = 5


def injection_findings(text: str) -> list[Finding]:
    """Every way in which ``text`` tries to give orders to a model that reads it.

    Spans are code-point offsets into ``text``; what was found inside an encoding carries the span of the
    encoded run, and ``via`` names the layers from the outside in. Never raises; time and memory are linear in
    ``len(text)``. An empty list is not a proof of harmlessness.
    """
    found: dict[tuple[str, int, int], Finding] = {}
    for view in views(text):
        for finding in _in_view(view, len(text)):
            found.setdefault((finding.rule, finding.start, finding.end), finding)
    return sorted(found.values(), key=lambda f: (f.start, f.end, f.rule))


def _in_view(view: View, size: int) -> Iterator[Finding]:
    for hit in markup.hits(view.text):
        yield _finding(view, hit.rule, hit.family, hit.why, (hit.start, hit.end), size)
    folded = fold(view)
    tokenizer = lexicon.tokenizer(folded.text)
    tokens = tokenizer.findall(folded.text)
    coded = lexicon.encode(tokens)
    spans: list[tuple[int, int]] = []
    for rule, first, last in _matches(coded):
        if not spans:
            spans.extend(match.span() for match in tokenizer.finditer(folded.text))
        yield _finding(folded, rule.rule, rule.family, rule.why, (spans[first][0], spans[last - 1][1]), size)


def _finding(view: View, rule: str, family: str, why: str, span: tuple[int, int], size: int) -> Finding:
    start, end, layers = view.locate(*span)
    start = min(max(start, 0), max(size - 1, 0))
    return Finding(rule, family, start, max(min(end, size), start), why, (*view.via, *layers))


def _matches(coded: bytes) -> Iterator[tuple[Rule, int, int]]:
    """Rules that hold somewhere, with the half-open token span; vetoed matches are dropped."""
    line = coded.decode()
    present = frozenset(line)
    for rule in rules():
        if any(present.isdisjoint(needed) for needed in rule.needed):
            continue
        kept = 0
        for match in rule.pattern.finditer(coded):
            first, last = match.start() // 2, match.end() // 2
            while first < last - 1 and line[first] == lexicon.BREAK:
                first += 1
            if _vetoed(rule, line, first, last) or _mentioned(line, first, last):
                continue
            yield rule, first, last
            kept += 1
            if kept == PER_RULE:
                break


def _left(line: str, first: int, width: int) -> str:
    return line[max(0, first - width) : first].rpartition(lexicon.BREAK)[2]


def _right(line: str, last: int, width: int) -> str:
    return line[last : last + width].partition(lexicon.BREAK)[0]


def _vetoed(rule: Rule, line: str, first: int, last: int) -> bool:
    return any(_VETOES[name](line, first, last) for name in rule.vetoes)


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


def _negated(line: str, first: int, last: int) -> bool:
    return not codes("NEG").isdisjoint(_left(line, first, 3))


def _scoped(line: str, first: int, last: int) -> bool:
    after = _right(line, last, 4)
    return bool(after) and (after[0] in codes("COND") or not codes("DOC").isdisjoint(after[:2]))


def _defence(line: str, first: int, last: int) -> bool:
    around = _left(line, first, 6) + line[first:last] + _right(line, last, 4)
    return not codes("DEFENCE").isdisjoint(around)


_VETOES = {"third": _third, "negated": _negated, "scoped": _scoped, "defence": _defence}


def _mentioned(line: str, first: int, last: int) -> bool:
    """The match stands inside quotation marks, in a sentence that reports speech and orders nothing itself."""
    before, after = _left(line, first, 60), _right(line, last, 60)
    opened = before.count(lexicon.QUOTE) % 2
    if not opened or lexicon.QUOTE not in after or lexicon.QUOTE in line[first:last]:
        return False
    outside = before.rpartition(lexicon.QUOTE)[0] + after.partition(lexicon.QUOTE)[2]
    return not codes("MENTION").isdisjoint(outside) and codes("OBEY|IGN").isdisjoint(outside)
