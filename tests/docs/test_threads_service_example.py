"""The service with conversations: threads outlive the server, and no user reaches another's."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from docs.examples import threads_service
from tests.builders import HashEmbedder
from tests.dictation import PATIENCE_S, Dictation, wait_for_the_end
from tests.docs.serving import on_a_port, read_until
from tests.scripted_server import Reply, ScriptedServer, scripted
from tests.workflows.conversing import FOUNDER, well_behaved
from tests.workflows.hashed_world import hashed_world
from tests.workflows.workspaces import use_embedder

FOUNDED = "When was Marn founded?"
ADA, BEN = {"Authorization": "Bearer key-of-ada"}, {"Authorization": "Bearer key-of-ben"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hashed_world(tmp_path_factory.mktemp("threads-service"))


@pytest.fixture(autouse=True)
def configured(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_embedder(monkeypatch, HashEmbedder())
    monkeypatch.setenv("MARA_WORKSPACE", str(root))
    monkeypatch.setenv("THREADS", str(tmp_path / "threads.sqlite"))
    monkeypatch.setenv("USERS", json.dumps({"key-of-ada": "ada", "key-of-ben": "ben"}))


@pytest.fixture(autouse=True)
def chat_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with scripted(well_behaved(answerer=["In 1203 [1].", "Duke Orlo [1].", "In Lisk [1]."])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


def running() -> AbstractContextManager[TestClient]:
    """The service, from its start to its end."""
    return TestClient(threads_service.app)


@pytest.fixture
def client() -> Iterator[TestClient]:
    with running() as client:
        yield client


def ask(client: TestClient, text: str, thread: str = "one", user: Mapping[str, str] = ADA) -> Any:
    answered = client.post(f"/threads/{thread}", json={"text": text}, headers=user)
    assert answered.status_code == 200, answered.text
    return answered.json()


def said(client: TestClient, thread: str = "one", user: Mapping[str, str] = ADA) -> list[str]:
    return [message["text"] for message in client.get(f"/threads/{thread}", headers=user).json()]


def test_a_thread_goes_on_after_the_server_was_started_again() -> None:
    with running() as client:
        first = ask(client, FOUNDED)
        assert (first["text"], first["sources"][0]["passage_id"]) == ("In 1203 [1].", "marn")
    with running() as client:
        second = ask(client, FOUNDER)
        assert second["understood"]["asked"] == FOUNDER
        assert second["text"] == "Duke Orlo [1]."
        assert said(client) == [FOUNDED, "In 1203 [1].", FOUNDER, "Duke Orlo [1]."]


def test_the_threads_of_two_users_do_not_mix_whatever_their_names(
    client: TestClient, chat_server: ScriptedServer
) -> None:
    ask(client, FOUNDED)
    assert said(client, user=BEN) == []
    other = ask(client, FOUNDER, user=BEN)
    assert other["understood"] is None
    assert chat_server.requests_of("rewriter") == []
    assert said(client) == [FOUNDED, "In 1203 [1]."]
    client.delete("/threads/one", headers=BEN)
    assert (said(client, user=BEN), len(said(client))) == ([], 2)


def test_without_a_known_key_nothing_is_told(client: TestClient) -> None:
    ask(client, FOUNDED)
    for key in (None, "Bearer none", "Basic key-of-ada"):
        header = {"Authorization": key} if key else {}
        for refused in (
            client.get("/threads/one", headers=header),
            client.post("/threads/one", json={"text": FOUNDER}, headers=header),
            client.post("/threads/one/stream", json={"text": FOUNDER}, headers=header),
            client.delete("/threads/one", headers=header),
        ):
            assert refused.status_code == 401
    assert len(said(client)) == 2


def test_of_two_questions_at_once_the_second_knows_the_first(client: TestClient, chat_server: ScriptedServer) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def answers(body: Mapping[str, Any]) -> str:
        begun.set()
        go_on.wait(PATIENCE_S)
        return "So [1]."

    chat_server.script(well_behaved(answerer=answers))
    first = threading.Thread(target=ask, args=(client, FOUNDED))
    first.start()
    assert begun.wait(PATIENCE_S)
    found: list[Any] = []
    second = threading.Thread(target=lambda: found.append(ask(client, FOUNDER)))
    second.start()
    go_on.set()
    first.join(PATIENCE_S)
    second.join(PATIENCE_S)
    assert found[0]["understood"]["asked"] == FOUNDER
    assert said(client) == [FOUNDED, "So [1].", FOUNDER, "So [1]."]


def test_a_client_that_goes_away_stops_the_work_and_the_thread_goes_on(chat_server: ScriptedServer) -> None:
    dictation = Dictation()
    chat_server.script(well_behaved(answerer=[Reply(pieces=dictation), "In 1203 [1]."]))
    body = json.dumps({"text": FOUNDED})
    head = f"POST /threads/one/stream HTTP/1.1\r\nHost: mara\r\nAuthorization: {ADA['Authorization']}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with on_a_port(threads_service.app) as address:
        read_until(b'"text": "It"', address, head + body)
        dictation.go_on.set()
        assert dictation.hung_up.wait(PATIENCE_S)
    wait_for_the_end()
    with running() as client:
        assert ask(client, FOUNDED)["text"] == "In 1203 [1]."
