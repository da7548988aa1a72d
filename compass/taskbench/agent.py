"""The agent's command line, its environment, and what it says it cost."""

import math
import os
import shlex
import shutil
import stat
from pathlib import Path

from compass.guardrail import danger_reason
from schema.errors import EnvironmentFault, UsageError

PROMPT = "{prompt}"
#: Where the agent finds its allowance in USD, and the path of the file where it may write what it spent.
BUDGET, COST_FILE = "SDLC_BUDGET", "SDLC_COST_FILE"
_OPERATORS = frozenset("|&;<>()")
#: In a hook these name the caller's repository, and the agent's git would work on that one.
_GITS_PLACE = {
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
}
#: A number of dollars needs no more bytes.
_COST_BYTES = 64


def parse(command: str) -> list[str]:
    """The words of the agent's command, vetted by the guardrail. Raises UsageError.

    No shell reads the command, so that a prompt can never be taken for one.
    """
    if reason := danger_reason(command):
        raise UsageError(f"--agent is refused: {reason}")
    try:
        words = shlex.split(command)
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        operators = [token for token in lexer if token and set(token) <= _OPERATORS]
    except ValueError as error:
        raise UsageError(f"--agent cannot be split into words: {error}") from error
    if not words:
        raise UsageError("--agent is empty: give the command that starts the agent")
    if operators:
        raise UsageError(
            f"--agent has the shell operator {operators[0]}: write sh -c '…' around it, or a script"
        )
    for word in words:
        if PROMPT in word and word != PROMPT and not (word.startswith("-") and word.endswith("=" + PROMPT)):
            raise UsageError(
                f"--agent has {PROMPT} inside {word!r}: make it a word of its own, "
                "or leave it out and let the agent read standard input"
            )
    return words


def locate(words: list[str]) -> list[str]:
    """The words with the program's full path: it is started in another folder. Raises EnvironmentFault."""
    found = shutil.which(words[0])
    if found is None:
        raise EnvironmentFault(f"--agent: {words[0]!r} is not on PATH or not executable; give its full path")
    return [str(Path(found).absolute()), *words[1:]]


def fill(words: list[str], prompt: str) -> list[str]:
    """The words with the prompt in its place."""
    return [word.replace(PROMPT, prompt) for word in words]


def takes_prompt(words: list[str]) -> bool:
    """Whether the prompt is one of the words; otherwise it is the agent's standard input."""
    return any(PROMPT in word for word in words)


def environment(budget: float, cost_file: Path, tmp: Path) -> dict[str, str]:
    """The caller's environment (the agent needs its keys) with the allowance and the cost file."""
    kept = {name: value for name, value in os.environ.items() if name not in _GITS_PLACE}
    return {**kept, BUDGET: f"{budget:g}", COST_FILE: str(cost_file), "TMPDIR": str(tmp)}


def cost(cost_file: Path) -> float | None:
    """USD as the agent wrote them: one number, not negative. None when there is nothing of the kind."""
    try:
        # The agent made this entry: a link, a pipe or a huge file must neither lead elsewhere nor stop us.
        source = os.open(cost_file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        said = os.read(source, _COST_BYTES + 1) if stat.S_ISREG(os.fstat(source).st_mode) else b""
        usd = float(said.decode("ascii")) if len(said) <= _COST_BYTES else math.nan
    except ValueError:
        return None
    finally:
        os.close(source)
    return usd if math.isfinite(usd) and usd >= 0 else None
