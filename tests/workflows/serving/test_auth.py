"""The caller of a request to the LangGraph server, and which of the server's things are theirs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest
from langgraph_sdk import Auth

from tests.workflows.runtime.test_access import User
from tests.workflows.tenants import KEYS, SECRET, SECRET_VARIABLE, keys_file, token
from workflows.access.identity import LOCAL, Identity
from workflows.runtime.access import IDENTITY
from workflows.serving.auth import MADE_BY, OWNER, authenticate, authorize

INDEXING = uuid5(UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8"), "indexing")
WRITES = [("threads", "create"), ("threads", "update"), ("threads", "create_run"), ("assistants", "create")]
READS = [("threads", "read"), ("threads", "search"), ("threads", "delete"), ("crons", "search"), ("crons", "delete")]


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "keys.toml"
    path.write_text(keys_file(), encoding="utf-8")
    monkeypatch.setenv("MARA_AUTH", str(path))
    monkeypatch.setenv(SECRET_VARIABLE, SECRET)
    return path


def ask(resource: str, action: str, value: dict[str, Any], name: str = "anna", told: str = "") -> Any:
    user = User(identity=name, **{IDENTITY: told})
    ctx = Auth.types.AuthContext(permissions=[], user=user, resource=resource, action=action)  # type: ignore[arg-type]
    return asyncio.run(authorize(ctx, value))


def owner(name: str = "anna", **where: str) -> str:
    return Identity(name, where or {"tenant": "a"}).owner


class TestWithoutKeys:
    def test_graph_indexing_is_shown_only_where_clients_may_index(self, monkeypatch: pytest.MonkeyPatch) -> None:
        wanted: list[tuple[str, dict[str, Any]]] = [
            ("read", {"assistant_id": INDEXING}),
            ("read", {"assistant_id": str(INDEXING)}),
            ("create", {"graph_id": "indexing", "metadata": {}}),
        ]
        monkeypatch.delenv("MARA_SOURCES", raising=False)
        for action, value in wanted:
            with pytest.raises(Auth.exceptions.HTTPException) as refused:
                ask("assistants", action, value, LOCAL.name)
            assert refused.value.status_code == 403
            assert "MARA_SOURCES names the folder" in refused.value.detail
        assert ask("assistants", "read", {"assistant_id": uuid4()}, LOCAL.name) is None
        monkeypatch.setenv("MARA_SOURCES", "documents")
        for action, value in wanted:
            assert ask("assistants", action, value, LOCAL.name) is None


@pytest.mark.usefixtures("keys")
class TestWithKeys:
    def test_a_key_names_the_user_and_a_token_carries_its_rights(self) -> None:
        for headers in ({b"authorization": f"Bearer {KEYS['anna']}".encode()}, {b"x-api-key": KEYS["anna"].encode()}):
            assert authenticate(headers) == {"identity": "anna", IDENTITY: ""}
        user = authenticate({b"authorization": f"Bearer {token()}".encode()})
        assert Identity.from_json(user[IDENTITY]) == Identity("token:bea", {"tenant": "b"})

    def test_without_one_nobody_is_let_in(self) -> None:
        cases: list[tuple[dict[bytes, bytes], int]] = [
            ({}, 401),
            ({b"x-auth-scheme": b"langsmith"}, 401),
            ({b"x-api-key": b"\xff"}, 401),
        ]
        for headers, status in cases:
            with pytest.raises(Auth.exceptions.HTTPException) as refused:
                authenticate(headers)
            assert refused.value.status_code == status
            assert refused.value.headers == {"WWW-Authenticate": "Bearer"}, headers

    def test_a_file_that_cannot_be_used_lets_nobody_in_and_is_told_in_the_log_alone(
        self, keys: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        keys.write_text(keys_file("gone"), encoding="utf-8")
        with pytest.raises(Auth.exceptions.HTTPException) as withdrawn:
            ask("threads", "read", {}, "gone")
        assert withdrawn.value.status_code == 401
        keys.write_text("[keys.anna]\n", encoding="utf-8")
        with pytest.raises(Auth.exceptions.HTTPException) as refused:
            authenticate({b"x-api-key": KEYS["anna"].encode()})
        assert (refused.value.status_code, refused.value.detail) == (
            403,
            "The server cannot read its keys. Tell its operator",
        )
        assert "keys.anna.sha256 is missing" in caplog.text

    def test_what_somebody_makes_is_theirs_whatever_they_write(self) -> None:
        for resource, action in WRITES:
            metadata = {OWNER: owner("ben", tenant="b"), MADE_BY: "system", "topic": "x"}
            assert ask(resource, action, {"metadata": metadata}) == {OWNER: owner()}
            assert metadata == {OWNER: owner(), "topic": "x"}, resource
            assert ask(resource, action, {"metadata": None}) == {OWNER: owner()}

    def test_they_reach_what_is_theirs_and_search_as_they_asked(self) -> None:
        for resource, action in READS:
            value = {"metadata": {"topic": "x"}}
            assert ask(resource, action, value) == {OWNER: owner()}
            assert value == {"metadata": {"topic": "x"}}, resource

    def test_the_servers_own_assistants_are_for_everybody_to_read_and_nobody_to_change(self) -> None:
        for action in ("read", "search"):
            assert ask("assistants", action, {}) == {"$or": [{OWNER: owner()}, {MADE_BY: "system"}]}
        for action in ("update", "delete"):
            assert ask("assistants", action, {"metadata": {}}) == {OWNER: owner()}

    def test_stored_items_lie_below_a_name_of_ones_own(self) -> None:
        def within(name: str, namespace: Any, action: str) -> Any:
            value = {"namespace": namespace}
            assert ask("store", action, value, name) is None
            return value["namespace"]

        for action in ("put", "get", "search", "delete", "list_namespaces"):
            (own, *rest) = within("anna", ("notes", "x"), action)
            assert rest == ["notes", "x"], action
            assert within("anna", None, action) == within("anna", (), action) == (own,), action
            assert within("anna", [own, "notes"], action) == (own, "notes"), action
            assert within("ben", (own, "notes"), action)[:2] != (own, "notes"), action
            assert own.isalnum(), action

    def test_a_token_schedules_nothing(self) -> None:
        bea = Identity("token:bea", {"tenant": "b"})
        with pytest.raises(Auth.exceptions.HTTPException, match="A token cannot schedule runs"):
            ask("crons", "create", {"metadata": {}}, bea.name, bea.to_json())
        assert ask("crons", "create", {"metadata": {}}) == {OWNER: owner()}
