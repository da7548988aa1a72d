"""Other people's tools on our corpora: one JSON line in, one JSON line out, the same scoring, the seed's
report block.

For each case the tool gets ``{"case", "corpus", "text", "branch"}`` on its standard input and answers one
line with
a boolean ``block`` (or ``flag``); ``reason`` is kept when there is one. The process is started once. A case
without
an answer counts as not stopped and is listed; a tool that answers nothing has no score.
"""

import hashlib
import json
import queue
import shlex
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compass.bench import guardrail
from compass.corpus import UNSEEN
from compass.redteam import bench as redteam
from compass.redteam.cases import Case, cases, file_cases
from compass.scoring import CaseResult, Report, Score
from schema.errors import EnvironmentFault

#: Seconds a tool may take for its first answer (models load) and for each later one.
FIRST, NEXT = 300.0, 30.0


class ToolError(EnvironmentFault):
    """The tool cannot be started, or its answers cannot be read; the message says which and how."""


@dataclass(frozen=True, slots=True)
class ToolReport:
    """A tool's report, with what is needed to repeat it."""

    tool: str
    command: str
    corpus: str
    digest: str
    commit: str | None
    report: Report
    unanswered: int
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether every floor is reached and every case was answered."""
        return self.report.ok and not self.unanswered

    def block(self) -> str:
        """The report block that the seed asks for."""
        score = Score.of(self.report.cases)
        return "\n".join(
            [
                f"tool: {self.tool}",
                f"corpus: {self.corpus}",
                f"commit: {self.commit or 'not in a repository'} (sha256 {self.digest[:16]})",
                f"precision: {_percent(score.precision.value)}  recall: {_percent(score.recall.value)}  "
                f"cases: {score.total}",
                f"scorer: compass bench --tool {shlex.quote(self.command)}",
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            "tool": self.tool,
            "scorer": f"compass bench --tool {shlex.quote(self.command)}",
            "corpus": self.corpus,
            "corpus_sha256": self.digest,
            "commit": self.commit,
            "unanswered": self.unanswered,
            "ms_per_case": round(1000 * self.seconds / max(1, len(self.report.cases)), 2),
            **self.report.to_json(),
            "ok": self.ok,
        }


def _percent(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.1f}%"


@contextmanager
def _running(command: str) -> Iterator["_Process"]:
    words = shlex.split(command)
    if not words:
        raise ToolError("the tool's command is empty")
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", bufsize=1
        )
    except OSError as error:
        raise ToolError(f"cannot start {words[0]}: {error.strerror}") from error
    running = _Process(process)
    try:
        yield running
    finally:
        process.kill()
        process.wait()
        running.close()


class _Process:
    """A running tool; ``ask`` sends one line and waits for one."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._limit = FIRST
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    def close(self) -> None:
        """Close both pipes of a process that has ended; what it never read is lost."""
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()

    def _drain(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put(None)

    def ask(self, question: dict[str, Any]) -> dict[str, Any] | None:
        """The tool's answer, or None when it died or was silent too long. Raises ToolError for an answer
        that is
        no JSON object with a boolean ``block`` or ``flag``."""
        try:
            if self._process.stdin is None:
                return None
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=self._limit)
        except (OSError, queue.Empty):
            return None
        self._limit = NEXT
        if line is None:
            # Its end stays its end: a pipe may take another line after it, and no answer would come.
            self._lines.put(None)
            return None
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise ToolError(f"case {question['case']}: the answer is not JSON: {line[:80]!r}") from error
        if not isinstance(answer, dict) or not isinstance(answer.get("block", answer.get("flag")), bool):
            raise ToolError(
                f"case {question['case']}: the answer has no boolean block or flag: {line[:80]!r}"
            )
        return answer


def evaluate(command: str, corpus: str = "guardrail", name: str | None = None) -> ToolReport:
    """Score the tool that ``command`` starts on ``guardrail`` or ``redteam``. Raises ToolError."""
    started = time.perf_counter()
    made: list[CaseResult] = []
    unanswered = 0
    rows = [*_cases(corpus), *_unseen(corpus)]
    with _running(command) as tool:
        for case, family, split, expected, text, branch in rows:
            answer = tool.ask({"case": case, "corpus": corpus, "text": text, "branch": branch})
            unanswered += answer is None
            got = bool(answer and answer.get("block", answer.get("flag")))
            detail = "no answer" if answer is None else str(answer.get("reason", ""))[:200]
            made.append(CaseResult(case, family, split, expected, got, text, detail))
            if answer is None and unanswered == len(made) > 2:
                raise ToolError(f"{command!r} answers nothing")
    path = guardrail.CORPUS.with_name(f"{corpus}.tsv")
    results = [result for result in made if result.split != "unseen"]
    report = Report(
        f"{corpus} by {name or command}",
        tuple(results),
        (guardrail.gates if corpus == "guardrail" else redteam.gates)(results),
        unseen=Score.of(result for result in made if result.split == "unseen"),
    )
    return ToolReport(
        name or Path(shlex.split(command)[0]).name,
        command,
        f"compass/corpora/{path.name}",
        hashlib.sha256(path.read_bytes()).hexdigest(),
        _commit(path),
        report,
        unanswered,
        time.perf_counter() - started,
    )


#: Case, family, split, whether it must be stopped, text, branch.
_Asked = tuple[str, str, str, bool, str, str | None]


def _cases(corpus: str) -> Iterator[_Asked]:
    return _commands(guardrail.CORPUS) if corpus == "guardrail" else _texts(cases())


def _unseen(corpus: str) -> Iterator[_Asked]:
    if corpus == "guardrail":
        return _commands(UNSEEN / guardrail.CORPUS.name)
    return _texts(file_cases(UNSEEN / "redteam.tsv"))


def _commands(path: Path) -> Iterator[_Asked]:
    for row, block, command, branch in guardrail.cases(path):
        yield row.case, row.family, row.split, block, command, branch


def _texts(rows: Iterable[Case]) -> Iterator[_Asked]:
    for case in rows:
        yield case.case, case.family, case.split, case.inject, case.text, None


def _commit(path: Path) -> str | None:
    """The commit that last changed the corpus, where it lies in a repository with git at hand."""
    try:
        found = subprocess.run(
            ["git", "-C", str(path.parent), "log", "-1", "--format=%H", "--", path.name],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None
