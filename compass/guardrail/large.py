"""Large inputs: the same statement is judged once, here-document data is cut, and what stays too large is refused."""

import re

#: Characters of command text that are judged as they stand.
SMALL = 16_384
#: Characters of distinct statements that are judged of a larger text.
LARGEST = 32_768

_HEREDOC = re.compile(r"<<-?[ \t]*(?:\\|(['\"]))?([\w.!@%+:-]+)")
_SHELLS = re.compile(r"\b(?:ba|da|z|k|a|c|fi)?sh\b|\bpython|\bperl|\bruby|\bnode|\bphp|\bssh\b|\bat\b|\bcrontab\b|\bsource\b|\beval\b")
_SPLIT = re.compile(r"[;&|\n]+")
_QUOTES = re.compile(r"['\"`({]")


def condense(text: str) -> tuple[str, str | None]:
    """A text small enough to judge that says the same, and why the rest could not be judged (None: all of it could)."""
    if len(text) <= SMALL:
        return text, None
    text = _without_documents(text)
    kept: dict[str, None] = {}
    size = 0
    for line in text.split("\n"):
        if line in kept:
            continue
        # Inside quotes or parentheses a separator separates nothing, so such lines stay whole.
        pieces = [line] if _QUOTES.search(line) else _SPLIT.split(line)
        if len(pieces) > 1 and not _repeats(pieces):
            pieces = [line]
        for piece in dict.fromkeys(pieces):
            if piece in kept:
                continue
            size += len(piece) + 1
            if size > LARGEST:
                return "\n".join(kept), f"more than {LARGEST} characters of different commands: too much to judge at once"
            kept[piece] = None
    return "\n".join(kept), None


def _repeats(pieces: list[str]) -> bool:
    return len(set(pieces)) < len(pieces) // 2


def _without_documents(text: str) -> str:
    """Cut the bodies of here-documents that only become files; bodies that a shell may read stay."""
    out: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        out.append(line)
        found = _HEREDOC.search(line)
        if not found or _SHELLS.search(line):
            continue
        delimiter = found.group(2)
        body: list[str] = []
        for inner in lines:
            body.append(inner)
            if inner.strip("\t ") == delimiter:
                break
        # An unquoted body is expanded, so what it substitutes still runs.
        out += [inner for inner in body[:-1] if not found.group(1) and ("$(" in inner or "`" in inner)] + body[-1:]
    return "\n".join(out)
