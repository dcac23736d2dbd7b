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


def ticking(events: Iterable[bytes]) -> Reply:
    """A reply of events, with a pause before each."""

    def send() -> Iterator[bytes]:
        for event in events:
            time.sleep(TICK_S)
            yield event

    return Reply(events=send())


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


def silent(server: ScriptedServer) -> Iterator[bytes]:
    yield piece({"content": "It was "})
    server.released.wait()


NO_TOKEN = (
    b": keep alive\n\n",
    b'data: {"id": "x", "choices": []}\n\n',
    piece({"content": ""}),
    piece({"role": "assistant"}),
)


def test_a_server_that_sends_no_token_is_given_up_whatever_else_it_sends() -> None:
    no_token = [ticking(itertools.repeat(event)) for event in NO_TOKEN]
    for reply in (*no_token, Reply(fault=Fault.HANG)):
        fault, _ = asked(lambda server, reply=reply: reply)  # type: ignore[misc]
        assert isinstance(fault, SlowReply)
        assert (fault.message, fault.cause) == ("The chat endpoint sent no token for 0.3 s", "timeout")
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


def test_a_slow_reply_whose_tokens_keep_coming_is_waited_for() -> None:
    thoughts, words = piece({"reasoning_content": "and "}), piece({"content": "and "})
    pieces = [*[thoughts, words] * 12, piece({"content": "yes"}), piece({}, "stop"), b"data: [DONE]\n\n"]
    text, seconds = asked(lambda server: ticking(pieces), timeout_s=1.0)
    assert str(text).endswith("yes")
    assert seconds > 1.0


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
    pieces = itertools.chain([piece({"content": "and "})], itertools.repeat(piece({"content": "on "})))
    with scripted([ticking(pieces)]) as server:
        fault, spent, used = spending(model_on(server), Limits(seconds=PATIENCE_S))
    assert fault.message == "The question's 0.3 s are over"
    assert PATIENCE_S <= spent.seconds < 30
    assert (used, spent.calls) == (Usage(1, unknown=1), 1)
    assert spent.tokens > 0


def test_where_nothing_is_left_no_request_is_made() -> None:
    for limits, message in (
        (Limits(seconds=9.0), "The question's 9 s are over"),
        (Limits(calls=3), "The question's 3 model calls are used up"),
        (Limits(tokens=2_000), "The question's 2,000 tokens are used up"),
    ):
        with scripted(["yes"]) as server:
            fault, _, used = spending(model_on(server), limits, Spent(seconds=10.0, calls=3, tokens=2_500))
        assert (fault.message, server.requests, used) == (message, [], Usage())


def test_tokens_are_charged_as_sent_or_estimated_and_a_request_without_a_reply_is_no_call() -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 5, "total_tokens": 75}
    with scripted([Reply("yes", usage=usage), Reply("yes", usage={}), Reply("oops", status=500)]) as server:
        model = model_on(server)
        _, spent, _ = spending(model, Limits())
        assert (spent.calls, spent.tokens) == (1, 75)
        _, spent, _ = spending(model, Limits())
        sent = sum(len(message["content"].encode()) for message in server.requests[1].body["messages"])
        assert spent.tokens == (sent + len("yes")) // 4
        budget = QuestionBudget()
        with budget.working(), pytest.raises(TransportFault):
            model.ask(messages())
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
