"""The API of OpenAI's chat completions: asked by the official client, and as Open WebUI asks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI

from tests.dictation import PATIENCE_S, Dictation, Held
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.conversing import BIRTH, BIRTHS, FOUNDER, FOUNDER_OF_MARN, well_behaved
from tests.workflows.hashed_world import hashed_world
from tests.workflows.serving.page.site import KeyRack, on_a_port, site_of
from tests.workflows.small_world import ANSWERED, QUESTION
from workflows.access.identity import Identity
from workflows.answering import ask
from workflows.context import Context
from workflows.conversation.messages import answer_text
from workflows.serving.page.openai_api import ABOUT_THE_CHAT, BEGUN_AGAIN
from workflows.serving.service import Service

SOURCES = "\n\n**Sources**\n\n- "
OF_MARN, OF_FLOOD = (f"{SOURCES}[1] {title} · `corpus.jsonl`" for title in ("Marn", "Flood of 1871"))
"""The sources below an answer that cites the passage that comes first for `FOUNDER_OF_MARN`, or for `QUESTION`."""


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def address(hashing: None, world: Path, tmp_path: Path, service: Service) -> Iterator[str]:
    with on_a_port(site_of(world, tmp_path), service) as served:
        yield served


@pytest.fixture(scope="module")
def idle(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that answers no question."""
    with on_a_port(site_of(world, tmp_path_factory.mktemp("page"))) as served:
        yield served


@pytest.fixture
def client(address: str) -> OpenAI:
    return client_of(address)


def client_of(address: str, key: str = "none", prefix: str = "") -> OpenAI:
    return OpenAI(base_url=f"{address}{prefix}/v1", api_key=key, max_retries=0, timeout=PATIENCE_S)


def user(content: Any) -> Any:
    return {"role": "user", "content": content}


def assistant(content: Any) -> Any:
    return {"role": "assistant", "content": content}


def whole(client: OpenAI, *messages: Any, model: str = "mara", **more: Any) -> Any:
    """The completion of messages, in one piece."""
    return client.chat.completions.create(model=model, messages=[*messages], **more)


def streamed(client: OpenAI, *messages: Any, model: str = "mara", **more: Any) -> list[Any]:
    """The completion of messages, in chunks."""
    return [*client.chat.completions.create(model=model, messages=[*messages], stream=True, **more)]


def text_of(completion: Any) -> str:
    """The words of a completion or of the chunks of one."""
    if isinstance(completion, list):
        return "".join(chunk.choices[0].delta.content or "" for chunk in completion if chunk.choices)
    return str(completion.choices[0].message.content)


def posted(address: str, body: Mapping[str, Any], **headers: str) -> httpx.Response:
    return httpx.post(f"{address}/v1/chat/completions", json=body, headers=headers, timeout=PATIENCE_S)


def questions_answered(service: Service) -> float:
    lines = service.metrics.text().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("mara_questions_total"))


def asked_of_model(server: ScriptedServer, role: str) -> str:
    return json.dumps(server.requests_of(role)[-1].body, ensure_ascii=False)


class TestModels:
    def test_are_those_of_every_workspace_that_the_page_offers(self, hashing: None, tmp_path: Path) -> None:
        own = hashed_world(tmp_path)
        hashed_world(tmp_path / "beside").rename(tmp_path / "harbours")
        with on_a_port(site_of(own, tmp_path)) as address:
            client = client_of(address)
            names = [model.id for model in client.models.list().data]
            assert names == ["mara", "ragenta", "harbours/mara", "harbours/ragenta"]
            assert client.models.retrieve("harbours/mara").id == "harbours/mara"
            of_harbours = whole(client, user(QUESTION), model="harbours/mara")
            assert text_of(of_harbours) == text_of(whole(client, user(QUESTION)))

    def test_one_that_there_is_not_is_told(self, idle: str) -> None:
        for name in ("gpt-5", "none/mara", "workspace/mara", "../workspace/mara", "", "mara/"):
            with pytest.raises(openai.NotFoundError) as refused:
                whole(client_of(idle), user(QUESTION), model=name)
            assert refused.value.body == {
                "message": f"There is no model {name!a}. GET /v1/models lists those that there are",
                "type": "invalid_request_error",
                "param": "model",
                "code": "model_not_found",
            }
        with pytest.raises(openai.NotFoundError, match="There is no model"):
            client_of(idle).models.retrieve("none/mara")


class TestAnswers:
    def test_are_those_of_python_with_their_sources_below_and_as_data(self, address: str, world: Path) -> None:
        result = ask(QUESTION, Context(workspace=str(world)))
        cited = dict.fromkeys(mark["number"] for mark in result["citations"])
        for prefix in ("", "/page"):
            completion = whole(client_of(address, prefix=prefix), user(QUESTION))
            text = text_of(completion)
            answer, _, sources = text.partition(SOURCES)
            assert answer == answer_text(result, lists_sources=False)
            assert [line.partition(" ")[0] for line in sources.split("\n- ")] == [f"[{number}]" for number in cited]
            choice = completion.choices[0]
            assert (completion.object, completion.model, choice.finish_reason) == ("chat.completion", "mara", "stop")
            marn = next(source for source in completion.citations if source["title"] == "Marn")
            assert (marn["passage_id"], "founded in 1203" in marn["excerpt"]) == ("marn", True)

    def test_are_the_same_in_a_stream_which_ends_with_the_usage_where_it_is_wanted(
        self, address: str, client: OpenAI
    ) -> None:
        for model in ("mara", "ragenta"):
            chunks = streamed(client, user(QUESTION), model=model)
            completion = whole(client, user(QUESTION), model=model)
            assert text_of(chunks) == text_of(completion)
            assert {(chunk.object, chunk.model) for chunk in chunks} == {("chat.completion.chunk", model)}
            assert len({chunk.id for chunk in chunks}) == 1
            assert chunks[0].choices[0].delta.role == "assistant"
            assert [chunk.choices[0].finish_reason for chunk in chunks] == [*[None] * (len(chunks) - 1), "stop"]
            assert chunks[-1].citations == completion.citations
        *chunks, last = streamed(client, user(QUESTION), stream_options={"include_usage": True})
        assert (last.choices, last.usage.total_tokens) == ([], 0)
        assert all(chunk.usage is None for chunk in chunks)
        reply = posted(address, {"model": "mara", "messages": [user(QUESTION)], "stream": True})
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.text.endswith("data: [DONE]\n\n")

    def test_come_as_the_model_writes_them_and_their_sources_last(
        self, chat_server: ScriptedServer, client: OpenAI
    ) -> None:
        pieces = Held("It was ", "founded", " in 1203 [1].")
        chat_server.script(well_behaved(answerer=[Reply("", pieces=pieces)]))
        chunks = client.chat.completions.create(model="mara", messages=[user(QUESTION)], stream=True)
        words = []
        for chunk in chunks:
            if chunk.choices and (content := chunk.choices[0].delta.content):
                words.append(content)
            if "".join(words) == "It was founded":
                pieces.go_on.set()
        assert "".join(words) == f"{ANSWERED}{OF_FLOOD}"
        assert words[-1] == OF_FLOOD

    def test_that_begin_again_say_so_and_count_from_there(self, chat_server: ScriptedServer, client: OpenAI) -> None:
        chat_server.script(well_behaved(answerer=["Perhaps in 1100, as nobody [99] says.", ANSWERED]))
        text = text_of(streamed(client, user(QUESTION)))
        assert text == f"Perhaps in 1100, as nobody [99] says.{BEGUN_AGAIN}{ANSWERED}{OF_FLOOD}"
        chat_server.script(well_behaved())
        whole(client, user(QUESTION), assistant(text), user(FOUNDER))
        assert "1100" not in asked_of_model(chat_server, "rewriter")
        assert ANSWERED in asked_of_model(chat_server, "rewriter")


class TestThreads:
    def test_are_the_messages_that_are_sent_and_go_on_from_what_was_understood(
        self, chat_server: ScriptedServer, client: OpenAI
    ) -> None:
        chat_server.script(well_behaved(answerer=[ANSWERED]))
        earlier = [user(QUESTION), assistant(text_of(whole(client, user(QUESTION)))), user(FOUNDER)]
        second = text_of(streamed(client, *earlier))
        assert second == f"{ANSWERED}\n\n*Understood as: {FOUNDER_OF_MARN}*{OF_MARN}"
        seen = asked_of_model(chat_server, "rewriter")
        assert (ANSWERED in seen, "Sources" in seen) == (True, False)
        whole(client, *earlier, assistant(second), user(FOUNDER))
        seen = asked_of_model(chat_server, "rewriter")
        assert (FOUNDER_OF_MARN in seen, "Understood as" in seen) == (True, False)

    @pytest.mark.parametrize(
        ("reply", "asked"), [("2", BIRTHS[1]), ("the first one", BIRTHS[0]), ("Ada Brandt", BIRTHS[1])]
    )
    def test_choose_a_reading_where_the_answer_asks_back(
        self, chat_server: ScriptedServer, client: OpenAI, reply: str, asked: str
    ) -> None:
        chat_server.script(well_behaved(answerer=[ANSWERED]))
        thread = [user(QUESTION), assistant(ANSWERED), user(BIRTH)]
        back = text_of(streamed(client, *thread))
        assert all(reading in back for reading in BIRTHS)
        assert "Reply with a number from 1 to 2" in back
        whole(client, *thread, assistant(back), user(reply))
        assert asked in asked_of_model(chat_server, "answerer")
        chat_server.script(well_behaved(answerer=[ANSWERED]))
        whole(client, *thread, assistant(back), user(reply), assistant(ANSWERED), user(FOUNDER))
        seen = asked_of_model(chat_server, "rewriter")
        assert asked in seen
        assert BIRTH not in seen


class TestRequests:
    def test_that_cannot_be_used_are_refused_as_openai_does(self, idle: str) -> None:
        cases: list[tuple[dict[str, Any], str | None, str]] = [
            ({"messages": [user("x")]}, "model", "model is missing"),
            ({"model": "mara"}, "messages", "messages is missing"),
            ({"model": "mara", "messages": []}, "messages", "messages: List should have at least 1 item"),
            ({"model": "mara", "messages": [user(5)]}, "messages", "The messages cannot be read"),
            ({"model": "mara", "messages": [user("x")], "n": 2}, "n", "n: Input should be less than or equal to 1"),
            ({"model": "mara", "messages": [user("x" * 10_001)]}, None, "10,000"),
            ({"model": "mara", "messages": [user("x"), assistant("y")]}, None, "ends without a question"),
            (
                {"model": "mara", "messages": [user([{"type": "text", "text": "What is it?"}, {"type": "image_url"}])]},
                "messages",
                "The question holds what is not read. Send text alone",
            ),
        ]
        for body, param, words in cases:
            for stream in [False, True]:
                reply = posted(idle, {"stream": stream, **body})
                error = reply.json()["error"]
                assert reply.status_code == 400, stream
                assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, None), stream
                assert words in error["message"], stream

    def test_need_a_key_where_there_are_keys(self, hashing: None, world: Path, tmp_path: Path) -> None:
        rack = KeyRack(anna=Identity("anna"))
        with on_a_port(site_of(world, tmp_path, keyring=lambda: rack)) as address:
            wrong = client_of(address, "wrong")
            for refused in (wrong.models.list, lambda: whole(wrong, user("x"))):
                with pytest.raises(openai.AuthenticationError) as error:
                    refused()
                assert error.value.body == {
                    "message": "The key is not known. Ask the operator of the server for one",
                    "type": "authentication_error",
                    "param": None,
                    "code": "invalid_api_key",
                }
            assert "1203" in text_of(whole(client_of(address, "anna"), user(QUESTION)))

    def test_that_fail_within_a_stream_end_with_the_error(
        self, chat_server: ScriptedServer, address: str, service: Service
    ) -> None:
        chat_server.script([Reply("no such model", status=404)])
        body = {"model": "mara", "messages": [user(QUESTION)], "stream": True}
        *_, failed, done, _ = posted(address, body).text.split("\n\n")
        error = json.loads(failed.removeprefix("data: "))["error"]
        assert (error["type"], error["param"]) == ("server_error", None)
        assert "no such model" in error["message"]
        assert done == "data: [DONE]"
        with pytest.raises(openai.APIError, match="no such model"):
            streamed(client_of(address), user(QUESTION))
        with pytest.raises(openai.InternalServerError, match="no such model"):
            whole(client_of(address), user(QUESTION))
        assert 'mara_failed_total{kind="ModelUnavailable"} 3.0' in service.metrics.text().decode()

    def test_whose_client_leaves_free_the_place(
        self, chat_server: ScriptedServer, hashing: None, world: Path, tmp_path: Path
    ) -> None:
        dictation = Dictation()
        chat_server.script(well_behaved(answerer=[Reply("", pieces=dictation), ANSWERED]))
        with on_a_port(site_of(world, tmp_path), Service(at_once=1)) as address:
            client = client_of(address)
            with client.chat.completions.create(model="mara", messages=[user(QUESTION)], stream=True) as chunks:
                assert any(chunk.choices[0].delta.content for chunk in chunks)
            threading.Timer(0, dictation.go_on.set).start()
            assert dictation.hung_up.wait(PATIENCE_S)
            assert text_of(whole(client, user(QUESTION))) == f"{ANSWERED}{OF_FLOOD}"


TASK = """### Task:
{task}
### Guidelines:
- Your entire response must consist solely of the JSON object.
### Output:
JSON format: {form}
### Chat History:
<chat_history>
USER: {question}
ASSISTANT: It was founded in 1203 [1].
</chat_history>"""
TASKS = {
    "title": ("Generate a concise title summarizing the chat history.", '{ "title": "your concise title here" }'),
    "follow_ups": ("Predict 3-5 useful messages this user might send next.", '{ "follow_ups": ["message 1"] }'),
}


class TestOpenWebUI:
    """The requests that Open WebUI 0.12.4 sends, as they came, with the words of its prompts cut short."""

    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("stream", [False, True])
    def test_makes_tasks_of_a_chat_that_ask_the_documents_nothing(
        self, client: OpenAI, service: Service, task: str, stream: bool
    ) -> None:
        words, form = TASKS[task]
        prompt = user(TASK.format(task=words, form=form, question=QUESTION))
        told = streamed(client, prompt) if stream else whole(client, prompt, max_tokens=1000)
        assert text_of(told) == ABOUT_THE_CHAT == "{}"
        assert text_of(whole(client, user(f"{prompt['content']}{'x' * 10_000}"))) == ABOUT_THE_CHAT
        assert questions_answered(service) == 0

    def test_may_ask_about_tasks(self, client: OpenAI, service: Service) -> None:
        whole(client, user("### Task: when was the town on the shore of Lake Sund founded?"))
        assert questions_answered(service) == 1
