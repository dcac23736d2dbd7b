"""What bounds a request: a limit of tokens, under the name that the server takes, and room for a model that thinks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from agents.chat.model import CHARACTERS_A_TOKEN, THINKING_TOKENS, open_chat_model
from graph.errors import MalformedReply, ModelUnavailable
from tests.chatting import messages, model_on
from tests.scripted_server import Reply, ScriptedServer, scripted

NAMES = ("max_tokens", "max_completion_tokens")


def limits_of(server: ScriptedServer) -> list[dict[str, int]]:
    """The limit of each request, by the name it went under."""
    return [{name: request.body[name] for name in NAMES if name in request.body} for request in server.requests]


def test_every_request_has_a_limit() -> None:
    with scripted(["yes"]) as server:
        model = model_on(server)
        model.ask(messages()).text()
        model.ask(messages(), max_tokens=32)
    assert limits_of(server) == [{"max_tokens": 4_096}, {"max_tokens": 32}]


def test_a_server_that_refuses_the_older_name_is_sent_the_newer_from_then_on() -> None:
    with scripted(["yes"], refuses=["max_tokens"]) as server:
        model = model_on(server)
        for _ in range(2):
            assert model.ask(messages(), max_tokens=7).text() == "yes"
    assert limits_of(server) == [{"max_tokens": 7}, {"max_completion_tokens": 7}, {"max_completion_tokens": 7}]


def test_a_server_that_refuses_both_is_sent_none_and_cut_all_the_same() -> None:
    with scripted([Reply(pieces=itertools.repeat("and "))], refuses=NAMES) as server:
        model = model_on(server)
        replies = [model.ask(messages(), max_tokens=7) for _ in range(2)]
    assert limits_of(server) == [{"max_tokens": 7}, {"max_completion_tokens": 7}, {}, {}]
    assert all(reply.cut and len(reply.raw) <= 7 * CHARACTERS_A_TOKEN + 4 for reply in replies)


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens is too large: 4096. This model supports at most 100 completion tokens",
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
    ],
)
def test_a_limit_that_is_too_large_for_the_window_is_left_out_of_that_request_alone(words: str) -> None:
    with scripted([Reply(words, status=400), "yes"]) as server:
        model = model_on(server)
        for _ in range(2):
            assert model.ask(messages()).text() == "yes"
    assert limits_of(server) == [{"max_tokens": 4_096}, {}, {"max_tokens": 4_096}]


def test_a_prompt_that_is_too_long_is_refused_for_good() -> None:
    refusal = Reply("This model's maximum context length is 4096 tokens", status=400)
    with scripted([refusal]) as server, pytest.raises(ModelUnavailable, match="maximum context length"):
        model_on(server).ask(messages()).text()
    assert limits_of(server) == [{"max_tokens": 4_096}, {}]


def test_a_whole_reply_that_passes_the_limit_is_cut_too() -> None:
    with scripted(["and " * 100], refuses=["stream"]) as server:
        reply = model_on(server).ask(messages(), max_tokens=7)
    assert reply.cut
    with pytest.raises(MalformedReply, match="cut at the token limit"):
        reply.text()


def streamed(*deltas: Mapping[str, Any], finish_reason: str, **usage: object) -> Reply:
    """A reply of these pieces."""
    choices: list[dict[str, Any]] = [{"delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"delta": {}, "finish_reason": finish_reason})
    bodies: list[dict[str, Any]] = [{"id": "x", "choices": [{"index": 0} | choice]} for choice in choices]
    bodies.append({"id": "x", "choices": [], "usage": usage})
    return Reply(events=[f"data: {json.dumps(body)}\n\n".encode() for body in bodies])


THINKING = {
    "in the text": Reply("<think>Let me see", finish_reason="length"),
    "beside the text": streamed({"reasoning_content": "Let me see"}, finish_reason="length"),
    "beside it under another name": streamed({"reasoning": "Let me see"}, finish_reason="length"),
    "told in the usage": streamed(
        {"content": "{"},
        finish_reason="length",
        prompt_tokens=1,
        completion_tokens=7,
        total_tokens=8,
        completion_tokens_details={"reasoning_tokens": 6},
    ),
    "hidden altogether": streamed({"content": ""}, finish_reason="length"),
}


@pytest.mark.parametrize("cut", THINKING.values(), ids=THINKING.keys())
def test_a_model_that_is_cut_while_it_thinks_is_asked_again_with_room_to_think(cut: Reply) -> None:
    with scripted([cut, "yes"]) as server:
        model = model_on(server)
        for _ in range(2):
            assert model.ask(messages(), max_tokens=7).text() == "yes"
    assert limits_of(server) == [{"max_tokens": limit} for limit in (7, 7 + THINKING_TOKENS, 7 + THINKING_TOKENS)]


def test_a_model_that_thinks_and_comes_to_an_end_has_room_from_the_next_request_on() -> None:
    with scripted(["<think>Hm.</think>yes"]) as server:
        model = model_on(server)
        for _ in range(2):
            model.ask(messages(), max_tokens=7)
    assert limits_of(server) == [{"max_tokens": 7}, {"max_tokens": 7 + THINKING_TOKENS}]


def test_a_model_that_is_cut_without_thinking_is_not_asked_again() -> None:
    with scripted([Reply("yes and", finish_reason="length")]) as server:
        assert model_on(server).ask(messages(), max_tokens=7).cut
    assert limits_of(server) == [{"max_tokens": 7}]


@pytest.mark.parametrize(("tokens", "limits"), [(100, [107]), (0, [7])])
def test_the_room_to_think_can_be_set(tokens: int, limits: list[int]) -> None:
    with scripted([THINKING["in the text"]]) as server:
        model = open_chat_model("m", 0.0, base_url=server.base_url, api_key=None, timeout_s=5, thinking_tokens=tokens)
        assert model.ask(messages(), max_tokens=7).cut
    assert limits_of(server) == [{"max_tokens": limit} for limit in limits]
