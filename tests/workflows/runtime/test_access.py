"""The user of a run: in a LangGraph server the authenticated one, elsewhere the machine's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.runtime import Runtime, ServerInfo

from graph.errors import NoAccess
from tests.builders import HashEmbedder, passage_of, publish_workspace
from tests.workflows.tenants import SECRET, SECRET_VARIABLE, keys_file
from tests.workflows.workspaces import use_embedder
from workflows.access.identity import LOCAL, Identity
from workflows.context import Context, asking
from workflows.retrieval import graph as retrieval
from workflows.runtime.access import IDENTITY, identity_of_user, indexing_context_of, within_reach
from workflows.runtime.resources import close_indexes
from workflows.settings.indexing import IndexingContext

BEA = Identity("token:bea", {"tenant": "b"})


class User(dict[str, Any]):
    """A user as the platform hands it to a run."""

    is_authenticated = True
    permissions = ()

    @property
    def identity(self) -> str:
        return str(self["identity"])

    @property
    def display_name(self) -> str:
        return self.identity


def info(name: str, rights: str = "") -> ServerInfo:
    return ServerInfo("", "", User(identity=name, **{IDENTITY: rights}))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be one that serves clients."""
    monkeypatch.setenv("LANGSERVE_GRAPHS", "{}")


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "keys.toml"
    path.write_text(keys_file(), encoding="utf-8")
    monkeypatch.setenv("MARA_AUTH", str(path))
    monkeypatch.setenv(SECRET_VARIABLE, SECRET)
    return path


@pytest.mark.usefixtures("server")
class TestServer:
    def test_without_keys_every_user_sees_all(self) -> None:
        context = Context(where={"tenant": "b"})
        for user in (None, info("olga")):
            assert within_reach(context, user).where == {"tenant": "b"}

    @pytest.mark.usefixtures("keys")
    def test_the_user_says_what_is_seen(self) -> None:
        assert within_reach(Context(), info("anna")).where == {"tenant": {"$eq": "a"}}
        assert within_reach(Context(), info("cleo")).workspace == "board"
        assert within_reach(Context(), info(BEA.name, BEA.to_json())).where == {"tenant": {"$eq": "b"}}

    @pytest.mark.usefixtures("keys")
    def test_the_key_file_counts_before_the_rights_that_the_user_brings(self) -> None:
        assert identity_of_user(info("anna", LOCAL.to_json()).user) == Identity("anna", {"tenant": "a"})

    @pytest.mark.usefixtures("keys")
    def test_a_run_without_a_known_user_sees_nothing(self) -> None:
        cases: list[tuple[ServerInfo | None, str]] = [
            *((user, "The user is not known") for user in (None, ServerInfo("", "", None), info(""))),
            (info("nobody"), "No user called 'nobody' holds a key"),
            (info("token:bea"), "What the token allowed is no longer known"),
        ]
        for user, said in cases:
            with pytest.raises(NoAccess, match=said):
                within_reach(Context(), user)

    def test_a_key_that_is_withdrawn_ends_runs_of_its_holder(self, keys: Path) -> None:
        assert within_reach(Context(), info("gone")).where
        keys.write_text(keys_file("gone"), encoding="utf-8")
        with pytest.raises(NoAccess, match="No user called 'gone' holds a key"):
            within_reach(Context(), info("gone"))

    def test_clients_index_only_where_the_operator_lets_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("MARA_SOURCES", raising=False)
        with pytest.raises(NoAccess, match=r"Clients of this server may not index documents.*MARA_SOURCES names"):
            indexing_context_of(Runtime())
        called = IndexingContext().called_for("anywhere")
        assert indexing_context_of(Runtime(context=called)) is called, "Python code indexes as it likes"
        monkeypatch.setenv("MARA_SOURCES", "documents")
        assert indexing_context_of(Runtime()) == IndexingContext()

    @pytest.mark.usefixtures("keys")
    def test_with_keys_the_holder_has_to_be_let_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MARA_SOURCES", "documents")
        with pytest.raises(NoAccess, match="anna may not index documents"):
            indexing_context_of(Runtime(server_info=info("anna")))
        assert indexing_context_of(Runtime(server_info=info("olga"))) == IndexingContext()
        monkeypatch.delenv("MARA_SOURCES")
        with pytest.raises(NoAccess, match="Clients of this server"):
            indexing_context_of(Runtime(server_info=info("olga")))

    @pytest.mark.usefixtures("keys")
    def test_a_graph_finds_its_user_in_what_a_run_is_configured_with(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        use_embedder(monkeypatch, HashEmbedder())
        passages = [passage_of(name, "Sund", f"Lake Sund belongs to {name}.", tenant=name) for name in ("a", "b")]
        monkeypatch.setenv("MARA_WORKSPACE", str(publish_workspace(tmp_path / "w", passages, {}).root))
        config: Any = {"configurable": {"langgraph_auth_user": info("anna").user}}
        result = retrieval.invoke(asking("Whose is Lake Sund?"), config, context=Context())
        assert [hit["id"] for hit in result["passages"]] == ["a"]
        with pytest.raises(NoAccess, match="The user is not known"):
            retrieval.invoke(asking("Whose is Lake Sund?"), context=Context())
        close_indexes()
