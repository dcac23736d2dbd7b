"""The log-probabilities of a reply's tokens: asked for and read; and servers that send none."""

from __future__ import annotations

import json
import math

from agents.chat.agent import json_format
from agents.chat.model import ChatReply
from agents.chat.replies import LEAST, TokenLogprobs
from agents.chat.usage import Usage
from tests.chatting import TEXT, Verdict, messages, model_on, served
from tests.scripted_server import Reply, scripted

SURE = Reply.spelt(("Yes", {"Yes": -0.1, " Yes": -3.0, "No": -4.0}), (" 0.9", {" 0.9": -0.5, " 0.8": -1.5}))
BARE = {"token": "Yes", "logprob": -0.1}


def ask_with(logprobs: object) -> ChatReply:
    """Ask for a reply with these log-probabilities, however odd."""
    choice = {"index": 0, "delta": {"content": "Yes 0.9"}, "finish_reason": "stop", "logprobs": logprobs}
    piece = json.dumps({"id": "x", "choices": [choice]})
    with served(Reply(events=[f"data: {piece}\n\n".encode(), b"data: [DONE]\n\n"])) as model:
        return model.ask(messages(), top_logprobs=5)


def test_the_tokens_come_in_order_with_as_many_alternatives_as_were_asked_for() -> None:
    with scripted([SURE]) as server:
        model = model_on(server)
        reply, fewer, none = (model.ask(messages(), top_logprobs=n) for n in (5, 2, 0))
    assert reply.text() == "Yes 0.9"
    assert reply.tokens == (
        TokenLogprobs("Yes", (("Yes", -0.1), (" Yes", -3.0), ("No", -4.0))),
        TokenLogprobs(" 0.9", ((" 0.9", -0.5), (" 0.8", -1.5))),
    )
    assert fewer.tokens[0].top == (("Yes", -0.1), (" Yes", -3.0))
    body = server.requests[1].body
    assert (body["logprobs"], body["top_logprobs"], body["stream"]) == (True, 2, True)
    assert none.tokens == ()
    assert not {"logprobs", "top_logprobs"} & server.requests[2].body.keys()


def test_a_log_probability_is_clamped_to_its_range_and_kept_as_none_where_it_is_no_number() -> None:
    tokens = [{"token": "No", "logprob": -3.0, "top_logprobs": [BARE]}]
    assert ask_with({"content": tokens}).tokens == (TokenLogprobs("No", (("Yes", -0.1), ("No", -3.0))),)
    for sent, read in (
        *((-math.inf, LEAST), (-1e30, LEAST), (-(10**400), LEAST)),
        *((math.inf, 0.0), (0.01, 0.0), (0, 0.0), (-2, -2.0)),
    ):
        (token,) = ask_with({"content": [{"token": "Yes", "logprob": sent}]}).tokens
        assert token.top == (("Yes", read),)
    nothing: list[object] = [math.nan, None, "-0.1", [], {}]
    (*unread,) = ask_with({"content": [{"token": "Yes", "logprob": sent} for sent in nothing]}).tokens
    assert [math.isnan(token.top[0][1]) for token in unread] == [True] * len(nothing)


def test_what_is_not_of_the_protocols_form_is_left_out() -> None:
    forms: list[object] = [
        None,
        {},
        "Yes: -0.1",
        {"content": [{"logprob": -0.1}]},
        {"content": [BARE | {"top_logprobs": [BARE, "No"]}]},
    ]
    for logprobs in forms:
        reply = ask_with(logprobs)
        assert (reply.text(), reply.tokens) == ("Yes 0.9", ()), logprobs
    with served(Reply("Yes 0.9")) as model:
        assert model.ask(messages(), top_logprobs=5).tokens == (), "the server ignores the parameter"


def test_a_server_that_refuses_them_is_asked_without_from_then_on() -> None:
    for status, words in (
        (400, "Unrecognized request argument supplied: logprobs"),
        (403, "You are not allowed to request logprobs from this model"),
    ):
        with scripted([Reply(words, status=status), Reply("Yes 0.9", usage={"prompt_tokens": 7})]) as server:
            model = model_on(server)
            first, second = (model.ask(messages(), top_logprobs=5) for _ in range(2))
        assert [reply.text() for reply in (first, second)] == ["Yes 0.9", "Yes 0.9"]
        assert (first.usage, second.usage) == (Usage(2, 7), Usage(1, 7))
        assert [request.body.get("logprobs") for request in server.requests] == [True, None, None]


def test_a_server_may_refuse_the_response_format_and_the_log_probabilities() -> None:
    wanted = json_format("Verdict", Verdict.model_json_schema())
    with scripted([TEXT], refuses=["response_format", "logprobs"]) as server:
        model = model_on(server)
        assert [model.ask(messages(), wanted, top_logprobs=5).text() for _ in range(2)] == [TEXT, TEXT]
    asked = [{"response_format", "logprobs"} & request.body.keys() for request in server.requests]
    assert asked == [{"response_format", "logprobs"}, {"logprobs"}, set(), set()]
