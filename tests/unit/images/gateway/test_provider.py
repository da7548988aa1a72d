"""What a provider may answer, and what the gateway makes of it: whose fault it was, and what it cost."""

from typing import Any

import pytest

from tests.unit.images.gateway.playing import CHAT, KEY, MESSAGES, RESPONSES, Turn, before, body, completion

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
