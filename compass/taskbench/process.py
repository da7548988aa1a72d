"""One process with a time limit, its output in a file, and nothing left behind."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: Bytes of a log that a message may quote.
_QUOTED = 300


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    #: None when the time limit ended it; minus the signal's number when a signal did.
    code: int | None
    seconds: float
    log: Path

    def tail(self) -> str:
        """The end of its output in one line, or how it ended when it said nothing."""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - _QUOTED))
            said = " ".join(file.read().decode("utf-8", "replace").split())
        how = "ran into the time limit" if self.code is None else f"exit {self.code}"
        return f"{how}: {said}" if said else how


def run(
    argv: list[str], *, cwd: Path, env: dict[str, str], limit: float, log: Path, stdin: Path | None = None
) -> Ended:
    """Run ``argv`` for at most ``limit`` seconds, output to ``log``, input from the file ``stdin``.

    What it started in its process group is killed when it has ended, in whatever way. Raises OSError if it
    cannot start.
    """
    started = time.monotonic()
    with Path(stdin or os.devnull).open("rb") as source, log.open("wb") as sink:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=source,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code: int | None = None
        try:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=limit)
        finally:
            # Its children would go on spending time or tokens, and could still change what is graded.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Ended(code, time.monotonic() - started, log)
