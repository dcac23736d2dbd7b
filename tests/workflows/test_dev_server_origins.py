"""``langgraph dev`` without keys, and a browser that is on another site: every route is closed to it, Chromium too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.workflows.dev_server import Server, dev_server

pytestmark = pytest.mark.slow

METHODS = ("get", "post", "put", "patch", "delete")
FOREIGN = ({"origin": "https://evil.example"}, {"host": "rebound.example"}, {"sec-fetch-site": "cross-site"})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without documents."""
    folder = tmp_path_factory.mktemp("server")
    with dev_server(folder / "workspace", folder) as running:
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
