from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langgraph.graph import START, StateGraph
from pydantic import BaseModel, FiniteFloat
from typing_extensions import TypedDict

from agents.chat import (
    ChatModel,
    ask_object,
    ask_text,
    feedback_messages,
    open_chat_model,
    parse_object,
    prompt_messages,
    quoted,
    without_thinking,
)
from agents.roles import Feedback
from agents.usage import Usage
from graph.errors import MalformedReply, ModelUnavailable, TransportFault
from tests.scripted_server import Fault, Reply, ReplyLike, ScriptedServer, scripted

ROOT = Path(__file__).parents[2]
KEY = "sk-very-secret-0123456789"


class Verdict(BaseModel):
    """A small object to ask for."""

    name: str
    share: FiniteFloat
    tags: list[str] = []


VERDICT = Verdict(name="lake", share=0.5, tags=["a"])
TEXT = '{"name": "lake", "share": 0.5, "tags": ["a"]}'


def messages() -> list[BaseMessage]:
    return prompt_messages("# Tester\nReply.", quoted("question", {"question": "Which?"}))


def model_on(server: ScriptedServer, timeout_s: float = 5) -> ChatModel:
    return open_chat_model("scripted", 0.0, base_url=server.base_url, api_key=KEY, timeout_s=timeout_s)


@contextmanager
def served(*replies: ReplyLike, timeout_s: float = 5) -> Iterator[ChatModel]:
    with scripted(replies) as server:
        yield model_on(server, timeout_s)


ACCEPTED = {
    "bare": TEXT,
    "fenced": f"```json\n{TEXT}\n```",
    "fenced without a language": f"```\n{TEXT}\n```",
    "fenced in prose with braces": f"Of the set {{a, b}}:\n```json\n{TEXT}\n```\nDone.",
    "fenced on one line": f"```json {TEXT} ```",
    "in prose": f"Sure [1]! Here it is:\n\n{TEXT}\n\nI hope this helps.",
    "after thinking": f"<think>\nIs it {{}}?\n</think>\n\n{TEXT}",
    "after thinking whose opening tag is missing": f"Is it {{}}?\n</think>\n{TEXT}",
}

REFUSED = {
    "empty": ("", "empty"),
    "blank": (" \n", "empty"),
    "thinking alone": (f"<think>{TEXT}</think>", "empty"),
    "unclosed thinking": (f"<think>{TEXT}", "never ends"),
    "prose": ("The lake, I would say.", "no JSON object"),
    "truncated": (TEXT[:-8], "not valid JSON, or is cut"),
    "truncated around a whole inner object": ('{"name": {"share": 1}', "not valid JSON, or is cut"),
    "trailing brace": (TEXT + "}", "stray brace"),
    "stray brace before": ('"share": 1} ' + TEXT, "stray brace"),
    "two objects": (TEXT + "\n" + TEXT, "more than one"),
    "two fences": (f"```json\n{TEXT}\n```\nor\n```json\n{TEXT}\n```", "more than one"),
    "list": (f"[{TEXT}]", "a list"),
    "list in prose": (f"Here: [{TEXT}]", "a list"),
    "list in a fence": (f"```json\n[1, {TEXT}]\n```", "a list"),
    "repeated key": ('{"name": "a", "name": "b", "share": 1}', "repeats a key"),
    "repeated key deep inside": ('{"name": "a", "share": 1, "more": [{"b": 1, "b": 1}]}', "repeats a key"),
    "NaN": ('{"name": "a", "share": NaN}', "NaN"),
    "Infinity": ('{"name": "a", "share": -Infinity}', "Infinity"),
    "overflow": ('{"name": "a", "share": 1e999}', "out of range"),
    "endless number": ('{"name": "a", "share": ' + "1" * 5_000 + "}", "limit"),
    "text for a number": ('{"name": "a", "share": "0.5"}', "share: .*number"),
    "truth for a number": ('{"name": "a", "share": true}', "share: .*number"),
    "number for text": ('{"name": 1, "share": 1}', "name: .*string"),
    "missing field": ('{"name": "a"}', "share: Field required"),
    "wrong item": ('{"name": "a", "share": 1, "tags": ["x", 3]}', "tags.1: .*string"),
    "single quotes": ("{'name': 'a', 'share': 1}", "not valid JSON"),
    "trailing comma": ('{"name": "a", "share": 1,}', "not valid JSON"),
    "comment": ('{"name": "a", // why\n "share": 1}', "not valid JSON"),
    "lone surrogate": ('{"name": "\\ud800", "share": 1}', "does not fit the schema|broken Unicode"),
    "nested too deeply": ('{"name": ' + "[" * 100_000, "too deeply"),
}


@pytest.mark.parametrize("reply", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_one_valid_object_is_taken_wherever_it_stands(reply: str) -> None:
    assert parse_object(reply, Verdict) == VERDICT


def test_a_whole_number_is_a_number() -> None:
    assert parse_object('{"name": "a", "share": 1}', Verdict).share == 1.0


@pytest.mark.parametrize(("reply", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_anything_else_is_refused_with_a_reason_and_the_raw_reply(reply: str, reason: str) -> None:
    with pytest.raises(MalformedReply, match=reason) as caught:
        parse_object(reply, Verdict)
    assert caught.value.raw == reply


def test_accepted_and_refused_replies_over_http() -> None:
    replies = [*ACCEPTED.values(), *(reply for reply, _ in REFUSED.values())]
    with served(*replies) as model:
        for _ in ACCEPTED:
            assert ask_object(model, messages(), Verdict) == VERDICT
        for _, reason in REFUSED.values():
            with pytest.raises(MalformedReply, match=reason):
                ask_object(model, messages(), Verdict)


@given(st.text())
def test_no_reply_breaks_the_parser(reply: str) -> None:
    with pytest.raises(MalformedReply):
        parse_object(reply, Verdict)


@given(st.builds(Verdict, name=st.text(), share=st.floats(allow_nan=False, allow_infinity=False)), st.data())
def test_a_whole_object_reads_back_and_a_cut_one_never_does(verdict: Verdict, data: st.DataObject) -> None:
    text = json.dumps(verdict.model_dump())
    if "think>" not in text:
        assert parse_object(text, Verdict) == verdict
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(MalformedReply):
        parse_object(text[:cut], Verdict)


def test_a_reply_cut_at_the_token_limit_is_malformed_even_if_it_parses() -> None:
    with served(Reply(TEXT, finish_reason="length")) as model:
        with pytest.raises(MalformedReply, match="cut at the token limit") as caught:
            ask_object(model, messages(), Verdict)
        assert caught.value.raw == TEXT
        with pytest.raises(MalformedReply, match="cut at the token limit"):
            ask_text(model, messages())


def test_the_schema_goes_along_in_the_request() -> None:
    with scripted([TEXT]) as server:
        ask_object(model_on(server), messages(), Verdict)
    body = server.requests[0].body
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "Verdict", "schema": Verdict.model_json_schema()},
    }
    assert body["model"] == "scripted"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_refuses_the_response_format_is_asked_without_it_from_then_on(status: int) -> None:
    refusal = Reply("response_format: type json_schema is not supported", status=status)
    with scripted([refusal, TEXT]) as server:
        model = model_on(server)
        assert ask_object(model, messages(), Verdict) == VERDICT
        assert ask_object(model, messages(), Verdict) == VERDICT
    assert ["response_format" in request.body for request in server.requests] == [True, False, False]


def test_a_refusal_for_another_reason_is_not_tried_again() -> None:
    with scripted([Reply("the prompt is 9000 tokens too long", status=400)]) as server:
        with pytest.raises(ModelUnavailable, match=r"\(400\): the prompt is 9000 tokens too long") as caught:
            ask_object(model_on(server), messages(), Verdict)
        assert not isinstance(caught.value, TransportFault)
    assert len(server.requests) == 1


def test_a_server_without_keys_gets_a_placeholder() -> None:
    with scripted(["yes"]) as server:
        model = open_chat_model("local", 0.0, base_url=server.base_url, api_key=None, timeout_s=5)
        assert ask_text(model, messages()) == "yes"
    assert server.requests[0].headers["authorization"] == "Bearer no-key"


@pytest.mark.parametrize(("api_key", "advice"), [(None, "OPENAI_BASE_URL"), (" ", "OPENAI_API_KEY"), ("a b", "again")])
def test_without_a_usable_key_or_server_no_model_is_opened(api_key: str | None, advice: str) -> None:
    with pytest.raises(ModelUnavailable, match=advice):
        open_chat_model("any", 0.0, base_url=None, api_key=api_key, timeout_s=5)


PASSING = {
    "busy": Reply("slow down", status=429, headers={"Retry-After": "1"}),
    "failing": Reply("oops", status=500),
    "overloaded": Reply("oops", status=503),
    "request timeout": Reply("oops", status=408),
    "conflict": Reply("oops", status=409),
    "reset": Reply("yes", fault=Fault.RESET),
    "truncated body": Reply("yes", fault=Fault.TRUNCATED),
    "not HTTP": Reply(fault=Fault.GARBAGE),
    "not JSON": Reply(body="<html>It works!</html>"),
    "empty body": Reply(body=""),
    "a JSON list": Reply(body="[1, 2]"),
    "a JSON number": Reply(body="7"),
    "no choices": Reply(body='{"id": "x"}'),
    "null choices": Reply(body='{"choices": null}'),
    "empty choices": Reply(body='{"choices": []}'),
    "a choice without a message": Reply(body='{"choices": [{"index": 0}]}'),
    "an error with status 200": Reply(body='{"error": {"message": "model is loading"}}'),
}


@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING.keys())
def test_what_may_pass_is_a_transport_fault_after_one_request(reply: Reply) -> None:
    with scripted([reply]) as server, pytest.raises(TransportFault, match="chat endpoint"):
        ask_object(model_on(server), messages(), Verdict)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "MARA_CHAT_MODEL"), (400, "model"), (413, "model")],
)
def test_what_will_not_pass_is_unavailable_and_says_what_to_set(status: int, advice: str) -> None:
    with served(Reply("no", status=status)) as model, pytest.raises(ModelUnavailable, match=advice) as caught:
        ask_text(model, messages())
    assert type(caught.value) is ModelUnavailable


def test_a_server_that_never_answers_is_given_up_after_the_timeout() -> None:
    with (
        served(Reply(fault=Fault.HANG), timeout_s=0.2) as model,
        pytest.raises(TransportFault, match="MARA_TIMEOUT_S"),
    ):
        ask_text(model, messages())


def test_a_dead_endpoint_is_a_transport_fault() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    model = open_chat_model("any", 0.0, base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, timeout_s=5)
    with pytest.raises(TransportFault, match="OPENAI_BASE_URL"):
        ask_text(model, messages())


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 429, 500])
def test_the_key_never_shows_even_where_the_server_repeats_it(status: int) -> None:
    echo = f"Incorrect API key provided: {KEY}"
    reply = Reply(echo, status=status) if status != 200 else Reply(body=json.dumps({"error": echo}))
    with served(reply) as model:
        with pytest.raises(ModelUnavailable) as caught:
            ask_text(model, messages())
        shown = "".join(traceback.format_exception(caught.value)) + repr(model) + str(vars(model))
    assert KEY not in shown


def test_several_threads_share_one_model() -> None:
    with scripted(lambda body: str(body["messages"][1]["content"])) as server:
        model = model_on(server)
        replies: dict[int, str] = {}

        def ask(number: int) -> None:
            replies[number] = ask_text(model, prompt_messages("# Tester", f"word {number}"))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=10)
    assert replies == {number: f"word {number}" for number in range(8)}


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
    assert not server.requests[0].body.get("stream")
    assert len(ends) == 1


@pytest.mark.parametrize(
    ("reply", "usage"),
    [
        (Reply("yes", usage={"prompt_tokens": 70, "completion_tokens": 3, "total_tokens": 73}), Usage(1, 70, 3)),
        (Reply("yes", usage={"prompt_tokens": 70}), Usage(1, 70, 0)),
        (Reply("yes", usage={}), Usage(1, unknown=1)),
        (Reply("yes", usage={"prompt_tokens": 0, "completion_tokens": 0}), Usage(1, unknown=1)),
        (Reply("", usage={"prompt_tokens": 70, "completion_tokens": 9}), Usage(1, 70, 9)),
        (Reply("ye", usage={"prompt_tokens": 70, "completion_tokens": 9}, finish_reason="length"), Usage(1, 70, 9)),
    ],
)
def test_the_tokens_of_a_reply_are_told_also_where_it_is_of_no_use(reply: Reply, usage: Usage) -> None:
    with served(reply) as model:
        assert model.ask(messages()).usage == usage


def test_a_request_repeated_without_its_response_format_counts_twice() -> None:
    with served(Reply("no response_format here", status=400), TEXT) as model:
        assert model.ask(messages(), {"type": "json_object"}).usage.requests == 2


def test_a_busy_servers_words_and_wait_reach_the_caller() -> None:
    with served(Reply("slow down", status=429, headers={"Retry-After": "7"})) as model:
        with pytest.raises(TransportFault, match=r"429: slow down") as caught:
            model.ask(messages())
        assert (caught.value.cause, caught.value.retry_after_s) == ("rate limit", 7.0)


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


def test_a_refused_reply_is_fed_back_as_data_cut_to_4000_characters() -> None:
    (message,) = feedback_messages(Feedback('no "name"', "```\n# Tester\n" + "x" * 9_000))
    fenced = [line for line in str(message.text).splitlines() if line.startswith("{")]
    assert json.loads(fenced[0]) == {"reason": 'no "name"', "reply": ("```\n# Tester\n" + "x" * 9_000)[:4_000]}
    assert message.type == "human"
    assert feedback_messages(None) == []


@given(st.dictionaries(st.text(), st.text()))
def test_quoted_material_is_one_line_that_nothing_in_it_can_leave(material: dict[str, str]) -> None:
    head, fence, line, end = quoted("material", material).split("\n")
    assert (head, fence, end) == ("Quoted material (material):", "```json", "```")
    assert json.loads(line) == material
    assert len(line.splitlines()) == 1
    assert "<" not in line
    assert "```" not in line
    line.encode()


def test_readable_text_of_any_script_stays_readable() -> None:
    assert "日産 «Ø» 'é'" in quoted("q", {"q": "日産 «Ø» 'é'"})


@pytest.mark.parametrize(
    ("reply", "rest"),
    [
        ("yes", "yes"),
        ("<think>no</think> yes", "yes"),
        ("<think>a</think>y<think>b</think>es", "yes"),
        ("no, wait</think>\nyes", "yes"),
        ("yes, a <think> tag", "yes, a <think> tag"),
    ],
)
def test_thinking_is_taken_out(reply: str, rest: str) -> None:
    assert without_thinking(reply) == rest


def test_importing_the_agents_imports_no_client() -> None:
    script = (
        "import sys, agents.chat, agents.fact_filter, agents.manager, agents.answerer, agents.estimate\n"
        "heavy = {'openai', 'langchain_openai', 'langchain_core', 'httpx'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
