"""How long a chat model is waited for: seconds without a token, whatever else its server sends."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from agents.chat.model import ChatModel
from agents.chat.usage import Limits, QuestionBudget, Spent, Usage, tallied
from graph.errors import BudgetSpent, MaraError, SlowReply, TransportFault
from tests.chatting import messages, model_on
from tests.scripted_server import Fault, Reply, ReplyLike, ScriptedServer, scripted

PATIENCE_S = 0.3
TICK_S = 0.05
"""Between two pieces of a server that sends some all the time."""


def piece(delta: object, finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return f"data: {json.dumps({'id': 'x', 'choices': [choice]})}\n\n".encode()


def ticking(events: Iterable[bytes]) -> Iterator[bytes]:
    for event in events:
        time.sleep(TICK_S)
        yield event


def asked(reply: Callable[[ScriptedServer], ReplyLike], timeout_s: float = PATIENCE_S) -> tuple[str | MaraError, float]:
    """Ask once; return the reply's text or the error, and the seconds it took."""
    with scripted([]) as server:
        server.script(lambda body: reply(server))
        model = model_on(server, timeout_s)
        start = time.monotonic()
        try:
            text: str | MaraError = model.ask(messages()).text()
        except MaraError as fault:
            text = fault
        return text, time.monotonic() - start


NEVER_A_TOKEN: dict[str, bytes] = {
    "comments": b": keep alive\n\n",
    "pieces without a choice": b'data: {"id": "x", "choices": []}\n\n',
    "empty pieces": piece({"content": ""}),
    "pieces that tell the role alone": piece({"role": "assistant"}),
}


@pytest.mark.parametrize("event", NEVER_A_TOKEN.values(), ids=NEVER_A_TOKEN.keys())
def test_a_server_that_only_keeps_the_connection_alive_is_given_up(event: bytes) -> None:
    fault, _ = asked(lambda server: Reply(events=ticking(itertools.repeat(event))))
    assert isinstance(fault, SlowReply)
    assert (fault.message, fault.cause) == ("The chat endpoint sent no token for 0.3 s", "timeout")


def test_a_server_that_sends_no_byte_is_given_up() -> None:
    fault, _ = asked(lambda server: Reply(fault=Fault.HANG))
    assert isinstance(fault, SlowReply)


def test_a_server_that_falls_silent_in_mid_reply_is_given_up() -> None:
    def silent(server: ScriptedServer) -> Iterator[bytes]:
        yield piece({"content": "It was "})
        server.released.wait()

    fault, _ = asked(lambda server: Reply(events=silent(server)))
    assert isinstance(fault, SlowReply)


def test_signs_of_life_give_one_more_time_of_silence_and_no_third() -> None:
    def alive(server: ScriptedServer) -> Iterator[bytes]:
        for pause_s in (0.9, 0.9, 0.9):
            yield b": keep alive\n\n"
            time.sleep(pause_s)
        yield b": keep alive\n\n"
        server.released.wait()

    fault, seconds = asked(lambda server: Reply(events=alive(server)), timeout_s=1.0)
    assert isinstance(fault, SlowReply)
    assert 1.0 <= seconds < 2.5


@pytest.mark.parametrize("name", ["content", "reasoning_content"])
def test_a_slow_reply_whose_tokens_keep_coming_is_waited_for(name: str) -> None:
    pieces = [*[piece({name: "and "})] * 24, piece({"content": "yes"}), piece({}, "stop"), b"data: [DONE]\n\n"]
    text, seconds = asked(lambda server: Reply(events=ticking(pieces)), timeout_s=1.0)
    assert str(text).endswith("yes")
    assert seconds > 1.0


def test_a_server_that_stops_in_mid_reply_is_a_fault_and_not_slow() -> None:
    fault, _ = asked(lambda server: Reply("It was founded", fault=Fault.TRUNCATED))
    assert isinstance(fault, TransportFault)
    assert not isinstance(fault, SlowReply)
    assert fault.cause == "broken reply"


def test_a_server_that_refuses_to_stream_is_asked_for_whole_replies_from_then_on() -> None:
    with scripted(["yes"], refuses=["stream"]) as server:
        model = model_on(server)
        for _ in range(2):
            assert model.ask(messages()).text() == "yes"
    assert [bool(request.body.get("stream")) for request in server.requests] == [True, False, False]


WHOLE = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
    }
)


def test_a_whole_reply_to_a_request_for_a_stream_is_taken_and_no_stream_asked_for_again() -> None:
    with scripted([Reply(body=WHOLE)]) as server:
        model = model_on(server)
        replies = [model.ask(messages()) for _ in range(2)]
    assert [(reply.text(), reply.usage) for reply in replies] == [("yes", Usage(1, 7, 2))] * 2
    assert [bool(request.body.get("stream")) for request in server.requests] == [True, False]


def test_a_broken_whole_reply_does_not_end_the_streaming() -> None:
    with scripted([Reply(body="{}"), "yes"]) as server:
        model = model_on(server)
        with pytest.raises(TransportFault):
            model.ask(messages())
        assert model.ask(messages()).text() == "yes"
    assert [bool(request.body.get("stream")) for request in server.requests] == [True, True]


def test_a_whole_reply_is_waited_for_as_long_as_a_token() -> None:
    hangs = scripted([Reply(fault=Fault.HANG)], refuses=["stream"])
    with hangs as server, pytest.raises(SlowReply, match=r"did not answer within 0\.3 s\. Raise MARA_TIMEOUT_S"):
        model_on(server, PATIENCE_S).ask(messages())


NOTHING = Spent()


def spending(model: ChatModel, limits: Limits, before: Spent = NOTHING) -> Any:
    budget = QuestionBudget()
    budget.begin(limits, before)
    with budget.working(), tallied() as used:
        try:
            model.ask(messages())
        except BudgetSpent as fault:
            return fault, budget.spent(), used.usage
    return None, budget.spent(), used.usage


def test_a_request_under_way_is_broken_off_when_the_questions_seconds_are_over() -> None:
    pieces = ticking(itertools.chain([piece({"content": "and "})], itertools.repeat(piece({"content": "on "}))))
    with scripted([Reply(events=pieces)]) as server:
        fault, spent, used = spending(model_on(server), Limits(seconds=PATIENCE_S))
    assert fault.message == "The question's 0.3 s are over"
    assert PATIENCE_S <= spent.seconds < 30
    assert (used, spent.calls) == (Usage(1, unknown=1), 1)
    assert spent.tokens > 0


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(seconds=9.0), "The question's 9 s are over"),
        (Limits(calls=3), "The question's 3 model calls are used up"),
        (Limits(tokens=2_000), "The question's 2,000 tokens are used up"),
    ],
)
def test_where_nothing_is_left_no_request_is_made(limits: Limits, message: str) -> None:
    with scripted(["yes"]) as server:
        fault, _, used = spending(model_on(server), limits, Spent(seconds=10.0, calls=3, tokens=2_500))
    assert fault.message == message
    assert server.requests == []
    assert used == Usage()


def test_tokens_are_charged_as_told_and_estimated_where_untold() -> None:
    told = Reply("yes", usage={"prompt_tokens": 70, "completion_tokens": 5, "total_tokens": 75})
    with scripted([told, Reply("yes", usage={})]) as server:
        model = model_on(server)
        _, spent, _ = spending(model, Limits())
        assert (spent.calls, spent.tokens) == (1, 75)
        _, spent, _ = spending(model, Limits())
    sent = sum(len(message["content"].encode()) for message in server.requests[1].body["messages"])
    assert spent.tokens == (sent + len("yes")) // 4


def test_a_request_without_a_reply_is_no_call() -> None:
    with scripted([Reply("oops", status=500)]) as server:
        budget = QuestionBudget()
        with budget.working(), pytest.raises(TransportFault):
            model_on(server).ask(messages())
    assert (budget.spent().calls, budget.spent().tokens) == (0, 0)


def test_calls_side_by_side_never_pass_the_limit_together() -> None:
    with scripted(["yes"]) as server:
        model, budget = model_on(server), QuestionBudget()
        budget.begin(Limits(calls=3), Spent())
        refused: list[BudgetSpent] = []

        def ask() -> None:
            with budget.working():
                try:
                    model.ask(messages())
                except BudgetSpent as fault:
                    refused.append(fault)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(server.requests), len(refused)) == (3, 5)
