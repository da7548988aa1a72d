"""``doctor --model``: one smallest call, by the way that a run's calls go, and what it cost."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack

from orchestrator.engine import ContainerSpec, Engine, Limits
from orchestrator.gateway import Account, Gateway
from orchestrator.models import Route, gateway_config
from orchestrator.scripted import SOCKET, ScriptedProvider
from schema.errors import EnvironmentFault
from schema.gateway import SOCKET as GATEWAY_SOCKET
from schema.gateway import GatewayConfig
from schema.task import Caps

SECONDS = 120.0
OUTPUT_TOKENS = 16
"""Fewest that every provider takes."""

_ASK = """
import sys, urllib.error, urllib.request
head = {"Content-Type": "application/json"}
request = urllib.request.Request("http://127.0.0.1:8080" + sys.argv[1], sys.argv[2].encode(), head)
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code, " ".join(error.read().decode("utf-8", "replace").split())[:300])
"""


def reach(engine: Engine, route: Route, environment: Mapping[str, str]) -> str:
    """Ask a model for one word; a line that says what answered and what it cost.

    Raises:
        UsageError: no key, or nothing that the provider speaks.
        EnvironmentFault: no reply came.
    """
    protocol = next(iter(route.provider.protocols), "none")
    config = gateway_config(route, protocol, Caps(turns=1, wall_clock_sec=SECONDS), environment)
    account, said = _asked(engine, route, config)
    if not account.replies:
        lost = account.lost.kind if account.lost else said or "no answer"
        raise EnvironmentFault(
            f"no reply ({lost})",
            about=route.model,
            fix="check its entry in models.json, its key and the network",
        )
    usage = account.usage(route.table_version)
    tokens = f"{usage.input_tokens} tokens in, {usage.output_tokens} out"
    price = f"{usage.usd:.6f} USD" if usage.usd is not None else f"cost unknown: {account.cost_note()}"
    return f"{route.model}: {', '.join(account.answered) or 'a nameless model'} answered; {tokens}; {price}"


def _asked(engine: Engine, route: Route, config: GatewayConfig) -> tuple[Account, str]:
    name = f"copperbench-reach-{time.time_ns()}"
    labels = {"role": "reach"}
    with ExitStack() as stack:
        mounts = []
        if config.upstream_socket == SOCKET:
            script = {"script": route.name, "model": route.name, "listen": SOCKET}
            provider = stack.enter_context(ScriptedProvider(engine, name, script, labels))
            mounts.append(provider.mount)
        gateway = stack.enter_context(
            Gateway(engine, name, config, network=route.provider.network, mounts=mounts, labels=labels)
        )
        agent = engine.create(
            ContainerSpec(
                name=f"{name}-agent",
                image="copperbench/agent-base",
                command=["relay", GATEWAY_SOCKET, "python3", "-c", _ASK, *_request(config)],
                limits=Limits(memory=2**27, cpus=1, pids=32),
                mounts=[gateway.mount],
                labels=labels,
            )
        )
        stack.callback(engine.remove, agent)
        engine.start(agent)
        engine.wait(agent, SECONDS)
        said = engine.output(agent)[0].strip()
        return gateway.close(), said


def _request(config: GatewayConfig) -> tuple[str, str]:
    """Path and body of the smallest request of the configuration's first protocol."""
    message = {"role": "user", "content": "Say yes."}
    if config.protocols[0] == "anthropic-messages":
        body = {"model": config.model, "max_tokens": OUTPUT_TOKENS, "messages": [message]}
        return "/v1/messages", json.dumps(body)
    if config.protocols[0] == "openai-responses":
        body = {"model": config.model, "max_output_tokens": OUTPUT_TOKENS, "input": [message]}
        return "/v1/responses", json.dumps(body)
    body = {"model": config.model, config.max_tokens_field: OUTPUT_TOKENS, "messages": [message]}
    return "/v1/chat/completions", json.dumps(body)
