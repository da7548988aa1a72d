"""A run's gateway in the engine: started before the agent, followed by its output, ended after the agent."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import TracebackType
from typing import Literal, Self

from orchestrator.attached import Attached
from orchestrator.companion import START_SECONDS, Companion
from orchestrator.engine import ContainerSpec, Engine, Exit, Limits, Mount
from orchestrator.images import GATEWAY_IMAGE
from schema.gateway import (
    EVENT,
    SOCKET,
    Body,
    Breach,
    Closed,
    Exchange,
    GatewayConfig,
    GatewayEvent,
    Listening,
    ProviderLost,
    Refused,
    Retry,
)
from schema.pricing import micro_usd
from schema.run import Usage

FOLDER = str(PurePosixPath(SOCKET).parent)
LIMITS = Limits(memory=384 * 2**20, cpus=1.0, pids=32, nofile=256, fsize=2**20, tmp=2**20)
LINE_BYTES = 64 * 2**20
"""Longest line of events: a body of 32 MiB, escaped."""
_SNAPSHOT = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})")
"""What a provider appends to an alias to name the version that it stands for today."""


@dataclass
class Account:
    """What a run's events add up to: the one place where replies, tokens and money are summed."""

    pinned: str
    told: list[GatewayEvent] = field(default_factory=list)
    """All of them but bodies and the first, in the order in which they came."""
    exchanges: list[Exchange] = field(default_factory=list)
    refusals: list[Refused] = field(default_factory=list)
    retries: int = 0
    breach: Breach | None = None
    """The first cap that was passed."""
    lost: ProviderLost | None = None
    """The first fault of the provider that patience did not mend."""
    closed: Closed | None = None
    excluded_seconds: float = 0.0
    """To be taken off the agent's wall clock, already limited to the stated maximum. The latest word counts:
    a request whose faults turned out to be its own gives their time back."""

    def add(self, event: GatewayEvent) -> None:
        """Take one event."""
        if not isinstance(event, Body | Listening):
            self.told.append(event)
        match event:
            case Exchange():
                self.exchanges.append(event)
                if event.excluded_seconds is not None:
                    self.excluded_seconds = event.excluded_seconds
            case Refused():
                self.refusals.append(event)
            case Breach():
                self.breach = self.breach or event
            case Retry():
                self.retries += 1
                self.excluded_seconds = event.excluded_seconds
            case ProviderLost():
                self.lost = self.lost or event
                self.excluded_seconds = event.excluded_seconds
            case Closed():
                self.closed = event
                self.excluded_seconds = event.excluded_seconds

    @property
    def replies(self) -> list[Exchange]:
        """Exchanges that gave the agent a model reply, whole or not."""
        return [each for each in self._answers if not each.probe]

    @property
    def _answers(self) -> list[Exchange]:
        """The same, with what the gateway itself asked: all that is known to have been billed."""
        return [each for each in self.exchanges if each.outcome in {"replied", "broken"}]

    @property
    def _uncounted(self) -> int:
        """Attempts that may have been billed, nobody knows for how much."""
        return sum(each.uncounted for each in self.exchanges)

    @property
    def answered(self) -> list[str]:
        """The model ids that replies named, each once."""
        return sorted({each.answered for each in self.replies if each.answered is not None})

    @property
    def is_comparable(self) -> bool:
        """False when another model answered, two versions of the right one did, or none gave its name."""
        names = self.answered
        if self.replies and not names:
            return False
        return len(names) <= 1 and all(same_model(self.pinned, name) for name in names)

    @property
    def is_unused(self) -> bool:
        """Whether the gateway has ended and says that no reply was given, nor begun, nor lost on its way."""
        return (
            self.closed is not None
            and not self.closed.unfinished
            and not self._answers
            and not self._uncounted
        )

    def usage(self, table_version: str | None) -> Usage:
        """Sums; None where one reply's part is unknown, or the gateway was lost with replies in flight.

        A cost is unknown too where an attempt broke that may have been billed.
        """
        answers, complete = self._answers, self.closed is not None and not self.closed.unfinished
        known = [each.usage for each in answers if each.usage is not None]
        counted = complete and len(known) == len(answers)
        costs = [each.pico_usd for each in answers if each.pico_usd is not None]
        priced = complete and bool(answers) and len(costs) == len(answers) and not self._uncounted
        return Usage(
            replies=len(self.replies),
            input_tokens=sum(each.input for each in known) if counted else None,
            output_tokens=sum(each.output for each in known) if counted else None,
            cache_read_tokens=_sum([each.cache_read for each in known]) if counted else None,
            cache_write_tokens=_sum([each.cache_write for each in known]) if counted else None,
            usd=micro_usd(sum(costs)) / 10**6 if priced else None,
            table_version=table_version,
        )

    def cost_note(self) -> str:
        """Why the cost is null; empty when it is not."""
        if not self._answers and not self._uncounted:
            return "no model reply"
        if self.closed is None:
            return "the gateway was lost: what was in flight is unknown"
        if self.closed.unfinished:
            return f"{self.closed.unfinished} replies were still in flight at the end"
        return next((each.cost_note for each in self.exchanges if each.cost_note), "")


def same_model(pinned: str, answered: str) -> bool:
    """Whether an answer's model id is the pinned one, or a dated version of it."""
    return answered == pinned or bool(
        answered.startswith(pinned) and _SNAPSHOT.fullmatch(answered, len(pinned))
    )


def _sum(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


class Gateway:
    """A context that owns one run's gateway: its volume, its container, the thread that follows it."""

    def __init__(
        self,
        engine: Engine,
        name: str,
        config: GatewayConfig,
        *,
        network: Literal["none", "host", "bridge"] = "none",
        mounts: Sequence[Mount] = (),
        labels: Mapping[str, str] | None = None,
        on_event: Callable[[GatewayEvent], None] = lambda _: None,
        on_loss: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            name: prefix of its names in the engine.
            network: what the provider is reached by.
            mounts: further volumes, such as a provider's socket.
            on_event: called in the following thread for each event, after the account has it.
            on_loss: called there when its output ends and it was not asked to end.
        """
        self._engine = engine
        self._name = name
        self._config = config
        self._labels = dict(labels or {})
        self._on_event = on_event
        self._on_loss = on_loss
        self._closing = False
        socket = Mount(f"{name}-gateway-socket", FOLDER)
        spec = ContainerSpec(
            name=f"{name}-gateway",
            image=GATEWAY_IMAGE,
            command=["python3", "-m", "gateway"],
            limits=LIMITS,
            labels=self._labels,
            mounts=[socket, *mounts],
            stdin=True,
            network=network,
        )
        self._companion = Companion(engine, spec, socket)
        self._following: threading.Thread | None = None
        self._listening = threading.Event()
        self.account = Account(config.model)
        self.ended = threading.Event()
        """Set when the gateway's output has ended: it is closed, or it is lost."""
        self.bodies: list[Body] = []

    @property
    def mount(self) -> Mount:
        """The socket's folder, for the agent."""
        return self._companion.mount

    @property
    def container(self) -> str:
        """Its id; empty before it is made."""
        return self._companion.container

    def __enter__(self) -> Self:
        """Start it, and wait until it listens.

        Raises:
            EngineError: the engine refused, or it did not begin to listen.
        """
        try:
            self._start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def close(self) -> Account:
        """End it once its agent is dead; waits for replies in flight, whose usage is still wanted."""
        self._closing = True
        self._companion.end_input()
        # A second for each step of its end beside the wait itself.
        self.ended.wait(self._config.patience.drain_seconds + 10)
        return self.account

    def fate(self) -> Exit | None:
        """How it ended, where it did so without saying that it closed; None otherwise."""
        if self.account.closed or not self.ended.is_set():
            return None
        self._engine.wait(self.container, 10)
        return self._engine.exit(self.container)

    def _start(self) -> None:
        streams = self._companion.start(self._config.line())
        self._following = threading.Thread(target=self._follow, args=(streams,), daemon=True)
        self._following.start()
        for _ in range(int(START_SECONDS / 0.05)):
            if self._listening.wait(0.05):
                return
            if self.ended.is_set():
                break
        raise self._companion.stillborn()

    def _follow(self, attached: Attached) -> None:
        attached.patience(24 * 3600)
        try:
            while True:
                self._take(EVENT.validate_json(attached.line(LINE_BYTES)))
        except (EOFError, OSError, ValueError):
            # Its end, ours, or a line that is none of its: all mean that nothing more can be learned.
            return
        finally:
            self.ended.set()
            if not self._closing:
                self._on_loss()

    def _take(self, event: GatewayEvent) -> None:
        if isinstance(event, Body):
            self.bodies.append(event)
            return
        if isinstance(event, Listening):
            self._listening.set()
        self.account.add(event)
        self._on_event(event)

    def _remove(self) -> None:
        self._closing = True
        self._companion.abort()
        if self._following:
            self._following.join(10)
        self._companion.remove()
