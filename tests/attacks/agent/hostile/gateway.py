"""Reaching a model: breaking the way there, so that it looks like our fault. All end without an account."""

import http.client
import json
import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

SOCKET = "/gateway/gateway.sock"
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
NONSENSE = (
    b"\x00" * 4096,
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST " + b"/" * 100_000,
    CHAT + b"X: y\r\n" * 20_000,
    CHAT + b"Content-Length: -1\r\n\r\n",
    CHAT + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    CHAT + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    CHAT + b"Content-Length: 5\r\n\r\n\xff\xfe\x00\x00\x00",
    CHAT + b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000,
    CHAT + b'Content-Length: 15\r\n\r\n{"model": 1e999}',
    CHAT + b"Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n",
    CHAT + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n",
)


def relay_killed() -> int:
    """Every relay killed, again and again, then an error that looks like the network's."""
    for _ in range(20):
        for path in Path("/proc").glob("[0-9]*/comm"):
            with suppress(OSError):
                if path.read_text().strip() == "socat":
                    os.kill(int(path.parent.name), signal.SIGKILL)
        time.sleep(0.05)
    try:
        socket.create_connection(("127.0.0.1", 8080), 5)
    except OSError:
        return 1
    return _noticed()


def gateway_refusals() -> None:
    """Requests without end for what is not served."""
    while True:
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=10)
            while True:
                connection.request("GET", "/v1/files")
                connection.getresponse().read()


def provider_broken() -> int:
    """A request that the provider fails at each time: here at any but the smallest."""
    body = json.dumps({"model": "fragile", "messages": [{"role": "user", "content": "x" * 100_000}]})
    connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=300)
    connection.request("POST", "/v1/chat/completions", body)
    answer = connection.getresponse()
    answer.read()
    if answer.status != 500:
        raise RuntimeError(f"the gateway answered {answer.status}")
    return 1


def gateway_connections() -> int:
    """Far more connections than are allowed, straight to the socket, each with half a request."""
    clients: list[socket.socket] = []
    for _ in range(5000):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(1)
        with suppress(OSError):
            client.connect(SOCKET)
            client.sendall(CHAT)
        clients.append(client)
        if len(clients) == 900:
            for each in clients:
                each.close()
            clients.clear()
    return 1


def gateway_nonsense() -> int:
    """What is no request, or no sensible one, over and over."""
    for _ in range(10):
        for text in NONSENSE:
            with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
                client.settimeout(0.05)
                client.connect(SOCKET)
                client.sendall(text)
                client.recv(100)
    return 1


def gateway_socket_replaced() -> int:
    """The socket removed, renamed and bound anew."""
    for change in (os.unlink, lambda path: os.rename(path, f"{path}.old")):
        with suppress(OSError):
            change(SOCKET)
            return _noticed()
    with suppress(OSError), socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{SOCKET}.own")
        return _noticed()
    return 1


def _noticed() -> int:
    """Not what the attack states, so that the record must not say it either: wait for the wall clock."""
    time.sleep(600)
    return 0
