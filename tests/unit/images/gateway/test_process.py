"""The gateway as a process, before every script: what an agent gets, what the ledger says, what holds."""

import json
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import pytest

from schema.gateway import Exchange
from tests.unit.images.gateway.playing import (
    ALL,
    CHAT,
    KEY,
    MESSAGES,
    RESPONSES,
    ROOT,
    Playing,
    body,
    playing,
    until,
)
from tests.unit.images.sources import scripted

PATHS = [CHAT, RESPONSES, MESSAGES]
SCRIPTS = sorted(scripted("scripts").SCRIPTS)
PRICE = {"input": 2, "output": 10, "cacheRead": 0.2, "segment": "api", "pinning": "strong"}


def converse(pair: Playing, path: str, *, stream: bool, turns: int = 30) -> list[Any]:
    """Talk until ``finish`` is called or a request fails; every call's name, or the failing status."""
    said: list[Any] = []
    history: list[Any] = [{"role": "user", "content": "hi"}]
    for _ in range(turns):
        asked = body(path, stream=stream) | {"input" if path == RESPONSES else "messages": history}
        try:
            answer = pair.post(path, asked)
        except httpx.HTTPError as error:
            return [*said, type(error).__name__]
        if answer.status_code != 200:
            return [*said, answer.status_code]
        ids = sorted(set(scripted("wire")._ID.findall(answer.text)))
        names = [name for name in ("list_files", "finish", "edit_file") if f'"{name}"' in answer.text]
        said += names
        turn = sum(1 for item in history if item.get("role") == "assistant")
        history.append({"role": "assistant", "content": f"turn {turn}"})
        if "finish" in names or not ids:
            break
    return said


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", PATHS)
def test_a_script_is_played_to_its_end_and_counted_as_the_provider_counts(path: str, stream: bool) -> None:
    with playing("perfect", price=PRICE) as pair:
        said = converse(pair, path, stream=stream)
        pair.end()
    given = pair.given()
    assert said[0] == "list_files" and said[-1] == "finish" and said.count("edit_file") == 2
    exchanges: list[Exchange] = pair.of("request")
    assert [each.outcome for each in exchanges] == ["replied"] * len(given)
    usages = [each.usage for each in exchanges]
    assert [(u.input, u.output, u.cache_read) for u in usages if u] == [
        (line["input"], line["output"], line["cached"]) for line in given
    ]
    assert {each.answered for each in exchanges} == {"m"} and {each.attempts for each in exchanges} == {1}
    exact = sum(
        (g["input"] - g["cached"]) * 2_000_000 + g["cached"] * 200_000 + g["output"] * 10**7 for g in given
    )
    assert sum(each.pico_usd or 0 for each in exchanges) == exact > 0
    assert pair.of("closed")[0].unfinished == 0


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_script_breaks_the_gateway_and_the_key_is_nowhere(script: str) -> None:
    quick = {
        "budget_seconds": 1,
        "attempts": 3,
        "first_byte_seconds": 0.5,
        "idle_seconds": 1,
        "drain_seconds": 1,
    }
    texts: list[bytes] = []
    with playing(
        script, {"huge_bytes": 2**20, "drip_seconds": 0.005}, patience=quick, keep_bodies=True
    ) as pair:
        for path in PATHS:
            for stream in (False, True):
                answer = pair.post(path, body(path, stream=stream))
                texts.append(answer.content + str(answer.headers).encode())
        assert pair.client.get("/v1/models").status_code == 200
        pair.end()
    for text in (*texts, *pair.lines, pair.stderr):
        assert KEY.encode() not in text
    assert (
        len([each for each in pair.of("request") if not each.probe]) == 6
        and pair.of("closed")
        and pair.stderr == b""
    )
    assert len(pair.of("body")) >= 6


@pytest.mark.parametrize(
    ("script", "kinds"),
    [
        ("rate-limited", ["rate-limited", "rate-limited"]),
        ("server-errors", ["server-error"]),
        ("half-closed", ["reset"]),
        ("error-inside", ["server-error"]),
    ],
)
def test_faults_are_borne_and_counted_once(script: str, kinds: list[str]) -> None:
    """Naive: usage added at every attempt."""
    with playing(script) as pair:
        assert pair.post(CHAT, body(CHAT)).status_code == 200
        pair.end()
    (exchange,) = pair.of("request")
    retries = pair.of("retry")
    assert [retry.kind for retry in retries] == kinds
    assert exchange.attempts == len(kinds) + 1 and exchange.usage.input == pair.given()[0]["input"]
    assert len(pair.given()) == 1
    assert 0 < exchange.fault_seconds <= pair.of("closed")[0].excluded_seconds + 0.001
    assert exchange.excluded_seconds == pair.of("closed")[0].excluded_seconds
    assert exchange.uncounted == (1 if script == "half-closed" else 0)


def test_a_stream_that_has_begun_is_not_asked_for_again() -> None:
    with playing("half-closed") as pair:
        answer = pair.post(CHAT, body(CHAT, stream=True, stream_options={"include_usage": True}))
        assert answer.status_code == 200 and b"[DONE]" not in answer.content
        pair.end()
    (exchange,) = pair.of("request")
    assert (exchange.outcome, exchange.attempts, exchange.usage, exchange.pico_usd) == (
        "broken",
        1,
        None,
        None,
    )
    assert pair.of("retry") == []


@pytest.mark.parametrize(
    ("script", "status", "kind"),
    [
        ("overloaded", 503, "server-error"),
        ("out-of-quota", 429, "quota"),
        ("unauthorized", 401, "credential"),
        ("hanging", 502, "stalled"),
    ],
)
def test_a_provider_lost_for_good_is_told_and_its_cost_is_not_made_up(
    script: str, status: int, kind: str
) -> None:
    quick = {"budget_seconds": 1, "attempts": 3, "first_byte_seconds": 0.3, "idle_seconds": 1}
    with playing(script, price=PRICE, patience=quick) as pair:
        for path in PATHS:
            answer = pair.post(path, body(path))
            assert answer.status_code == status and answer.headers["x-should-retry"] == "false"
            assert answer.json()["error"]["message"]
        pair.end()
    assert [lost.kind for lost in pair.of("provider-lost")] == [kind] * 3
    exchanges = pair.of("request")
    # What is plainly the provider's own is not asked about.
    assert sum(each.probe for each in exchanges) == (0 if kind in {"quota", "credential"} else 3)
    for exchange in exchanges:
        # Each attempt that hung may have been billed.
        assert exchange.uncounted == (exchange.attempts if script == "hanging" else 0)
        assert bool(exchange.cost_note) is (script == "hanging")
        assert exchange.usage is None and exchange.pico_usd is None
        assert exchange.outcome in {"failed", "rejected"}
    assert pair.of("provider-lost")[0].excluded_seconds <= 1


def test_a_provider_that_is_not_there_is_told_whatever_the_scheme() -> None:
    quick = {"budget_seconds": 1, "attempts": 2}
    for base in ("https://127.0.0.1:1/v1", "http://127.0.0.1:1/v1"):
        with playing(upstream_socket=None, base_url=base, patience=quick) as pair:
            assert pair.post(CHAT, body(CHAT)).status_code == 502
            pair.end()
        assert [lost.kind for lost in pair.of("provider-lost")] == ["unreachable"]


def test_another_models_answer_is_recorded() -> None:
    with playing("other-model") as pair:
        pair.post(CHAT, body(CHAT))
        pair.end()
    assert pair.of("request")[0].answered == "somebody-elses-model-2"


@pytest.mark.parametrize("script", ["no-usage", "wrong-usage"])
def test_a_reply_without_a_count_is_unknown_and_ends_a_run_with_a_budget(script: str) -> None:
    with playing(script, price=PRICE, caps={"micro_usd": 10**6}) as pair:
        assert pair.post(CHAT, body(CHAT)).status_code == 200
        assert pair.post(CHAT, body(CHAT)).status_code == 403
        pair.end()
    (exchange,) = pair.of("request")
    assert exchange.usage is None and exchange.pico_usd is None and exchange.cost_note
    assert [breach.cap for breach in pair.of("breach")] == ["usd"]


# --- caps


def test_the_turn_cap_holds_against_concurrent_requests() -> None:
    with playing("slow-drip", {"drip_seconds": 0.01}, caps={"turns": 5}) as pair:
        with ThreadPoolExecutor(12) as pool:
            statuses = list(pool.map(lambda _: pair.post(CHAT, body(CHAT)).status_code, range(24)))
        pair.end()
    assert sorted(statuses) == [200] * 5 + [403] * 19
    assert [breach.cap for breach in pair.of("breach")] == ["turns"]
    assert len(pair.given()) == 5


@pytest.mark.parametrize("caps", [{"tokens": 30_000}, {"micro_usd": 60_000}, {"suite_micro_usd": 60_000}])
def test_a_cap_on_tokens_or_money_holds_against_concurrent_requests(caps: dict[str, int]) -> None:
    with playing(
        "slow-drip", {"drip_seconds": 0.005}, price=PRICE, caps=caps, max_output_tokens=1000
    ) as pair:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: pair.post(CHAT, body(CHAT, stream=True)).status_code, range(40)))
        pair.end()
    exchanges = pair.of("request")
    assert exchanges
    assert sum(each.usage.total for each in exchanges) <= caps.get("tokens", 10**9)
    money = min(caps.get("micro_usd", 10**9), caps.get("suite_micro_usd", 10**9))
    assert sum(each.pico_usd for each in exchanges) <= money * 10**6
    assert all(any("max_completion_tokens" in change for change in each.changes) for each in exchanges)


def test_an_agent_that_hangs_up_early_is_charged_all_the_same() -> None:
    """Naive: the client's connection ends, so the reading does, before the usage has come."""
    with playing("slow-drip", {"drip_seconds": 0.05}) as pair:
        with pair.client.stream("POST", CHAT, json=body(CHAT, stream=True)) as answer:
            next(answer.iter_raw())
        until(lambda: bool(pair.of("request")))
        pair.end()
    (exchange,) = pair.of("request")
    assert exchange.abandoned and exchange.outcome == "replied"
    assert exchange.usage.input == pair.given()[0]["input"]


def test_an_agent_that_stops_reading_is_cut_off_and_charged() -> None:
    """Naive: its full buffers hold the provider's stream, and with it the count, for ever."""
    with playing("huge", {"huge_bytes": 2**23}, limits={"delivery_seconds": 0.5}) as pair:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(pair.socket)
            asked = json.dumps(body(CHAT, stream=True)).encode()
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
            sock.sendall(head % len(asked) + asked)
            until(lambda: bool(pair.of("request")), 30)
        pair.end()
    (exchange,) = pair.of("request")
    assert exchange.abandoned and exchange.usage.output == pair.given()[0]["output"]


def test_the_end_waits_for_a_reply_in_flight() -> None:
    with playing("slow-drip", {"drip_seconds": 0.05}) as pair:
        thread = threading.Thread(target=_ignored, args=(pair, body(CHAT)))
        thread.start()
        until(lambda: bool(pair.stage._attempts))
        pair.end()
        thread.join(10)
    assert pair.of("request")[0].usage is not None and pair.of("closed")[0].unfinished == 0


def test_the_end_does_not_wait_for_ever_and_says_what_is_unknown() -> None:
    patience = {"first_byte_seconds": 60, "drain_seconds": 0.3}
    with playing("hanging", patience=patience) as pair:
        thread = threading.Thread(target=_ignored, args=(pair, body(CHAT)))
        thread.start()
        until(lambda: bool(pair.stage.lines))
        pair.end()
        thread.join(10)
    (exchange,) = pair.of("request")
    # Nobody saw a byte of it, and it may have been generated.
    assert (exchange.outcome, exchange.usage, exchange.uncounted) == ("failed", None, 1)
    assert pair.of("closed")[0].unfinished == 1 and pair.of("provider-lost") == []


def _ignored(pair: Playing, asked: dict[str, Any]) -> None:
    with suppress(httpx.HTTPError):
        pair.post(CHAT, asked)


# --- hostile agents


FORBIDDEN = [
    b'{"model":"m","model":"m","messages":[]}',
    b'{"model":"M","messages":[]}',
    b'{"model":" m","messages":[]}',
    b'{"model":"m ","messages":[]}',
    b'{"model":["m"],"messages":[]}',
    b'{"model":"m:online","messages":[]}',
    b'{"messages":[]}',
    b'{"model":"m","messages":[],"web_search_options":{}}',
    b'{"model":"m","messages":[],"\\ud800":1}',
    b"\xff",
    b"",
]


def test_a_refusal_is_in_the_protocols_own_form_and_is_told() -> None:
    with playing() as pair:
        for content in FORBIDDEN:
            answer = pair.post(CHAT, content)
            assert answer.status_code in {400, 403}, content
            assert answer.json()["error"]["message"].startswith("copperbench gateway: ")
            assert pair.post(MESSAGES, content).json()["type"] == "error"
        pair.end()
    assert len(pair.of("refused")) == 2 * len(FORBIDDEN)
    assert pair.of("request") == [] and pair.stage.lines == []


def raw(pair: Playing, data: bytes, seconds: float = 10) -> bytes:
    """Send bytes as they are; everything that comes back until the connection closes or falls silent."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(seconds)
        sock.connect(pair.socket)
        sock.sendall(data)
        out = b""
        try:
            while part := sock.recv(65536):
                out += part
        except (TimeoutError, ConnectionResetError):
            pass
        return out


GOOD = json.dumps(body(CHAT)).encode()


UNLISTED = [
    b"POST /v1/chat/completions/ HTTP/1.1",
    b"POST /v1/chat/../chat/completions HTTP/1.1",
    b"POST /v1/chat%2fcompletions HTTP/1.1",
    b"POST /v1/chat/completion%73 HTTP/1.1",
    b"POST //v1/chat/completions HTTP/1.1",
    b"POST /V1/chat/completions HTTP/1.1",
    b"POST http://elsewhere/v1/chat/completions HTTP/1.1",
    b"POST /v1/chat/completions?model=x HTTP/1.1",
    b"POST /v1/batches HTTP/1.1",
    b"POST /v1/files HTTP/1.1",
    b"GET /v1/responses/resp_1 HTTP/1.1",
    b"PUT /v1/chat/completions HTTP/1.1",
    b"CONNECT provider:443 HTTP/1.1",
]


def test_only_the_listed_paths_as_they_stand() -> None:
    head = b"\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(GOOD)
    with playing() as pair:
        for line in UNLISTED:
            answer = raw(pair, line + head + GOOD)
            assert answer.split(b" ")[1] in {b"400", b"404", b"405"}, line
        pair.end()
    assert pair.stage.lines == []


AMBIGUOUS = [
    b"Content-Length: %d\r\nContent-Length: 5",
    b"Content-Length: %d\r\nTransfer-Encoding: chunked",
    b"Content-Length : %d",
    b"Content-Length: +%d",
    b"Content-Length: %d\r\n folded: x",
    b"Content-Length: %d\r\nX\x00Y: 1",
    b"Content-Length: %d\r\nContent-Encoding: gzip",
]


def test_smuggled_heads_reach_nobody() -> None:
    """The provider's request is written anew: at most one comes of what was sent."""
    start = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    second = b"POST /v1/batches HTTP/1.1\r\nHost: x\r\n\r\n"
    with playing(limits={"request_seconds": 1}) as pair:
        for number, head in enumerate(AMBIGUOUS, 1):
            raw(pair, start + head % len(GOOD) + b"\r\n\r\n" + GOOD + second, 0.5)
            assert len(pair.stage.lines) <= number, head
        pair.end()


def test_an_agents_headers_are_not_passed_on() -> None:
    with playing() as pair:
        headers = {"Authorization": "Bearer mine", "anthropic-beta": "web-fetch", "OpenAI-Organization": "x"}
        # The script answers 401 to any key but its own.
        assert pair.post(CHAT, body(CHAT), headers=headers).status_code == 200
        assert pair.post(MESSAGES, body(MESSAGES), headers={"x-api-key": "mine"}).status_code == 200


def test_slow_heads_and_bodies_are_cut_off() -> None:
    with playing(limits={"request_seconds": 0.3}) as pair:
        assert raw(pair, b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Slow: ") == b""
        slow = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
        slow += b"Connection: close\r\n\r\n{"
        assert b" 408 " in raw(pair, slow).split(b"\r\n")[0]
        # A connection at rest between two requests is nobody's fault.
        assert pair.post(CHAT, body(CHAT)).status_code == 200
        time.sleep(0.6)
        assert pair.post(CHAT, body(CHAT)).status_code == 200


def test_large_heads_bodies_and_many_values_are_refused() -> None:
    with playing(limits={"body_bytes": 10_000, "json_nodes": 1000}) as pair:
        big = b"GET /v1/models HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 10**6 + b"\r\n\r\n"
        try:
            answer = raw(pair, big)
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
        assert answer == b"" or b" 400 " in answer.split(b"\r\n")[0]
        assert pair.post(CHAT, body(CHAT, user="x" * 20_000)).status_code == 413
        assert pair.post(CHAT, body(CHAT, stop=[[]] * 2000)).status_code == 413
        assert pair.post(CHAT, body(CHAT)).status_code == 200


def test_connections_are_capped_and_come_back() -> None:
    with playing(limits={"connections": 8}) as pair:
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(40)]
        try:
            for each in crowd:
                each.connect(pair.socket)
            closed = 0
            for each in crowd:
                each.settimeout(0.2)
                try:
                    closed += each.recv(1) == b""
                except ConnectionResetError:
                    closed += 1
                except TimeoutError:
                    pass
            assert closed == 32
        finally:
            for each in crowd:
                each.close()
        until(lambda: pair.post(CHAT, body(CHAT)).status_code == 200)


def test_a_flood_of_refused_requests_ends_the_run_and_not_the_log() -> None:
    with playing(caps={"refusals": 150}) as pair:
        for _ in range(160):
            assert pair.client.get("/nothing").status_code == 404
        # Naive: its agent is killed a moment later, and asks its model until then.
        answer = pair.post(CHAT, body(CHAT))
        assert answer.status_code == 403 and "the run is over" in answer.text
        pair.end()
    assert [breach.cap for breach in pair.of("breach")] == ["requests"] and pair.of("request") == []
    assert len(pair.of("refused")) == 100 and pair.of("closed")[0].refused == 161


def test_models_are_listed_in_either_form() -> None:
    with playing() as pair:
        assert pair.client.get("/v1/models").json()["data"][0]["id"] == "m"
        listed = pair.client.get("/v1/models", headers={"anthropic-version": "2023-06-01"}).json()
        assert listed["data"][0] == {"type": "model", "id": "m", "display_name": "m"}


def test_a_protocol_that_the_provider_does_not_speak_is_not_served() -> None:
    with playing(protocols=["openai-chat"]) as pair:
        assert pair.post(MESSAGES, body(MESSAGES)).status_code == 404


def test_bodies_pass_unchanged_but_for_what_is_told() -> None:
    text = b'{"model":"m", "messages":[{"role":"user","content":"half \\ud83d \xc2\xb5"}],"temperature":1.0 }'
    with playing("split-utf8", keep_bodies=True) as pair:
        whole = pair.post(CHAT, text)
        streamed = pair.post(CHAT, body(CHAT, stream=True))
        pair.end()
    sent = [event.text for event in pair.of("body") if event.side == "request"]
    assert sent[0].encode() == text
    assert json.loads(sent[1]) == {**body(CHAT, stream=True), "stream_options": {"include_usage": True}}
    assert pair.of("request")[1].changes == ["stream_options.include_usage = true"]
    assert "🔌" in whole.text and "回路図" in "".join(
        json.loads(line[6:])["choices"][0]["delta"].get("content", "")
        for line in streamed.text.splitlines()
        if line.startswith("data: {")
    )
    assert '"usage"' not in streamed.text


@pytest.mark.parametrize(
    "line",
    [b"", b"{}", b"not json", json.dumps({"model": "m", "key": KEY}).encode(), b'{"model": ""}'],
    ids=range(5),
)
def test_a_configuration_that_cannot_be_used_is_one_line_without_the_key(line: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateway"],
        input=line + b"\n",
        env={"PYTHONPATH": f"{ROOT}/images/gateway:{ROOT}"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1 and done.stdout == b""
    assert KEY.encode() not in done.stderr


def test_a_usd_cap_without_a_price_does_not_start(tmp_path: Any) -> None:
    config = {"model": "m", "protocols": ALL, "baseUrl": "http://x/v1", "caps": {"microUsd": 5}}
    done = subprocess.run(
        [sys.executable, "-m", "gateway"],
        input=json.dumps({**config, "listen": str(tmp_path / "g")}).encode() + b"\n",
        env={"PYTHONPATH": f"{ROOT}/images/gateway:{ROOT}"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        2,
        b"gateway: configuration: a cap on USD needs a model with a price\n",
    )
