"""The web service of the documentation: answers, events, errors, and work that stops when a client goes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from docs.examples import service
from tests.builders import HashEmbedder
from tests.dictation import PATIENCE_S, Dictation, wait_for_the_end
from tests.docs.serving import on_a_port, read_until
from tests.scripted_server import Reply, ScriptedServer, scripted
from tests.workflows.hashed_world import hashed_world
from tests.workflows.small_world import ANSWERED, QUESTION, well_behaved
from tests.workflows.workspaces import use_embedder
from workflows.answering import ask
from workflows.context import Context


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


def test_a_model_that_refuses_is_a_bad_gateway(client: TestClient, chat_server: ScriptedServer) -> None:
    chat_server.script([Reply("no", status=401)])
    response = client.post("/ask", json={"question": QUESTION})
    assert (response.status_code, response.json()["error"]["kind"]) == (502, "ModelUnavailable")
    name, data = events_of(client.get("/ask/stream", params={"question": QUESTION}).text)[-1]
    assert name == "failed"
    assert data == response.json()


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
