"""Bodies that cannot be read: sent too slowly, broken off, or nested too deeply."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx
import pytest

from tests.dictation import PATIENCE_S
from tests.workflows.serving.page.site import on_a_port, site_of
from tests.workflows.small_world import QUESTION
from workflows.serving.service import Service

WITH_BODY = [
    ("POST", "/api/ask"),
    ("POST", "/api/retrieve"),
    ("POST", "/page/api/ask"),
    ("POST", "/page/api/retrieve"),
    ("POST", "/page/api/turns"),
    ("POST", "/page/api/turns/12345678/sources/1/views"),
    ("POST", "/page/api/documents"),
    ("POST", "/page/explanation/12345678"),
    ("PATCH", "/page/api/conversations/12345678"),
]
WITH_FILE = ("PUT", "/page/api/documents/a.md")
DEEP = 100_000


def head(method: str, path: str, length: int) -> bytes:
    lines = (f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    return "\r\n".join((*lines, f"Content-Length: {length}", "", "")).encode()


def test_a_body_that_breaks_off_is_no_failure_of_the_server_nor_of_a_question(
    world: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service()
    with on_a_port(site_of(world, tmp_path, uploads=tmp_path / "uploads"), service) as address:
        for method, path in (*WITH_BODY, WITH_FILE):
            with connected(address) as connection:
                connection.sendall(head(method, path, 100) + b'{"question"')
    assert (failures(service), caplog.messages) == ([], [])
    assert not [*(tmp_path / "uploads").rglob("*.*")]


def test_a_body_that_is_nested_too_deeply_is_refused(
    world: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bodies = (
        "[" * DEEP,
        "[" * DEEP + "]" * DEEP,
        '{"a":' * DEEP,
        f'{{"question": "{QUESTION}", "where": {"[" * DEEP}{"]" * DEEP}}}',
    )
    with on_a_port(site_of(world, tmp_path)) as address:
        for method, path in WITH_BODY:
            for body in bodies:
                headers = {"content-type": "application/json"}
                reply = httpx.request(method, f"{address}{path}", content=body, headers=headers)
                assert (reply.status_code, reply.json()["error"]) == (
                    400,
                    {
                        "kind": "BadInput",
                        "message": "The request is no object of JSON, or nested too deeply. Correct the request",
                    },
                ), (path, body[:20])
    assert caplog.messages == []


def connected(address: str) -> socket.socket:
    host, _, port = address.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


def failures(service: Service) -> list[str]:
    return [line for line in service.metrics.text().decode().splitlines() if line.startswith("mara_failed_total")]
