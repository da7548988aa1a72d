"""Gateway and scripted provider as containers, reached through the relay from an agent without a network."""

from __future__ import annotations

import io
import json
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

import docker
import pytest

from orchestrator.engine import ContainerSpec, Engine, Limits
from orchestrator.gateway import Gateway
from orchestrator.models import route
from orchestrator.project import Project
from orchestrator.reach import reach
from orchestrator.scripted import FOLDER, SOCKET, ScriptedProvider, job
from orchestrator.workspace import Baselines, load_pristine
from schema.errors import EngineError, EnvironmentFault
from schema.gateway import Breach, Exchange, GatewayConfig, GatewayEvent

NUMBER = count()
KEY = "sk-test-0123456789abcdefghijklmnop"
ODD_KEY = "a-key-that-no-pattern-knows-0123456789"
PROTOCOLS = ["openai-chat", "openai-responses", "anthropic-messages"]
PRICE = {"input": 2, "output": 10, "cacheRead": 0.2, "segment": "api", "pinning": "strong"}
ANSWER: dict[str, Any] = {
    "exit_path": "done",
    "summary": "Renamed.",
    "edits": [{"path": "a.kicad_sch", "find": "OLD", "replace": "NEW"}],
    "before": {"a.kicad_sch": "x OLD y\nz OLD w\n"},
    "huge_bytes": 2**20,
    "drip_seconds": 0.01,
}
QUICK = {"budget_seconds": 3, "attempts": 3, "first_byte_seconds": 1, "idle_seconds": 1, "drain_seconds": 2}

CLIENT = r"""
import http.client, json, sys
stream = json.loads(sys.argv[1])
turns = int(sys.argv[2])
messages, names = [{"role": "user", "content": "hi"}], []

def ask():
    connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=60)
    body = json.dumps({"model": "m", "messages": messages, "stream": stream})
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode("utf-8")
    connection.close()
    if answer.status != 200:
        return answer.status, None
    if not stream:
        return 200, json.loads(text)["choices"][0]["message"]
    message = {"role": "assistant", "content": "", "tool_calls": []}
    for event in text.split("\n\n")[:-1]:
        line = event.splitlines()[-1]
        if line.startswith("data: {"):
            delta = json.loads(line[6:])["choices"][0]["delta"]
            message["content"] += delta.get("content") or ""
            for call in delta.get("tool_calls", []):
                made = message["tool_calls"]
                if call["index"] == len(made):
                    made.append({"id": call["id"], "type": "function", "function": call["function"]})
                else:
                    made[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    return 200, message if text.rstrip().endswith("[DONE]") else None

for _ in range(turns):
    try:
        status, message = ask()
    except (OSError, http.client.HTTPException) as error:
        names.append(type(error).__name__)
        break
    if status != 200:
        names.append(status)
        break
    if message is None:
        names.append("broken")
        continue
    calls = message.get("tool_calls") or []
    messages.append(message)
    names += [call["function"]["name"] for call in calls] or ["talk"]
    messages += [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    if not calls or "finish" in names:
        break
print(json.dumps(names))
"""


@dataclass
class Stand:
    """A gateway and its provider, and what an agent beside them does."""

    engine: Engine
    name: str
    gateway: Gateway
    provider: ScriptedProvider | None

    def agent(
        self, *command: str, seconds: float = 120, during: Callable[[str], None] | None = None
    ) -> tuple[int, str]:
        """Run a command behind the relay; exit code and output."""
        container = self.engine.create(
            ContainerSpec(
                name=f"{self.name}-agent-{next(NUMBER)}",
                image="copperbench/agent-base",
                command=["timeout", "-s", "KILL", "120", "relay", "/gateway/gateway.sock", *command],
                limits=Limits(memory=2**28, cpus=1, pids=64),
                mounts=[self.gateway.mount],
                labels={"role": "test"},
            )
        )
        try:
            self.engine.start(container)
            if during:
                during(container)
            code = self.engine.wait(container, seconds)
            assert code is not None, "the agent did not end"
            return code, self.engine.output(container)[0]
        finally:
            self.engine.remove(container)

    def given(self) -> list[dict[str, Any]]:
        """The replies that the provider gave in full, as it counted them."""
        assert self.provider is not None
        return [line for line in self.provider.given() if "input" in line and line["delivery"] != "cut"]

    def talk(self, *, stream: bool = False, turns: int = 30) -> list[Any]:
        """A whole conversation: names of the tools called, or what went wrong."""
        code, out = self.agent("python3", "-c", CLIENT, json.dumps(stream), str(turns))
        assert code == 0, out
        return list(json.loads(out))


@contextmanager
def standing(
    engine: Engine,
    script: str,
    answer: dict[str, Any] | None = None,
    on_event: Callable[[GatewayEvent], None] = lambda _: None,
    **config: Any,
) -> Iterator[Stand]:
    """A scripted provider and a gateway before it. ``config``: fields of the gateway's configuration."""
    name = f"copperbench-test-{time.time_ns()}-{next(NUMBER)}"
    told = {**ANSWER, **(answer or {}), "script": script, "model": "m", "key": KEY, "listen": SOCKET}
    given = {
        "model": "m",
        "protocols": PROTOCOLS,
        "base_url": "http://provider/v1",
        "key": KEY,
        "patience": QUICK,
    }
    made = GatewayConfig.model_validate({**given, "upstream_socket": SOCKET, "price": PRICE, **config})
    with ExitStack() as stack:
        provider = stack.enter_context(ScriptedProvider(engine, name, told, {"role": "test"}))
        gateway = stack.enter_context(
            Gateway(engine, name, made, mounts=[provider.mount], labels={"role": "test"}, on_event=on_event)
        )
        yield Stand(engine, name, gateway, provider)


HAPPY = ["list_files", "read_file", "edit_file", "edit_file", "run_erc", "run_drc", "check_drift", "finish"]
PLAYED: dict[str, tuple[dict[str, Any], Any]] = {
    "perfect": ({}, HAPPY),
    "near-miss": ({}, [*HAPPY[:3], *HAPPY[4:]]),
    "always-refuse": ({}, ["finish"]),
    "never-refuse": ({}, HAPPY),
    "lazy": ({}, ["finish"]),
    "chatty": ({}, ["talk"]),
    "endless": ({"caps": {"turns": 4}}, [*["list_files"] * 4, 403]),
    "malformed": ({}, [*["read_file"] * 7, "edit_file", "no_such_tool", "", *HAPPY]),
    "parallel": ({}, HAPPY),
    "huge": ({}, ["search", *HAPPY]),
    "lone-surrogates": ({}, ["read_file", *HAPPY]),
    "split-utf8": ({}, HAPPY),
    "rate-limited": ({}, HAPPY),
    "server-errors": ({}, HAPPY),
    "half-closed": ({}, HAPPY),
    "no-usage": ({}, HAPPY),
    "wrong-usage": ({}, HAPPY),
    "other-model": ({}, HAPPY),
    "slow-drip": ({}, HAPPY),
    "hanging": ({}, [502]),
    "unauthorized": ({}, [401]),
    "out-of-quota": ({}, [429]),
    "overloaded": ({}, [503]),
    "error-inside": ({}, HAPPY),
    "fragile": ({}, [500]),
}
UNCOUNTED = {"no-usage", "wrong-usage"}
LOST = {"hanging", "unauthorized", "out-of-quota", "overloaded"}


@pytest.mark.parametrize("script", PLAYED)
def test_every_script_through_the_relay(engine: Engine, script: str) -> None:
    config, expected = PLAYED[script]
    # Faults at every turn: the patience of a whole run.
    patience = QUICK if script in LOST else {**QUICK, "budget_seconds": 60}
    with standing(engine, script, patience=patience, **config) as stand:
        assert stand.talk() == expected
        account = stand.gateway.close()
        given = stand.given()
    usage = account.usage("t")
    probes = sum(each.probe and each.outcome == "replied" for each in account.exchanges)
    assert usage.replies == len(given) - probes and probes == (script == "fragile")
    assert account.closed is not None and account.closed.unfinished == 0
    if script in LOST:
        assert account.lost is not None and usage.replies == 0 and usage.usd is None
    elif script in UNCOUNTED:
        assert usage.input_tokens is None and usage.usd is None and account.cost_note()
    else:
        assert usage.input_tokens == sum(line["input"] for line in given)
        assert usage.output_tokens == sum(line["output"] for line in given)
        # What broke after it was sent may have been billed.
        assert (usage.usd is None) is (account.cost_note() != "") is (script == "half-closed")
    assert account.is_comparable is (script != "other-model")
    assert (account.breach is not None) is (script == "endless")


@pytest.mark.parametrize("script", ["perfect", "split-utf8", "slow-drip", "lone-surrogates"])
def test_streams_through_the_relay(engine: Engine, script: str) -> None:
    with standing(engine, script, {"drip_seconds": 0.002}) as stand:
        assert stand.talk(stream=True) == PLAYED[script][1]
        account = stand.gateway.close()
        assert account.usage(None).input_tokens == sum(line["input"] for line in stand.given())


def test_a_broken_stream_is_the_agents_to_try_again(engine: Engine) -> None:
    with standing(engine, "half-closed") as stand:
        said = stand.talk(stream=True)
        account = stand.gateway.close()
    assert [name for name in said if name != "broken"] == HAPPY
    # Its usage was in the half that did not come: nobody knows it, and nobody makes it up.
    assert account.usage(None).usd is None and account.usage(None).replies == 2 * len(HAPPY)


CROWD = r"""
import concurrent.futures, http.client, json
def ask(_):
    connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=60)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    connection.request("POST", "/v1/chat/completions", body)
    return connection.getresponse().status
with concurrent.futures.ThreadPoolExecutor(10) as pool:
    print(json.dumps(sorted(pool.map(ask, range(20)))))
"""


def test_concurrent_requests_do_not_slip_past_a_cap(engine: Engine) -> None:
    with standing(engine, "slow-drip", caps={"turns": 5}) as stand:
        _, out = stand.agent("python3", "-c", CROWD)
        account = stand.gateway.close()
        seen = stand.given()
    assert json.loads(out) == [200] * 5 + [403] * 15
    assert account.breach is not None and account.breach.cap == "turns" and len(seen) == 5


def test_the_breach_is_told_while_the_agent_still_runs(engine: Engine) -> None:
    """What a supervisor kills on."""
    told = threading.Event()

    def listen(event: GatewayEvent) -> None:
        if isinstance(event, Breach):
            told.set()

    with standing(engine, "endless", on_event=listen, caps={"turns": 2}) as stand:
        script = f"import json, sys, time\nsys.argv = ['', 'false', '9']\n{CLIENT}\ntime.sleep(60)"
        killed: list[bool] = []

        def kill(container: str) -> None:
            killed.append(told.wait(60))
            engine.kill(container)

        code, _ = stand.agent("python3", "-c", script, during=kill)
        account = stand.gateway.close()
    assert code == 137 and killed == [True]
    assert account.usage(None).replies == 2 and account.usage(None).usd is not None


def test_the_key_is_in_no_file_variable_argument_or_log(engine: Engine) -> None:
    client = docker.from_env().api
    try:
        with standing(engine, "unauthorized", keep_bodies=True) as stand:
            assert stand.talk() == [401]
            assert stand.provider is not None
            for container in (stand.gateway.container, stand.provider.container):
                spread = json.dumps(client.inspect_container(container)) + json.dumps(client.top(container))
                spread += client.logs(container).decode("utf-8", "replace")
                assert KEY not in spread
            exported = b"".join(client.export(stand.gateway.container))
            assert KEY.encode() not in exported
            with tarfile.open(fileobj=io.BytesIO(exported)) as tar:
                names = tar.getnames()
            assert any(name.startswith("opt/gateway/gateway/") for name in names)
            _, out = stand.agent(
                "sh", "-c", "env; cat /proc/*/environ /proc/*/cmdline; ls -la /gateway /provider"
            )
            account = stand.gateway.close()
        assert KEY not in out and "provider.sock" not in out
        assert KEY not in json.dumps([event.to_json() for event in account.exchanges])
        assert KEY not in json.dumps([event.to_json() for event in stand.gateway.bodies])
    finally:
        client.close()


ROUTES = r"""
import json, os, pathlib, socket
found = {"environment": sorted(os.environ), "interfaces": sorted(os.listdir("/sys/class/net"))}
found["mounts"] = sorted(line.split()[1] for line in open("/proc/mounts") if line.split()[2] == "tmpfs")
found["writable"] = [name for name in ("/gateway", "/gateway/gateway.sock") if os.access(name, os.W_OK)]
ports = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
found["listening"] = [entry[1] for entry in ports if entry[3] == "0A"]
found["routes"] = open("/proc/net/route").read().splitlines()[1:]
def reach(host, port):
    try:
        socket.create_connection((host, port), 1).close()
        return True
    except OSError:
        return False
hosts = ("127.0.0.1", "172.17.0.1", "1.1.1.1", "provider")
found["reachable"] = [(h, p) for h in hosts for p in (80, 443, 8080, 2375) if reach(h, p)]
try:
    os.replace("/gateway/gateway.sock", "/gateway/other.sock")
    found["replaced"] = True
except OSError:
    found["replaced"] = False
print(json.dumps(found))
"""


def test_an_agent_has_one_way_out(engine: Engine) -> None:
    with standing(engine, "perfect") as stand:
        code, out = stand.agent("python3", "-c", ROUTES)
    assert code == 0, out
    found = json.loads(out)
    assert found["interfaces"] == ["lo"] and found["routes"] == []
    assert found["listening"] == ["0100007F:1F90"] and found["reachable"] == [["127.0.0.1", 8080]]
    assert "/gateway" in found["mounts"] and FOLDER not in found["mounts"]
    assert found["writable"] == ["/gateway/gateway.sock"] and found["replaced"] is False
    assert not [name for name in found["environment"] if "KEY" in name or "TOKEN" in name]


def test_a_gateway_killed_from_outside_is_seen_and_leaves_the_usage_unknown(engine: Engine) -> None:
    talking = threading.Event()

    def listen(event: GatewayEvent) -> None:
        if isinstance(event, Exchange) and event.seq == 3:
            talking.set()

    with standing(engine, "endless", on_event=listen) as stand:

        def kill(_: str) -> None:
            assert talking.wait(60)
            engine.kill(stand.gateway.container)

        script = f"import sys\nsys.argv = ['', 'false', '100000']\n{CLIENT}"
        _, out = stand.agent("python3", "-c", script, during=kill)
        assert stand.gateway.ended.wait(30)
        account = stand.gateway.close()
        fate = stand.gateway.fate()
    assert json.loads(out)[-1] != "list_files"
    assert account.closed is None and account.usage(None).replies >= 3
    assert account.usage(None).input_tokens is None and "lost" in account.cost_note()
    assert fate is not None and fate.code == 137 and not fate.oom_killed


FLOOD = r"""
import json, socket, threading
body = (json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 7_000_000}]})).encode()
head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
def push():
    try:
        with socket.create_connection(("127.0.0.1", 8080)) as sock:
            sock.sendall(head + body)
            sock.recv(1)
    except OSError:
        pass
for _ in range(3):
    crowd = [threading.Thread(target=push) for _ in range(20)]
    [each.start() for each in crowd]
    [each.join() for each in crowd]
print("done")
"""


def test_a_flood_of_large_bodies_is_borne_or_ends_the_gateway_by_its_own_memory(engine: Engine) -> None:
    """Never anything else: the machine and the other runs do not notice."""
    with standing(engine, "lazy") as stand:
        code, _ = stand.agent("python3", "-c", FLOOD)
        stand.gateway.close()
        fate = stand.gateway.fate()
    assert code == 0
    assert fate is None or fate.oom_killed


def test_limits_are_enforced_by_the_engine(engine: Engine) -> None:
    with standing(engine, "lazy") as stand:
        host = engine.inspect(stand.gateway.container)["HostConfig"]
    assert host["NetworkMode"] == "none" and host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"]
    assert host["Memory"] == host["MemorySwap"] == 384 * 2**20 and host["PidsLimit"] == 32
    assert {limit["Name"]: limit["Hard"] for limit in host["Ulimits"]} == {
        "nofile": 256,
        "fsize": 2**20,
        "core": 0,
    }


def test_a_gateway_whose_owner_is_gone_ends(engine: Engine) -> None:
    with standing(engine, "lazy") as stand:
        stand.gateway._companion.abort()
        assert engine.wait(stand.gateway.container, 30) == 0


def test_a_configuration_that_cannot_be_used_is_one_line(engine: Engine) -> None:
    wrong = standing(engine, "lazy", price=None, caps={"micro_usd": 5})
    with pytest.raises(EngineError, match="a cap on USD needs a model with a price") as told, wrong:
        pass
    assert "\n" not in str(told.value)


class Counted(BaseHTTPRequestHandler):
    """A model server on this host."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        usage = {"prompt_tokens": 3, "completion_tokens": 4}
        # As a server that is badly written would: with the key that it was asked with.
        message = {"role": "assistant", "content": f"hi {self.headers['Authorization']}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        data = json.dumps({"model": "m", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_on_this_hosts_loopback_is_reached_by_the_gateway_alone(engine: Engine) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Counted) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        name = f"copperbench-test-{time.time_ns()}-{next(NUMBER)}"
        config = GatewayConfig.model_validate(
            {
                "model": "m",
                "protocols": ["openai-chat"],
                "base_url": f"http://127.0.0.1:{server.server_port}/v1",
                "patience": QUICK,
                "key": ODD_KEY,
                "keep_bodies": True,
            }
        )
        try:
            with Gateway(engine, name, config, network="host", labels={"role": "test"}) as gateway:
                stand = Stand(engine, name, gateway, None)
                assert stand.talk() == ["talk"]
                port = f"import socket; socket.create_connection(('127.0.0.1', {server.server_port}), 2)"
                assert stand.agent("python3", "-c", port)[0] == 1
                account, bodies = gateway.close(), gateway.bodies
        finally:
            server.shutdown()
    assert (account.usage(None).input_tokens, account.usage(None).output_tokens) == (3, 4)
    said = [body.text or "" for body in bodies]
    assert "hi Bearer [key]" in said[-1] and not [text for text in said if ODD_KEY in text]


def test_a_model_is_reached_and_its_price_is_said(engine: Engine, checkout: Project) -> None:
    said = reach(engine, route(checkout, "scripted:lazy"), {})
    assert said.startswith("scripted:lazy: lazy answered; ") and "provider-free has no price" in said


def test_a_model_that_does_not_answer_is_one_line(engine: Engine, checkout: Project) -> None:
    with pytest.raises(EnvironmentFault, match="credential") as told:
        reach(engine, route(checkout, "scripted:unauthorized"), {})
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("task", ["rename-data-net", "refuse-clock-pullup"])
def test_a_tasks_answer_becomes_tool_calls(engine: Engine, checkout: Project, task: str) -> None:
    """No new script for a new task: gold is enough."""
    loaded = checkout.task(task)
    baseline = Baselines(checkout, engine).get(loaded, load_pristine(checkout, loaded))
    told = {**job(loaded, baseline.tree, "perfect"), "model": "m", "key": KEY}
    with standing(engine, "perfect", told) as stand:
        said = stand.talk()
    edits = 3 if task == "rename-data-net" else 0
    assert said.count("edit_file") == edits and said[-1] == "finish"
