"""What the gateway costs: memory at rest, and milliseconds a request against asking the provider directly.

Gateway and scripted provider run as processes on unix sockets; direct and relayed requests alternate, so that
a busy machine slows both. Prints medians, their difference, and ratios to the limits that were set.
"""

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from schema.gateway import GatewayConfig

ROOT = Path(__file__).parents[1]
REQUESTS = 400
LIMIT_MS = 5.0
LIMIT_MB = 80.0


class Unix(http.client.HTTPConnection):
    """HTTP over a unix socket, one connection kept open."""

    def __init__(self, path: str) -> None:
        super().__init__("gateway", timeout=30)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


def started(package: str, line: bytes) -> "subprocess.Popen[bytes]":
    """A program of an image, once it has said that it listens."""
    process = subprocess.Popen(
        [sys.executable, "-m", package],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{ROOT}/images/{package}:{ROOT}"},
    )
    assert process.stdin and process.stdout
    process.stdin.write(line)
    process.stdin.flush()
    process.stdout.readline()
    # It tells every request; a full pipe would stop it.
    threading.Thread(target=process.stdout.read, daemon=True).start()
    return process


def status(pid: int, field: str) -> float:
    """A field of ``/proc/<pid>/status`` in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1000
    raise LookupError(field)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def asking(connection: Unix, body: dict[str, object]) -> Callable[[], float]:
    """A function that asks once and gives the milliseconds until the answer is read."""
    data = json.dumps(body)

    def ask() -> float:
        began = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        return (time.perf_counter() - began) * 1000

    return ask


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="gw") as folder:
        job = {"script": "endless", "model": "m", "listen": f"{folder}/p", "key": "k"}
        config = GatewayConfig.model_validate(
            {
                "model": "m",
                "protocols": ["openai-chat"],
                "base_url": "http://provider/v1",
                "upstream_socket": f"{folder}/p",
                "listen": f"{folder}/g",
                "key": "k",
            }
        )
        provider = started("scripted", json.dumps({**job, "key": None}).encode() + b"\n")
        gateway = started("gateway", config.line())
        try:
            time.sleep(1)
            rest = status(gateway.pid, "VmRSS")
            print(f"memory at rest            {rest:8.1f} MB   {rest / LIMIT_MB:.2f} of {LIMIT_MB:.0f} MB")
            for name, size, stream in (
                ("1 kB", 1_000, False),
                ("1 kB, streamed", 1_000, True),
                ("400 kB", 400_000, False),
            ):
                measure(folder, gateway.pid, name, size, stream=stream)
            peak = status(gateway.pid, "VmHWM")
            print(f"memory at its most        {peak:8.1f} MB")
        finally:
            for process in (gateway, provider):
                assert process.stdin
                process.stdin.close()
                process.wait(30)


def measure(folder: str, pid: int, name: str, size: int, *, stream: bool) -> None:
    """One kind of request, direct and relayed in turn."""
    body: dict[str, object] = {"model": "m", "stream": stream}
    body["messages"] = [{"role": "user", "content": "x" * size}]
    direct, relayed = asking(Unix(f"{folder}/p"), body), asking(Unix(f"{folder}/g"), body)
    for ask in (direct, relayed):
        ask()
    spent = cpu_seconds(pid)
    pairs = [(direct(), relayed()) for _ in range(REQUESTS)]
    spent = (cpu_seconds(pid) - spent) / REQUESTS * 1000
    plain, through = (statistics.median(column) for column in zip(*pairs, strict=True))
    added = statistics.median(b - a for a, b in pairs)
    print(
        f"{name:15} direct {plain:6.2f} ms, through {through:6.2f} ms: adds {added:5.2f} ms, "
        f"{added / LIMIT_MS:.2f} of {LIMIT_MS:.0f} ms; {spent:.2f} ms of processor"
    )


if __name__ == "__main__":
    main()
