"""What the gateway is told and what it tells: one JSON object in, JSON lines out (docs/gateway.md)."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Field, SecretStr, TypeAdapter

from schema.base import Model
from schema.pricing import Price, TokenUsage

WireProtocol = Literal["openai-chat", "openai-responses", "anthropic-messages"]

SOCKET = "/gateway/gateway.sock"
"""Where the gateway listens, and where an agent's relay finds it."""


class GatewayCaps(Model):
    """Caps of one run; None is no cap. Enforced before a request is forwarded."""

    turns: int | None = Field(default=None, ge=0)
    """Model replies."""
    tokens: int | None = Field(default=None, ge=0)
    """Input and output tokens together."""
    micro_usd: int | None = Field(default=None, ge=0)
    suite_micro_usd: int | None = Field(default=None, ge=0)
    """What is left of the suite's budget for this run."""
    refusals: int = Field(default=1000, ge=0)
    """Requests refused before the run counts as flooding."""


class Patience(Model):
    """How long provider faults are borne. Seconds."""

    budget_seconds: float = Field(default=600, ge=0)
    """Of a run, for failed attempts and waits together: the most that is taken off the agent's wall clock."""
    attempts: int = Field(default=8, ge=1)
    """Of one request, the first included."""
    first_byte_seconds: float = Field(default=300, gt=0)
    """Until a reply begins; a model that thinks without streaming says nothing for minutes."""
    idle_seconds: float = Field(default=120, gt=0)
    """Between two parts of a stream."""
    drain_seconds: float = Field(default=30, ge=0)
    """For replies in flight when the run is over: their usage is still wanted."""


class GatewayLimits(Model):
    """What one agent may ask of its gateway (docs/limits.md). Past a limit a request is refused."""

    body_bytes: int = 8 * 2**20
    reply_bytes: int = 32 * 2**20
    """Of a reply that is not streamed, and of one event of a stream."""
    header_bytes: int = 32 * 2**10
    connections: int = 64
    exchanges: int = 8
    """Requests read and forwarded at a time; others wait."""
    json_nodes: int = 200_000
    """Braces, brackets, commas and colons of a request's JSON."""
    request_seconds: float = 30
    """For an agent to send one request, headers and body each."""
    delivery_seconds: float = 60
    """For an agent to take a part of a reply."""


class GatewayConfig(Model):
    """The JSON object on the gateway's standard input, on one line. The input's end is the gateway's."""

    model: str = Field(min_length=1)
    """The only model that may be asked for, by the provider's own name."""
    protocols: list[WireProtocol] = Field(min_length=1)
    base_url: str
    """Of the provider, without the endpoint: ``https://api.example.com/v1``."""
    upstream_socket: str | None = None
    """Unix socket to reach the provider by, instead of ``base_url``'s host."""
    key: SecretStr | None = None
    proxy: str | None = None
    """HTTP proxy between gateway and provider."""
    ca_certificates: str | None = None
    """PEM text of authorities to trust besides the usual ones."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_completion_tokens"
    """What the provider's chat completions call the limit on a reply."""
    max_output_tokens: int = Field(default=32_768, ge=1)
    """Most tokens of a reply that asked for no limit, where a cap on tokens or USD is in force."""
    price: Price | None = None
    caps: GatewayCaps = GatewayCaps()
    patience: Patience = Patience()
    limits: GatewayLimits = GatewayLimits()
    keep_bodies: bool = False
    listen: str = SOCKET

    def line(self) -> bytes:
        """The object as it goes to standard input, the key in the clear, with its newline."""
        value = self.to_json()
        value["key"] = self.key.get_secret_value() if self.key else None
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"


class _Event(Model):
    at: float
    """Seconds since the gateway began to listen, by its monotonic clock."""


class Listening(_Event):
    """The socket is there: the agent may start."""

    event: Literal["listening"] = "listening"


Outcome = Literal["replied", "broken", "rejected", "failed"]


class Exchange(_Event):
    """The ledger's line: one request that was forwarded, once it is over. ``at`` is its end."""

    event: Literal["request"] = "request"
    seq: int
    protocol: WireProtocol
    stream: bool
    outcome: Outcome
    """``replied``: in full. ``broken``: the reply ended midway. Both are model replies. ``rejected``: the
    provider refused this request (4xx), or fails at this one and at no other. ``failed``: faults until the
    patience ran out, or the end of the run before the first byte. Neither counts."""
    probe: bool = False
    """The gateway's own request, to learn whose fault another one's faults are: paid for, and no turn."""
    status: int | None
    """HTTP status of the provider's last answer."""
    answered: str | None
    """Model id that the reply names."""
    usage: TokenUsage | None
    """None: the provider did not say, or what it said cannot be."""
    pico_usd: int | None
    cost_note: str = ""
    attempts: int
    uncounted: int = 0
    """Attempts that broke after the request was sent: they may have been generated and billed."""
    began: float
    first_byte: float | None
    """Seconds from ``began`` to the first byte of the reply that was delivered."""
    fault_seconds: float
    """Part of this request's time lost to failed attempts and the waits after them."""
    excluded_seconds: float | None = None
    """So far in this run, as in :class:`Retry`; less than before where this request was itself at fault."""
    request_bytes: int
    reply_bytes: int
    changes: list[str] = []
    """What the gateway changed in the body."""
    abandoned: bool = False
    """The agent hung up or stopped reading; the reply was read to its end for its usage."""


class Refused(_Event):
    """A request that the gateway did not forward."""

    event: Literal["refused"] = "refused"
    seq: int
    status: int
    reason: str


class Retry(_Event):
    """A provider fault that is borne."""

    event: Literal["retry"] = "retry"
    seq: int
    attempt: int
    kind: str
    status: int | None
    wait: float
    """Seconds until the next attempt."""
    excluded_seconds: float
    """So far in this run, the coming wait included, overlaps counted once: to be taken off the wall clock."""


GatewayCap = Literal["turns", "tokens", "usd", "requests"]


class Breach(_Event):
    """A cap would be passed. Nothing is forwarded any more; the run is to be killed."""

    event: Literal["breach"] = "breach"
    cap: GatewayCap
    scope: Literal["run", "suite"] = "run"
    reason: str


class ProviderLost(_Event):
    """A request failed for good by the provider's fault, or the harness's credential was refused."""

    event: Literal["provider-lost"] = "provider-lost"
    seq: int
    kind: str
    status: int | None
    excluded_seconds: float


class Body(_Event):
    """Only with ``keepBodies``: what was sent and what came back; bytes that are no UTF-8 as ``\\xff``."""

    event: Literal["body"] = "body"
    seq: int
    side: Literal["request", "reply"]
    text: str


class Closed(_Event):
    """The last line of a gateway that ended by itself."""

    event: Literal["closed"] = "closed"
    refused: int
    """Requests refused, unlisted ones included."""
    unfinished: int
    """Exchanges still in flight when the patience for them ran out: their usage is unknown."""
    excluded_seconds: float
    asked: bool = True
    """Whether its input's end was the reason. False: a signal was, which no agent can send."""


GatewayEvent = Annotated[
    Listening | Exchange | Refused | Retry | Breach | ProviderLost | Body | Closed,
    Field(discriminator="event"),
]
EVENT: TypeAdapter[GatewayEvent] = TypeAdapter(GatewayEvent)
