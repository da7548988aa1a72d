"""What somebody else wrote is harmless on a terminal and in a report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from schema.errors import CheckFailed
from schema.text import markdown, plain, plain_lines

HOSTILE = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\r",
    "\n",
    "\u202e",
    "\x9b31m",
    "\x00",
    "\u2066",
    "\u200b",
    "\u2028",
    "\x85",
    "\ud800",
    "\U000e0041",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_controls_escapes_marks_and_line_ends_are_spelled_out(text: str) -> None:
    shown = plain(f"a{text}b")
    assert shown.isprintable() and "\\" in shown


def test_words_in_any_script_stay_as_they_are() -> None:
    for text in ("4,7 kΩ, 702 µA", "配線", "رمز"):
        assert plain(text) == text


@given(st.text())
def test_nothing_but_one_printable_line_remains(text: str) -> None:
    assert plain(text).isprintable()
    assert all(c.isprintable() or c == "\n" for c in plain_lines(text))
    assert plain(plain(text)) == plain(text)


def test_line_ends_are_kept_where_lines_are_wanted() -> None:
    assert plain_lines("a\r\nb\n\x1bc") == "a\nb\n\\x1bc"


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "![x](http://example.invalid/x.png)",
        "a | b | **PASS**",
        "`code`",
        "&lt;b&gt;",
        "\n# heading",
        "a\n| b |",
    ],
)
def test_a_cell_of_a_report_holds_no_tag_no_link_no_code_and_stays_one_cell(text: str) -> None:
    reader = MarkdownIt("commonmark", {"html": True}).enable("table")
    rendered = reader.render(f"| A | B |\n| --- | --- |\n| {markdown(text)} | 1 |\n")
    assert rendered.count("<td>") == 2 and "<td>1</td>" in rendered
    assert not any(tag in rendered for tag in ("<script", "<img", "<a ", "<code", "<b>", "<h1"))


def test_a_leaderboards_own_words_stay_as_they_are() -> None:
    for text in ("solution:wrong-*", "3/3 (44–100 %)", "no model called", "Agent solution 1, KiCad 9"):
        assert markdown(text) == text


def test_an_errors_line_is_plain_whatever_it_is_about() -> None:
    assert str(CheckFailed("odd\x1b[2J", about="a\u202eb")) == "a\\u202eb: odd\\x1b[2J"
