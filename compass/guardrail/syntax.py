"""Shell text to a small syntax tree: tolerant, linear in the text, with bounded nesting.

A guard reads text that somebody may have written against it, so the parser never gives up on a syntax error
(it
takes what it can and goes on), never looks back, and refuses only nesting deeper than ``DEPTH``. See
docs/decisions/004-compass-parses-shell-itself.md for why it is not tree-sitter's; tests hold the two
against each other.
"""

import re

from compass.guardrail.extents import PLAIN, closing, heredoc, word_end
from compass.guardrail.nodes import Compound, Function, Item, Node, Pipeline, Redirect, Sequence, Simple

#: Compound commands inside one another; a person's deepest are about six.
DEPTH = 24


_BLANK = re.compile(r"(?:[ \t\r\x0b\x0c]|\\\r?\n)+")
_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|;|\|&|\||&>>|&>|&|\(|\)|\n|<<<|<<-|<<|<&|<>|<|>>|>&|>\||>!?")
_FD = re.compile(r"(\d{1,4}|\{\w{1,40}\})(?=[<>])")
_ASSIGN = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]=\n]{0,200}\])?(\+?=)")
_OPENERS = {"if", "while", "until", "for", "select", "case", "{", "function", "[["}
_PREFIXES = {"!", "time", "coproc"}
_CLOSERS = {"then", "else", "elif", "fi", "do", "done", "esac", "}"}


class TooDeepError(ValueError):
    """The text nests compound commands deeper than ``DEPTH``."""


class Parser:
    """Reads one text; ``sequence()`` at the top level reads it all."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.pending: list[tuple[Redirect, str, bool]] = []

    def parse(self) -> Sequence:
        """The whole text as one list; stray closers are skipped."""
        items: Sequence = []
        while True:
            items += self.sequence()
            if self.at >= len(self.text):
                return items
            self.at += 1 if self.text[self.at] in "();&|<>\n" else 0
            word = self._peek_word()
            if word in _CLOSERS:
                self.at += len(word)

    def sequence(self) -> Sequence:
        """Items up to a closing word, a closing parenthesis, or the end."""
        items: Sequence = []
        joiner = ""
        while True:
            self._skip(newlines=True)
            if self.at >= len(self.text):
                return items
            operator = self._operator()
            if operator == ")" or operator in (";;", ";&", ";;&"):
                return items
            if operator in (";", "&", "&&", "||", "|", "|&"):
                self.at += len(operator)
                continue
            if self._peek_word() in _CLOSERS:
                return items
            before = self.at
            item = Item(self._pipeline(), joiner)
            items.append(item)
            self._skip()
            operator = self._operator()
            joiner = operator if operator in ("&&", "||") else ""
            if operator in ("&", "&&", "||", ";"):
                item.background = operator == "&"
                self.at += len(operator)
            if self.at == before:
                self.at += 1

    def _pipeline(self) -> Node:
        stages = [self._command()]
        while True:
            self._skip()
            if self._operator() not in ("|", "|&"):
                break
            self.at += len(self._operator())
            self._skip(newlines=True)
            if self.at >= len(self.text) or self._operator() in (")", ";", "&", "|", "&&", "||"):
                break
            stages.append(self._command())
        return stages[0] if len(stages) == 1 else Pipeline(stages)

    def _command(self) -> Node:
        self.depth += 1
        if self.depth > DEPTH:
            raise TooDeepError(f"shell compounds nest deeper than {DEPTH}")
        try:
            return self._compound() or self._simple()
        finally:
            self.depth -= 1

    def _compound(self) -> Node | None:  # noqa: PLR0912 - one branch a construct of the language
        text = self.text
        self._prefixes()
        start = self.at
        if text.startswith("((", start):
            close = closing(text, start + 1, "(")
            if text.startswith("))", close - 2):
                self.at = close
                return Compound("arith", start, [], name=text[start:close], end=close)
        if text.startswith("(", start):
            self.at += 1
            body = self.sequence()
            if self._operator() == ")":
                self.at += 1
            return self._finish(Compound("subshell", start, [body]))
        word = self._peek_word()
        if word not in _OPENERS:
            return None
        self.at += len(word)
        match word:
            case "{":
                return self._finish(Compound("brace", start, self._parts({"}"})))
            case "if":
                return self._finish(Compound("if", start, self._parts({"fi"})))
            case "while" | "until":
                return self._finish(Compound("while", start, self._parts({"done"})))
            case "for" | "select":
                return self._for(start)
            case "case":
                return self._case(start)
            case "[[":
                close = text.find("]]", self.at)
                self.at = len(text) if close < 0 else close + 2
                return self._finish(Compound("test", start, []))
            case _:
                self._skip()
                name = self._word()
                self._skip()
                if text.startswith("(", self.at):
                    self.at = closing(text, self.at + 1, "(")
                return self._function(name, start)

    def _prefixes(self) -> None:
        """Move over words that change nothing about what runs."""
        while (word := self._peek_word()) in _PREFIXES:
            self.at += len(word)
            self._skip()
            if word == "time" and self.text.startswith("-p", self.at):
                self.at += 2
                self._skip()

    def _parts(self, closers: set[str]) -> list[Sequence]:
        """The lists between a compound's keywords, up to and over one of ``closers``."""
        parts = []
        while True:
            parts.append(self.sequence())
            word = self._peek_word()
            if word not in _CLOSERS:
                if self.at < len(self.text) and self._operator() in (";;", ";&", ";;&"):
                    self.at += len(self._operator())
                    continue
                return parts
            if word not in closers and word not in ("then", "else", "elif", "do"):
                return parts
            self.at += len(word)
            if word in closers:
                return parts

    def _for(self, start: int) -> Node:
        self._skip()
        if self.text.startswith("((", self.at):
            header = self.at
            self.at = closing(self.text, self.at + 1, "(")
            name, values = self.text[header : self.at], ["{1..2}"]
        else:
            name, values = self._word(), []
            self._skip(newlines=True)
            if self._peek_word() == "in":
                self.at += 2
                values = self._words()
            else:
                values = ['"$@"']
        return self._finish(Compound("for", start, self._parts({"done"}), name=name, values=values))

    def _case(self, start: int) -> Node:
        self._skip()
        subject = self._word()
        self._skip(newlines=True)
        if self._peek_word() == "in":
            self.at += 2
        parts: list[Sequence] = []
        while True:
            self._skip(newlines=True)
            if self.at >= len(self.text):
                break
            if self._peek_word() == "esac":
                self.at += 4
                break
            close = self.text.find(")", self.at + self.text.startswith("(", self.at))
            if close < 0:
                self.at = len(self.text)
                break
            self.at = close + 1
            parts.append(self.sequence())
            if self._operator() in (";;", ";&", ";;&"):
                self.at += len(self._operator())
            elif self._peek_word() != "esac" and self.at < len(self.text):
                break
        return self._finish(Compound("case", start, parts, values=[subject]))

    def _finish(self, node: Compound) -> Compound:
        """Take the redirections that follow a compound."""
        while True:
            self._skip()
            redirect = self._redirect()
            if redirect is None:
                node.end = self.at
                return node
            node.redirects.append(redirect)

    def _function(self, name: str, start: int) -> Node:
        self._skip(newlines=True)
        body = self._command()
        return Function(name, body, start, self.at)

    def _simple(self) -> Node:
        node = Simple(self.at)
        while True:
            self._skip()
            if self.at >= len(self.text):
                break
            redirect = self._redirect()
            if redirect is not None:
                node.redirects.append(redirect)
                continue
            if self._operator() == "(" and len(node.words) == 1 and not node.assignments:
                close = self.at + 1
                blank = _BLANK.match(self.text, close)
                close = blank.end() if blank else close
                if self.text.startswith(")", close):
                    self.at = close + 1
                    return self._function(node.words[0], node.start)
            if self._operator():
                break
            before = self.at
            assign = _ASSIGN.match(self.text, self.at) if not node.words else None
            if assign:
                self.at = assign.end()
                if self.text.startswith("(", self.at):
                    end = closing(self.text, self.at + 1, "(")
                    self.at = max(end, self.at + 1)
                    value = self.text[assign.end() : self.at]
                else:
                    value = self._word()
                node.assignments.append((assign.group(1) + assign.group(2)[:-1], value))
            else:
                node.words.append(self._word())
            if self.at == before:
                self.at += 1
        node.end = self.at
        return node

    def _redirect(self) -> Redirect | None:
        text = self.text
        found = _FD.match(text, self.at)
        fd, at = (found.group(1), found.end()) if found else ("", self.at)
        operator = _OPERATOR.match(text, at)
        op = operator.group() if operator else ""
        if not op or (op[0] not in "<>" and op[:2] != "&>"):
            return None
        if op in ("<", ">") and text.startswith("(", at + 1):
            return None
        self.at = at + len(op)
        self._skip()
        redirect = Redirect(fd, op, self._word())
        if op in ("<<", "<<-"):
            raw = redirect.target
            delimiter = re.sub(r"[\\'\"]|^\$(?=['\"])", "", raw)
            redirect.literal = delimiter != raw
            redirect.target = ""
            if delimiter:
                self.pending.append((redirect, delimiter, op == "<<-"))
        return redirect

    def _words(self) -> list[str]:
        words: list[str] = []
        while True:
            self._skip()
            if self.at >= len(self.text) or self._operator():
                return words
            before = self.at
            words.append(self._word())
            if self.at == before:
                return words

    def _word(self) -> str:
        start = self.at
        self.at = word_end(self.text, start)
        return self.text[start : self.at]

    def _peek_word(self) -> str:
        found = PLAIN.match(self.text, self.at)
        if found is None or (found.end() < len(self.text) and self.text[found.end()] in "\\'\"`$"):
            return ""
        return found.group()

    def _operator(self) -> str:
        found = _OPERATOR.match(self.text, self.at)
        if found is None:
            return ""
        op = found.group()
        process = op in ("<", ">") and self.text.startswith("(", self.at + 1)
        return "" if process else op

    def _skip(self, *, newlines: bool = False) -> None:
        """Move over blanks and comments, and over newlines (with the here-documents they end) if asked."""
        text, end = self.text, len(self.text)
        while self.at < end:
            blank = _BLANK.match(text, self.at)
            if blank:
                self.at = blank.end()
            elif text[self.at] == "#" and (self.at == 0 or text[self.at - 1] in " \t\n;&|()"):
                close = text.find("\n", self.at)
                self.at = end if close < 0 else close
            elif newlines and text[self.at] == "\n":
                self.at += 1
                for redirect, delimiter, strip in self.pending:
                    redirect.target, self.at = heredoc(text, self.at, delimiter, strip=strip)
                self.pending.clear()
            else:
                return


def parse(text: str) -> Sequence:
    """The syntax tree of ``text``. Raises TooDeepError."""
    return Parser(text).parse()
