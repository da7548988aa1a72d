"""The vocabulary table of STANDARD.md is the schema's."""

from pathlib import Path

import pytest

from grader.vocabulary.registry import types
from grader.vocabulary.table import BEGIN, END, STANDARD, main, render, updated
from schema.errors import CheckFailed


def test_the_standard_lists_the_vocabulary_as_it_is() -> None:
    """A table kept by hand says what the grader did last year."""
    assert main(["--check"]) == 0
    assert all(f"| `{kind}` |" in STANDARD.read_text("utf-8") for kind in types())


def test_every_type_is_in_one_section() -> None:
    assert all(render().count(f"| `{kind}` |") == 1 for kind in types())


def test_a_stale_table_is_told_and_mended(tmp_path: Path) -> None:
    path = tmp_path / "STANDARD.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert main(["--check"], path) == 1
    assert main([], path) == 0
    assert main(["--check"], path) == 0
    text = path.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")


@pytest.mark.parametrize("text", ["", BEGIN, f"{END}{BEGIN}", f"{BEGIN}{END}{END}"])
def test_missing_markers_are_told(text: str) -> None:
    with pytest.raises(CheckFailed, match="markers"):
        updated(text)
