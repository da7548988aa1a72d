"""Where words, quotes, substitutions and here-documents of shell text end. Never looks back."""

import re

#: A stretch of a word without anything that the shell reads specially.
PLAIN = re.compile(r"[^\s\\'\"`$|&;()<>]+")
_STOP = re.compile(r"[\\'\"`$(){}#\n<]")
_HEREDOC = re.compile(r"<<-?[ \t]*(?:\\|['\"])?([\w.!@%+:-]+)")


def closing(text: str, start: int, opener: str) -> int:  # noqa: PLR0912 - one branch a construct of the language
    """The offset just past what closes ``opener`` (one of ``( { " ```), whose inside begins at ``start``.

    Follows quotes, substitutions, comments and here-documents; the end of the text closes everything.
    """
    stack = [opener]
    pending: list[str] = []
    at, end = start, len(text)
    while stack:
        found = _STOP.search(text, at)
        if found is None:
            return end
        at = found.end()
        char, top = found.group(), stack[-1]
        if char == "\\":
            at += 1
        elif char == top == "`" or (char == '"' and top == '"'):
            stack.pop()
        elif char == "`":
            stack.append("`")
        elif char == '"':
            stack.append('"')
        elif char == "$":
            following = text[at : at + 1]
            if following in ("(", "{"):
                stack.append(following)
                at += 1
            elif following == "'" and top != '"':
                at = _ansi_end(text, at + 1)
        elif top == '"':
            continue
        elif char == "'":
            close = text.find("'", at)
            at = end if close < 0 else close + 1
        elif char == "(":
            stack.append("(")
        elif (char == ")" and top == "(") or (char == "}" and top == "{"):
            stack.pop()
        elif char == "#" and top == "(" and text[at - 2 : at - 1] in (" ", "\t", "\n", ";"):
            close = text.find("\n", at)
            at = end if close < 0 else close
        elif char == "<" and top == "(":
            here = _HEREDOC.match(text, at - 1)
            if here and text[at : at + 2] != "<<":
                pending.append(here.group(1))
                at = here.end()
        elif char == "\n" and pending and top == "(":
            for delimiter in pending:
                _, at = heredoc(text, at, delimiter, strip=True)
            pending.clear()
    return min(at, end)


def _ansi_end(text: str, at: int) -> int:
    """Past the quote that ends a ``$'…'`` whose inside begins at ``at``."""
    found = re.compile(r"(?:[^'\\]|\\.)*", re.S).match(text, at)
    return min(len(text), (found.end() if found else at) + 1)


def heredoc(text: str, at: int, delimiter: str, *, strip: bool) -> tuple[str, int]:
    """A here-document's body that begins at ``at``, and the offset of the line after its delimiter."""
    tabs = r"\t*" if strip else ""
    found = re.compile(rf"^{tabs}{re.escape(delimiter)}[ \t]*(?:\n|\)|\Z)", re.M).search(text, at)
    if found is None:
        return text[at:], len(text)
    return text[at : found.start()], found.end() - (found.group().endswith(")"))


def word_end(text: str, at: int) -> int:
    """The offset just past the word that begins at ``at``."""
    end = len(text)
    while at < end:
        plain = PLAIN.match(text, at)
        if plain:
            at = plain.end()
            continue
        char = text[at]
        following = text[at + 1 : at + 2]
        if char == "\\":
            at += 2
        elif char == "'":
            close = text.find("'", at + 1)
            at = end if close < 0 else close + 1
        elif char in '"`':
            at = closing(text, at + 1, char)
        elif char == "$" and following == "'":
            at = _ansi_end(text, at + 2)
        elif char == "$" and following == '"':
            at += 1
        elif char == "$" and following in ("(", "{"):
            at = closing(text, at + 2, following)
        elif char == "$":
            at += 1
        elif char in "<>" and following == "(":
            at = closing(text, at + 2, "(")
        elif char == "(" and text[at - 1 : at] in "=?*+@!" and at > 0:
            at = closing(text, at + 1, "(")
        else:
            break
    return min(at, end)
