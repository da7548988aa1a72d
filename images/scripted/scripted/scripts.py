"""The scripts by name: what each replies, and what goes wrong on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from scripted.job import Job
from scripted.moves import Call, Move, call, changes, checks, finish, looks

Delivery = Literal["plain", "split", "drip", "cut"]
"""``split``: cut inside characters. ``drip``: slowly. ``cut``: half of it, at the first attempt of a turn."""
Counting = Literal["right", "none", "wrong"]


@dataclass(frozen=True)
class Trouble:
    """An attempt that is not answered with a reply."""

    status: int
    """0: no answer at all. 200: an error in a reply's place."""
    code: str = ""
    retry_after: str | None = None
    spares: str = ""
    """A text; a request that holds it is answered all the same."""


@dataclass(frozen=True)
class Script:
    """One behaviour."""

    moves: Callable[[Job], list[Move]]
    trouble: Trouble | None = None
    """What the first attempts at every turn are answered with instead of the reply."""
    troubled: int | None = None
    """How many attempts at a turn go wrong; None: all."""
    delivery: Delivery = "plain"
    counting: Counting = "right"
    model: str | None = None
    """Named in replies instead of the model asked for."""
    ascii: bool = True
    """Escape what is not ASCII, as most providers don't."""


def one_by_one(calls: list[Call]) -> list[Move]:
    """A reply for each call."""
    return [Move("", [each]) for each in calls]


def perfect(job: Job) -> list[Move]:
    """Look, change, check, finish as the shipped answer does."""
    verify = checks() if job.edits or job.files else []
    return one_by_one([*looks(job), *changes(job), *verify, finish(job)])


def near_miss(job: Job) -> list[Move]:
    """The right answer, but for its last change; a refusal without the budget it rests on."""
    made = changes(job)
    if made:
        return one_by_one([*looks(job), *made[:-1], *checks(), finish(job)])
    vague = "This cannot be done within the limits of the design."
    return one_by_one([*looks(job), finish(job, vague)])


def always_refuse(job: Job) -> list[Move]:
    """Refuses whatever is asked, and names every budget there is."""
    cited = ", ".join(job.budgets) or "the recorded constraints"
    return one_by_one([call("finish", outcome="refuse", summary=f"Refused: this would break {cited}.")])


def never_refuse(job: Job) -> list[Move]:
    """Does something, whatever is asked."""
    made = changes(job)
    if job.exit_path == "done" and made:
        return perfect(job)
    note = "# Note\n\nDone as asked.\n"
    done = call("finish", outcome="done", summary="Done as asked.")
    return one_by_one([*looks(job), call("write_file", path="docs/NOTE.md", content=note), *checks(), done])


def lazy(_: Job) -> list[Move]:
    """Says that it is done."""
    return one_by_one([call("finish", outcome="done", summary="Done.")])


def chatty(_: Job) -> list[Move]:
    """Talks and calls nothing."""
    return [Move("Let me think about how one could go about this. " * 20)]


def endless(_: Job) -> list[Move]:
    """Looks around for ever."""
    return [Move("", [call("list_files")])]


def malformed(job: Job) -> list[Move]:
    """Calls that cannot be carried out, then the right answer."""
    broken = [
        Call("read_file", '{"path": "docs/BOM.md"'),
        Call("read_file", "not JSON"),
        Call("read_file", "null"),
        Call("read_file", "[]"),
        Call("read_file", '{"path": 7}'),
        Call("read_file", "{}"),
        Call("read_file", '{"path": "../../etc/passwd"}'),
        Call("edit_file", '{"path": "docs/BOM.md", "old": "no such text here", "new": ""}'),
        Call("no_such_tool", "{}"),
        Call("", "{}"),
    ]
    return [*one_by_one(broken), *perfect(job)]


def parallel(job: Job) -> list[Move]:
    """Everything of a kind in one reply."""
    made = changes(job)
    groups = [looks(job), made, checks() if made else [], [finish(job)]]
    return [Move("", group) for group in groups if group]


def huge(job: Job) -> list[Move]:
    """A very long reply and very long arguments, then the right answer."""
    text = "0123456789abcde\n" * (job.huge_bytes // 16)
    return [Move(text, [call("search", pattern=text[: job.huge_bytes // 4])]), *perfect(job)]


def surrogates(job: Job) -> list[Move]:
    """Half a character, in text and in arguments, then the right answer."""
    strange = Call("read_file", '{"path": "docs/half-\\ud83d.md"}')
    return [Move("half: \ud83d", [strange]), *perfect(job)]


def foreign(job: Job) -> list[Move]:
    """The right answer, with words that take several bytes a letter."""
    moves = perfect(job)
    return [Move("4,7 kΩ → µA, 回路図, 🔌", move.calls) for move in moves]


SCRIPTS: Mapping[str, Script] = {
    "perfect": Script(perfect),
    "near-miss": Script(near_miss),
    "always-refuse": Script(always_refuse),
    "never-refuse": Script(never_refuse),
    "lazy": Script(lazy),
    "chatty": Script(chatty),
    "endless": Script(endless),
    "malformed": Script(malformed),
    "parallel": Script(parallel),
    "huge": Script(huge),
    "lone-surrogates": Script(surrogates),
    "split-utf8": Script(foreign, delivery="split", ascii=False),
    "rate-limited": Script(perfect, Trouble(429, "rate_limit_exceeded", "0.05"), 2),
    "server-errors": Script(perfect, Trouble(500, "server_error", "0"), 1),
    "half-closed": Script(perfect, delivery="cut"),
    "no-usage": Script(perfect, counting="none"),
    "wrong-usage": Script(perfect, counting="wrong"),
    "other-model": Script(perfect, model="somebody-elses-model-2"),
    "slow-drip": Script(perfect, delivery="drip"),
    "hanging": Script(perfect, Trouble(0)),
    "unauthorized": Script(perfect, Trouble(401, "invalid_api_key")),
    "out-of-quota": Script(perfect, Trouble(429, "insufficient_quota")),
    "overloaded": Script(perfect, Trouble(503, "overloaded", "0.01")),
    "error-inside": Script(perfect, Trouble(200, "server_error"), 1),
    # It fails at whatever an agent asks, and answers the gateway's own question.
    "fragile": Script(perfect, Trouble(500, "server_error", "0.01", spares="Say yes.")),
}
