"""No other site reads or writes through a visitor's browser, and the page loads nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.workflows.serving.page.site import Visitor, visitor
from workflows.access.identity import Keyring
from workflows.serving.page.app import make_app
from workflows.serving.page.site import Site


class Locked(Keyring):
    """A keyring that asks for keys."""

    @property
    def is_open(self) -> bool:
        return False


@pytest.fixture
def me(tmp_path: Path) -> Visitor:
    return visitor(Site(tmp_path / "nothing"))


def test_every_answer_says_what_may_be_loaded(me: Visitor) -> None:
    for path in ["/page/", "/page/static/page.js", "/page/api/conversations", "/page/nothing"]:
        headers = me.client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"], path
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "frame-ancestors 'none'" in headers["content-security-policy"], path
        assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store"), path


def test_requests_of_other_sites_are_refused(me: Visitor) -> None:
    for headers in [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://localhost:9999"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
    ]:
        for method in ["GET", "POST"]:
            reply = me.client.request(method, "/page/api/conversations", headers=headers)
            assert reply.status_code == 403, method
            assert "Another site" in reply.json()["error"]["message"], method


def test_the_page_s_own_requests_are_answered_and_links_open_it_but_change_nothing(me: Visitor) -> None:
    for own in ({"origin": "http://localhost"}, {"sec-fetch-site": "same-origin"}, {}):
        assert me.client.get("/page/api/conversations", headers=own).status_code == 200, own
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert me.client.get("/page/", headers=link).status_code == 200
    assert me.client.post("/page/explanation/12345678", headers=link).status_code == 403


def test_a_name_that_was_made_to_point_here_is_not_served_where_nobody_shows_a_key(tmp_path: Path) -> None:
    rebound = TestClient(make_app(Site(tmp_path)), base_url="http://rebound.example:8700")
    assert rebound.get("/page/api/conversations").status_code == 403
    with_keys = TestClient(make_app(Site(tmp_path, keyring=Locked)), base_url="http://rebound.example:8700")
    assert with_keys.get("/page/api/setup").status_code == 200


def test_a_host_that_is_none_is_refused(tmp_path: Path) -> None:
    for host in [
        *("[", "a]b", "[::1", "evil.example\\@127.0.0.1", "evil.example@127.0.0.1", "127.0.0.1/evil.example"),
        *("127.0.0.1?evil.example", "127.0.0.1#evil.example", "127.0.0.1\\evil.example@localhost"),
    ]:
        for is_locked in [True, False]:
            site = Site(tmp_path, keyring=Locked if is_locked else Keyring)
            reply = visitor(site).client.get("/page/api/setup", headers={"host": host})
            assert (reply.status_code, reply.json()["error"]["message"]) == (403, f"{host} is no name of a server"), (
                is_locked
            )


@pytest.mark.parametrize("path", ["/page/", "/page/api/setup", "/page/static/page.js"])
@pytest.mark.parametrize("text", [None, "", "[keys.anna]\nsha256 = 7\nwhere = {}\n"])
def test_with_a_file_of_keys_that_cannot_be_used_nobody_is_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, text: str | None, path: str
) -> None:
    keys = tmp_path / "keys.toml"
    if text is not None:
        keys.write_text(text, encoding="utf-8")
    monkeypatch.setenv("MARA_AUTH", str(keys))
    reply = visitor(Site(tmp_path)).client.get(path)
    assert reply.status_code == 403
    assert reply.json()["error"]["message"].startswith("The server cannot read its keys")
    assert str(tmp_path) not in reply.text
    assert "No client is let in" in caplog.text
    assert ("keys.anna.sha256" if text else str(keys)) in caplog.text
