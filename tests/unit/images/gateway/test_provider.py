"""What a provider may answer, and what the gateway makes of it: whose fault it was, and what it cost."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import pytest

from tests.unit.images.gateway.playing import (
    CHAT,
    KEY,
    MESSAGES,
    RESPONSES,
    Playing,
    Turn,
    before,
    body,
    completion,
    until,
)

PRICE = {"input": 2, "output": 10, "cacheRead": 0.2, "segment": "api", "pinning": "strong"}
OVERLOADED = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'


# --- what is repeated, what is kept


@pytest.mark.parametrize("hide", [True, False])
def test_a_key_that_a_stream_repeats_is_taken_out_wherever_it_is_cut(hide: bool) -> None:
    def answer(turn: Turn, *_: Any) -> None:
        said = f"data: {KEY} {KEY[:10]}"
        turn.tell(said[:20], said[20:], "\n\ndata: end ", KEY[:10], cut=True)

    options = {} if hide else {"stream_options": {"include_usage": True}}
    with before(answer, keep_bodies=True) as pair:
        answer_ = pair.post(CHAT, body(CHAT, stream=True, **options))
        pair.end()
    shown = f"data: [key] {KEY[:10]}\n\ndata: end {KEY[:10]}"
    assert answer_.text == shown and pair.of("body")[1].text == shown


def test_a_kept_body_that_is_cut_inside_a_character_is_text() -> None:
    """Naive: such a body is kept as base64, and nobody sees the credential in it."""
    said = b"data: x\n\ndata: sk-of-somebody-else \xc2"
    with before(lambda turn, *_: turn.tell(said, cut=True), keep_bodies=True) as pair:
        pair.post(CHAT, body(CHAT, stream=True))
        pair.end()
    assert pair.of("body")[1].text == "data: x\n\ndata: sk-of-somebody-else \\xc2"


# --- errors inside a 200


def test_an_error_inside_a_200_is_borne_and_is_no_reply() -> None:
    """Naive: it is a reply that broke, takes a turn and reaches the agent."""

    def answer(turn: Turn, _: dict[str, Any], number: int) -> None:
        turn.say(200, {"error": {"code": 502, "message": "x"}} if number == 1 else completion())

    with before(answer, caps={"turns": 1}) as pair:
        assert pair.post(CHAT, body(CHAT)).json()["choices"]
        pair.end()
    (exchange,), (retry,) = pair.of("request"), pair.of("retry")
    assert (exchange.outcome, exchange.attempts) == ("replied", 2)
    assert (retry.kind, retry.status) == ("server-error", 502)


@pytest.mark.parametrize("first", [OVERLOADED, ": still there\n\n: and there\n\n" + OVERLOADED])
def test_an_error_that_opens_a_stream_is_borne(first: str) -> None:
    def answer(turn: Turn, _: dict[str, Any], number: int) -> None:
        if number == 1:
            turn.tell(first)
        else:
            turn.tell(": hello\n\n", {**completion(), "choices": [{"delta": {}}]}, cut=True)

    with before(answer) as pair:
        text = pair.post(MESSAGES, body(MESSAGES, stream=True)).text
        pair.end()
    (retry,) = pair.of("retry")
    assert (retry.kind, retry.status) == ("rate-limited", 529)
    # What was held back is passed on with the first event.
    assert text.startswith(": hello\n\ndata: {") and "overloaded" not in text


def test_an_error_inside_a_200_that_is_the_agents_is_passed_on_as_one() -> None:
    told = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    with before(lambda turn, *_: turn.tell(told)) as pair:
        answer = pair.post(RESPONSES, body(RESPONSES, stream=True))
        assert (answer.status_code, answer.json()) == (400, told)
        pair.end()
    assert pair.of("request")[0].outcome == "rejected" and pair.of("provider-lost") == []


def test_a_request_too_large_is_rejected_at_once_and_not_to_be_tried_again() -> None:
    told = {"error": {"message": "Request too large for m", "code": "rate_limit_exceeded"}}
    with before(lambda turn, *_: turn.say(429, told)) as pair:
        answer = pair.post(CHAT, body(CHAT))
        assert answer.status_code == 429 and answer.headers["x-should-retry"] == "false"
        pair.end()
    (exchange,) = pair.of("request")
    assert (exchange.outcome, exchange.attempts) == ("rejected", 1) and pair.of("provider-lost") == []


def test_an_empty_account_is_told_as_such() -> None:
    told = {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low to go on"}}
    with before(lambda turn, *_: turn.say(400, told)) as pair:
        assert pair.post(MESSAGES, body(MESSAGES)).status_code == 400
        pair.end()
    assert [(lost.kind, lost.status) for lost in pair.of("provider-lost")] == [("quota", 400)]


# --- attempts that may have been billed


HASTY = {"budget_seconds": 9, "attempts": 3, "first_byte_seconds": 2, "idle_seconds": 1}


def test_an_attempt_that_broke_after_it_was_sent_makes_the_cost_unknown() -> None:
    """Naive: only what was delivered was paid for."""

    def answer(turn: Turn, _: dict[str, Any], number: int) -> None:
        turn.say(200, completion(), cut=10 if number < 3 else 0)

    with before(answer, price=PRICE, caps={"micro_usd": 10**6}) as pair:
        assert pair.post(CHAT, body(CHAT, max_tokens=100)).status_code == 200
        pair.end()
    (exchange,) = pair.of("request")
    assert (exchange.outcome, exchange.attempts, exchange.uncounted) == ("replied", 3, 2)
    assert (
        exchange.usage.input == 10
        and exchange.pico_usd is None
        and "may have been billed" in exchange.cost_note
    )


def test_no_further_attempt_without_room_for_another_worst_case() -> None:
    """Naive: each attempt is admitted once, and billed each time."""
    with before(lambda turn, *_: turn.say(200, completion(), cut=10), caps={"tokens": 9000}) as pair:
        # A prompt's bound is some 4,200: it fits twice, and no probe beside it.
        assert pair.post(CHAT, body(CHAT, max_tokens=100)).status_code == 502
        assert pair.post(CHAT, body(CHAT, max_tokens=100)).status_code == 403
        pair.end()
    (exchange,), (lost,) = pair.of("request"), pair.of("provider-lost")
    assert (exchange.outcome, exchange.uncounted, lost.kind) == ("failed", 2, "reset")
    assert len(pair.stage.asked) == 2 and [breach.cap for breach in pair.of("breach")] == ["tokens"]


def test_an_error_whose_text_is_cut_was_not_generated() -> None:
    def answer(turn: Turn, _: dict[str, Any], number: int) -> None:
        turn.say(503 if number == 1 else 200, completion(), cut=10 if number == 1 else 0)

    with before(answer, price=PRICE) as pair:
        assert pair.post(CHAT, body(CHAT)).status_code == 200
        pair.end()
    (exchange,) = pair.of("request")
    assert exchange.uncounted == 0 and exchange.pico_usd is not None


def test_an_agent_that_hung_up_is_not_asked_for_again() -> None:
    """Naive: attempts go on, each billed, and nobody takes the answer."""
    with before(lambda turn, *_: turn.server.closing.wait(20), patience=HASTY) as pair:
        with pytest.raises(httpx.ReadTimeout):
            pair.post(CHAT, body(CHAT), timeout=0.1)
        until(lambda: bool(pair.of("provider-lost")))
        pair.end()
    own = [each for each in pair.of("request") if not each.probe]
    assert [(each.attempts, each.abandoned, each.outcome) for each in own] == [(1, True, "failed")]
    assert pair.of("retry") == [] and pair.of("provider-lost")[0].kind == "stalled"


# --- whose fault it is


def is_probe(asked: dict[str, Any]) -> bool:
    return "Say yes." in str(asked)


@pytest.mark.parametrize(
    ("path", "limit"),
    [(CHAT, "max_completion_tokens"), (RESPONSES, "max_output_tokens"), (MESSAGES, "max_tokens")],
)
def test_a_request_that_fails_where_another_does_not_is_the_agents_own(path: str, limit: str) -> None:
    """Naive: the attempt is lost by the provider's fault, and an agent gets as many as it asks for."""

    def answer(turn: Turn, asked: dict[str, Any], _: int) -> None:
        turn.say(200 if is_probe(asked) else 500, {**completion(), "content": [], "output": []})

    with before(answer, price=PRICE, patience=HASTY, caps={"turns": 1}) as pair:
        for _ in range(2):
            answer_ = pair.post(path, body(path))
            assert answer_.status_code == 500 and answer_.headers["x-should-retry"] == "false"
        pair.end()
    probes = [each for each in pair.of("request") if each.probe]
    own = [each for each in pair.of("request") if not each.probe]
    assert [(each.outcome, each.status) for each in own] == [("rejected", 500)] * 2
    assert [each.outcome for each in probes] == ["replied"] * 2
    asked = [each for each in pair.stage.asked if is_probe(each)]
    assert [each[limit] for each in asked] == [16, 16] and "stream" not in asked[0]
    # It is no turn, its faults are told while they last, and none of their time is left in the end.
    assert pair.of("provider-lost") == [] == pair.of("breach")
    assert pair.of("retry")[1].excluded_seconds > 0.5
    assert own[0].excluded_seconds == own[1].excluded_seconds == pair.of("closed")[0].excluded_seconds == 0


def test_only_its_own_time_is_taken_back() -> None:
    def answer(turn: Turn, asked: dict[str, Any], number: int) -> None:
        turn.say(200 if is_probe(asked) or number == 2 else 500, completion())

    with before(answer, patience=HASTY) as pair:
        assert [pair.post(CHAT, body(CHAT)).status_code for _ in range(2)] == [200, 500]
        pair.end()
    good, own = [each.excluded_seconds for each in pair.of("request") if not each.probe]
    assert 0.5 <= good == own == pair.of("closed")[0].excluded_seconds


def test_without_room_for_a_probe_the_provider_is_at_fault() -> None:
    # Of the prompt's bound the template is 4,096; a probe's prompt is longer than this one's.
    with before(lambda turn, *_: turn.say(500, {}), patience=HASTY, caps={"tokens": 4175}) as pair:
        assert pair.post(CHAT, body(CHAT, max_tokens=1)).status_code == 500
        pair.end()
    assert [each.probe for each in pair.of("request")] == [False]
    assert [lost.status for lost in pair.of("provider-lost")] == [500] and pair.of("breach") == []


def test_a_provider_that_answers_nobody_is_at_fault() -> None:
    with before(lambda turn, *_: turn.say(500, {}), patience=HASTY) as pair:
        assert pair.post(CHAT, body(CHAT)).status_code == 500
        pair.end()
    assert [(each.probe, each.outcome) for each in pair.of("request")] == [
        (True, "failed"),
        (False, "failed"),
    ]
    assert [lost.status for lost in pair.of("provider-lost")] == [500]


@pytest.mark.parametrize(
    ("status", "first", "later"),
    [(401, "credential", "credential"), (402, "credential", "payment"), (403, "credential", None)],
)
def test_a_refusal_is_of_the_key_until_the_key_was_taken(status: int, first: str, later: str | None) -> None:
    """Naive: 403 for indecency, 402 for a limit that the agent chose, end the whole plan."""
    told = {"error": {"message": f"flagged by {KEY}"}}

    def answer(turn: Turn, asked: dict[str, Any], _: int) -> None:
        turn.say(200 if "user" in asked else status, completion() if "user" in asked else told)

    for good, kind in ((False, first), (True, later)):
        with before(answer) as pair:
            if good:
                assert pair.post(CHAT, body(CHAT, user="u")).status_code == 200
            answer_ = pair.post(CHAT, body(CHAT))
            pair.end()
        assert answer_.status_code == status and KEY not in answer_.text
        assert ("flagged by [key]" in answer_.text) is (kind is None)
        assert [lost.kind for lost in pair.of("provider-lost")] == ([kind] if kind else [])
        assert pair.of("request")[-1].outcome == "rejected"


def test_a_stall_within_a_stream_is_taken_off_the_clock() -> None:
    """Naive: only what was asked for again counts as lost time."""
    with before(lambda turn, *_: turn.tell({"choices": []}, wait=20), patience=HASTY) as pair:
        with suppress(httpx.HTTPError):
            pair.post(CHAT, body(CHAT, stream=True))
        pair.end()
    (exchange,) = pair.of("request")
    assert exchange.outcome == "broken" and 1 <= exchange.fault_seconds < 5
    assert exchange.excluded_seconds == pytest.approx(exchange.fault_seconds, abs=0.01)
    assert pair.of("closed")[0].excluded_seconds == exchange.excluded_seconds


# --- after the end


def test_after_the_end_nothing_is_forwarded_and_nothing_told_of_caps() -> None:
    """Naive: a request that waited for room is forwarded for an agent that is dead, or told as a breach."""

    def answer(turn: Turn, *_: Any) -> None:
        turn.server.closing.wait(1)
        turn.say(200, completion())

    with before(answer, caps={"turns": 2}) as pair, ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(_ignored, pair) for _ in range(4)]
        until(lambda: len(pair.stage.asked) == 2)
        time.sleep(0.3)
        pair.end()
        [each.result() for each in asking]
    assert len(pair.stage.asked) == 2 and pair.of("breach") == []
    assert [each.outcome for each in pair.of("request")] == ["replied"] * 2
    assert ["the run is over" in refused.reason for refused in pair.of("refused")] == [True, True]
    assert pair.events[-1].event == "closed" and pair.of("closed")[0].unfinished == 0


def test_after_the_end_no_fault_is_waited_for_and_none_is_told() -> None:
    """Naive: a run that ended is lost by what came after."""
    with (
        before(
            lambda turn, *_: turn.say(503, {}), patience={**HASTY, "attempts": 8, "drain_seconds": 9}
        ) as pair,
        ThreadPoolExecutor(1) as pool,
    ):
        asking = pool.submit(_ignored, pair)
        until(lambda: len(pair.of("retry")) == 2)
        began = time.monotonic()
        pair.end()
        asking.result()
    # The third wait would have been two seconds, and a probe after it.
    assert time.monotonic() - began < 5 and len(pair.stage.asked) <= 3
    assert [(each.outcome, each.uncounted) for each in pair.of("request")] == [("failed", 0)]
    assert pair.of("provider-lost") == [] and pair.of("closed")[0].unfinished == 0


def _ignored(pair: Playing) -> None:
    with suppress(httpx.HTTPError):
        pair.post(CHAT, body(CHAT))
