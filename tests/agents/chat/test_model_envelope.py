"""The envelope of a reply: whatever a server sends, a call ends with a reply or with an error of the catalogue."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest

from graph.endpoints import http_client
from graph.errors import TransportFault
from tests.agents.chat.test_model_streaming import streamed
from tests.chatting import TEXT, VERDICT, Verdict, ask_object, messages, served
from tests.scripted_server import Reply

DEEP = "[" * 10_000 + "]" * 10_000
ENDLESS_DATE = "Fri, 31 Dec 100000000000000 23:59:59 GMT"
DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def body(message: Any = None, choice: Any = None, **top: Any) -> Reply:
    """A reply in one event, with something else in the place of some of its parts."""
    said = {"role": "assistant", "content": TEXT} | (message or {})
    chosen = {"index": 0, "delta": said, "finish_reason": "stop", "logprobs": None} | (choice or {})
    envelope = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [chosen]}
    return Reply(events=[b"data: " + json.dumps(envelope | {"usage": USAGE} | top).encode() + b"\n\n", DONE])


def event(delta: Any, finish_reason: Any = None, **top: Any) -> bytes:
    """A piece of a stream, with something else in the place of some of its parts."""
    choices = [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    envelope = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": choices}
    return b"data: " + json.dumps(envelope | top).encode() + b"\n\n"


FAULTY = {
    "packed": Reply(body=gzip.compress(TEXT.encode()), headers={"Content-Encoding": "gzip"}),
    "nested": Reply(body=f"data: {DEEP}\n\n"),
    "not streamed": Reply(body='{"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}'),
    "no choices": body(choices=[]),
    "choices null": body(choices=None),
    "message null": body(choice={"delta": None}),
    "content a list of numbers": body({"content": [1, 2]}),
    "usage a list": body(usage=[1]),
    "usage of fractions": body(usage={"prompt_tokens": 0.5, "completion_tokens": float("nan")}),
    "busy until the year 10^14": Reply("busy", status=429, headers={"Retry-After": ENDLESS_DATE}),
    "not in the encoding that it says": Reply(body=TEXT, headers={"Content-Encoding": "gzip"}),
    "no end of redirections": Reply(status=308, headers={"Location": "/v1/chat/completions"}),
}
BEARABLE = {
    "role a number": body({"role": 7}),
    "tool calls a text": body({"tool_calls": "x"}),
    "usage of words": body(usage={"prompt_tokens": "1", "completion_tokens": "2", "total_tokens": "3"}),
    "usage without end": body(usage={"prompt_tokens": 2**80, "completion_tokens": 2**63, "total_tokens": 2**90}),
    "finish reason a list": body(choice={"finish_reason": ["stop"]}),
    "log-probabilities a number": body(choice={"logprobs": 7}),
    "log-probabilities of no number": body(choice={"logprobs": {"content": [{"token": "x", "logprob": "y"}]}}),
    "a log-probability without end": body(choice={"logprobs": {"content": [{"token": "x", "logprob": 10**400}]}}),
}
START, END = event({"role": "assistant", "content": TEXT}), event({}, "stop")
FAULTY_STREAMS: dict[str, Sequence[bytes]] = {
    "nothing": [],
    "an event that is null": [START, b"data: null\n\n", END, DONE],
    "an event that breaks off": [START, b'data: {"choices": [{"del\n\n'],
    "bytes of no encoding": [START, b"data: \xff\xfe\n\n", END, DONE],
    "an error": [START, b'data: {"error": {"message": [7]}}\n\n'],
    "delta a text": [START, event("x"), END, DONE],
    "no end": [START],
    "content a list": [START, event({"content": [1]}), END, DONE],
    "finish reason a list, then a number": [START, event({}, ["stop"]), event({}, 7), DONE],
    "log-probabilities a number, then an object": [
        START,
        event({}, choices=[{"delta": {}, "logprobs": 7}]),
        event({}, choices=[{"delta": {}, "logprobs": {"content": "x"}}]),
        DONE,
    ],
    "usage a text": [START, END, event({}, usage="x"), DONE],
}
BEARABLE_STREAMS: dict[str, Sequence[bytes]] = {
    "an event of no choices": [START, event({}, choices=[]), END, DONE],
    "tool calls a text": [START, event({"tool_calls": "x"}), END, DONE],
    "ids of no text": [event({"content": TEXT}, id=7), event({}, id=[7]), END, DONE],
    "usage without end": [START, *[event({}, usage={"prompt_tokens": 2**70})] * 3, END, DONE],
}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_an_envelope_or_a_stream_that_is_not_the_protocols_is_a_fault_of_the_endpoint() -> None:
    for name, reply in FAULTY.items():
        with served(reply) as model, pytest.raises(TransportFault):
            pytest.fail(f"{name}: {model.ask(messages(), top_logprobs=5)}")
    for name, events in FAULTY_STREAMS.items():
        with served(Reply(events=events)) as model, pytest.raises(TransportFault):
            pytest.fail(f"{name}: {streamed(model, as_object=True)}")


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_what_is_odd_about_an_envelope_or_a_stream_costs_no_reply() -> None:
    for name, reply in BEARABLE.items():
        with served(reply) as model:
            assert ask_object(model, messages(), Verdict) == VERDICT, name
            asked = model.ask(messages(), top_logprobs=5)
        assert asked.raw == TEXT
        assert 0 <= asked.usage.prompt_tokens <= 10**9
        assert 0 <= asked.usage.completion_tokens <= 10**9
    for name, events in BEARABLE_STREAMS.items():
        with served(Reply(events=events)) as model:
            assert "".join(streamed(model, as_object=True)) == TEXT, name


def test_a_stream_without_end_that_says_nothing_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_REPLY_BYTES", 50_000)
    for piece in (
        event({}),
        event({}, choices=[]),
        event({"tool_calls": [{"index": 0, "function": {"arguments": "x" * 600}}]}),
        b": keep alive\n\n" * 50,
        b"\n" * 500,
    ):
        endless = Reply(events=itertools.repeat(piece))
        with served(endless) as model, pytest.raises(TransportFault, match="50,000 bytes"):
            streamed(model, as_object=False)
