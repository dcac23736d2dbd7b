"""The log-probabilities of a reply's tokens: asked for, told, and read; and servers that tell none."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from agents.chat.agent import json_format
from agents.chat.model import ChatReply
from agents.chat.replies import LEAST, TokenLogprobs, read_logprobs
from agents.chat.usage import Usage
from graph.errors import ModelUnavailable
from tests.chatting import TEXT, Verdict, messages, model_on, served
from tests.scripted_server import Reply, scripted

SURE = Reply.spelt(("Yes", {"Yes": -0.1, " Yes": -3.0, "No": -4.0}), (" 0.9", {" 0.9": -0.5, " 0.8": -1.5}))
BARE = {"token": "Yes", "logprob": -0.1}


def reply_with(logprobs: object) -> Reply:
    """A whole reply with these log-probabilities, however odd."""
    message = {"role": "assistant", "content": "Yes 0.9"}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": logprobs}
    return Reply(body=json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]}))


def ask(reply: Reply, top_logprobs: int = 5) -> ChatReply:
    with served(reply) as model:
        return model.ask(messages(), top_logprobs=top_logprobs)


def test_the_tokens_come_in_order_with_their_likeliest_alternatives() -> None:
    reply = ask(SURE)
    assert reply.text() == "Yes 0.9"
    assert reply.tokens == (
        TokenLogprobs("Yes", (("Yes", -0.1), (" Yes", -3.0), ("No", -4.0))),
        TokenLogprobs(" 0.9", ((" 0.9", -0.5), (" 0.8", -1.5))),
    )


def test_the_request_asks_for_so_many_and_is_streamed_inside() -> None:
    with scripted([SURE]) as server:
        reply = model_on(server).ask(messages(), top_logprobs=2)
    body = server.requests[0].body
    assert (body["logprobs"], body["top_logprobs"]) == (True, 2)
    assert body["stream"] is True
    assert reply.tokens[0].top == (("Yes", -0.1), (" Yes", -3.0))


def test_within_a_graph_that_streams_they_come_all_the_same() -> None:
    class State(TypedDict):
        n_tokens: int

    with scripted([SURE]) as server:
        model = model_on(server)

        def judge(state: State) -> State:
            return {"n_tokens": len(model.ask(messages(), top_logprobs=5).tokens)}

        graph = StateGraph(State).add_node("judge", judge).add_edge(START, "judge").compile()
        events: list[Any] = list(graph.stream({"n_tokens": 0}, stream_mode=["messages", "values"]))
    assert [kind for kind, _ in events] == ["values", "values"]
    assert events[-1] == ("values", {"n_tokens": 2})


def test_nobody_who_does_not_ask_gets_them() -> None:
    with scripted([SURE]) as server:
        assert model_on(server).ask(messages()).tokens == ()
    assert not {"logprobs", "top_logprobs"} & server.requests[0].body.keys()


def test_the_chosen_token_counts_even_where_it_is_not_among_the_likeliest() -> None:
    token = {"token": "No", "logprob": -3.0, "top_logprobs": [BARE]}
    assert ask(reply_with({"content": [token]})).tokens == (TokenLogprobs("No", (("Yes", -0.1), ("No", -3.0))),)


@pytest.mark.parametrize(
    ("told", "read"),
    [(-math.inf, LEAST), (-1e30, LEAST), (-(10**400), LEAST), (math.inf, 0.0), (0.01, 0.0), (0, 0.0), (-2, -2.0)],
)
def test_a_log_probability_is_clamped_to_its_range(told: float, read: float) -> None:
    (token,) = ask(reply_with({"content": [{"token": "Yes", "logprob": told}]})).tokens
    assert token.top == (("Yes", read),)


@pytest.mark.parametrize("told", [math.nan, None, "-0.1", [], {}])
def test_what_is_no_number_is_kept_as_none(told: object) -> None:
    (token,) = ask(reply_with({"content": [{"token": "Yes", "logprob": told}]})).tokens
    assert math.isnan(token.top[0][1])


NONE_TOLD: dict[str, object] = {
    "null": None,
    "empty": {},
    "null content": {"content": None},
    "empty content": {"content": []},
    "the form of completions": {"tokens": ["Yes"], "token_logprobs": [-0.1], "top_logprobs": [{"Yes": -0.1}]},
    "a list": [BARE],
    "a text": "Yes: -0.1",
    "tokens that are texts": {"content": ["Yes"]},
    "a token without text": {"content": [{"logprob": -0.1}]},
    "a token whose text is a number": {"content": [{"token": 7, "logprob": -0.1}]},
    "one broken token among others": {"content": [BARE, None]},
    "a broken alternative": {"content": [BARE | {"top_logprobs": [BARE, "No"]}]},
}


@pytest.mark.parametrize("logprobs", NONE_TOLD.values(), ids=NONE_TOLD.keys())
def test_what_is_not_of_the_protocols_form_is_told_by_nobody(logprobs: object) -> None:
    reply = ask(reply_with(logprobs))
    assert (reply.text(), reply.tokens) == ("Yes 0.9", ())


def test_a_server_that_ignores_the_parameter_tells_none() -> None:
    assert ask(Reply("Yes 0.9")).tokens == ()


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["content", "token", "logprob", "top_logprobs"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=30)
@given(json_values)
def test_nothing_a_server_tells_breaks_the_reading(told: object) -> None:
    for metadata in ({"logprobs": told}, {"logprobs": {"content": told}}, {"logprobs": {"content": [told]}}):
        for token in read_logprobs(metadata):
            assert all(math.isnan(logprob) or LEAST <= logprob <= 0 for _, logprob in token.top)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Unrecognized request argument supplied: logprobs"),
        (422, "logprobs: Extra inputs are not permitted"),
        (403, "You are not allowed to request logprobs from this model"),
    ],
)
def test_a_server_that_refuses_them_is_asked_without_from_then_on(status: int, words: str) -> None:
    with scripted([Reply(words, status=status), Reply("Yes 0.9", usage={"prompt_tokens": 7})]) as server:
        model = model_on(server)
        first, second = (model.ask(messages(), top_logprobs=5) for _ in range(2))
    assert [reply.text() for reply in (first, second)] == ["Yes 0.9", "Yes 0.9"]
    assert (first.usage, second.usage) == (Usage(2, 7), Usage(1, 7))
    assert [request.body.get("logprobs") for request in server.requests] == [True, None, None]


@pytest.mark.parametrize(("status", "words"), [(400, "the prompt is too long"), (403, "no"), (404, "no logprobs here")])
def test_a_refusal_for_another_reason_is_not_tried_again(status: int, words: str) -> None:
    with scripted([Reply(words, status=status)]) as server, pytest.raises(ModelUnavailable):
        model_on(server).ask(messages(), top_logprobs=5)
    assert len(server.requests) == 1


def test_a_refusal_that_names_them_is_final_where_they_were_not_asked_for() -> None:
    with scripted([Reply("logprobs?", status=400)]) as server, pytest.raises(ModelUnavailable):
        model_on(server).ask(messages())
    assert len(server.requests) == 1


def test_a_server_may_refuse_the_response_format_and_the_log_probabilities() -> None:
    with scripted([TEXT], refuses=["response_format", "logprobs"]) as server:
        model = model_on(server)
        for _ in range(2):
            assert (
                model.ask(messages(), json_format("Verdict", Verdict.model_json_schema()), top_logprobs=5).text()
                == TEXT
            )
    asked = [{"response_format", "logprobs"} & request.body.keys() for request in server.requests]
    assert asked == [{"response_format", "logprobs"}, {"logprobs"}, set(), set()]
