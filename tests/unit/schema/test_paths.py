"""Reversible, harmless names."""

from hypothesis import given
from hypothesis import strategies as st

from schema.paths import decode_name, decode_path, encode_name, encode_path

raw_paths = (
    st.binary(min_size=1).filter(lambda b: b"\0" not in b).map(lambda b: b.decode("utf-8", "surrogateescape"))
)


@given(raw_paths)
def test_every_path_comes_back(path: str) -> None:
    text = encode_path(path)
    assert text.isascii() and text.isprintable()
    assert decode_path(text) == path


SHORT = ("git~1", "GIT~1", "gitmod~1", "gi7eba~1", "a~", "~")


@given(raw_paths)
def test_no_tilde_is_left_and_one_that_was_kept_reads_back(path: str) -> None:
    """git takes ``git~1`` for ``.git``; evidence of before is full of plain tildes all the same."""
    text = encode_path(path)
    assert "~" not in text
    assert decode_path(text.replace("%7E", "~")) == path


@given(st.lists(st.sampled_from(["..", ".", ".git", ".GIT", ".gitmodules", "a", "b", *SHORT]), min_size=1))
def test_no_encoded_element_means_anything_to_git_or_the_file_system(parts: list[str]) -> None:
    for element in encode_path("/".join(parts)).split("/"):
        assert element not in {".", ".."} and not element.lower().startswith(".git")
        assert "~" not in element


@given(st.text(min_size=1), st.text(min_size=1))
def test_two_ids_never_share_a_folder_even_where_case_folds(one: str, other: str) -> None:
    if one != other:
        assert encode_name(one).lower() != encode_name(other).lower()


@given(st.text(min_size=1))
def test_every_name_comes_back(name: str) -> None:
    assert decode_name(encode_name(name)) == name
    assert "/" not in encode_name(name)
