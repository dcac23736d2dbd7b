"""The page beside the API of a real `langgraph dev`: it answers there, and the platform's own routes do as before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.workflows.dev_server import Server, dev_server
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
        assert client.get(f"/page/api/turns/{turn['id']}").json()["passages"]
        assert client.get("/page/api/filters").json()["keys"][0]["key"] == "source"
        explanation = client.post(f"/page/explanation/{turn['id']}", data={"key": ""})
        assert "<title>Explanation of an answer</title>" in explanation.text


def test_nothing_of_it_blocks_the_server(server: Server) -> None:
    assert [line for line in server.complaints() if "Blocking" in line] == []
