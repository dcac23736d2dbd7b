"""The page beside the API of a real `langgraph dev`: it answers there, and the platform's own routes do as before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import OpenAI

from tests.workflows.dev_server import Case, Server, dev_server
from tests.workflows.serving.page.site import events_in, new_id
from tests.workflows.small_world import QUESTION

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, small_workspace: Path) -> Iterator[Server]:
    with dev_server(small_workspace, tmp_path_factory.mktemp("server")) as running:
        yield running


def test_the_page_answers_beside_the_api(server: Server) -> None:
    conversation = new_id()
    with httpx.Client(base_url=server.url, timeout=60) as client:
        assert client.get("/page", follow_redirects=True).text.startswith("<!DOCTYPE html>")
        assert client.get("/page/static/page.js").status_code == 200
        assert client.get("/page/api/setup").json()["workspaces"][0] == {"name": "", "title": "workspace"}
        body = {"conversation": conversation, "turn": new_id(), "question": QUESTION}
        turn = events_in(client.post("/page/api/turns", json=body).text)[-1]["turn"]
        assert (turn["state"], turn["kind"]) == ("answered", "evidence")
        assert client.get(f"/page/api/conversations/{conversation}").json()["turns"] == [turn]
        assert client.get(f"/page/api/turns/{turn['id']}").json()["facts"]
        assert client.get("/page/api/filters").json()["keys"][0]["key"] == "source"
        explanation = client.post(f"/page/explanation/{turn['id']}", data={"key": ""})
        assert "<title>Explanation of an answer</title>" in explanation.text


def test_a_question_goes_on_without_its_window_here_too(server: Server) -> None:
    turn = new_id()
    body = {"conversation": new_id(), "turn": turn, "question": QUESTION}
    with httpx.Client(base_url=f"{server.url}/page/api/", timeout=60) as client:
        with client.stream("POST", "turns", json=body) as reply:
            next(reply.iter_lines())
        assert client.post(f"turns/{turn}/stop", json={}).status_code == 200
        ended = events_in(client.get(f"turns/{turn}/events").text)[-1]["turn"]
        assert ended["state"] in ("answered", "stopped")


def test_programs_and_operators_have_their_addresses_below_the_page(server: Server) -> None:
    pause = threading.Event()
    with httpx.Client(base_url=f"{server.url}/page", timeout=60) as client:
        assert client.post("/api/ask", json={"question": QUESTION}).json()["answer"]
        assert client.post("/api/retrieve", json={"question": QUESTION, "top_k": 1}).json()["passages"]
        assert client.get("/health").json() == {"status": "ok"}
        for _ in range(600):
            if (ready := client.get("/ready")).status_code == 200:
                break
            pause.wait(0.1)
        assert ready.json()["state"] == "ready"
        assert (
            'mara_questions_total{mode="mara",outcome="passages",workflow="retrieval"}' in client.get("/metrics").text
        )


def test_openai_s_clients_are_answered_below_the_page(server: Server) -> None:
    client = OpenAI(base_url=f"{server.url}/page/v1", api_key="none", timeout=60)
    assert [model.id for model in client.models.list()] == ["mara", "ragenta"]
    asked: Any = [{"role": "user", "content": QUESTION}]
    completion = client.chat.completions.create(model="mara", messages=asked)
    chunks = client.chat.completions.create(model="mara", messages=asked, stream=True)
    words = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert words == completion.choices[0].message.content
    assert "**Sources**" in words


def test_the_platform_s_own_routes_answer_as_before(server: Server) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        assert client.get("/ok").json()["ok"] is True
        assert client.get("/docs").status_code == 200
        assert "/threads" in client.get("/openapi.json").json()["paths"]
    result = server.run(Case({"question": QUESTION}))
    assert isinstance(result, dict)
    assert result["answer"]


@pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"host": "rebound.example"}])
def test_other_sites_are_refused_here_too(server: Server, headers: dict[str, str]) -> None:
    reply = httpx.get(f"{server.url}/page/api/conversations", headers=headers)
    assert reply.status_code == 403


def test_documents_are_not_added_here(server: Server) -> None:
    reply = httpx.put(f"{server.url}/page/api/documents/a.md", content=b"a")
    assert reply.status_code == 400
    assert "mara serve --uploads" in reply.json()["error"]["message"]


def test_nothing_of_it_blocks_the_server(server: Server) -> None:
    assert [line for line in server.complaints() if "Blocking" in line] == []
