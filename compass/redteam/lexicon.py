"""Words into classes: a text becomes a string with one two-byte code a token, which the rules match.

Thinking in classes (ignore/disregard/olvida × previous/anterior × rules/regeln) instead of phrases is what
lets a rule reach wording nobody listed. The words are data: ``compass/data/redteam-lexicon.txt``.
"""

import re
from collections import defaultdict
from functools import cache
from importlib.resources import files
from itertools import groupby

from compass.redteam.fold import fold_char

#: Codes live where UTF-8 takes exactly two bytes, so a byte offset halves into a token index.
_FIRST, _LAST = 0x100, 0x7FF
BREAK, COMMA, COLON, QUOTE, OTHER, NUMBER, SINGLE = (chr(code) for code in range(_FIRST, _FIRST + 7))
_PUNCTUATION = {
    "BREAK": BREAK,
    "COMMA": COMMA,
    "COLON": COLON,
    "QUOTE": QUOTE,
    "NUMBER": NUMBER,
    "SINGLE": SINGLE,
}

#: Scripts whose vowel signs ``re`` does not take for word characters: Indic, Thai, Lao.
SCRIPTS = "\u0900-\u0dff\u0e00-\u0e7f"
_UNSPACED = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_REST = (
    r"|[.](?=\s|$)|[!?;…。；]|\n[^\S\n]*\n+|\n[^\S\n]*(?:[-+]|\d{1,3}[.)])[^\S\n]|(?<=\s)[|](?=\s)"
    r"|[,،、，]|[:：]|[\"“”«»「」『』`]|(?<!\w)'|'(?!\w)"
)


def _word(letters: str, foreign: str = "") -> str:
    """``letters`` and the rest of an address, or more letters after a joint; ``foreign`` ones do not join."""
    return rf"[@$|]?{letters}(?:://[^\s?)>\]\"'`]*+|(?:['@$|!._-][^\W_{foreign}]++)*+)"


#: Files whose stem says what they are (``CLAUDE.md``, ``mcp.json``).
_HOST = re.compile(
    r"(?:[\w.-]+@)?[\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|dev|app|xyz|ru|cn|me|ly|sh|co|info|biz|top|site|example|test"
    r"|invalid|onion)|\d{1,3}(?:\.\d{1,3}){3}"
)
_FILE = re.compile(r"([^\W_]+)\.(?:md|mdc|json|txt|ya?ml|toml|env|sh|py)")

#: How programs name a secret (``GITHUB_TOKEN``); such words share one class.
_SECRET_NAME = re.compile(r"[a-z][a-z0-9_]*_(?:token|key|secret|passw(?:or)?d|pwd|credentials?)")

_LEET = (
    {**dict(zip("0134578@$|9!26", "oleastbasigizg", strict=True)), "1": "i"},
    {"1": "l", "!": "l", "|": "l"},
)
_LEET_TABLES = (str.maketrans(_LEET[0]), str.maketrans({**_LEET[0], **_LEET[1]}))

_STRETCHED = re.compile(r"(.)\1\1")
_REPEATED = re.compile(r"(.)\1+")

#: Unknown words are remembered up to this many; then the memory starts afresh.
_REMEMBERED = 200_000


def fold_word(word: str) -> str:
    """``word`` as it looks in a folded text."""
    return "".join(map(fold_char, word))


def _read() -> dict[str, frozenset[str]]:
    classes: dict[str, set[str]] = defaultdict(set)
    name = ""
    text = (files("compass") / "data" / "redteam-lexicon.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("["):
            name = line[1 : line.index("]")]
        elif line and not line.startswith("#"):
            for word in line.split()[1:]:
                classes[fold_word(word)].add(name)
    for word in sorted(classes, key=len):
        for length in range(2, len(word)):
            classes[word] |= classes.get(word[:length] + "*", set())
    plain = frozenset({"NONE"})
    return {word: plain if "NONE" in names else frozenset(names) for word, names in classes.items()}


class Lexicon(dict[str, str]):
    """Folded token → code; words not listed are resolved by stem, disguise and spelling, then remembered."""

    def __init__(self, words: dict[str, frozenset[str]]) -> None:
        super().__init__()
        codes: dict[frozenset[str], str] = {}
        self.classes: dict[str, str] = defaultdict(str, _PUNCTUATION)
        for names in sorted(set(words.values()), key=sorted):
            codes[names] = chr(_FIRST + 16 + len(codes))
            for name in names:
                self.classes[name] += codes[names]
        if _FIRST + 16 + len(codes) > _LAST:
            raise ValueError("the lexicon has more class combinations than two-byte codes")
        codes[frozenset({"NONE"})] = OTHER
        self.exact = {word: codes[names] for word, names in words.items() if not word.endswith("*")}
        self.stems = {word[:-1]: codes[names] for word, names in words.items() if word.endswith("*")}
        self.unspaced = sorted(
            (word for word in self.exact if re.match(f"[{_UNSPACED}]", word)), key=lambda w: (-len(w), w)
        )
        self._longest = max(map(len, self.stems), default=0)
        self._stem_heads = {word[:2] for word in self.stems}
        self._squeezed = {_REPEATED.sub(r"\1", word): word for word in self.exact if len(word) > 2}
        self._scrambles, self._near = _spellings(self.exact)
        self._shapes = {(word[0], word[-1], len(word)) for word in self._scrambles.values()}
        self._near_shapes = {
            (word[0], word[-1], len(word) + more) for word in self._near.values() for more in (-1, 0, 1)
        }
        self._restart()

    def _restart(self) -> None:
        self.clear()
        self.update(self.exact)
        self.update(dict.fromkeys(".!?;…。；|", BREAK))
        self.update(dict.fromkeys(",،、，", COMMA))
        self.update(dict.fromkeys(":：", COLON))
        self.update(dict.fromkeys("\"'“”«»「」『』`", QUOTE))

    def __missing__(self, word: str) -> str:
        if len(self) > _REMEMBERED:
            self._restart()
        code = self._resolve(word)
        self[word] = code
        return code

    def _resolve(self, word: str) -> str:
        if word[0] in "\n|":
            return BREAK
        if len(word) == 1:
            return SINGLE
        if "://" in word:
            return self.exact["https"]
        file = _FILE.fullmatch(word)
        if file:
            return self[file[1]]
        if "_" in word and _SECRET_NAME.fullmatch(word):
            return self.exact["the_secret_key"]
        if "." in word and len(word) < 256 and _HOST.fullmatch(word):
            return self.exact["domain.example"]
        return self._stem(word) or self._spelled(word) or (NUMBER if word.isdigit() else OTHER)

    def _stem(self, word: str) -> str:
        if word[:2] not in self._stem_heads:
            return ""
        for length in range(min(len(word), self._longest), 1, -1):
            code = self.stems.get(word[:length])
            if code:
                return code
        return ""

    def _spelled(self, word: str) -> str:
        if len(word) > 24:
            return ""
        if not word.isalpha():
            return self._unmasked(word)
        if _STRETCHED.search(word):
            plain = self._squeezed.get(_REPEATED.sub(r"\1", word))
            if plain:
                return self.exact[plain]
        if len(word) < 5 or not word.isascii():
            return ""
        shape = (word[0], word[-1], len(word))
        if shape in self._shapes:
            scrambled = self._scrambles.get(_scramble(word))
            if scrambled:
                return self.exact[scrambled]
        return self._misspelled(word) if shape in self._near_shapes else ""

    def _unmasked(self, word: str) -> str:
        if word.isdigit() or not any(char.isalpha() for char in word):
            return ""
        for table in _LEET_TABLES:
            plain = word.translate(table)
            code = self.exact.get(plain) or (self._stem(plain) if plain.isalpha() else "")
            if code:
                return code
        owner, mark, ending = word.partition("'")
        return self.exact.get(owner, "") if mark and len(ending) < 3 else ""

    def _misspelled(self, word: str) -> str:
        """One letter dropped, doubled, added or replaced inside a word of eight letters or more."""
        if word in self._near:
            return self.exact[self._near[word]]
        for index in range(1, len(word) - 1):
            rest = word[:index] + word[index + 1 :]
            meant = self._near.get(rest, rest if len(rest) > 7 and rest in self.exact else "")
            if meant and _one_edit(word, meant):
                return self.exact[meant]
        return ""

    def of(self, names: str) -> str:
        """The codes of one class or of several joined by ``|``; KeyError for a class nobody defined."""
        missing = [name for name in names.split("|") if name not in self.classes]
        if missing:
            raise KeyError(f"unknown word class {missing[0]}")
        return "".join(sorted(set("".join(self.classes[name] for name in names.split("|")))))


def _scramble(word: str) -> str:
    return word[0] + "".join(sorted(word[1:-1])) + word[-1]


def _shared(one: str, other: str) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _one_edit(one: str, other: str) -> bool:
    head = _shared(one, other)
    tail = _shared(one[head:][::-1], other[head:][::-1])
    return head + tail >= max(len(one), len(other)) - 1


def _spellings(exact: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    scrambles: dict[str, str] = {}
    near: dict[str, str] = {}
    for word in exact:
        if len(word) >= 5 and word.isascii() and word.isalpha():
            scrambles.setdefault(_scramble(word), word)
        if len(word) >= 8 and word.isascii() and word.isalpha():
            for index in range(1, len(word) - 1):
                near.setdefault(word[:index] + word[index + 1 :], word)
    return scrambles, near


@cache
def lexicon() -> Lexicon:
    """The shared lexicon, read once."""
    return Lexicon(_read())


def _branches(words: list[str]) -> str:
    groups = groupby(sorted(words, key=lambda w: w[0]), key=lambda w: w[0])
    tails = ((head, sorted((w[1:] for w in group), key=len, reverse=True)) for head, group in groups)
    return "|".join(f"{head}(?:{'|'.join(map(re.escape, tail))})" for head, tail in tails)


@cache
def _tokenizers() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    known = _branches(lexicon().unspaced)
    # The look-ahead comes first: most characters are not tried against hundreds of words.
    unspaced = rf"(?=[{_UNSPACED}])(?:{known}|(?:(?!{known})[{_UNSPACED}])++)"
    letters = rf"(?:[^\W_{_UNSPACED}{SCRIPTS}]++|[{SCRIPTS}]++)++"
    needed = re.compile(f"[{_UNSPACED}{SCRIPTS}]")
    plain = _word(r"[^\W_]++")
    return (
        needed,
        re.compile(f"({plain}{_REST})"),
        re.compile(f"({unspaced}|{_word(letters, _UNSPACED)}{_REST})"),
    )


def tokenizer(text: str) -> re.Pattern[str]:
    """The pattern whose matches are the tokens of the folded ``text``; its one group is the whole match."""
    needed, spaced, unspaced = _tokenizers()
    return unspaced if not text.isascii() and needed.search(text) else spaced


def encode(tokens: list[str]) -> bytes:
    """Two bytes a token, in order."""
    return "".join(map(lexicon().__getitem__, tokens)).encode()
