"""Large inputs: the same statement is judged once, here-document data is cut, and what stays too large is
refused."""

import re

#: Characters of command text that are judged as they stand.
SMALL = 40_000
#: Characters of distinct lines or statements that are judged of a larger text.
LARGEST = 64_000

_HEREDOC = re.compile(r"<<-?[ \t]*(?:\\|(['\"]))?([\w.!@%+:-]+)")
_SHELLS = re.compile(
    r"\b(?:ba|da|z|k|a|c|fi)?sh\b|\bpython|\bperl|\bruby|\bnode|\bphp|\bssh\b|\bat\b|\bcrontab\b|\bsource\b|\beval\b"
)
_SPLIT = re.compile(r"[;&|]+")
_QUOTES = re.compile(r"['\"`({]")


def condense(text: str) -> tuple[list[str], str | None]:
    """Texts small enough to judge that say the same together, and why the rest could not be judged (None:
    all was).

    A text over ``SMALL`` is taken line by line, and a line that repeats itself statement by statement, each
    distinct piece once; compound commands over several lines then count as their lines.
    """
    if len(text) <= SMALL:
        return [text], None
    kept: dict[str, None] = {}
    size = 0
    for line in _without_documents(text).split("\n"):
        if not line or line in kept:
            continue
        # Inside quotes or parentheses a separator separates nothing, so such lines stay whole.
        pieces = [line] if _QUOTES.search(line) else _SPLIT.split(line)
        for piece in dict.fromkeys(pieces) if _repeats(pieces) else [line]:
            if piece in kept or not piece.strip():
                continue
            size += len(piece) + 1
            if size > LARGEST:
                return list(
                    kept
                ), f"more than {LARGEST} characters of different commands: too much to judge at once"
            kept[piece] = None
    return list(kept), None


def _repeats(pieces: list[str]) -> bool:
    return len(pieces) > 2 and len(set(pieces)) < len(pieces) // 2


def _without_documents(text: str) -> str:
    """Cut the bodies of here-documents that only become files; bodies that a shell may read stay."""
    out: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        if line:
            out.append(line)
        found = _HEREDOC.search(line) if "<<" in line else None
        if not found or _SHELLS.search(line):
            continue
        delimiter = found.group(2)
        for inner in lines:
            if inner.strip("\t ") == delimiter:
                out.append(inner)
                break
            # An unquoted body is expanded, so what it substitutes still runs.
            if not found.group(1) and ("$(" in inner or "`" in inner):
                out.append(inner)
    return "\n".join(out)
