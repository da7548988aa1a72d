"""Collection with budgets of what an agent left. Cases say what a naive collector would have done."""

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.evidence import Entry
from orchestrator.collect import Budget, Collected, collect
from schema.hashing import git_blob_id
from tests.unit.orchestrator.tars import entry, stream

KEY = b"sk-" + b"k" * 24


def gather(*entries: tuple[tarfile.TarInfo, bytes], budget: Budget | None = None) -> Collected:
    return collect(stream(*entries), baseline={}, known={}, budget=budget or Budget())


def test_files_keep_bytes_and_permission_bits() -> None:
    got = gather(entry("a.txt", b"\0\r\n", mode=0o600), entry("bin/x", b"y", mode=0o4755))
    assert got.entries == {"a.txt": Entry(b"\0\r\n", 0o600), "bin/x": Entry(b"y", 0o4755)}


def test_names_that_are_not_utf8_survive() -> None:
    """Naive: decode with errors=replace, and two names become one."""
    got = gather(entry("\udcff", b"1"), entry("\udcfe", b"2"))
    assert {name.encode("utf-8", "surrogateescape") for name in got.entries} == {b"\xff", b"\xfe"}


def test_known_content_is_the_baselines_own_object() -> None:
    base = {"x": Entry(b"same")}
    got = collect(
        stream(entry("y", b"same")), baseline=base, known={git_blob_id(b"same"): "x"}, budget=Budget()
    )
    assert got.entries["y"].data is base["x"].data


def test_a_symlink_is_kept_as_text_and_never_followed() -> None:
    """Naive: extract it, and read /etc/passwd as evidence."""
    got = gather(entry("link", type=tarfile.SYMTYPE, linkname="/etc/passwd"))
    assert got.entries["link"] == Entry(b"/etc/passwd", 0o777, "symlink")


def test_a_hard_link_is_a_copy_of_its_earlier_entry() -> None:
    """Naive: its tar entry has no data, so the file reads as emptied or deleted."""
    got = gather(entry("a", b"data"), entry("b", type=tarfile.LNKTYPE, linkname="workspace/a"))
    assert got.entries["b"].data == b"data"


def test_a_hard_link_to_nothing_kept_is_refused_and_recorded() -> None:
    got = gather(entry("b", type=tarfile.LNKTYPE, linkname="workspace/none"))
    assert got.entries == {}
    assert [(r.path, r.reason) for r in got.refused] == [("b", "hard link to something that was not kept")]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (tarfile.FIFOTYPE, "named pipe"),
        (tarfile.CHRTYPE, "character device"),
        (tarfile.BLKTYPE, "block device"),
    ],
)
def test_special_files_are_refused_and_recorded(kind: bytes, reason: str) -> None:
    got = gather(entry("odd", type=kind), entry("kept", b"1"))
    assert list(got.entries) == ["kept"]
    assert [r.reason for r in got.refused] == [reason]


def test_climbing_names_are_refused() -> None:
    """Naive: extract, and write outside the folder."""
    got = gather(entry("../../etc/cron.d/x", b"1"), entry("a//b", b"2"), entry("./c", b"3"))
    assert got.entries == {}
    assert got.refused_count == 3


def test_git_is_set_apart_and_only_objects_refs_and_head_are_read() -> None:
    names = ["HEAD", "config", "hooks/post-checkout", "objects/info/alternates", "refs/heads/main", "index"]
    blob = "objects/" + "a" * 2 + "/" + "b" * 38
    got = gather(
        entry(".git", type=tarfile.DIRTYPE), *(entry(f".git/{name}", b"x") for name in [*names, blob])
    )
    assert got.git_kind == "folder"
    assert sorted(got.git) == sorted(["HEAD", "refs/heads/main", blob])
    assert got.entries == {}


def test_a_git_file_is_not_a_repository() -> None:
    """Naive: follow ``gitdir:`` to wherever it points."""
    assert gather(entry(".git", b"gitdir: /somewhere/else")).git_kind == "other"


@pytest.mark.parametrize(
    ("entries", "budget", "says"),
    [
        ([entry("big", b"x" * 5000)], Budget(bytes=4096), "bytes"),
        ([entry(f"f{n}") for n in range(20)], Budget(entries=10), "entries"),
        ([entry("/".join(["d"] * 12))], Budget(depth=10), "deep"),
        ([entry("n" * 200)], Budget(name=100), "path"),
    ],
)
def test_past_any_budget_the_stream_stops_and_nothing_is_kept(
    entries: list[tuple[tarfile.TarInfo, bytes]], budget: Budget, says: str
) -> None:
    got = gather(entry("first", b"1"), *entries, budget=budget)
    assert says in got.over_budget
    assert got.entries == {} and got.git == {}


@pytest.mark.parametrize(
    ("entries", "budget"),
    [
        ([entry(f"f{n}") for n in range(9)], Budget(entries=10)),
        ([entry("/".join(["d"] * 10))], Budget(depth=10)),
        ([entry("n" * 100)], Budget(name=100)),
    ],
)
def test_at_its_budget_everything_is_kept(
    entries: list[tuple[tarfile.TarInfo, bytes]], budget: Budget
) -> None:
    got = gather(*entries, budget=budget)
    assert got.over_budget == "" and len(got.entries) == len(entries)


def test_a_stream_that_never_ends_is_not_read_to_its_end() -> None:
    """Naive: a sparse terabyte fills memory. Here the source says how far it was read."""
    read = 0

    def endless() -> object:
        nonlocal read
        info, _ = entry("sparse")
        info.size = 10**12
        yield info.tobuf()
        while True:
            read += 2**16
            yield b"\0" * 2**16

    got = collect(endless(), baseline={}, known={}, budget=Budget(bytes=2**22))  # type: ignore[arg-type]
    assert "bytes" in got.over_budget
    assert read <= 2**22 + 2**17


@pytest.mark.parametrize(
    "where",
    [
        entry("notes.txt", b"key " + KEY),
        entry(f"docs/{KEY.decode()}", b""),
        entry("link", type=tarfile.SYMTYPE, linkname=f"/{KEY.decode()}"),
        entry(f"folder {KEY.decode()}", type=tarfile.DIRTYPE),
    ],
    ids=["content", "file name", "link target", "folder name"],
)
def test_a_credential_ends_the_evidence(where: tuple[tarfile.TarInfo, bytes]) -> None:
    got = gather(entry("first", b"1"), where, entry("last", b"2"))
    assert got.secret is not None and got.secret.pattern == "sk"
    assert got.entries == {}


def test_a_damaged_stream_keeps_nothing() -> None:
    whole = b"".join(stream(entry("a", b"x" * 3000), entry("b", b"y" * 3000)))
    got = collect(iter([whole[:4000]]), baseline={}, known={}, budget=Budget())
    assert got.over_budget and got.entries == {}


def pax(**headers: str) -> bytes:
    """One file under extended headers."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("workspace/a")
        info.pax_headers = headers
        tar.addfile(info)
    return out.getvalue()


def test_a_header_that_claims_a_terabyte_is_not_believed() -> None:
    """Naive: fill the holes of a sparse entry with zeros, as the tar reader does."""
    claim = pax(**{"GNU.sparse.map": "0,0", "GNU.sparse.size": str(10**13)})
    got = collect(iter([claim]), baseline={}, known={}, budget=Budget())
    assert "sparse" in got.over_budget and got.entries == {}


@pytest.mark.parametrize(
    "headers", [{"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}, {"GNU.sparse.map": "x"}]
)
def test_headers_that_the_tar_reader_raises_on_keep_nothing(headers: dict[str, str]) -> None:
    """Naive: expect the one error that it documents; found by fuzzing."""
    got = collect(iter([pax(**headers)]), baseline={}, known={}, budget=Budget())
    assert "cannot be read" in got.over_budget and got.entries == {}


@given(
    st.dictionaries(
        st.text("abc/._-é\udcff", min_size=1, max_size=20).filter(lambda s: not s.startswith(".git")),
        st.binary(max_size=50),
        max_size=8,
    ),
    st.integers(1, 700),
)
def test_whatever_the_names_and_chunks_nothing_escapes_or_raises(files: dict[str, bytes], chunk: int) -> None:
    got = collect(
        stream(*(entry(name, data) for name, data in files.items()), chunk=chunk),
        baseline={},
        known={},
        budget=Budget(),
    )
    for path in got.entries:
        assert all(part not in {"", ".", ".."} for part in path.split("/"))
    assert len(got.entries) + got.refused_count <= len(files)
