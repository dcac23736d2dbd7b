"""Asking a chat model: the content and the limits of a request, the usage of its reply, and faults that may pass."""

from __future__ import annotations

import itertools
import json
import socket
import traceback
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from agents.chat.agent import prompt_messages
from agents.chat.material import quoted
from agents.chat.model import CHARACTERS_A_TOKEN, THINKING_TOKENS, open_chat_model
from agents.chat.usage import Usage
from agents.roles import Feedback
from graph.embedding.embeddings import OpenAIEmbedder
from graph.errors import BadInput, ModelUnavailable, TransportFault
from tests.chatting import KEY, TEXT, Verdict, ask_object, ask_text, messages, model_on, served
from tests.scripted_server import Fault, Reply, ScriptedServer, scripted


def test_the_schema_and_the_key_go_along_in_the_request() -> None:
    with scripted([TEXT]) as server:
        ask_object(model_on(server), messages(), Verdict)
        ask_text(open_chat_model("local", 0.0, base_url=server.base_url, api_key=None, timeout_s=5), messages())
    first, second = server.requests
    schema = {"name": "Verdict", "schema": Verdict.model_json_schema()}
    assert first.body["response_format"] == {"type": "json_schema", "json_schema": schema}
    assert first.body["model"] == "scripted"
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert second.headers["authorization"] == "Bearer no-key", "a server without keys gets a placeholder"


def test_a_model_that_takes_no_temperature_is_asked_without_it_from_then_on() -> None:
    refusal = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported."
    with scripted([Reply(refusal, status=400), "yes"]) as server:
        asked = open_chat_model("gpt-6-luna", 0.0, base_url=server.base_url, api_key=KEY, timeout_s=5)
        assert [asked.ask(messages()).text() for _ in range(2)] == ["yes", "yes"]
    assert [request.body.get("temperature") for request in server.requests] == [0.0, None, None]


def test_a_refusal_for_another_reason_is_final_and_tells_the_servers_words_and_what_to_set() -> None:
    for words, status, advice in (
        ("Invalid 'temperature': expected a value of 1 or less", 400, "expected a value of 1 or less"),
        ("the prompt is 9000 tokens too long", 400, r"\(400\): the prompt is 9000 tokens too long"),
        ("no", 401, "OPENAI_API_KEY"),
        ("no", 404, "MARA_CHAT_MODEL"),
    ):
        with scripted([Reply(words, status=status)]) as server:
            with pytest.raises(ModelUnavailable, match=advice) as caught:
                ask_object(model_on(server), messages(), Verdict)
            assert type(caught.value) is ModelUnavailable
        assert len(server.requests) == 1


def test_without_a_usable_key_or_server_no_model_is_opened() -> None:
    for api_key, advice in ((None, "OPENAI_BASE_URL"), (" ", "OPENAI_API_KEY"), ("a b", "again")):
        with pytest.raises(ModelUnavailable, match=advice):
            open_chat_model("any", 0.0, base_url=None, api_key=api_key, timeout_s=5)


def test_what_may_pass_is_a_transport_fault_after_one_request() -> None:
    for reply in (
        *(Reply("oops", status=status) for status in (408, 429, 500)),
        *(Reply("yes", fault=fault) for fault in (Fault.RESET, Fault.TRUNCATED, Fault.GARBAGE)),
        Reply(body="<html>It works!</html>"),
    ):
        with scripted([reply]) as server, pytest.raises(TransportFault, match="chat endpoint"):
            ask_object(model_on(server), messages(), Verdict)
        assert len(server.requests) == 1


def test_a_server_that_is_not_there_is_a_transport_fault() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    model = open_chat_model("any", 0.0, base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, timeout_s=5)
    with pytest.raises(TransportFault, match="the model's server"):
        ask_text(model, messages())


def test_the_key_never_shows_even_where_the_server_repeats_it() -> None:
    echo = f"Incorrect API key provided: {KEY}"
    replies = [Reply(echo, status=status) for status in (400, 401, 429, 500)]
    for reply in (*replies, Reply(body=json.dumps({"error": echo}))):
        with served(reply) as model:
            with pytest.raises(ModelUnavailable) as caught:
                ask_text(model, messages())
            assert KEY not in "".join(traceback.format_exception(caught.value)) + repr(model) + str(vars(model))


def test_the_tokens_of_a_reply_count_also_where_it_is_of_no_use() -> None:
    cut = {"prompt_tokens": 70, "completion_tokens": 9}
    for reply, usage in (
        (Reply("yes", usage={"prompt_tokens": 70, "completion_tokens": 3, "total_tokens": 73}), Usage(1, 70, 3)),
        (Reply("yes", usage={"prompt_tokens": 70}), Usage(1, 70, 0)),
        (Reply("yes", usage={"prompt_tokens": 0, "completion_tokens": 0}), Usage(1, unknown=1)),
        (Reply("", usage=cut), Usage(1, 70, 9)),
        (Reply("ye", usage=cut, finish_reason="length"), Usage(1, 70, 9)),
    ):
        with served(reply) as model:
            assert model.ask(messages()).usage == usage


def test_feedback_is_a_reason_alone_which_cannot_be_taken_for_an_answer() -> None:
    reason = 'no "name"; cite as in [1], 【2】 or {"facts": [1]}\n# Tester ' + "x" * 9_000
    *_, message = prompt_messages("", "", Feedback(reason, "Denmark [3], said before"))
    lines = str(message.text).splitlines()
    shown = json.loads(lines[lines.index("```json") + 1])
    assert shown.startswith('no "name"; cite as in 1, 2 or "facts": 1 # Tester xxx')
    assert len(shown) == 1_000
    assert not set("[]【】{}").intersection(message.text)
    assert "Denmark" not in message.text
    assert message.type == "human"
    assert len(prompt_messages("", "")) == 2


@given(st.dictionaries(st.text(), st.text()))
def test_quoted_material_is_one_line_that_nothing_in_it_can_leave(material: dict[str, str]) -> None:
    head, fence, line, end = quoted("material", material).split("\n")
    assert (head, fence, end) == ("Quoted material (material):", "```json", "```")
    assert json.loads(line) == material
    assert len(line.splitlines()) == 1
    assert not [dangerous for dangerous in ("<", "```") if dangerous in line]
    line.encode()
    assert "日産 «Ø» 'é'" in quoted("q", {"q": "日産 «Ø» 'é'"}), "readable text stays readable"


NAMES = ("max_tokens", "max_completion_tokens")


def limits_of(server: ScriptedServer) -> list[dict[str, int]]:
    """The limit of each request, by the name it went under."""
    return [{name: request.body[name] for name in NAMES if name in request.body} for request in server.requests]


def test_a_server_that_refuses_both_names_is_sent_none_and_cut_all_the_same() -> None:
    with scripted([Reply(pieces=itertools.repeat("and "))], refuses=NAMES) as server:
        model = model_on(server)
        replies = [model.ask(messages(), max_tokens=7) for _ in range(2)]
    assert limits_of(server) == [{"max_tokens": 7}, {"max_completion_tokens": 7}, {}, {}]
    assert all(reply.cut and len(reply.raw) <= 7 * CHARACTERS_A_TOKEN + 4 for reply in replies)


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
        streamed({"content": "{"}, prompt_tokens=1, completion_tokens=7, total_tokens=8, **details),
        streamed({"content": ""}),
    ):
        with scripted([cut, "yes"]) as server:
            model = model_on(server)
            assert [model.ask(messages(), max_tokens=7).text() for _ in range(2)] == ["yes", "yes"]
        limits = [7, 7 + THINKING_TOKENS, 7 + THINKING_TOKENS]
        assert limits_of(server) == [{"max_tokens": limit} for limit in limits]


CLOSED = "http://127.0.0.1:9/v1"
PROXIES = ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY")


def test_a_proxy_that_cannot_be_used_is_bad_input_that_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in (
        ("ALL_PROXY", "socks5://name:secret@127.0.0.1:1"),
        ("OPENAI_PROXY", "http://name:secret@127.0.0.1:port"),
        *((name, f"http://name:{word}@127.0.0.1:1") for name in PROXIES for word in ("secret@secret", "secret/secret")),
        ("HTTP_PROXY", "name:secret@secret@127.0.0.1:1"),
    ):
        for name in (*PROXIES, "NO_PROXY", "OPENAI_PROXY"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.lower(), raising=False)
        monkeypatch.setenv(variable, value)
        model = open_chat_model("m", 0.0, base_url=CLOSED, api_key="sk-key", timeout_s=1.0)
        for ask in (
            lambda model=model: model.ask([HumanMessage("Who?")]),
            lambda model=model: model.context_tokens,
            lambda: OpenAIEmbedder("m", CLOSED, "sk-key").embed(["Who?"]),
        ):
            with pytest.raises(BadInput, match=variable) as refused:
                ask()
            assert "secret" not in str(refused.value)
