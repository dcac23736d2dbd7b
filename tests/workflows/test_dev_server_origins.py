"""``langgraph dev`` without keys, and a browser that is on another site: every route is closed to it, Chromium too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.workflows.dev_server import Case, Server, dev_server
from tests.workflows.explanation.browser import chromium, served

pytestmark = pytest.mark.slow

DIARY = "My diary: the key of the Velmora lighthouse lies under the third stone."
METHODS = ("get", "post", "put", "patch", "delete")
FOREIGN = ({"origin": "https://evil.example"}, {"host": "rebound.example"}, {"sec-fetch-site": "cross-site"})
TRY = """
const [url, done] = [arguments[0], arguments[arguments.length - 1]];
const tried = {};
const attempt = async (name, path, given, options) => {
  const body = JSON.stringify(given);
  try {
    const reply = await fetch(url + path, {method: 'POST', body, ...options});
    tried[name] = reply.type === 'opaque' ? 'sent' : reply.status + ' ' + await reply.text();
  } catch (fault) { tried[name] = String(fault); }
};
const json = {headers: {'content-type': 'application/json'}};
const index = {assistant_id: 'indexing', input: {sources: ['diary.txt']}, context: {model: 'offline'}};
const ask = {assistant_id: 'retrieval', input: {question: 'Where is the key of the lighthouse?'}};
const socket = new Promise(end => {
  const thread = '/threads/11111111-1111-4111-8111-111111111111/stream/events';
  const opened = new WebSocket(url.replace('http', 'ws') + thread);
  opened.onopen = () => { tried.socket = 'open'; opened.close(); end(); };
  opened.onerror = () => { tried.socket = 'refused'; end(); };
});
attempt('search', '/threads/search', {}, json)
  .then(() => attempt('blind', '/runs/wait', index, {mode: 'no-cors'}))
  .then(() => attempt('index', '/runs/wait', index, json))
  .then(() => attempt('ask', '/runs/wait', ask, json))
  .then(() => socket).then(() => done(tried));
"""
"""The attempts of a page with the server at an address, as another site's script would."""


@contextmanager
def site(folder: Path) -> Iterator[str]:
    """Serve a site with an empty page; return its origin."""
    folder.mkdir()
    (folder / "index.html").write_text("<!DOCTYPE html><title>A site</title>", encoding="utf-8")
    with served(folder) as origin:
        yield origin


@pytest.fixture(scope="module")
def allowed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A site that the operator allows."""
    with site(tmp_path_factory.mktemp("allowed") / "site") as origin:
        yield origin


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that is made by the first document that is indexed."""
    return tmp_path_factory.mktemp("root") / "workspace"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, workspace: Path, allowed: str) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "diary.txt").write_text(DIARY, encoding="utf-8")
    with dev_server(workspace, folder, MARA_ORIGINS=allowed) as running:
        yield running


def routes(server: Server) -> list[tuple[str, str]]:
    """Every method and path of the server, as it tells them, and those of its page."""
    paths: dict[str, dict[str, Any]] = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    page = ("/page/", "/page/static/page.js", "/page/api/setup", "/page/api/ask", "/page/health", "/page/metrics")
    named = [re.sub(r"\{[^}]+\}", "11111111-1111-4111-8111-111111111111", path) for path in (*paths, *page, "/nothing")]
    return [(method, path) for path in named for method in METHODS]


def test_every_route_is_closed_to_other_sites_and_other_names(server: Server) -> None:
    asked = routes(server)
    assert {"/runs/wait", "/threads/search", "/mcp/", "/internal/truncate", "/docs", "/ok"} <= {
        path for _, path in asked
    }
    answered = []
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for method, path in asked:
            for headers in FOREIGN:
                with client.stream(method, path, headers=headers) as reply:
                    if reply.status_code != 403 or "access-control-allow-origin" in reply.headers:
                        answered.append((method, path, headers))
    assert answered == []


def test_a_preflight_of_another_site_is_refused_and_studio_s_is_not(server: Server) -> None:
    asked = {"access-control-request-method": "POST", "access-control-request-private-network": "true"}
    evil = httpx.options(f"{server.url}/runs/wait", headers={"origin": "https://evil.example", **asked})
    assert (evil.status_code, "access-control-allow-private-network" in evil.headers) == (403, False)
    studio = httpx.options(f"{server.url}/runs/wait", headers={"origin": "https://smith.langchain.com", **asked})
    assert studio.headers["access-control-allow-origin"] == "https://smith.langchain.com"
    assert studio.headers["access-control-allow-private-network"] == "true"


def test_another_site_reads_and_indexes_nothing_and_an_allowed_one_does(
    server: Server, workspace: Path, allowed: str, tmp_path: Path
) -> None:
    with site(tmp_path / "evil") as evil, chromium(tmp_path / "profile") as driver:
        driver.set_script_timeout(120)
        driver.get(evil)
        tried = driver.execute_async_script(TRY, server.url)
        refused = "TypeError: Failed to fetch"
        assert tried == {"search": refused, "blind": "sent", "index": refused, "ask": refused, "socket": "refused"}
        assert not workspace.exists()
        driver.get(allowed)
        tried = driver.execute_async_script(TRY, server.url)
    assert tried["search"].startswith("200")
    assert (workspace.exists(), tried["socket"]) == (True, "open")
    assert "under the third stone" in tried["ask"]


def test_programs_are_answered_as_before(server: Server) -> None:
    server.run(Case({"sources": ["diary.txt"]}, assistant="indexing"))
    result = server.run(Case({"question": "Where is the key of the Velmora lighthouse?"}, assistant="retrieval"))
    assert isinstance(result, dict)
    assert DIARY in result["passages"][0]["text"]
