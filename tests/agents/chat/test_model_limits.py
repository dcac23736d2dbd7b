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


def test_every_request_has_a_limit_under_the_name_that_the_server_takes() -> None:
    with scripted(["yes"], refuses=["max_tokens"]) as server:
        model = model_on(server)
        for limit in (7, 32):
            assert model.ask(messages(), max_tokens=limit).text() == "yes"
        model.ask(messages())
    newer = [{"max_completion_tokens": limit} for limit in (7, 32, 4_096)]
    assert limits_of(server) == [{"max_tokens": 7}, *newer]


def test_a_server_that_refuses_both_names_is_sent_none_and_cut_all_the_same() -> None:
    with scripted([Reply(pieces=itertools.repeat("and "))], refuses=NAMES) as server:
        model = model_on(server)
        replies = [model.ask(messages(), max_tokens=7) for _ in range(2)]
    assert limits_of(server) == [{"max_tokens": 7}, {"max_completion_tokens": 7}, {}, {}]
    assert all(reply.cut and len(reply.raw) <= 7 * CHARACTERS_A_TOKEN + 4 for reply in replies)
    with scripted(["and " * 100], refuses=["stream"]) as server:
        whole = model_on(server).ask(messages(), max_tokens=7)
    with pytest.raises(MalformedReply, match="cut at the token limit"):
        whole.text()


def test_a_limit_that_is_too_large_for_the_window_is_left_out_of_that_request_alone() -> None:
    too_large = "max_tokens is too large: 4096. This model supports at most 100 completion tokens"
    too_long = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens"
    for words in (too_large, too_long):
        with scripted([Reply(words, status=400), "yes"]) as server:
            model = model_on(server)
            assert [model.ask(messages()).text() for _ in range(2)] == ["yes", "yes"]
        assert limits_of(server) == [{"max_tokens": 4_096}, {}, {"max_tokens": 4_096}]
    refusing = scripted([Reply(too_long, status=400)])
    with refusing as server, pytest.raises(ModelUnavailable, match="maximum context length"):
        model_on(server).ask(messages()).text()
    assert limits_of(server) == [{"max_tokens": 4_096}, {}]


def streamed(*deltas: Mapping[str, Any], **usage: object) -> Reply:
    """A reply of these pieces that is cut."""
    choices: list[dict[str, Any]] = [{"delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"delta": {}, "finish_reason": "length"})
    bodies: list[dict[str, Any]] = [{"id": "x", "choices": [{"index": 0} | choice]} for choice in choices]
    bodies.append({"id": "x", "choices": [], "usage": usage})
    return Reply(events=[f"data: {json.dumps(body)}\n\n".encode() for body in bodies])


def test_a_model_that_is_cut_while_it_thinks_is_asked_again_with_room_to_think() -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 6}}
    for cut in (
        Reply("<think>Let me see", finish_reason="length"),
        streamed({"reasoning_content": "Let me see"}),
        streamed({"reasoning": "Let me see"}),
        streamed({"content": "{"}, prompt_tokens=1, completion_tokens=7, total_tokens=8, **details),
        streamed({"content": ""}),
    ):
        with scripted([cut, "yes"]) as server:
            model = model_on(server)
            assert [model.ask(messages(), max_tokens=7).text() for _ in range(2)] == ["yes", "yes"]
        limits = [7, 7 + THINKING_TOKENS, 7 + THINKING_TOKENS]
        assert limits_of(server) == [{"max_tokens": limit} for limit in limits]


def test_a_model_that_thinks_and_comes_to_an_end_has_room_from_the_next_request_on_and_no_other_has() -> None:
    with scripted(["<think>Hm.</think>yes"]) as server:
        model = model_on(server)
        for _ in range(2):
            model.ask(messages(), max_tokens=7)
    assert limits_of(server) == [{"max_tokens": 7}, {"max_tokens": 7 + THINKING_TOKENS}]
    with scripted([Reply("yes and", finish_reason="length")]) as server:
        assert model_on(server).ask(messages(), max_tokens=7).cut
    assert limits_of(server) == [{"max_tokens": 7}]


def test_the_room_to_think_can_be_set() -> None:
    for tokens, limit in ((100, 107), (0, 7)):
        with scripted([Reply("<think>Let me see", finish_reason="length")]) as server:
            model = open_chat_model(
                "m", 0.0, base_url=server.base_url, api_key=None, timeout_s=5, thinking_tokens=tokens
            )
            assert model.ask(messages(), max_tokens=7).cut
        assert limits_of(server) == [{"max_tokens": limit}]
