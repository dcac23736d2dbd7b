"""A chat model asked within a graph: its reply is streamed piece by piece, and goes wrong in the same ways."""

from __future__ import annotations

import itertools

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from agents.chat.model import CHARACTERS_A_TOKEN, ChatModel
from agents.chat.replies import without_thinking
from agents.chat.usage import Usage, tallied
from graph.errors import MalformedReply, ModelUnavailable, TransportFault
from tests import chatting
from tests.chatting import TEXT, Verdict, ask_object, ask_text, messages, model_on, served
from tests.scripted_server import Fault, Reply, scripted


class State(TypedDict):
    reply: str


def streamed(model: ChatModel, as_object: bool) -> list[str]:
    """The pieces of text that a graph streams while its one node asks the model."""

    def ask(state: State) -> State:
        if as_object:
            return {"reply": ask_object(model, messages(), Verdict).name}
        return {"reply": ask_text(model, messages())}

    graph = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile()
    return [str(getattr(piece, "text", "")) for piece, _ in graph.stream({"reply": ""}, stream_mode="messages")]


def test_a_reply_is_streamed_piece_by_piece_within_a_graph() -> None:
    with scripted(["Denmark, I think [3]."]) as server:
        pieces = [piece for piece in streamed(model_on(server), as_object=False) if piece]
    assert "".join(pieces) == "Denmark, I think [3]."
    assert len(pieces) == 4
    assert server.requests[0].body["stream"] is True


def test_a_reply_that_is_no_answer_is_told_to_no_stream_and_comes_in_pieces_all_the_same() -> None:
    class Internal(chatting.Tester):
        writes_answers = False

    with scripted(["Denmark, I think [3]."]) as server:
        model = model_on(server)

        def ask(state: State) -> State:
            return {"reply": Internal(model)._ask_text(messages(), str, "NOTHING")}

        graph = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile()
        assert list(graph.stream({"reply": ""}, stream_mode="messages")) == []
    assert server.requests[0].body["stream"] is True


def test_the_tokens_of_a_streamed_reply_are_told() -> None:
    told = {"prompt_tokens": 70, "completion_tokens": 3, "total_tokens": 73}
    with scripted([Reply(TEXT, usage=told)]) as server, tallied() as spent:
        streamed(model_on(server), as_object=False)
    assert spent.usage == Usage(1, 70, 3)


def test_a_server_that_refuses_to_tell_them_is_asked_without_from_then_on() -> None:
    with scripted([TEXT], refuses=["stream_options"]) as server, tallied() as spent:
        model = model_on(server)
        assert ["".join(streamed(model, as_object=True)) for _ in range(2)] == [TEXT, TEXT]
    assert ["stream_options" in request.body for request in server.requests] == [True, False, False]
    assert spent.usage == Usage(2, unknown=2), "the refused request is no call"


def test_a_reply_that_is_broken_off_is_a_call_without_tokens() -> None:
    endless = itertools.repeat("and " * 5_000)
    with served(Reply(pieces=endless)) as model, tallied() as spent, pytest.raises(MalformedReply):
        streamed(model, as_object=False)
    assert spent.usage == Usage(1, unknown=1)


def test_a_request_without_reply_is_no_call() -> None:
    with served(Reply("oops", status=500)) as model, tallied() as spent, pytest.raises(TransportFault):
        streamed(model, as_object=False)
    assert spent.usage == Usage()


def test_a_reply_asked_for_in_one_piece_is_streamed_to_nobody_and_traced_all_the_same() -> None:
    with scripted(["Denmark, I think [3]."]) as server:
        model = model_on(server)
        ends: list[object] = []

        class Listener(BaseCallbackHandler):
            def on_llm_end(self, response: object, **about: object) -> None:
                ends.append(response)

        def ask(state: State) -> State:
            return {"reply": model.ask(messages()).raw}

        graph = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile()
        stream = graph.stream({"reply": ""}, {"callbacks": [Listener()]}, stream_mode=["messages", "values"])
        kinds = [kind for kind, _ in stream]
    assert set(kinds) == {"values"}
    assert server.requests[0].body["stream"] is True
    assert len(ends) == 1


def test_an_object_may_be_streamed_too() -> None:
    with served(TEXT) as model:
        assert "".join(streamed(model, as_object=True)) == TEXT


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply("a b c d e f", fault=Fault.TRUNCATED), TransportFault),
        (Reply("a b c d", fault=Fault.RESET), TransportFault),
        (Reply("oops", status=500), TransportFault),
        (Reply(body="<html></html>"), TransportFault),
        (Reply("no", status=401), ModelUnavailable),
        (Reply(TEXT, finish_reason="length"), MalformedReply),
    ],
)
@pytest.mark.parametrize("as_object", [False, True])
def test_faults_are_the_same_when_streaming(reply: Reply, error: type[Exception], as_object: bool) -> None:
    with served(reply) as model, pytest.raises(error):
        streamed(model, as_object)


LONG = 100_000
"""A limit of tokens that lets through what is too long to be read."""


def test_a_reply_without_end_is_cut_at_its_limit() -> None:
    endless = itertools.repeat("and ")
    with scripted([Reply(pieces=endless)]) as server:
        reply = model_on(server).ask(messages(), max_tokens=100)
    assert server.requests[0].body["max_tokens"] == 100
    assert reply.cut
    assert len(reply.raw) <= 100 * CHARACTERS_A_TOKEN + len("and ")
    with pytest.raises(MalformedReply, match="cut at the token limit"):
        reply.text()


def test_a_reply_without_end_is_broken_off_at_the_longest_that_is_read() -> None:
    endless = itertools.repeat("and " * 5_000)
    with served(Reply(pieces=endless)) as model, pytest.raises(MalformedReply, match="longer than 500,000"):
        model.ask(messages(), max_tokens=LONG)


def test_a_reply_without_end_is_refused_where_it_comes_whole() -> None:
    refuses = scripted(["and " * 130_000], refuses=["stream"])
    with refuses as server, pytest.raises(MalformedReply, match="longer than 500,000"):
        model_on(server).ask(messages(), max_tokens=LONG).text()
    speaks = scripted(["and " * 26_000], refuses=["stream"])
    with speaks as server, pytest.raises(MalformedReply, match="says more than 100,000"):
        without_thinking(model_on(server).ask(messages(), max_tokens=LONG).text())
