"""The key is taken out of what a provider says, wherever it is cut."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.images.sources import gateway

scrub = gateway("scrub")


@given(
    st.sampled_from(["sk-sk-1", "aab", "a", "aaa", "kkey"]),
    st.lists(st.sampled_from(["sk-", "sk-1", "a", "b", "k", "key", " ", "\n\n"]), max_size=20),
    st.lists(st.integers(0, 60), max_size=10),
)
def test_portions_do_not_matter_and_the_key_does_not_come_out(
    key: str, pieces: list[str], cuts: list[int]
) -> None:
    """Naive: each portion for itself, and a key cut in two passes."""
    text = "".join(pieces).encode()
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    portioned, out = scrub.Scrub(key), b""
    for start, end in pairwise(at):
        out += portioned.feed(text[start:end])
        # Only what may be the key's beginning waits.
        assert key.encode().startswith(portioned._tail)
    assert out + portioned.rest() == text.replace(key.encode(), b"[key]")


def test_without_a_key_everything_passes() -> None:
    free = scrub.Scrub(None)
    assert (free.feed(b"abc"), free.rest(), free.whole(b"x")) == (b"abc", b"", b"x")
