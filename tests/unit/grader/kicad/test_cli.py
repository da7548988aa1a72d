"""Running kicad-cli: caps, fresh folders, and results that are never taken on trust."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from grader.kicad.cache import Cache, FolderCache, MemoryCache
from grader.kicad.cli import DRAWN, TABLES, Caps, Job, KicadCli
from grader.kicad.errors import ToolUnavailable, Unjudgeable
from tests.unit.grader.kicad import twins

FILES = twins.files()
TARGET = twins.ARTIFACTS.schematic


def stand_in(folder: Path, body: str) -> str:
    """A program in kicad-cli's place. ``$out`` and ``$in`` are its output and input paths."""
    path = folder / "kicad-cli"
    path.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = version ]; then echo 9.0.2; exit 0; fi\n'
        'while [ $# -gt 1 ]; do [ "$1" = --output ] && out=$2; shift; done; in=$1\n'
        f"{body}\n"
        "echo Found 1 violations; echo Saved ERC Report to x; echo Found 1 violations\n"
        "echo Found 1 unconnected items; echo Found 1 schematic parity issues; echo Saved DRC Report to x\n"
    )
    path.chmod(0o755)
    return str(path)


def cli(folder: Path, body: str, cache: Cache | None = None, **caps: float) -> KicadCli:
    """A runner of a stand-in."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return KicadCli(
        executable=stand_in(folder, body),
        scratch=scratch,
        cache=cache,
        caps=Caps(**caps),  # type: ignore[arg-type]
    )


def test_the_output_file_is_the_answer(tmp_path: Path) -> None:
    runner = cli(tmp_path, 'cat "$in" > "$out"')
    assert runner.run("erc", TARGET, FILES) == FILES[TARGET]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_it_works_on_a_writable_copy(tmp_path: Path) -> None:
    """kicad-cli ignores project tables where it cannot write, with exit code 0."""
    body = 'touch "$(dirname "$in")/.probe" && touch "$HOME/.probe" && ls "$(dirname "$in")" > "$out"'
    said = cli(tmp_path, body).run("drc", twins.ARTIFACTS.board or "", FILES)
    assert said.decode().split() == sorted(name.removeprefix("hw/") for name in FILES)


def test_the_home_is_fresh_and_has_empty_tables(tmp_path: Path) -> None:
    """Without them, results depend on which command ran first."""
    body = 'cd "$HOME/.config/kicad/9.0" && cat fp-lib-table sym-lib-table > "$out"; ls -A "$HOME" >> "$out"'
    runner = cli(tmp_path, f'{body}; touch "$HOME/left-behind"')
    expected = TABLES["fp-lib-table"] + TABLES["sym-lib-table"] + b".config\n"
    assert runner.run("erc", TARGET, FILES) == expected
    assert runner.run("netlist", TARGET, FILES) == expected


def test_kicad_uses_one_thread(tmp_path: Path) -> None:
    """With two, a shorted board has a finding more in some runs: graded again, a naive record differs."""
    body = 'cat "$HOME/.config/kicad/9.0/kicad_advanced" > "$out"'
    assert cli(tmp_path, body).run("drc", TARGET, FILES) == b"MaximumThreads=1\n"


def test_nothing_of_our_environment_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KICAD9_SYMBOL_DIR", "/secret")
    monkeypatch.setenv("SOME_KEY", "secret")
    said = cli(tmp_path, 'env > "$out"').run("erc", TARGET, FILES).decode()
    names = {line.split("=")[0] for line in said.splitlines()}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_", "out", "in"} <= {
        "HOME",
        "TMPDIR",
        "PATH",
        "LANG",
        "COPPERBENCH_JAIL",
    }


def test_exit_zero_without_output_is_no_answer(tmp_path: Path) -> None:
    """A naive grader reads the report of the last run."""
    with pytest.raises(Unjudgeable, match="exit 0 but no output"):
        cli(tmp_path, "true").run("erc", TARGET, FILES)


@pytest.mark.parametrize("job", ["erc", "drc"])
@pytest.mark.parametrize(
    "said",
    [
        "",
        "Found 1 violations; echo Saved",
        "Failed to fetch schematic netlist for parity tests.; echo Found 1 violations;"
        " echo Found 0 unconnected items; echo Saved DRC Report to x",
    ],
)
def test_a_report_that_was_left_out_is_no_clean_one(tmp_path: Path, job: Job, said: str) -> None:
    """KiCad that cannot read its own netlist compares nothing, lists nothing, and ends with exit code 0."""
    runner = cli(tmp_path, f'echo "{{}}" > "$out"; echo {said}; exit 0')
    with pytest.raises(Unjudgeable, match="a part of the report was left out"):
        runner.run(job, TARGET, FILES)


def test_output_with_a_failure_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(Unjudgeable, match="exit 3: cannot load"):
        cli(tmp_path, 'echo "{}" > "$out"; echo cannot load; exit 3').run("erc", TARGET, FILES)


def test_a_crash_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(Unjudgeable, match="exit -11"):
        cli(tmp_path, "kill -SEGV $$").run("erc", TARGET, FILES)


def test_a_hang_is_killed_with_all_its_children(tmp_path: Path) -> None:
    """Killing only the child leaves its own children running; they hold the files and the machine."""
    pids = tmp_path / "pids"
    body = f'sleep 300 & echo $! > {pids}; echo $$ >> {pids}; trap "" TERM; sleep 300'
    with pytest.raises(Unjudgeable, match=r"killed after 0.5 s"):
        cli(tmp_path, body, wall_seconds=0.5).run("erc", TARGET, FILES)
    _gone(pids)


def test_a_child_left_behind_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    body = f'sleep 300 & echo $! > {pids}; echo ok > "$out"'
    assert cli(tmp_path, body).run("erc", TARGET, FILES) == b"ok\n"
    _gone(pids)


def _gone(pids: Path) -> None:
    for pid in map(int, pids.read_text().split()):
        deadline = time.monotonic() + 5
        while _alive(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def test_memory_is_capped(tmp_path: Path) -> None:
    eater = "exec python3 -c 'x = bytearray(400_000_000)'"
    with pytest.raises(Unjudgeable, match="MemoryError"):
        cli(tmp_path, eater, memory_bytes=200 * 1024**2).run("erc", TARGET, FILES)


def test_files_are_capped(tmp_path: Path) -> None:
    with pytest.raises(Unjudgeable, match="kicad-cli erc"):
        cli(tmp_path, 'exec head -c 5000000 /dev/zero > "$out"', file_bytes=1024**2).run("erc", TARGET, FILES)


def test_messages_are_bounded(tmp_path: Path) -> None:
    body = 'head -c 3000000 /dev/zero | tr "\\0" x; echo the end; exit 3'
    with pytest.raises(Unjudgeable, match="the end") as error:
        cli(tmp_path, body).run("erc", TARGET, FILES)
    assert len(str(error.value)) < 500


def test_a_missing_program_is_not_the_evidence_s_fault(tmp_path: Path) -> None:
    """A naive grader fails the run for it."""
    with pytest.raises(ToolUnavailable):
        KicadCli(executable=str(tmp_path / "none")).run("erc", TARGET, FILES)


def test_a_missing_target_is_not_judged(tmp_path: Path) -> None:
    with pytest.raises(Unjudgeable, match=r"x.kicad_sch: missing"):
        cli(tmp_path, "").run("erc", "x.kicad_sch", FILES)


@pytest.mark.parametrize("path", ["../x.kicad_sch", "/x.kicad_sch", "a/../../x.kicad_sch", "a//x.kicad_sch"])
def test_nothing_is_written_outside_the_copy(tmp_path: Path, path: str) -> None:
    with pytest.raises(Unjudgeable, match="not a path inside the tree"):
        cli(tmp_path, 'echo > "$out"').run("erc", TARGET, {**FILES, path: b""})


def test_odd_names_are_copied(tmp_path: Path) -> None:
    odd = "hw/\udcff\n é.kicad_sym"
    said = cli(tmp_path, 'ls "$(dirname "$in")" | wc -c > "$out"').run("erc", TARGET, {**FILES, odd: b""})
    assert int(said) > 0


def test_a_name_too_long_to_copy_is_not_judged(tmp_path: Path) -> None:
    with pytest.raises(Unjudgeable, match="cannot be copied"):
        cli(tmp_path, 'echo > "$out"').run("erc", TARGET, {**FILES, "x" * 300 + ".kicad_sym": b""})


def test_a_file_where_a_folder_must_be_is_not_judged(tmp_path: Path) -> None:
    clash = {**FILES, "a.kicad_sym": b"", "a.kicad_sym/b.kicad_sym": b""}
    with pytest.raises(Unjudgeable, match="cannot be copied"):
        cli(tmp_path, 'echo > "$out"').run("erc", TARGET, clash)


def test_equal_inputs_run_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    runner = cli(tmp_path, f'echo x >> {log}; echo ok > "$out"')
    for _ in range(3):
        runner.run("erc", TARGET, {**FILES, "README.md": os.urandom(8)})
    assert log.read_text() == "x\n"


@pytest.mark.parametrize(
    "change", ["hw/channel.kicad_sch", "hw/twins.kicad_pro", "hw/new.kicad_sym", "fp-lib-table"]
)
def test_whatever_kicad_reads_is_in_the_key(tmp_path: Path, change: str) -> None:
    """A naive cache keys on the schematic alone and answers for last week's sub-sheet."""
    runner = cli(tmp_path, "")
    assert runner.digest("erc", TARGET, FILES) != runner.digest("erc", TARGET, {**FILES, change: b"x"})


def test_what_kicad_does_not_read_is_not_in_the_key(tmp_path: Path) -> None:
    runner = cli(tmp_path, "")
    board = {**FILES, "hw/twins.kicad_pcb": b"x", "README.md": b"x"}
    assert runner.digest("erc", TARGET, FILES) == runner.digest("erc", TARGET, board)
    assert runner.digest("drc", TARGET, FILES) != runner.digest("drc", TARGET, board)


def test_job_target_and_version_are_in_the_key(tmp_path: Path) -> None:
    runner, other = cli(tmp_path, ""), cli(tmp_path, "")
    other.__dict__["version"] = "10.0.1"
    keys = {
        runner.digest("erc", TARGET, FILES),
        runner.digest("netlist", TARGET, FILES),
        runner.digest("erc", "hw/channel.kicad_sch", FILES),
        other.digest("erc", TARGET, FILES),
    }
    assert len(keys) == 4


def test_failures_are_not_cached(tmp_path: Path) -> None:
    """A machine that was out of memory once would fail the run for ever."""
    cache = MemoryCache()
    with pytest.raises(Unjudgeable):
        cli(tmp_path, "exit 3", cache).run("erc", TARGET, FILES)
    assert cli(tmp_path, 'echo ok > "$out"', cache).run("erc", TARGET, FILES) == b"ok\n"


def test_version_and_major(tmp_path: Path) -> None:
    runner = cli(tmp_path, "")
    assert (runner.version, runner.major) == ("9.0.2", "9")


def test_the_folder_cache_is_shared_and_whole(tmp_path: Path) -> None:
    key = "ab" * 32
    first, second = FolderCache(tmp_path / "c"), FolderCache(tmp_path / "c")
    assert first.get(key) is None
    first.put(key, b"one")
    assert second.get(key) == b"one"
    second.put(key, b"one")
    assert [path.name for path in (tmp_path / "c" / "ab").iterdir()] == [key[2:]]


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("a file")
    cache = FolderCache(tmp_path / "c")
    cache.put("ab" * 32, b"x")
    assert cache.get("ab" * 32) is None


def test_a_cache_key_is_a_digest(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a digest"):
        FolderCache(tmp_path).get("../x")


def test_what_differs_from_call_to_call_is_not_in_the_reason(tmp_path: Path) -> None:
    """Our folder and the time of day would make the same evidence grade in other words."""
    body = 'echo "12:34:56: Error: no $in at 0x7ffd12345678"; exit 3'
    with pytest.raises(Unjudgeable) as error:
        cli(tmp_path, body).run("erc", TARGET, FILES)
    assert str(error.value) == f"kicad-cli erc on {TARGET}: exit 3: Error: no {TARGET} at"


def test_uuids_that_kicad_drew_itself_are_one(tmp_path: Path) -> None:
    """An item without a uuid gets another one in every call; a naive record never grades the same again."""
    drawn = "0f0f0f0f-0000-4000-8000-00000000000f"
    legacy = "00000000-0000-0000-0000-00005f3a1b2c"
    said = cli(tmp_path, f'echo "{twins.ROOT} {drawn} {legacy}" > "$out"').run("erc", TARGET, FILES)
    assert said.decode().split() == [twins.ROOT, DRAWN.decode(), legacy]
