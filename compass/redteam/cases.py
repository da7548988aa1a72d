"""The labelled red-team rows, from the text corpus and the programmatic ones, in one shape."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from compass import corpus
from compass.redteam import programmatic

#: The text corpus; its columns are the seed's.
PATH = corpus.FOLDER / "redteam.tsv"
UNSEEN = corpus.UNSEEN / "redteam.tsv"
#: Rows to learn from; nothing is scored on them, and the present cue weights were fitted without them.
TRAINING = corpus.FOLDER / "training" / "redteam.tsv"


class Case(NamedTuple):
    """One row: ``inject`` is its label, the rest what the corpus and its index say."""

    case: str
    inject: bool
    text: str
    family: str
    split: str
    language: str


def cases() -> Iterator[Case]:
    """Every gating row, file rows first. Raises CorpusError when the corpus or its index is malformed."""
    yield from file_cases(PATH)
    for number, built in enumerate(programmatic.rows(), start=1):
        case = f"programmatic:{number}"
        yield Case(
            case, _is_inject(built.label, case), built.payload, built.family, built.split, built.language
        )


def file_cases(path: Path) -> Iterator[Case]:
    """The rows of one corpus file. Raises CorpusError when it or its index is malformed."""
    for row in corpus.rows(path, range(2, 3)):
        label, text = row.columns
        yield Case(row.case, _is_inject(label, row.case), text, row.family, row.split, (*row.tags, "en")[0])


def _is_inject(label: str, case: str) -> bool:
    if label not in {"inject", "safe"}:
        raise corpus.CorpusError(f"{case}: label {label!r} is neither inject nor safe")
    return label == "inject"
