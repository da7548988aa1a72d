"""A small OpenAI-compatible provider that plays a list of answers, on loopback or on a unix socket."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What one request gets."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    hang_up: bool = False
    """Close the connection instead of answering."""
    after: float = 0.0
    """Seconds of silence before it."""


def call(tool: str, /, **args: Any) -> tuple[str, str]:
    """One tool call: its name and its arguments as JSON text."""
    return tool, json.dumps(args)


def says(
    *calls: tuple[str, str], text: str | None = None, tokens: tuple[int, int] | None = (100, 10)
) -> Answer:
    """A reply with tool calls, each a name and the text of its arguments; ``tokens`` None tells no usage."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": args}}
            for number, (name, args) in enumerate(calls)
        ]
    body: dict[str, Any] = {"id": "x", "model": "m", "choices": [{"index": 0, "message": message}]}
    if tokens is not None:
        body["usage"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return Answer(json.dumps(body).encode())


def fails(status: int, message: str = "no", **headers: str) -> Answer:
    """An error as OpenAI words it."""
    body = json.dumps({"error": {"message": message, "type": "t"}}).encode()
    return Answer(body, status, tuple((name.replace("_", "-"), value) for name, value in headers.items()))


HANG_UP = Answer(b"", hang_up=True)


@dataclass
class Provider:
    """The script and what was asked. The last answer is given for ever."""

    script: Sequence[Answer]
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    base_url: str = ""

    def next(self, path: str, body: bytes) -> Answer:
        """Note a request; its answer."""
        self.paths.append(path)
        self.requests.append(json.loads(body))
        return self.script[min(len(self.requests), len(self.script)) - 1]

    def results(self) -> list[str]:
        """Contents of the tool messages of the last request."""
        return [message["content"] for message in self.requests[-1]["messages"] if message["role"] == "tool"]


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def address_string(self) -> str:
            return ""

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            answer = provider.next(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(answer.after)
            if answer.hang_up:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

    return Handler


@contextmanager
def serving(*script: Answer, socket: Path | None = None) -> Iterator[Provider]:
    """A provider on loopback, or on a unix socket that everybody may reach."""
    provider = Provider(script)
    handler = _handler(provider)
    server: socketserver.BaseServer
    if socket is None:
        tcp = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
        provider.base_url = f"http://127.0.0.1:{tcp.server_address[1]}/v1"
        server = tcp
    else:
        server = socketserver.ThreadingUnixStreamServer(str(socket), handler)
        socket.chmod(0o777)
    with server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield provider
        finally:
            server.shutdown()
