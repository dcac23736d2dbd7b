"""The API for programs, and what whoever operates the server asks it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from tests.workflows.serving.page.site import KeyRack, events_in, new_id, site_of
from tests.workflows.small_world import QUESTION
from workflows.access.identity import Identity
from workflows.answering import ask
from workflows.context import Context
from workflows.serving.page.app import make_app
from workflows.serving.service import Places, Service


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def client(hashing: None, world: Path, tmp_path: Path, service: Service) -> TestClient:
    return TestClient(make_app(site_of(world, tmp_path), service), base_url="http://localhost")


def steady(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key != "timings_ms"}


def figures(client: TestClient, **headers: str) -> dict[tuple[str, ...], float]:
    """The figures: {(name, values of its labels by their names): value}."""
    text = client.get("/metrics", headers=headers).text
    return {
        (each.name, *(each.labels[name] for name in sorted(each.labels))): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


def test_a_question_is_answered_as_python_answers_it(client: TestClient, world: Path) -> None:
    for prefix in ["", "/page"]:
        reply = client.post(f"{prefix}/api/ask", json={"question": QUESTION})
        assert reply.status_code == 200, prefix
        assert steady(reply.json()) == steady(dict(ask(QUESTION, Context(workspace=str(world))))), prefix
        assert reply.json()["timings_ms"]["total"] > 0, prefix


def test_what_cannot_be_asked_is_told(client: TestClient) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("ask", {}, "The question is empty"),
        ("ask", {"question": "x", "model": "local:a.gguf"}, "There is no setting model here"),
        ("ask", {"question": "x", "conversation_id": "a"}, "There is no setting conversation_id here"),
        ("retrieve", {"question": "x", "workflow": "ragenta"}, "There is no setting workflow here"),
        ("retrieve", {"question": "x", "top_k": 0}, "top_k: Input should be greater than or equal to 1"),
        ("retrieve", {"question": "x", "workspace": "../other"}, "workspace"),
    ]
    for path, body, words in cases:
        reply = client.post(f"/api/{path}", json=body)
        assert reply.status_code == 400, path
        assert reply.json()["error"]["kind"] == "BadInput", path
        assert words in reply.json()["error"]["message"]


class TestFull:
    """A server that has as many questions as it takes."""

    @pytest.fixture
    def full(self, service: Service) -> None:
        service.__dict__["places"] = Places(0, 0)

    def test_refuses_with_429_and_says_when_to_ask_again(self, full: None, client: TestClient) -> None:
        for count, path in enumerate(("api/ask", "api/retrieve", "page/api/turns"), start=1):
            reply = client.post(f"/{path}", json={"question": QUESTION})
            assert (reply.status_code, reply.headers["retry-after"]) == (429, "5"), path
            assert reply.json()["error"] == {
                "kind": "Overloaded",
                "message": "The server has as many questions as it takes. Ask again in 5 seconds",
            }, path
            assert figures(client)["mara_refused_total",] == count, path

    def test_keeps_nothing_of_a_refused_turn(self, full: None, client: TestClient) -> None:
        conversation = new_id()
        body = {"conversation": conversation, "turn": new_id(), "question": QUESTION}
        assert client.post("/page/api/turns", json=body).status_code == 429
        assert client.get("/page/api/conversations").json() == {"conversations": []}


class TestFigures:
    def test_count_questions_nodes_and_notes(self, client: TestClient) -> None:
        client.post("/api/ask", json={"question": QUESTION})
        client.post("/api/retrieve", json={"question": QUESTION, "mode": "dense"})
        client.post("/api/ask", json={"question": QUESTION, "workspace": "none-such"})
        body = {"conversation": new_id(), "turn": new_id(), "question": QUESTION}
        client.post("/page/api/turns", json=body)
        told = figures(client)
        assert told["mara_questions_total", "mara", "evidence", "mara"] == 2
        assert told["mara_questions_total", "dense", "passages", "retrieval"] == 1
        assert told["mara_question_seconds_count", "mara"] == 2
        assert told["mara_node_seconds_count", "walk_graph"] == 2
        assert told["mara_failed_total", "BadInput"] == 1
        assert told["mara_at_work",] == told["mara_waiting",] == 0
        assert QUESTION not in client.get("/metrics").text

    def test_are_for_who_may_watch_and_without_keys_for_this_machine_alone(
        self, client: TestClient, world: Path, tmp_path: Path
    ) -> None:
        assert client.get("/metrics", headers={"host": "mara.example"}).status_code == 403
        rack = KeyRack(watch=Identity("prometheus", may_watch=True), anna=Identity("anna", may_index=True))
        client = TestClient(make_app(site_of(world, tmp_path, keyring=lambda: rack)), base_url="http://mara.example")
        assert client.get("/metrics").status_code == 401
        refused = client.get("/metrics", headers={"authorization": "Bearer anna"})
        assert refused.status_code == 403
        assert "anna may not read the figures" in refused.json()["error"]["message"]
        assert client.get("/metrics", headers={"authorization": "Bearer watch"}).status_code == 200


class TestReadiness:
    def test_a_server_is_ready_once_its_workspace_answers(self, client: TestClient) -> None:
        assert client.get("/ready").status_code == 503
        assert client.get("/health").json() == {"status": "ok"}
        with client:
            ready = _until_ready(client)
        assert (ready["state"], ready["trouble"]) == ("ready", None)
        assert ready["generation"] >= 1

    def test_it_is_not_while_it_drains(self, client: TestClient, service: Service) -> None:
        with client:
            _until_ready(client)
            service.drain()
            reply = client.get("/ready")
        assert (reply.status_code, reply.json()["state"]) == (503, "draining")

    def test_it_says_what_keeps_it_from_being_ready(self, hashing: None, tmp_path: Path) -> None:
        service = Service()
        client = TestClient(make_app(site_of(tmp_path / "none", tmp_path), service), base_url="http://localhost")
        with client:
            service.open_own()
            reply = client.get("/ready")
        assert (reply.status_code, reply.json()["trouble"]) == (503, "WorkspaceMissing")


def test_what_the_server_indexes_itself_is_asked_at_once(hashing: None, world: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(world, tmp_path / "own"))
    site = site_of(own, tmp_path, uploads=tmp_path / "uploads")
    with TestClient(make_app(site), base_url="http://localhost") as client:
        before = _until_ready(client)["generation"]
        text = b"# Quill Lighthouse\n\nThe Quill Lighthouse was built by Odile Varga in 1871.\n"
        assert client.put("/page/api/documents/quill.md", content=text).status_code == 200
        reply = client.post("/page/api/documents", json={"names": ["quill.md"], "workspace": ""})
        assert events_in(reply.text)[-1]["report"]["added"] == 1
        told = client.post("/api/ask", json={"question": "Who built the Quill Lighthouse?"}).json()
        assert (told["generation"], client.get("/ready").json()["generation"]) == (before + 1, before + 1)
    assert "Odile Varga" in told["answer"]


def _until_ready(client: TestClient) -> dict[str, Any]:
    while (reply := client.get("/ready")).status_code != 200:
        assert reply.json()["trouble"] is None
    told: dict[str, Any] = reply.json()
    return told
