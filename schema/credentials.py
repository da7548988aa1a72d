"""The one credential pattern list (Standard §4.1): ``no_secret`` and the scan before every write share it."""

from collections.abc import Iterator

import re2

from schema.base import Model
from schema.hashing import sha256

PATTERNS: dict[str, str] = {
    # \b would let `task-…` through as `sk-`: the token must start there.
    "sk": r"(?:^|[^A-Za-z0-9_-])sk-[A-Za-z0-9_-]{20,}",
    "google": r"AIza[0-9A-Za-z_-]{35}",
    "bearer": r"(?i:Bearer)\s+[A-Za-z0-9._+/=-]{16,}",
    "npm": r"npm_[A-Za-z0-9-]{36,}",
    "github": r"gh[pousr]_[A-Za-z0-9]{36,}",
    "github-pat": r"github_pat_[A-Za-z0-9_]{22,}",
    "groq": r"(?:^|[^A-Za-z0-9_])gsk_[A-Za-z0-9]{20,}",
}
"""Pattern id → RE2 expression over bytes. A change raises SUITE_VERSION (Standard §4.1)."""


def _options() -> re2.Options:
    options = re2.Options()
    # Latin-1 makes one byte one character, so that arbitrary bytes can be scanned.
    options.encoding = re2.Options.Encoding.LATIN1
    return options


_COMPILED = {name: re2.compile(pattern.encode(), options=_options()) for name, pattern in PATTERNS.items()}


class SecretFinding(Model):
    """Where a credential pattern matched. The path is hashed: it may itself hold the secret."""

    pattern: str
    """Id of the pattern in the credential list."""
    path_sha256: str | None
    """SHA-256 of the path's bytes; None when only decoding brought it out, while grading."""


def matching_patterns(data: bytes) -> Iterator[str]:
    """Ids of the patterns that occur in ``data``, in list order."""
    for name, expression in _COMPILED.items():
        if expression.search(data):
            yield name


def scan(path: bytes, data: bytes) -> SecretFinding | None:
    """The first credential in a file's content or in its name, or None."""
    for haystack in (data, path):
        for name in matching_patterns(haystack):
            return SecretFinding(pattern=name, path_sha256=sha256(path))
    return None
