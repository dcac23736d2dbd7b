"""The page, served: by a client in this process, or on a real port."""

from __future__ import annotations

import json
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from starlette.testclient import TestClient

from graph.errors import MaraError
from workflows.access.identity import Identity
from workflows.serving.page.app import make_app
from workflows.serving.page.site import Site
from workflows.serving.service import Service

PATIENCE_S = 20.0


class KeyRack:
    """The keyring of people with a key each."""

    is_open = False

    def __init__(self, **known: Identity) -> None:
        self._known = known

    def identity_of(self, authorization: str | None) -> Identity:
        key = (authorization or "").removeprefix("Bearer ")
        if key not in self._known:
            raise _Unknown("The key is not known", "Ask the operator of the server for one")
        return self._known[key]


class _Unknown(MaraError):
    status = 401


def new_id() -> str:
    return str(uuid.uuid4())


class Visitor:
    """Somebody who uses the page's API."""

    def __init__(self, client: TestClient, headers: Mapping[str, str] | None = None) -> None:
        self.client = client
        self.headers = dict(headers or {})

    def get(self, path: str) -> Any:
        reply = self.client.get(f"/page/api/{path}", headers=self.headers)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def ask(self, question: str, conversation: str = "", turn: str = "", **more: Any) -> list[dict[str, Any]]:
        """Ask, and return the events."""
        body = {"conversation": conversation or new_id(), "turn": turn or new_id(), "question": question, **more}
        reply = self.client.post("/page/api/turns", json=body, headers=self.headers)
        assert reply.status_code == 200, reply.text
        assert reply.headers["content-type"].startswith("text/event-stream")
        return events_in(reply.text)

    def answer(self, question: str, conversation: str = "", **more: Any) -> dict[str, Any]:
        """Ask, and return the turn as it ended."""
        turn: dict[str, Any] = self.ask(question, conversation, **more)[-1]["turn"]
        return turn


def events_in(stream: str) -> list[dict[str, Any]]:
    """Return the events of a stream."""
    return [json.loads(part[6:]) for part in stream.split("\n\n") if part.startswith("data: ")]


def visitor(site: Site) -> Visitor:
    """Return a visitor of a site in this process."""
    return Visitor(TestClient(make_app(site), base_url="http://localhost"))


def visitors(root: Path, folder: Path | None, more: Mapping[str, Any], **known: Identity) -> dict[str, Visitor]:
    """Return visitors of one page by their names, each of which is a key."""
    rack = KeyRack(**known)
    one = visitor(site_of(root, folder, keyring=lambda: rack, **more))
    return {name: Visitor(one.client, {"Authorization": f"Bearer {name}"}) for name in known}


@contextmanager
def on_a_port(site: Site, service: Service | None = None) -> Iterator[str]:
    """Serve a site on a free port of this process; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(
            uvicorn.Config(make_app(replace(site), service), log_level="warning", timeout_graceful_shutdown=1)
        )
        started = threading.Event()
        thread = threading.Thread(target=_serve, args=(server, listening, started), daemon=True)
        thread.start()
        assert started.wait(PATIENCE_S)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE_S)


def _serve(server: uvicorn.Server, listening: socket.socket, started: threading.Event) -> None:
    startup = server.startup

    async def told(sockets: list[socket.socket] | None = None) -> None:
        await startup(sockets)
        started.set()

    server.startup = told  # type: ignore[method-assign]
    server.run(sockets=[listening])


def site_of(workspace: Path, folder: Path | None, **more: Any) -> Site:
    """Return a site on a workspace whose conversations are in a test's own folder, or else in the workspace."""
    return Site(workspace, folder and folder / "conversations", **more)
