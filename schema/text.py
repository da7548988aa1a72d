"""Text that somebody else wrote, made harmless where people see it: the one place for screens and reports."""

import html


def plain(text: str) -> str:
    """One line of printable characters; every other character is spelled out (``\\x1b``, ``\\u202e``).

    Not printable: controls, line ends, bidirectional and zero-width marks, surrogates, private and unassigned
    characters, every space but the plain one. Nothing that remains moves a cursor or reorders a line.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def plain_lines(text: str) -> str:
    """The same, line ends kept."""
    return "\n".join(plain(line) for line in text.replace("\r\n", "\n").split("\n"))


def markdown(text: str) -> str:
    """One cell or heading of a markdown report: no table border, no tag, no link, no code, no control."""
    return html.escape(plain(text), quote=False).translate(_MARKS)


_MARKS = str.maketrans({"|": "\\|", "[": "\\[", "`": "\\`"})
