"""Globs: anchored, linear, and no more than three wildcards."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.globs import matches, matches_any


@pytest.mark.parametrize(
    ("pattern", "path", "holds"),
    [
        ("a.md", "a.md", True),
        ("a.md", "docs/a.md", False),
        ("a.md", "a.mdx", False),
        ("*.md", "a.md", True),
        ("*.md", ".md", True),
        ("*.md", "docs/a.md", False),
        ("*", ".hidden", True),
        ("docs/*", "docs/a/b", False),
        ("docs/**", "docs/a/b", True),
        ("docs/**", "docs", False),
        ("docs/**", "docsx/a", False),
        ("**", "a/b/c", True),
        ("**/a", "a", True),
        ("**/a", "x/y/a", True),
        ("**/a", "xa", False),
        ("x/**/a", "x/a", True),
        ("x/**/a", "x/y/z/a", True),
        ("x/**/a", "xa", False),
        ("x**a", "x/y/a", True),
        ("?.md", "a.md", True),
        ("?.md", ".md", False),
        ("a?b", "a/b", False),
        ("?", "µ", True),
        ("?", "\udcff", True),
        ("*", "a\udcff\nb", True),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("!a", "b", False),
        ("a.c", "abc", False),
        ("(a|b)+$", "(a|b)+$", True),
        ("A", "a", False),
        ("docs/", "docs/a", False),
    ],
)
def test_globs(pattern: str, path: str, holds: bool) -> None:
    """``fnmatch`` lets ``*`` cross folders and knows classes; it is what a naive grader calls."""
    assert matches(pattern, path) is holds


@pytest.mark.timeout(60)
def test_hostile_patterns_do_not_hang() -> None:
    """A backtracking matcher needs 2^40 steps for this."""
    assert not matches("*a" * 40 + "b", "a" * 1000)
    assert not matches("**/" * 40 + "b", "a/" * 1000 + "a")


NAMES = st.text(st.sampled_from("ab.*?µ\n\udcff"), min_size=1, max_size=6)


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_double_star_matches_every_path(parts: list[str]) -> None:
    assert matches("**", "/".join(parts))
    assert matches("/".join("*" for _ in parts), "/".join(parts))


@given(NAMES, NAMES)
def test_one_element_agrees_with_fnmatch(pattern: str, name: str) -> None:
    if "\udcff" not in pattern:
        assert matches(pattern, name) is fnmatch.fnmatchcase(name, pattern.replace("**", "*"))


def test_any_of_no_globs_matches_nothing() -> None:
    assert not matches_any([], "a")
    assert matches_any(["b", "a"], "a")
