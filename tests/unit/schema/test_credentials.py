"""The credential list (Standard §4.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.credentials import matching_patterns, scan

# Assembled, so that no scanner of this repository takes them for real.
SAMPLES = {
    "sk": "sk" + "-" + "a1B2" * 6,
    "google": "AI" + "za" + "x" * 35,
    "bearer": "bEaReR  " + "t0ken" * 4,
    "npm": "npm" + "_" + "Z9" * 18,
    "github": "ghs" + "_" + "q" * 36,
    "github-pat": "github" + "_pat_" + "p" * 22,
    "groq": "gsk" + "_" + "g" * 24,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_each_kind_is_found_in_content_and_in_a_file_name(name: str) -> None:
    sample = SAMPLES[name].encode()
    assert name in list(matching_patterns(b"x = '" + sample + b"'\n"))
    found = scan(b"docs/" + sample.replace(b"  ", b" "), b"")
    assert found is not None and found.pattern == name


@pytest.mark.parametrize(
    "text", ["task-" + "a" * 30, "disk-" + "b" * 30, "risk_sk-" + "c" * 5, "Bearer of news"]
)
def test_words_that_look_like_keys_are_not(text: str) -> None:
    assert list(matching_patterns(text.encode())) == []


def test_the_key_may_stand_at_the_start_or_after_any_non_word() -> None:
    for before in (b"", b"\n", b"=", b'"', b"\xff", b"\0"):
        assert list(matching_patterns(before + SAMPLES["sk"].encode())) == ["sk"]


@given(st.binary(), st.binary())
def test_any_bytes_around_a_key_do_not_hide_it(before: bytes, after: bytes) -> None:
    assert scan(b"f", before + b" " + SAMPLES["github"].encode() + after) is not None


def test_the_finding_does_not_hold_the_path() -> None:
    found = scan(b"secret-name", SAMPLES["npm"].encode())
    assert found is not None
    assert "secret-name" not in found.model_dump_json()
