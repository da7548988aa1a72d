"""From a model id to the gateway that serves it: ``models.json``, ``pricing.json``, the environment's key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from orchestrator.project import Project
from schema.agent import Provider, provided_name
from schema.errors import UsageError
from schema.gateway import GatewayCaps, GatewayConfig
from schema.pricing import Price, Segment
from schema.task import Caps

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+@-]{0,199}")
CERTIFICATES = "SSL_CERT_FILE"
"""Names a file of further authorities, as OpenSSL reads it: for networks that sign for others."""
PROXIES = ("HTTPS_PROXY", "https_proxy")


class MissingKey(UsageError):
    """A provider wants a key and the environment has none."""


@dataclass(frozen=True)
class Route:
    """A model, how it is reached and what it costs."""

    model: str
    """The id, such as ``openai:gpt-5`` or ``compat:qwen3-32b@groq``."""
    name: str
    """What the provider calls it, and so what an agent must ask for."""
    provider: Provider
    price: Price | None
    """None: not in the table."""
    table_version: str

    @property
    def segment(self) -> Segment:
        """Which costs it may be compared with."""
        return self.price.segment if self.price else self.provider.segment_of(self.name)


def route(project: Project, model: str) -> Route:
    """Resolve a model id.

    Raises:
        UsageError: an unknown prefix or endpoint, or a name that no provider has.
    """
    provider, pricing = project.provider(model), project.pricing()
    name = provided_name(model)
    if not _NAME.fullmatch(name):
        raise UsageError(f"model id {model!r} has no usable name", fix="use prefix:name")
    return Route(model, name, provider, pricing.price(model), pricing.table_version)


def require_key(route: Route, environment: Mapping[str, str]) -> SecretStr | None:
    """The provider's key from the environment; None for a provider that wants none.

    Raises:
        MissingKey: it wants one and there is none.
    """
    variable = route.provider.key_variable
    if variable is None:
        return None
    key = environment.get(variable, "").strip()
    if not key:
        raise MissingKey(f"no key for {route.model}", fix=f"set {variable}")
    return SecretStr(key)


def require_price(route: Route) -> None:
    """Refuse a budget in USD for a model whose cost nobody knows.

    Raises:
        UsageError: it has no price per token.
    """
    if route.price is None:
        raise UsageError(
            f"{route.model} has no price, so a cap on USD cannot be kept",
            about="pricing.json",
            fix="add its row",
        )
    if route.price.rates is None:
        raise UsageError(
            f"{route.model} has no price per token ({route.segment}), so a cap on USD cannot be kept",
            fix="leave out the cap",
        )


def gateway_config(
    route: Route,
    protocol: str,
    caps: Caps,
    environment: Mapping[str, str],
    *,
    suite_micro_usd: int | None = None,
    keep_bodies: bool = False,
) -> GatewayConfig:
    """What the gateway of one run is told.

    Args:
        protocol: what the agent speaks, by its ``agent.json``.
        suite_micro_usd: what is left of ``--max-usd`` for this run.

    Raises:
        UsageError: no key, no price for a cap on USD, or a provider that does not speak the agent's protocol.
    """
    provider = route.provider
    spoken = [each for each in provider.protocols if each == protocol or _family(each) == _family(protocol)]
    if protocol not in provider.protocols or provider.base_url is None:
        known = ", ".join(provider.protocols) or "nothing"
        raise UsageError(
            f"{route.model} speaks {known}, the agent speaks {protocol}",
            fix="use another agent or another model",
        )
    if caps.usd is not None or suite_micro_usd is not None:
        require_price(route)
    socket = provider.base_url.removeprefix("unix:") if provider.base_url.startswith("unix:") else None
    return GatewayConfig(
        model=route.name,
        protocols=spoken,
        base_url="http://provider/v1" if socket else provider.base_url,
        upstream_socket=socket,
        key=require_key(route, environment),
        proxy=_proxy(provider, environment),
        ca_certificates=_certificates(provider, environment),
        max_tokens_field=provider.max_tokens_field,
        price=route.price,
        caps=GatewayCaps(
            turns=caps.turns,
            tokens=caps.tokens,
            # Down to a whole micro-USD: a cap is never overstated.
            micro_usd=None if caps.usd is None else int(caps.usd * 10**6),
            suite_micro_usd=suite_micro_usd,
        ),
        keep_bodies=keep_bodies,
    )


def _family(protocol: str) -> str:
    """An agent of a vendor's library may use either of its endpoints."""
    return protocol.partition("-")[0]


def _proxy(provider: Provider, environment: Mapping[str, str]) -> str | None:
    if provider.network != "bridge":
        return None
    return next((environment[name] for name in PROXIES if environment.get(name)), None)


def _certificates(provider: Provider, environment: Mapping[str, str]) -> str | None:
    file = environment.get(CERTIFICATES)
    if provider.network != "bridge" or not file:
        return None
    try:
        return Path(file).read_text("ascii", "ignore")
    except OSError as error:
        raise UsageError(f"cannot read ({error.strerror})", about=file, fix=f"unset {CERTIFICATES}") from None
