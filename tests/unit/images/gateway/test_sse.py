"""Events out of bytes, whatever the portions they come in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.images.sources import gateway

sse = gateway("sse")


def test_lines_comments_names_and_joined_data() -> None:
    stream = b"data: x\n\n: c\r\n\r\nevent: x\r\ndata: one\r\ndata:two\r\n\r\n"
    stream += b"data: \xf0\x9f\x94\x8c\n\nid: 3\rdata: a\r\r"
    events = sse.Events(10_000)
    found = [*events.feed(stream), *events.feed(b"\n")]
    assert [event.data for event in found] == [b"x", b"", b"one\ntwo", "🔌".encode(), b"a"]


@given(
    st.lists(
        st.sampled_from([b"data: \xc2\xb5\xe2\x84\xa6", b"data:", b":c", b"\n", b"\r\n", b"\r", b"x"]),
        max_size=40,
    ),
    st.data(),
)
def test_portions_do_not_matter_and_no_byte_is_lost(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces) + b"end"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    whole, portioned = sse.Events(10_000), sse.Events(10_000)
    expected = whole.feed(stream)
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += portioned.feed(stream[start:end])
    assert found == expected
    assert b"".join(event.raw for event in found) + portioned.rest() == stream


def test_an_event_without_end_stops_at_the_limit() -> None:
    events = sse.Events(100)
    events.feed(b"data: " + b"x" * 90)
    with pytest.raises(sse.TooLong):
        events.feed(b"x" * 90)
