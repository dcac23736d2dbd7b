"""Whose pages a LangGraph server answers, and by which names: those of langgraph.json and `MARA_ORIGINS`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from workflows.serving.guard import AllowedOrigins

ROOT = Path(__file__).parents[3]
HTTP = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["http"]
STUDIO = "https://smith.langchain.com"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-private-network": "true"}

Serve = Callable[..., TestClient]


async def answer(request: Request) -> Response:
    return PlainTextResponse("answered")


async def talk(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text("answered")
    await websocket.close()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Return a client of a server with the project's configuration and such variables, at an address."""

    def served(address: str = "http://127.0.0.1:2024", **environment: str) -> TestClient:
        for name in ("MARA_AUTH", "MARA_ORIGINS"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {"LANGGRAPH_HTTP": json.dumps(HTTP), **environment}.items():
            monkeypatch.setenv(name, value)
        routes = [Route("/", answer, methods=["GET", "POST"]), WebSocketRoute("/talk", talk)]
        app = Starlette(routes=routes, middleware=[Middleware(AllowedOrigins)])
        return TestClient(app, base_url=address)

    return served


def test_other_sites_are_refused_and_may_read_nothing(serve: Serve) -> None:
    for origin in ["https://evil.example", "null", "http://localhost:9999", "http://[", f"{STUDIO}.evil"]:
        for method in ["GET", "POST", "OPTIONS"]:
            reply = serve().request(
                method, "/", headers={"origin": origin, **(PREFLIGHT if method == "OPTIONS" else {})}
            )
            assert reply.status_code == 403, method
            assert "Another site" in reply.json()["detail"], method
            assert not [name for name in reply.headers if name.startswith("access-control")], method


def test_links_programs_its_own_pages_and_the_sites_of_langgraph_json_are_answered(serve: Serve) -> None:
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert serve().get("/", headers=link).text == "answered"
    assert serve().post("/").text == "answered"
    own = {"origin": "http://127.0.0.1:2024", "sec-fetch-site": "same-origin"}
    assert serve().post("/", headers=own).text == "answered"
    for origin in HTTP["cors"]["allow_origins"]:
        headers = {"origin": origin, "sec-fetch-site": "cross-site"}
        assert serve().post("/", headers=headers).text == "answered", origin


def test_a_browser_lets_an_allowed_site_read_and_reach_this_machine(serve: Serve) -> None:
    headers = serve().options("/", headers={"origin": STUDIO, **PREFLIGHT}).headers
    assert headers["access-control-allow-origin"] == STUDIO
    assert headers["access-control-allow-private-network"] == "true"
    assert serve().get("/", headers={"origin": STUDIO}).headers["access-control-allow-origin"] == STUDIO


def test_a_name_that_is_not_this_machine_s_own_is_refused_without_keys(serve: Serve) -> None:
    for name in ["rebound.example", "192.168.1.5:2024", "127.0.0.1.evil.example", "0.0.0.0", ""]:
        reply = serve().get("/", headers={"host": name})
        assert reply.status_code == 403, name
        assert "Set MARA_AUTH, or MARA_ORIGINS" in reply.json()["detail"], name


def test_the_operator_allows_further_sites_and_names(serve: Serve) -> None:
    allowed = {"MARA_ORIGINS": "https://chat.example.org/, http://BOX.lan:2024"}
    chat = {"origin": "https://chat.example.org"}
    reply = serve(**allowed).post("/", headers=chat)
    assert (reply.text, reply.headers["access-control-allow-origin"]) == ("answered", chat["origin"])
    assert (
        serve("http://box.lan:2024", **allowed).post("/", headers={"origin": "http://box.lan:2024"}).text == "answered"
    )
    assert serve(**allowed).post("/", headers={"origin": "https://evil.example"}).status_code == 403
    assert serve("http://evil.example", **allowed).get("/").status_code == 403


def test_with_keys_any_name_is_answered_and_no_other_site_may_read(serve: Serve) -> None:
    with_keys = serve("https://mara.example.org", MARA_AUTH="keys.toml")
    evil = with_keys.get("/", headers={"origin": "https://evil.example"})
    assert (evil.text, "access-control-allow-origin" in evil.headers) == ("answered", False)
    assert with_keys.options("/", headers={"origin": "https://evil.example", **PREFLIGHT}).status_code == 400
    assert with_keys.get("/", headers={"origin": STUDIO}).headers["access-control-allow-origin"] == STUDIO


def test_a_socket_is_opened_for_allowed_sites_alone(serve: Serve) -> None:
    with serve().websocket_connect("ws://localhost/talk", headers={"origin": STUDIO}) as socket:
        assert socket.receive_text() == "answered"
    foreign = serve().websocket_connect("ws://localhost/talk", headers={"origin": "https://evil.example"})
    rebound = serve().websocket_connect("ws://rebound.example/talk")
    for session in (foreign, rebound):
        with pytest.raises(WebSocketDisconnect) as refused, session:
            pass
        assert refused.value.code == 1008


def test_the_platform_s_requests_to_itself_are_answered(serve: Serve) -> None:
    served = serve("http://api")
    assert served.get("/").status_code == 403
    inner = TestClient(Starlette(routes=[Mount("/noauth", app=served.app)]), base_url="http://api")
    assert inner.get("/noauth/").text == "answered"
