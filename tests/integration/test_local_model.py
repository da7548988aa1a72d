"""The server behind ``local:`` models: its script, and once its environment is made, the model itself."""

import json
import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from orchestrator.engine import Engine
from orchestrator.models import route
from orchestrator.project import Project
from orchestrator.reach import reach

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".cache/local-model/venv"
MODEL = "smollm2-135m"


class Checkout:
    """Just the scripts, and a ``models.json`` whose local models answer on a port of the test's own."""

    def __init__(self, root: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self.root = root
        shutil.copytree(ROOT / "scripts", root / "scripts")
        for name in ("pricing.json", "models.json"):
            shutil.copy(ROOT / name, root)
        for name in ("tasks", "suites"):
            (root / name).mkdir()
        models = json.loads((root / "models.json").read_text())
        models["providers"]["local"]["baseUrl"] = self.url
        (root / "models.json").write_text(json.dumps(models))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, *arguments: str, **environment: str) -> tuple[int, str, list[str]]:
        """Exit code, standard output, lines of standard error."""
        done = subprocess.run(
            [self.root / "scripts/local-model", *arguments],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr.splitlines()

    def ask(self, content: str) -> tuple[int, bytes]:
        """Status and body of a smallest chat completion."""
        body = {"model": MODEL, "max_tokens": 1, "messages": [{"role": "user", "content": content}]}
        request = Request(  # noqa: S310  # loopback
            f"{self.url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urlopen(request, timeout=60) as answer:  # noqa: S310  # loopback
                return answer.status, answer.read()
        except HTTPError as error:
            with error:
                return error.code, error.read()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = tmp_path / "a b"
    root.mkdir()
    return Checkout(root)


@contextmanager
def answering(port: int, body: bytes) -> Iterator[None]:
    """Something else on the port, which answers everything with one body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


@pytest.mark.parametrize("arguments", [(), ("start",), ("stop", MODEL), ("restart", MODEL)])
def test_usage_is_one_line_and_exit_2(checkout: Checkout, arguments: tuple[str, ...]) -> None:
    code, _, errors = checkout.script(*arguments)
    assert (code, len(errors)) == (2, 1)
    assert errors[0].startswith("usage: ")


def test_where_nothing_runs_there_is_nothing_to_stop(checkout: Checkout) -> None:
    code, _, errors = checkout.script("status")
    assert (code, len(errors)) == (3, 1)
    assert checkout.url in errors[0]
    assert checkout.script("stop")[0] == 0


def test_a_pid_that_is_somebody_elses_is_not_killed(checkout: Checkout) -> None:
    home = checkout.root / ".cache/local-model"
    home.mkdir(parents=True)
    with subprocess.Popen(["sleep", "60"]) as bystander:
        (home / "pid").write_text(str(bystander.pid))
        assert checkout.script("stop")[0] == 0
        assert bystander.poll() is None
        bystander.kill()


def test_an_unknown_model_is_one_line_and_makes_nothing(checkout: Checkout) -> None:
    code, _, errors = checkout.script("start", "local:nobody")
    assert (code, len(errors)) == (3, 1)
    assert "known are smollm2-135m" in errors[0]
    assert not (checkout.root / ".cache/local-model/venv").exists()


def test_a_server_of_ones_own_is_used(checkout: Checkout) -> None:
    with answering(checkout.port, json.dumps({"data": [{"id": "mine"}, {"id": "other"}]}).encode()):
        code, said, errors = checkout.script("start", "local:mine", http_proxy="http://127.0.0.1:9")
    assert (code, errors) == (0, [])
    assert said == f"local-model: mine answers at {checkout.url}\n"


@pytest.mark.parametrize(
    "body", [json.dumps({"data": [{"id": "other"}]}).encode(), b"<html>", b"[]", b"\xff"]
)
def test_whatever_else_answers_there_is_not_replaced(checkout: Checkout, body: bytes) -> None:
    with answering(checkout.port, body):
        code, _, errors = checkout.script("start", MODEL)
    assert (code, len(errors)) == (3, 1)
    assert checkout.url in errors[0]


@pytest.mark.skipif(not ENVIRONMENT.is_dir(), reason="make local-model has not made the server's environment")
def test_the_model_answers_by_its_name_is_counted_and_refuses_what_is_too_long(
    checkout: Checkout, engine: Engine
) -> None:
    home = checkout.root / ".cache/local-model"
    home.mkdir(parents=True)
    (home / "venv").symlink_to(ENVIRONMENT)
    try:
        assert [checkout.script("start", MODEL)[0] for _ in range(2)] == [0, 0]
        assert "not started by this script" not in checkout.script("status")[1]
        project = Project(checkout.root)
        said = reach(engine, route(project, f"local:{MODEL}"), {})
        assert re.search(rf"{MODEL} answered; \d+ tokens in, \d+ out; cost unknown: open-weight", said)
        code, body = checkout.ask("word " * 10_000)
        assert code == 400 and b"context" in body
    finally:
        assert checkout.script("stop")[0] == 0
    assert checkout.script("status")[0] == 3
