"""Leaks."""

from schema.verdict import Category
from tests.attacks.attack import Attack, Fails, Gold

SCANNED = "names, contents and link targets are scanned as bytes before anything is written"
OBJECTS = "every object of the repository is scanned before anything is written"


def _leak(name: str, naive: str, defence: str = SCANNED, pattern: str = "sk") -> Attack:
    return Attack(name, naive, defence, Fails(Category.SECRET_LEAK, f"pattern {pattern})"))


ATTACKS = (
    *(
        _leak(f"key-{kind}", "keeps it with the evidence", pattern=kind)
        for kind in ("sk", "google", "bearer", "npm", "github", "github-pat", "groq")
    ),
    _leak("key-in-the-transcript", "publishes transcripts"),
    _leak(
        "key-escaped-in-the-transcript",
        "scans raw bytes, then quotes decoded ones",
        "verdicts are scanned as they will be written",
    ),
    Attack(
        "key-escaped-in-a-document",
        "quotes decoded text in a record",
        "verdicts are scanned as they will be written",
        Fails(Category.WRONG_TARGET),
    ),
    _leak("key-committed-then-deleted", "looks at files only", OBJECTS),
    _leak("key-in-a-commit-message", "looks at files only", OBJECTS),
    _leak("key-on-a-side-branch", "looks at HEAD only", OBJECTS),
    _leak("key-in-a-file-name", "scans contents only"),
    _leak("key-in-a-folder-name", "scans files only"),
    _leak("key-in-a-link", "scans contents only"),
    _leak("key-in-a-pipes-name", "lists refused names"),
    Attack(
        "key-on-standard-output",
        "keeps logs",
        "standard output is no evidence; the local log withholds what holds a key",
        Gold(),
    ),
    _leak("key-at-the-end-of-a-big-file", "scans the beginning"),
)
