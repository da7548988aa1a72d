"""Bundles cross into the grader unchanged."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader import wire
from grader.evidence import Entry
from tests.unit.samples import bundle


def test_a_bundle_comes_back_as_it_was() -> None:
    assert wire.decode(wire.encode(bundle())) == bundle()


@given(st.dictionaries(st.text(min_size=1), st.binary(max_size=40), max_size=6))
def test_any_tree_comes_back(files: dict[str, bytes]) -> None:
    tree = {name: Entry(data) for name, data in files.items() if name.isprintable()}
    assert wire.decode(wire.encode(bundle(end=tree))).end == tree


def test_a_blob_that_three_trees_share_is_sent_once() -> None:
    big = {"b": Entry(b"B" * 100_000)}
    assert len(wire.encode(bundle(pristine=big, baseline=big, end=big))) < 110_000


def test_frames_follow_each_other_and_end() -> None:
    source = io.BytesIO(wire.encode(bundle()) * 2)
    assert wire.read_frame(source.read) == wire.read_frame(source.read)
    assert wire.read_frame(source.read) is None


def test_an_answer_comes_back_and_must_be_an_object() -> None:
    assert wire.decode_answer(io.BytesIO(wire.encode_answer({"a": "µ"})).read) == {"a": "µ"}
    with pytest.raises(TypeError):
        wire.decode_answer(io.BytesIO(wire.LENGTHS.pack(2, 0) + b"[]").read)
