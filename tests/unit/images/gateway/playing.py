"""A real gateway process before a scripted provider, and a client of it, on unix sockets in a folder."""

import json
import os
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
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


def until(true: Callable[[], bool], seconds: float = 15) -> None:
    """Wait for something that another thread brings about."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


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


class Turn(BaseHTTPRequestHandler):
    """One request, for a test's own function to answer."""

    protocol_version = "HTTP/1.1"
    server: "Upstream"

    def do_POST(self) -> None:
        """Read, count, and leave the rest to the test."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        with suppress(OSError):
            self.server.answer(self, asked, len(self.server.asked))

    def say(self, status: int, value: Any, *, cut: int = 0) -> None:
        """A JSON body. ``cut``: bytes at its end that do not come."""
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) - cut])
        self._hang_up(cut > 0)

    def tell(self, *events: bytes | str | dict[str, Any], cut: bool = False, wait: float = 0) -> None:
        """A stream: of chunks, or of text as it stands. ``wait``: seconds before its end."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            text = event if isinstance(event, bytes | str) else f"data: {json.dumps(event)}\n\n"
            data = text.encode() if isinstance(text, str) else text
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()
        self.server.closing.wait(wait)
        if not cut:
            self.wfile.write(b"0\r\n\r\n")
        self._hang_up(cut)

    def _hang_up(self, cut: bool) -> None:
        self.wfile.flush()
        if cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def address_string(self) -> str:
        """A unix socket's peer has none."""
        return "gateway"

    def log_message(self, *_: object) -> None:
        """Standard error is for faults."""


class Upstream(socketserver.ThreadingUnixStreamServer):
    """A provider that does what a test wants."""

    daemon_threads = True

    def __init__(self, path: str, answer: Callable[[Turn, dict[str, Any], int], None]) -> None:
        """``answer``: gets the request, its body, and how many there were."""
        super().__init__(path, Turn)
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.closing = threading.Event()

    def handle_error(self, *_: object) -> None:
        """A gateway that hung up is no fault of ours."""


def completion(prompt: int = 10, output: int = 5, **more: Any) -> dict[str, Any]:
    """A chat completion of so many tokens."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    return {"id": "x", "model": "m", "choices": [choice], "usage": usage, **more}


@contextmanager
def before(answer: Callable[[Turn, dict[str, Any], int], None], **config: Any) -> Iterator[Playing]:
    """A gateway in front of a function. ``config``: fields of its configuration."""
    with tempfile.TemporaryDirectory(prefix="gw") as folder, Upstream(f"{folder}/p", answer) as server:
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
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with _gateway(made, server) as pair:
                yield pair
        finally:
            server.closing.set()
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
