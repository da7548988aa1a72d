"""A real gateway process before a scripted provider, and a client of it, on unix sockets in a folder."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from schema.gateway import EVENT, GatewayConfig, GatewayEvent, Listening
from tests.unit.images.sources import scripted

ROOT = Path(__file__).parents[4]
KEY = "sk-test-0123456789abcdefghijklmnop"
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
ALL = ["openai-chat", "openai-responses", "anthropic-messages"]
QUICK = {"budget_seconds": 5, "first_byte_seconds": 2, "idle_seconds": 2, "drain_seconds": 2}
ANSWER = {
    "exit_path": "done",
    "summary": "Renamed.",
    "edits": [{"path": "a.kicad_sch", "find": "OLD", "replace": "NEW"}],
    "before": {"a.kicad_sch": "x OLD y\nz OLD w\n"},
}


def body(path: str, **more: Any) -> dict[str, Any]:
    """A request of one message."""
    if path == RESPONSES:
        return {"model": "m", "input": [{"role": "user", "content": "hi"}], **more}
    limit = {"max_tokens": 100} if path == MESSAGES else {}
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], **limit, **more}


@dataclass
class Playing:
    """A running pair."""

    client: httpx.Client
    process: "subprocess.Popen[bytes]"
    stage: Any
    socket: str
    events: list[GatewayEvent] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    stderr: bytes = b""

    def post(self, path: str, content: Any, **options: Any) -> httpx.Response:
        """One request; a dictionary is sent as JSON."""
        kind = "content" if isinstance(content, bytes) else "json"
        return self.client.post(path, **{kind: content}, **options)

    def of(self, kind: str) -> list[Any]:
        """The events of a kind so far."""
        return [event for event in self.events if event.event == kind]

    def end(self) -> None:
        """Close the gateway's input, and wait for its end."""
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(30) == 0

    def given(self) -> list[dict[str, Any]]:
        """The replies that the provider gave in full, as it counted them."""
        cut = {"cut"}
        return [line for line in self.stage.lines if "input" in line and line["delivery"] not in cut]


@contextmanager
def playing(
    script: str = "perfect", answer: dict[str, Any] | None = None, **config: Any
) -> Iterator[Playing]:
    """A gateway in front of a script. ``config``: fields of its configuration."""
    with tempfile.TemporaryDirectory(prefix="gw") as folder:
        job = {
            "script": script,
            "model": "m",
            "listen": f"{folder}/p",
            "key": KEY,
            **ANSWER,
            **(answer or {}),
        }
        server, stage = scripted("server").serving(scripted("job").read(json.dumps(job).encode()))
        stage.lines = []
        stage.note = lambda **facts: stage.lines.append(facts)
        given = {
            "model": "m",
            "protocols": ALL,
            "base_url": "http://provider/v1",
            "key": KEY,
            "patience": QUICK,
        }
        made = GatewayConfig.model_validate(
            {**given, "upstream_socket": f"{folder}/p", "listen": f"{folder}/g", **config}
        )
        with server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                with _gateway(made, stage) as pair:
                    yield pair
            finally:
                stage.closing.set()
                server.shutdown()


@contextmanager
def _gateway(config: GatewayConfig, stage: Any) -> Iterator[Playing]:
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{ROOT}/images/gateway:{ROOT}"},
    )
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write(config.line())
    process.stdin.flush()
    first = process.stdout.readline()
    assert isinstance(EVENT.validate_json(first), Listening), process.stderr.read()
    transport = httpx.HTTPTransport(uds=config.listen)
    with httpx.Client(transport=transport, base_url="http://gateway", timeout=30) as client:
        pair = Playing(client, process, stage, config.listen)

        def follow() -> None:
            assert process.stdout
            for line in process.stdout:
                pair.lines.append(line)
                pair.events.append(EVENT.validate_json(line))

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield pair
        finally:
            with suppress(OSError):
                process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
            follower.join(10)
            pair.stderr = process.stderr.read()
            process.stdout.close()
            process.stderr.close()
