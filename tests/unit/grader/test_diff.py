"""Differences between trees, and lines as git counts them."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grader.diff import (
    Changes,
    LineCount,
    Uncountable,
    _numstat,
    compare,
    count_lines,
    differing,
    fewest_changes,
    line_count,
    rewritten,
)
from grader.evidence import Entry, printable

ENTRIES = st.builds(
    Entry,
    data=st.binary(max_size=3),
    mode=st.sampled_from([0o644, 0o755]),
    kind=st.sampled_from(["file", "symlink"]),
)
PATHS = st.sampled_from(["a", "b", "d/a", "d/e/a", "\udcff", "x.kicad_prl", ".history/x"])
TREES = st.dictionaries(PATHS, ENTRIES, max_size=6)


@given(TREES)
def test_a_tree_does_not_differ_from_itself(tree: dict[str, Entry]) -> None:
    assert Changes(tree, dict(tree)).all == ()


@given(TREES, TREES)
def test_changes_are_symmetric_but_for_added_and_deleted(
    one: dict[str, Entry], two: dict[str, Entry]
) -> None:
    swap = {"added": "deleted", "deleted": "added"}
    there = {(c.path, c.kind) for c in Changes(one, two).all}
    back = {(c.path, swap.get(c.kind, c.kind)) for c in Changes(two, one).all}
    assert there == back


@given(TREES, TREES)
def test_every_difference_is_a_change_and_nothing_else_is(
    one: dict[str, Entry], two: dict[str, Entry]
) -> None:
    side = {"x.kicad_prl", ".history/x"}
    changed = {change.path for change in Changes(one, two).all}
    for path in one.keys() | two.keys():
        before, after = one.get(path), two.get(path)
        both_links = before and after and before.kind == after.kind == "symlink"
        same = before == after or bool(both_links and before.data == after.data)  # type: ignore[union-attr]
        design = any(entry and entry.data.lstrip()[:1] in {b"(", b"#"} for entry in (before, after))
        assert (path in changed) is (not same and (path not in side or design))


SIDE_FOLDERS = ("x-backups", "hw/x-backups", ".history", "hw/.history/a")
DESIGNS = (
    *("new.kicad_sch", "x.kicad_pcb", "x.kicad_pro", "x.kicad_sym", "x.pretty/x.kicad_mod", "x.kicad_wks"),
    *("x.kicad_dru", "sym-lib-table", "fp-lib-table", "design-block-lib-table"),
)


@pytest.mark.parametrize("folder", SIDE_FOLDERS)
@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_file_is_a_change_wherever_it_lies(folder: str, name: str) -> None:
    """Naive: what lies where KiCad keeps its backups is KiCad's, and a sheet is hidden there."""
    path = f"{folder}/{name}"
    assert [str(change) for change in Changes({}, {path: Entry(b"x")}).all] == [f"{path} (added)"]
    assert [change.kind for change in Changes({path: Entry(b"x")}, {path: Entry(b"y")}).all] == ["changed"]
    assert [change.kind for change in Changes({path: Entry(b"x")}, {}).all] == ["deleted"]


@pytest.mark.parametrize(
    "path", ["x-backups/lib", ".history/lib.txt", "x.kicad_prl", "~x.lck", "fp-info-cache"]
)
@pytest.mark.parametrize("data", [b"(kicad_symbol_lib)", b"\n\t (a)", b"# a comment\n(a)"])
def test_a_design_file_of_any_name_is_a_change(path: str, data: bytes) -> None:
    """A library table may name a library by any name."""
    assert Changes({}, {path: Entry(data)}).all != ()


@pytest.mark.parametrize(
    "path",
    [
        "x-backups/x-2026-01-02_030405.zip",
        "hw/.history/a/b",
        "x.kicad_prl",
        "~x.kicad_sch.lck",
        "fp-info-cache",
    ],
)
@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b'{"a": 1}', b"0\n"])
def test_what_kicad_writes_itself_is_no_change(path: str, data: bytes) -> None:
    assert Changes({}, {path: Entry(data)}).all == ()


@given(TREES, TREES)
def test_ignoring_everything_leaves_nothing(one: dict[str, Entry], two: dict[str, Entry]) -> None:
    assert Changes(one, two, ["**"]).all == ()


def test_changes_are_sorted_by_path_bytes() -> None:
    """Sorting text puts a byte that is not UTF-8 elsewhere than sorting bytes does."""
    paths = ["b", "a/b", "a", "\udcff", "ü", "\U0001f600"]
    found = [change.path for change in Changes({}, {path: Entry(b"") for path in paths}).all]
    assert found == sorted(paths, key=lambda path: path.encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (None, Entry(b""), "added"),
        (Entry(b""), None, "deleted"),
        (Entry(b"a"), Entry(b"b"), "changed"),
        (Entry(b"a"), Entry(b"b", 0o755), "changed"),
        (Entry(b"a"), Entry(b"a", 0o755), "mode"),
        (Entry(b"a"), Entry(b"a", 0o644, "symlink"), "kind"),
        (Entry(b"a", 0o777, "symlink"), Entry(b"a", 0o755, "symlink"), None),
        (None, None, None),
    ],
)
def test_compare(before: Entry | None, after: Entry | None, kind: str | None) -> None:
    assert compare(before, after) == kind


@pytest.mark.parametrize(
    ("data", "lines"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n", 1), (b"\r", 1)]
)
def test_line_count(data: bytes, lines: int) -> None:
    """``splitlines`` also breaks at carriage returns and form feeds; git does not."""
    assert line_count(data) == lines


TEXTS = st.lists(st.sampled_from([b"a\n", b"b\n", b"\0\n", b"a\r\n", b"\n"]), max_size=12).map(b"".join)


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS, st.sampled_from([b"", b"a", b"\xff"]))
def test_lines_are_what_an_edit_needs(before: bytes, after: bytes, tail: bytes) -> None:
    """Never fewer than a longest common subsequence allows; git's own minimal diff may keep a line less."""
    after += tail
    count = count_lines(before, after)
    one, two = _lines(before), _lines(after)
    common = _longest_common(one, two)
    assert count.added - count.deleted == len(two) - len(one)
    assert len(one) - common <= count.deleted <= len(one)
    assert count.baseline == len(one)
    assert fewest_changes(before, after) <= count.added + count.deleted


@settings(max_examples=30, deadline=None)
@given(st.sets(st.integers(0, 99), max_size=10), st.sets(st.integers(0, 99), max_size=10))
def test_lines_of_a_file_whose_lines_differ_are_the_fewest(gone: set[int], new: set[int]) -> None:
    before = [b"%d\n" % n for n in range(100)]
    after = [
        line for n, line in enumerate(before) for line in [b"new\n"] * (n in new) + [line] * (n not in gone)
    ]
    count = count_lines(b"".join(before), b"".join(after))
    assert (count.added, count.deleted) == (len(new), len(gone))


def _lines(data: bytes) -> list[bytes]:
    *lines, last = data.split(b"\n")
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _longest_common(one: list[bytes], two: list[bytes]) -> int:
    row = [0] * (len(two) + 1)
    for a in one:
        previous = 0
        for j, b in enumerate(two, 1):
            previous, row[j] = row[j], previous + 1 if a == b else max(row[j], row[j - 1])
    return row[-1]


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\r\n", b"\0\n", b"\n"]), max_size=12)


@given(LINES, LINES, st.sampled_from([b"", b"a", b"x"]), st.sampled_from([b"", b"a", b"x"]))
@settings(max_examples=60, deadline=None)
def test_an_edit_counted_without_git_is_what_git_counts(
    one: list[bytes], two: list[bytes], end: bytes, other: bytes
) -> None:
    """The short cut for plain edits must never show: lines that moved, repeated or lost their newline."""
    before, after = b"".join(one) + end, b"".join(two) + other
    assume(before != after)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a").write_bytes(before)
        (folder / "b").write_bytes(after)
        by_git = _numstat(folder, 60)
    count = count_lines(before, after)
    assert (count.added, count.deleted) == by_git


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40))
def test_what_two_files_begin_and_end_with_is_left_out(
    begin: bytes, one: bytes, two: bytes, end: bytes
) -> None:
    before, after = begin + one + end, begin + two + end
    left, right = differing(before, after)
    assert left in before and right in after
    assert len(before) - len(left) == len(after) - len(right)
    assert fewest_changes(left, right) == fewest_changes(before, after)


@given(TEXTS, TEXTS)
def test_the_lower_bound_is_symmetric_and_zero_only_for_a_reordering(before: bytes, after: bytes) -> None:
    assert fewest_changes(before, after) == fewest_changes(after, before)
    assert (fewest_changes(before, after) == 0) is (sorted(_lines(before)) == sorted(_lines(after)))


def test_lines_do_not_depend_on_the_callers_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A naive grader inherits ``diff.algorithm``, attributes and external diffs from whoever runs it."""
    (tmp_path / "config").write_text(
        f"[diff]\nexternal = false\n[core]\nattributesFile = {tmp_path}/attributes\nautocrlf = true\n"
    )
    (tmp_path / "attributes").write_text("* -diff binary\n")
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, str(tmp_path / "config"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert count_lines(b"a\nb\n", b"a\r\nc\n") == LineCount(added=2, deleted=2, baseline=2)


def test_a_temporary_folder_inside_a_repository_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git looks for a repository upwards: the attributes found there would make every file binary."""
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    (tmp_path / ".git" / "refs").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git" / "config").write_text("[core]\nrepositoryformatversion = 0\n")
    (tmp_path / ".gitattributes").write_text("* binary\n")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert count_lines(b"a\n", b"b\n") == LineCount(added=1, deleted=1, baseline=1)


@pytest.mark.timeout(60)
def test_counting_ends_in_time() -> None:
    """A shuffled file of many lines keeps a minimal diff busy for hours."""
    lines = [b"%d\n" % (n * 7919 % 400_009) for n in range(400_000)]
    with pytest.raises(Uncountable, match="more than"):
        count_lines(b"".join(lines), b"".join(reversed(lines)), seconds=1)


def test_a_swollen_file_is_decided_before_it_is_split() -> None:
    """A hundred million newlines as a list of lines need a gigabyte: a naive grader dies of it."""
    assert rewritten(b"a\n" * 10, b"\n" * 100_000_000, 0.5) == 99_999_990
    assert rewritten(b"a\n" * 10, b"b\n" * 10, 0.5) == 20
    assert rewritten(b"a\n" * 10, b"b\n" + b"a\n" * 9, 0.5) is None


@pytest.mark.parametrize(("changed", "ratio", "holds"), [(7, 0.07, True), (8, 0.07, False), (0, 0.01, True)])
def test_within_is_exact(changed: int, ratio: float, holds: bool) -> None:
    assert LineCount(added=changed, deleted=0, baseline=100).within(ratio) is holds


def test_printable_is_one_line_of_harmless_text() -> None:
    assert printable("a\n\x1b[2J\udcff") == "a\\n\\x1b[2J\\xff"
    assert printable("µ/x y") == "µ/x y"
