"""The scripts that run before and beside Python: engine, base bootstrap, relay."""

import os
import socketserver
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import docker
import pytest

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "scripts/engine"
BOOTSTRAP = ROOT / "images/base/bootstrap"
RELAY = ROOT / "images/agents/base/relay"
AGENT_BASE = "copperbench/agent-base"


def run(*command: str | Path, **environment: str) -> tuple[int, list[str]]:
    """Exit code and lines of stderr."""
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize("script", [ENGINE, BOOTSTRAP])
def test_usage_is_one_line_and_exit_2(script: Path) -> None:
    code, errors = run(script)
    assert (code, len(errors)) == (2, 1)
    assert errors[0].startswith("usage: ")


def test_starting_an_engine_that_answers_changes_nothing() -> None:
    assert [run(ENGINE, "start")[0] for _ in range(2)] == [0, 0]


@pytest.mark.parametrize("host", ["tcp://127.0.0.1:9", "unix:///nowhere.sock", "ssh://somebody@nowhere", "?"])
def test_an_engine_elsewhere_that_does_not_answer_is_not_replaced(host: str) -> None:
    code, errors = run(ENGINE, "start", DOCKER_HOST=host)
    assert (code, len(errors)) == (3, 1)
    assert host in errors[0]


def test_something_else_behind_the_socket_is_no_engine(socket_folder: Path) -> None:
    with serving(socket_folder / "other.sock", Echo):
        code, _ = run(ENGINE, "status", DOCKER_HOST=f"unix://{socket_folder}/other.sock")
    assert code == 3


def test_a_base_that_no_source_has_is_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    code, errors = run(
        BOOTSTRAP, tmp_path / "root.tar", COPPERBENCH_DEBIAN_MIRROR="http://127.0.0.1:9/debian"
    )
    assert (code, len(errors), list(tmp_path.iterdir())) == (3, 1, [])


class Echo(BaseHTTPRequestHandler):
    """A gateway that answers with the request's body."""

    def address_string(self) -> str:
        return ""

    def do_GET(self) -> None:
        self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(path: Path, handler: type[BaseHTTPRequestHandler]) -> Iterator[None]:
    """A server on a unix socket that everybody may reach, for as long as the block runs."""
    with socketserver.ThreadingUnixStreamServer(str(path), handler) as server:
        path.chmod(0o777)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    connected = docker.from_env()
    yield connected
    connected.close()


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """A short path: a unix socket's may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="relay") as folder:
        yield Path(folder)


def relayed(client: docker.DockerClient, folder: Path, *command: str) -> tuple[int, bytes]:
    """Runs a command behind the relay as an agent container would; exit code and output."""
    folder.chmod(0o755)
    container = client.containers.create(
        AGENT_BASE,
        ["timeout", "-s", "KILL", "60", "relay", "/gateway/gateway.sock", *command],
        network_mode="none",
        user="65534:65534",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        read_only=True,
        volumes=[f"{folder}:/gateway:ro", f"{RELAY}:/usr/local/bin/relay:ro"],
    )
    try:
        container.start()
        code = container.wait(timeout=60)["StatusCode"]
        return code, container.logs()
    finally:
        container.remove(force=True)


CLIENT = """
import http.client, pathlib
connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=10)
for size in (1, 100_000):
    connection.request("POST", "/v1/chat/completions", b"x" * size)
    assert connection.getresponse().read() == b"x" * size
print(sorted(pathlib.Path("/sys/class/net").iterdir()))
"""


def test_the_model_is_reached_without_a_network(client: docker.DockerClient, socket_folder: Path) -> None:
    with serving(socket_folder / "gateway.sock", Echo):
        code, output = relayed(client, socket_folder, "python3", "-c", CLIENT)
    assert (code, output) == (0, b"[PosixPath('/sys/class/net/lo')]\n")


def test_the_relay_passes_on_the_exit_code(client: docker.DockerClient, socket_folder: Path) -> None:
    with serving(socket_folder / "gateway.sock", Echo):
        assert relayed(client, socket_folder, "sh", "-c", "exit 7") == (7, b"")


def test_without_a_gateway_nothing_runs(client: docker.DockerClient, socket_folder: Path) -> None:
    code, output = relayed(client, socket_folder, "echo", "ran")
    assert code == 3
    assert output.startswith(b"relay: no socket at /gateway/gateway.sock")
