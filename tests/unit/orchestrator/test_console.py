"""What an agent wrote is harmless on a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.console import clean


@pytest.mark.parametrize(
    "text", ["\x1b[2J", "\x1b]0;title\x07", "\r", "\u202e", "\x9b31m", "\x00", "\u2066", "\ud800"]
)
def test_controls_escapes_and_bidi_overrides_are_spelled_out(text: str) -> None:
    assert clean(f"a{text}b").isprintable()


def test_words_in_any_script_stay_as_they_are() -> None:
    for text in ("4,7 kΩ, 702 µA", "配線", "رمز", "a\nb"):
        assert clean(text) == text


@given(st.text())
def test_nothing_but_printable_text_and_line_ends_remains(text: str) -> None:
    assert all(c.isprintable() or c == "\n" for c in clean(text))
