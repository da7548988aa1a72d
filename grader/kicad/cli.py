"""The one place that runs kicad-cli: on its own copy of one tree, in its own home, under caps (Standard §4).

kicad-cli answers wrongly with exit code 0 when the project folder or the home is not writable, when the
global library tables are missing, or when an earlier call left state behind. So every call gets a fresh
folder with a copy of the files it may read, a fresh home with empty global tables, and a fresh output path.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from grader.kicad.cache import Cache, MemoryCache
from grader.kicad.errors import ToolUnavailable, Unjudgeable
from grader.kicad.sexpr import KEPT

Job = Literal["netlist", "erc", "drc"]

_ARGUMENTS: Mapping[Job, tuple[str, ...]] = {
    "netlist": ("sch", "export", "netlist", "--format", "kicadsexpr"),
    "erc": ("sch", "erc", "--format", "json", "--severity-all"),
    "drc": ("pcb", "drc", "--format", "json", "--severity-all", "--schematic-parity"),
}
_SUFFIX: Mapping[Job, str] = {"netlist": "net", "erc": "json", "drc": "json"}

_COMPLETE: Mapping[Job, re.Pattern[str]] = {
    "netlist": re.compile(""),
    "erc": re.compile(r"Found \d+ violations\nSaved ERC Report to "),
    "drc": re.compile(
        r"Found \d+ violations\nFound \d+ unconnected items\nFound \d+ schematic parity issues\nSaved DRC"
    ),
}
"""What kicad-cli prints when it has looked at all there is. Where it cannot read back a netlist of its own,
say, it leaves out the comparison of board and schematic, lists no finding, and ends with exit code 0."""

TABLES: Mapping[str, bytes] = {
    "sym-lib-table": b"(sym_lib_table\n  (version 7)\n)\n",
    "fp-lib-table": b"(fp_lib_table\n  (version 7)\n)\n",
    "design-block-lib-table": b"(design_block_lib_table\n  (version 7)\n)\n",
}
"""Global library tables of the home: there, and empty. Without them results depend on what ran before."""

ADVANCED: Mapping[str, bytes] = {"kicad_advanced": b"MaximumThreads=1\n"}
"""With more threads than one, DRC reports a pair of items that touch twice in some runs and once in others
(13 of 24 on a shorted board, 9.0.2), and so would depend on the machine's processors too."""

_SCHEMATIC = (".kicad_sch", ".kicad_sym", ".kicad_pro", ".kicad_wks", ".kicad_mod", "-lib-table")
_READS: Mapping[Job, tuple[str, ...]] = {
    "netlist": _SCHEMATIC,
    "erc": _SCHEMATIC,
    "drc": (*_SCHEMATIC, ".kicad_pcb", ".kicad_dru"),
}
"""Ends of the names of the files that can change a result; no other is copied or hashed."""

_SHELL = (
    'ulimit -c 0 && ulimit -f "$1" && ulimit -v "$2" && ulimit -n "$3" || exit 125; '
    'ulimit -u "$4" 2>/dev/null || ulimit -p "$4" || exit 125; shift 4; exec "$@"'
)
"""A shell sets the limits and becomes kicad-cli: Python between fork and exec is unsafe with threads.
``-u`` is bash's and ``-p`` is dash's name for the number of processes."""


@dataclass(frozen=True, slots=True)
class Caps:
    """What one call may use."""

    wall_seconds: float = 480
    """A 70 MB board's DRC, in one thread, takes up to 300 s on two loaded processors."""
    memory_bytes: int = 8 * 1024**3
    """Address space, not resident memory; the container caps the latter."""
    file_bytes: int = 512 * 1024**2
    """Largest file it may write."""
    open_files: int = 512
    processes: int = 4096
    """Of the user id, in all containers: only a net, the container's pids limit is what holds."""
    message_bytes: int = 64 * 1024
    """Of standard output and error together that is read."""


@lru_cache(maxsize=KEPT)
def sha256(data: bytes) -> bytes:
    """A file's SHA-256; each file of a design is part of several inputs."""
    return hashlib.sha256(data).digest()


class KicadCli:
    """Runs kicad-cli; results are cached by content."""

    def __init__(
        self,
        *,
        executable: str = "kicad-cli",
        cache: Cache | None = None,
        caps: Caps | None = None,
        scratch: Path | None = None,
        wrapper: tuple[str, ...] = (),
        version: str | None = None,
    ) -> None:
        """
        Args:
            executable: name or path of the program.
            cache: where results are kept; in memory when None.
            caps: limits of one call.
            scratch: folder for copies (needs room for one tree); the system's temporary folder when None.
            wrapper: command put before the program, such as a jail; it gets the call's folder in
                ``COPPERBENCH_JAIL``.
            version: the program's version where it is known already; it is asked when None.
        """
        self._executable = executable
        self._cache = cache if cache is not None else MemoryCache()
        self._caps = caps or Caps()
        self._scratch = scratch
        self._wrapper = wrapper
        if version is not None:
            self.version = version
        self.seconds = 0.0
        """Wall time spent inside kicad-cli so far."""
        self.runs = 0
        """Calls that were not answered from the cache."""

    @cached_property
    def version(self) -> str:
        """Such as ``9.0.2``.

        Raises:
            ToolUnavailable: the program is missing or does not run.
        """
        with self._folder() as folder:
            code, said = self._execute(Path(folder), (self._executable, "version"))
        lines = said.split()
        if code != 0 or not lines or not lines[-1][:1].isdigit():
            raise ToolUnavailable(f"{self._executable} version: exit {code}, {said[:200]!r}")
        return lines[-1]

    @property
    def major(self) -> str:
        """Such as ``9``: baselines and records are kept per major."""
        return self.version.split(".")[0]

    def inputs(self, job: Job, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Those of a tree's files that kicad-cli may read for a job."""
        return {path: data for path, data in files.items() if path.endswith(_READS[job])}

    def digest(self, job: Job, target: str, files: Mapping[str, bytes]) -> str:
        """SHA-256 over everything a result depends on: command, version, tables, target and files."""
        digest = hashlib.sha256()
        parts = [self.version.encode(), *map(str.encode, _ARGUMENTS[job]), os.fsencode(target)]
        for name, content in {**TABLES, **ADVANCED}.items():
            parts += [name.encode(), content]
        for path, data in sorted(self.inputs(job, files).items(), key=lambda item: os.fsencode(item[0])):
            parts += [os.fsencode(path), sha256(data)]
        for part in parts:
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    def run(self, job: Job, target: str, files: Mapping[str, bytes]) -> bytes:
        """Run one job on ``target`` within a copy of ``files`` and return the output file.

        Args:
            job: which command.
            target: path in ``files`` of the schematic or board.
            files: tree-relative path → content; only what the job may read is copied.

        Raises:
            Unjudgeable: kicad-cli could not load the design, crashed, hung, or left no output.
            ToolUnavailable: kicad-cli itself does not run.
        """
        if target not in files:
            raise Unjudgeable(f"{target}: missing")
        key = self.digest(job, target, files)
        if (known := self._cache.get(key)) is not None:
            return known
        with self._folder() as name:
            result = self._fresh(Path(name), job, target, self.inputs(job, files))
        self._cache.put(key, result)
        return result

    def _fresh(self, folder: Path, job: Job, target: str, files: Mapping[str, bytes]) -> bytes:
        tree, out = folder / "tree", folder / "out"
        out.mkdir()
        for path, data in files.items():
            _write(tree, path, data)
        output = out / f"result.{_SUFFIX[job]}"
        command = (self._executable, *_ARGUMENTS[job], "--output", str(output), str(tree / target))
        code, said = self._execute(folder, command, cwd=(tree / target).parent)
        what = f"kicad-cli {job} on {target}"
        is_complete = _COMPLETE[job].search(said) is not None
        said = _lasting(said, folder)
        if code != 0:
            raise Unjudgeable(f"{what}: exit {code}: {said or 'no message'}")
        if not is_complete:
            raise Unjudgeable(f"{what}: exit 0 but a part of the report was left out: {said or 'no message'}")
        try:
            return _settled(output.read_bytes(), files.values())
        except OSError:
            raise Unjudgeable(f"{what}: exit 0 but no output: {said}") from None

    def _execute(self, folder: Path, command: tuple[str, ...], cwd: Path | None = None) -> tuple[int, str]:
        """Run a command in its own session; at the wall its whole process group is killed."""
        caps, home, messages = self._caps, folder / "home", folder / "messages"
        self._furnish(home)
        temporary = folder / "tmp"
        temporary.mkdir()
        limits = (
            _at_most(resource.RLIMIT_FSIZE, caps.file_bytes) // 512,
            _at_most(resource.RLIMIT_AS, caps.memory_bytes) // 1024,
            _at_most(resource.RLIMIT_NOFILE, caps.open_files),
            _at_most(resource.RLIMIT_NPROC, caps.processes),
        )
        argv = ("/bin/sh", "-c", _SHELL, "sh", *map(str, limits), *self._wrapper, *command)
        environment = {
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "LANG": "C.UTF-8",
            "COPPERBENCH_JAIL": str(folder),
        }
        started = time.monotonic()
        self.runs += 1
        with messages.open("wb") as sink:
            process = subprocess.Popen(
                argv,
                cwd=cwd or folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                close_fds=True,
            )
            try:
                code = process.wait(timeout=caps.wall_seconds)
            except subprocess.TimeoutExpired:
                raise Unjudgeable(f"{' '.join(command[:3])}: killed after {caps.wall_seconds:g} s") from None
            finally:
                # Also after a normal end: a child left behind must not outlive the call.
                _kill_group(process)
                self.seconds += time.monotonic() - started
        with messages.open("rb") as said:
            size = said.seek(0, os.SEEK_END)
            said.seek(max(0, size - caps.message_bytes))
            text = said.read(caps.message_bytes).decode("utf-8", "replace")
        if code in (125, 126, 127):
            # The shell's own codes: limits not set, not executable, not found.
            raise ToolUnavailable(f"{command[0]}: cannot be run: {text.strip()[-200:]}")
        return code, text

    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(dir=self._scratch, prefix="kicad-", ignore_cleanup_errors=True)

    def _furnish(self, home: Path) -> None:
        home.mkdir()
        if "version" in self.__dict__:
            config = home / ".config" / "kicad" / f"{self.major}.0"
            config.mkdir(parents=True)
            for name, content in {**TABLES, **ADVANCED}.items():
                (config / name).write_bytes(content)


def _write(root: Path, path: str, data: bytes) -> None:
    parts = path.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        raise Unjudgeable(f"{path!r}: not a path inside the tree")
    file = root.joinpath(*parts)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    except OSError as error:
        raise Unjudgeable(f"{path!r}: cannot be copied ({error.strerror})") from None


_UUID = re.compile(rb"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b")
_LEGACY = b"00000000-0000-0000-0000-0000"
"""How KiCad spells the eight digits that older files have instead of a uuid."""
DRAWN = b"ffffffff-ffff-ffff-ffff-ffffffffffff"
"""Stands for every uuid that no file holds."""


def _settled(result: bytes, files: Iterable[bytes]) -> bytes:
    """A result without the uuids that KiCad drew while it ran, which differ from one call to the next."""
    known: set[bytes] | None = None
    for uuid in set(_UUID.findall(result)):
        if uuid.startswith(_LEGACY):
            continue
        if known is None:
            known = {found.lower() for data in files for found in _UUID.findall(data)}
        if uuid.lower() not in known:
            result = result.replace(uuid, DRAWN)
    return result


_PASSING = re.compile(r"\b\d\d:\d\d:\d\d: |\b0x[0-9a-fA-F]+\b")


def _lasting(said: str, folder: Path) -> str:
    """The end of what kicad-cli said, without time of day, addresses and our folder: equal in every grade."""
    text = said.replace(f"{folder}/tree/", "").replace(str(folder), "")
    return _PASSING.sub("", text).strip()[-300:]


def _at_most(kind: int, wanted: int) -> int:
    """A limit, lowered to what this process may have itself."""
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
