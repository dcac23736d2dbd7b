"""A chat model asked within a graph: its reply is streamed piece by piece, and goes wrong in the same ways."""

from __future__ import annotations

import itertools

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from agents.chat.model import CHARACTERS_A_TOKEN, ChatModel
from agents.chat.usage import Usage, tallied
from graph.errors import MalformedReply, TransportFault
from tests import chatting
from tests.chatting import TEXT, Verdict, ask_object, ask_text, messages, model_on, served
from tests.scripted_server import Reply, scripted

DENMARK = "Denmark, I think [3]."


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


def test_a_reply_is_streamed_piece_by_piece_within_a_graph_and_its_tokens_count() -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 3, "total_tokens": 73}
    with scripted([Reply(DENMARK, usage=usage), TEXT]) as server, tallied() as spent:
        pieces = [piece for piece in streamed(model_on(server), as_object=False) if piece]
        assert spent.usage == Usage(1, 70, 3)
        assert "".join(streamed(model_on(server), as_object=True)) == TEXT
    assert (len(pieces), "".join(pieces)) == (4, DENMARK)
    assert server.requests[0].body["stream"] is True


def test_a_reply_that_is_no_answer_reaches_no_stream_and_comes_in_pieces_and_is_traced_all_the_same() -> None:
    class Internal(chatting.Tester):
        writes_answers = False

    ends: list[object] = []

    class Listener(BaseCallbackHandler):
        def on_llm_end(self, response: object, **about: object) -> None:
            ends.append(response)

    with scripted([DENMARK]) as server:
        model = model_on(server)

        def ask(state: State) -> State:
            model.ask(messages())
            return {"reply": Internal(model)._ask_text(messages(), str, "NOTHING")}

        graph = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile()
        events = list(graph.stream({"reply": ""}, {"callbacks": [Listener()]}, stream_mode=["messages", "values"]))
    assert [kind for kind, _ in events] == ["values", "values"]
    assert [request.body["stream"] for request in server.requests] == [True, True]
    assert len(ends) == 2


def test_a_server_that_refuses_to_tell_tokens_is_asked_without_from_then_on() -> None:
    with scripted([TEXT], refuses=["stream_options"]) as server, tallied() as spent:
        model = model_on(server)
        assert ["".join(streamed(model, as_object=True)) for _ in range(2)] == [TEXT, TEXT]
    assert ["stream_options" in request.body for request in server.requests] == [True, False, False]
    assert spent.usage == Usage(2, unknown=2), "the refused request is no call"


def test_a_reply_that_is_broken_off_is_a_call_without_tokens_and_a_request_without_reply_is_none() -> None:
    for reply, error, usage in (
        (Reply(pieces=itertools.repeat("and " * 5_000)), MalformedReply, Usage(1, unknown=1)),
        (Reply("oops", status=500), TransportFault, Usage()),
    ):
        with served(reply) as model, tallied() as spent, pytest.raises(error):
            streamed(model, as_object=False)
        assert spent.usage == usage


def test_a_reply_without_end_is_cut_at_its_limit_and_at_the_longest_that_is_read() -> None:
    with scripted([Reply(pieces=itertools.repeat("and "))]) as server:
        reply = model_on(server).ask(messages(), max_tokens=100)
    assert server.requests[0].body["max_tokens"] == 100
    assert reply.cut
    assert len(reply.raw) <= 100 * CHARACTERS_A_TOKEN + len("and ")
    with pytest.raises(MalformedReply, match="cut at the token limit"):
        reply.text()
