"""The HTTP side: whole answers, streams, and everything that can go wrong with either."""

from __future__ import annotations

import json
import socket
import socketserver
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

from scripted.job import Job
from scripted.moves import Move
from scripted.scripts import SCRIPTS, Script, Trouble
from scripted.wire import CHAT, MESSAGES, RESPONSES, Tokens, Told, error, stream, turn_of, whole

PATHS = (CHAT, RESPONSES, MESSAGES)


class Stage:
    """One script being played."""

    def __init__(self, job: Job) -> None:
        """
        Raises:
            ValueError: there is no such script, or the task's answer cannot be given by tool calls.
        """
        if job.script not in SCRIPTS:
            raise ValueError(f"no script {job.script!r}; there are {', '.join(SCRIPTS)}")
        self.job = job
        self.script: Script = SCRIPTS[job.script]
        self.moves: list[Move] = self.script.moves(job)
        self.closing = threading.Event()
        self._attempts: Counter[int] = Counter()
        self._lock = threading.Lock()

    def attempt(self, turn: int) -> int:
        """How often this turn was asked for before."""
        with self._lock:
            self._attempts[turn] += 1
            return self._attempts[turn] - 1

    def told(self, turn: int, asked: int, model: str) -> Told:
        """The reply of a turn; the last one is said again and again. ``asked``: bytes of the request."""
        move = self.moves[min(turn, len(self.moves) - 1)]
        said = len(move.text) + sum(len(call.name) + len(call.arguments) for call in move.calls)
        tokens: Tokens | None = Tokens(asked // 4 + 1, said // 4 + 1, asked // 8 if turn else 0)
        if self.script.counting == "none":
            tokens = None
        elif self.script.counting == "wrong":
            tokens = (Tokens(-5, 3, 0), Tokens(10, "7", 0), Tokens(10, 7, 11), Tokens(True, 7, None))[
                turn % 4
            ]
        return Told(turn, self.script.model or model, move, tokens)

    def note(self, **facts: Any) -> None:
        """One line on standard output: what was really given."""
        with self._lock:
            sys.stdout.write(json.dumps(facts) + "\n")
            sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    stage: Stage

    def do_POST(self) -> None:
        """Answer one request."""
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.stage.job.key
        given = self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")
        if self.path not in PATHS:
            return self._json(404, error(CHAT, "not_found", f"no {self.path}"))
        if key is not None and given != key:
            return self._json(401, error(self.path, "invalid_api_key", f"wrong key {given}"))
        body = json.loads(raw)
        turn = turn_of(body)
        attempt = self.stage.attempt(turn)
        script = self.stage.script
        trouble = script.trouble
        if trouble and trouble.spares and trouble.spares.encode() in raw:
            trouble = None
        if trouble and (script.troubled is None or attempt < script.troubled):
            return self._trouble(trouble, turn, attempt)
        told = self.stage.told(turn, len(raw), body["model"])
        delivery = "plain" if script.delivery == "cut" and attempt else script.delivery
        if body.get("stream"):
            options = body.get("stream_options") or {}
            events = stream(
                self.path, told, usage_asked=bool(options.get("include_usage")), ascii_only=script.ascii
            )
            self._stream(b"".join(events), delivery)
        else:
            text = json.dumps(whole(self.path, told), ensure_ascii=script.ascii)
            self._whole(text.encode("utf-8", "replace"), delivery)
        tokens = told.tokens
        self.stage.note(
            turn=turn,
            attempt=attempt,
            delivery=delivery,
            input=tokens.input if tokens else None,
            output=tokens.output if tokens else None,
            cached=tokens.cached if tokens else None,
        )
        return None

    def _trouble(self, trouble: Trouble, turn: int, attempt: int) -> None:
        self.stage.note(turn=turn, attempt=attempt, status=trouble.status)
        if trouble.status == 0:
            self.stage.closing.wait(self.stage.job.hang_seconds)
            self.close_connection = True
            return
        extra = {"Retry-After": trouble.retry_after} if trouble.retry_after is not None else {}
        # As real providers do, with a part of what they were given.
        message = f"trouble as the script says ({self.headers.get('authorization', '')})"
        self._json(trouble.status, error(self.path, trouble.code, message), **extra)

    def _json(self, status: int, body: dict[str, Any], **headers: str) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _whole(self, data: bytes, delivery: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self._deliver(_portions(data, delivery), delivery, chunked=False)

    def _stream(self, data: bytes, delivery: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._deliver(_portions(data, delivery), delivery, chunked=True)

    def _deliver(self, portions: Iterator[bytes], delivery: str, *, chunked: bool) -> None:
        for portion in portions:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(portion), portion) if chunked else portion)
            self.wfile.flush()
            if delivery == "drip":
                time.sleep(self.stage.job.drip_seconds)
        if delivery == "cut":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif chunked:
            self.wfile.write(b"0\r\n\r\n")

    def address_string(self) -> str:
        """A unix socket's peer has none."""
        return "gateway"

    def log_message(self, *_: object) -> None:
        """Standard error is for faults."""


def _portions(data: bytes, delivery: str) -> Iterator[bytes]:
    if delivery == "cut":
        yield data[: len(data) // 2]
    elif delivery == "drip":
        size = max(1, len(data) // 10)
        yield from (data[at : at + size] for at in range(0, len(data), size))
    elif delivery == "split":
        start = 0
        for at, byte in enumerate(data):
            # After every byte of a character that has several.
            if byte >= 0x80:
                yield data[start : at + 1]
                start = at + 1
        yield data[start:]
    else:
        yield data


class Server(socketserver.ThreadingUnixStreamServer):
    """On a unix socket, a thread a connection."""

    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """A gateway that hung up is no fault of ours."""


def serving(job: Job) -> tuple[Server, Stage]:
    """A bound server, and its stage.

    Raises:
        ValueError: the job cannot be played.
    """
    stage = Stage(job)
    handler = type("StageHandler", (Handler,), {"stage": stage})
    return Server(job.listen, handler), stage
