"""The web service of the documentation: answers, events, readable errors, and work that stops when a client goes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from docs.examples import service
from graph.errors import MaraError
from tests.builders import HashEmbedder
from tests.dictation import PATIENCE_S, Dictation, wait_for_the_end
from tests.docs.serving import on_a_port, read_until
from tests.scripted_server import Reply, ScriptedServer, scripted
from tests.workflows.hashed_world import hashed_world
from tests.workflows.small_world import ANSWERED, QUESTION, well_behaved
from tests.workflows.workspaces import use_embedder
from workflows.answering import ask
from workflows.context import Context
from workflows.streaming import Event, NodeStarted


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hashed_world(tmp_path_factory.mktemp("service"))


@pytest.fixture(autouse=True)
def configured(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_embedder(monkeypatch, HashEmbedder())
    monkeypatch.setenv("MARA_WORKSPACE", str(root))


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(service.app) as client:
        yield client


@pytest.fixture
def chat_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with scripted(well_behaved()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


def events_of(body: str) -> list[tuple[str, Any]]:
    """The events of a body, as (name, data)."""
    found = []
    for block in body.removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_a_question_is_answered(client: TestClient, root: Path) -> None:
    answered = client.post("/ask", json={"question": QUESTION, "top_k": 3}).json()
    expected = ask(QUESTION, Context(workspace=str(root), top_k=3))
    assert list(answered) == list(expected)
    assert answered["passages"] == expected["passages"]
    assert answered["answer"] == expected["answer"]


def test_an_answer_is_streamed_as_server_sent_events(client: TestClient, chat_server: ScriptedServer) -> None:
    response = client.get("/ask/stream", params={"question": QUESTION, "mode": "mara"})
    assert response.headers["content-type"].startswith("text/event-stream")
    events = events_of(response.text)
    assert events[0] == ("node_started", {"kind": "node_started", "node": "encode_question", "attempt": 1})
    assert "".join(data["text"] for name, data in events if name == "token") == ANSWERED
    assert events[-1][0] == "answered"
    assert events[-1][1]["result"]["answer"] == ANSWERED


def test_what_cannot_be_asked_is_refused_before_anything_is_sent(client: TestClient) -> None:
    for settings, status in (({"question": " "}, 400), ({"top_k": 0}, 422), ({"mode": "magic"}, 422)):
        asked: dict[str, Any] = {"question": "Who?", **settings}
        assert client.post("/ask", json=asked).status_code == status
        assert client.get("/ask/stream", params=asked).status_code == status


def test_a_client_names_no_workspace_and_no_model(client: TestClient, chat_server: ScriptedServer) -> None:
    chosen = {"question": QUESTION, "workspace": "/elsewhere", "model": "expensive"}
    assert client.post("/ask", json=chosen).json()["models"]["chat"] == "gpt-6-luna"
    assert {request.body["model"] for request in chat_server.requests} == {"gpt-6-luna"}


def test_an_error_says_what_to_do(client: TestClient) -> None:
    response = client.post("/ask", json={"question": ""})
    assert response.json() == {
        "error": {"kind": "BadInput", "message": "The question is empty", "hint": "Ask something"}
    }


def test_a_missing_workspace_is_the_servers_fault(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARA_WORKSPACE", "/nowhere")
    response = client.post("/ask", json={"question": QUESTION})
    assert (response.status_code, response.json()["error"]["kind"]) == (503, "WorkspaceMissing")


def test_a_model_that_refuses_is_a_bad_gateway(client: TestClient, chat_server: ScriptedServer) -> None:
    chat_server.script([Reply("no", status=401)])
    response = client.post("/ask", json={"question": QUESTION})
    assert (response.status_code, response.json()["error"]["kind"]) == (502, "ModelUnavailable")
    name, data = events_of(client.get("/ask/stream", params={"question": QUESTION}).text)[-1]
    assert name == "failed"
    assert data == response.json()


def test_an_unforeseen_error_ends_the_stream_and_only_the_log_tells_it(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks_off(*asked: Any) -> AsyncGenerator[Event, None]:
        yield NodeStarted("encode_question", 1)
        raise RuntimeError("the password is 1234")

    monkeypatch.setattr(service, "aask_stream", breaks_off)
    body = client.get("/ask/stream", params={"question": QUESTION}).text
    assert [name for name, _ in events_of(body)] == ["node_started", "failed"]
    assert events_of(body)[-1][1]["error"]["kind"] == "InternalError"
    assert "RuntimeError" not in body
    assert "1234" not in body
    assert "RuntimeError: the password is 1234" in caplog.text


def kinds_below(kind: type[MaraError]) -> Iterator[type[MaraError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from kinds_below(narrower)


def test_every_kind_of_error_has_its_own_status_before_that_of_a_wider_kind() -> None:
    listed = list(service.STATUSES)
    assert set(listed) <= set(kinds_below(MaraError))
    for place, kind in enumerate(listed):
        assert not any(issubclass(later, kind) for later in listed[place + 1 :])


def test_a_client_that_goes_away_stops_the_work(chat_server: ScriptedServer) -> None:
    dictation = Dictation()
    chat_server.script({**well_behaved(), "answerer": [Reply(pieces=dictation)]})
    request = f"GET /ask/stream?question={quote(QUESTION)} HTTP/1.1\r\nHost: mara\r\n\r\n"
    with on_a_port(service.app) as address:
        read_until(b'"text": "It"', address, request)
        dictation.go_on.set()
        assert dictation.hung_up.wait(PATIENCE_S)
    wait_for_the_end()
    assert len(chat_server.requests_of("answerer")) == 1


def test_going_down_closes_the_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    monkeypatch.setattr(service, "close_indexes", lambda: closed.append("closed"))
    with TestClient(service.app):
        assert not closed
    assert closed == ["closed"]
