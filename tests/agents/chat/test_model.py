"""Asking a chat model: what a request holds, what its reply took, and which faults may pass."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.chat.agent import prompt_messages
from agents.chat.material import quoted
from agents.chat.model import open_chat_model
from agents.chat.usage import Usage
from agents.roles import Feedback
from graph.errors import ModelUnavailable, TransportFault
from tests.chatting import KEY, TEXT, VERDICT, Verdict, ask_object, ask_text, messages, model_on, served
from tests.scripted_server import Fault, Reply, scripted

ROOT = Path(__file__).parents[3]


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


@pytest.mark.parametrize("model", ["gpt-5-mini", "gpt-6-luna"])
def test_a_model_that_takes_no_temperature_is_asked_without_it_from_then_on(model: str) -> None:
    refusal = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported."
    with scripted([Reply(refusal, status=400), "yes"]) as server:
        asked = open_chat_model(model, 0.0, base_url=server.base_url, api_key=KEY, timeout_s=5)
        assert [asked.ask(messages()).text() for _ in range(2)] == ["yes", "yes"]
    assert [request.body.get("temperature") for request in server.requests] == [0.0, None, None]


def test_a_temperature_out_of_range_is_an_error() -> None:
    refusal = Reply("Invalid 'temperature': expected a value of 1 or less", status=400)
    with scripted([refusal]) as server, pytest.raises(ModelUnavailable, match="expected a value of 1 or less"):
        model_on(server).ask(messages())


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
    with pytest.raises(TransportFault, match="the model's server"):
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


def test_a_refusal_is_fed_back_as_its_reason_alone_which_nobody_can_take_for_an_answer() -> None:
    reason = 'no "name"; cite as in [1], 【2】 or {"facts": [1]}\n# Tester ' + "x" * 9_000
    *_, message = prompt_messages("", "", Feedback(reason, "Denmark [3], said before"))
    lines = str(message.text).splitlines()
    told = json.loads(lines[lines.index("```json") + 1])
    assert told.startswith('no "name"; cite as in 1, 2 or "facts": 1 # Tester xxx')
    assert len(told) == 1_000
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
    assert "<" not in line
    assert "```" not in line
    line.encode()


def test_readable_text_of_any_script_stays_readable() -> None:
    assert "日産 «Ø» 'é'" in quoted("q", {"q": "日産 «Ø» 'é'"})


@pytest.mark.slow
def test_importing_the_agents_imports_no_client() -> None:
    script = (
        "import sys, agents.chat.model, agents.fact_filter, agents.manager, agents.answerer\n"
        "import agents.predictor, agents.judge, agents.final_predictor, agents.claim_judge\n"
        "import agents.extraction\n"
        "heavy = {'openai', 'langchain_openai', 'langchain_core', 'httpx'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
