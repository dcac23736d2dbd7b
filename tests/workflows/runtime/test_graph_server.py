"""The relationship graph is sent to a graph server where one is configured; a failure is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.errors import GraphUnavailable
from graph.relationships.cypher.bolt import BoltServer, ServerSettings
from graph.relationships.record import RelationshipRecord
from tests.bolt_server import MISSING, PASSWORD, USER, BoltEndpoint, is_installed
from tests.builders import passage_of, publish_workspace
from tests.chroma_server import free_port
from tests.graph.relationships.small_graph import small_record, user
from workflows.admin.history import NO_SERVER, forget_user
from workflows.runtime.graph_server import erase_on_graph_server, publish_graph


@pytest.fixture
def root(tmp_path: Path) -> Path:
    publish_workspace(tmp_path, [passage_of("p1", "T", "A text")])
    small_record(tmp_path).close()
    return tmp_path


def test_a_server_that_is_down_may_still_hold_erased_nodes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARA_GRAPH_URL", f"bolt://localhost:{free_port()}")
    with pytest.raises(GraphUnavailable, match="still holds it"):
        erase_on_graph_server(root)


def test_a_user_that_was_never_sent_is_forgotten_without_the_server(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARA_GRAPH_URL", f"bolt://localhost:{free_port()}")
    assert forget_user(root, "mia")["graph_server"] == NO_SERVER
    with RelationshipRecord.of(root) as record:
        assert record.counts()["User"] == 0


@pytest.mark.slow
def test_a_server_follows_and_forgets(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_installed():
        pytest.skip(MISSING)
    with BoltEndpoint(tmp_path_factory.mktemp("bolt")) as endpoint:
        place = endpoint.address.removeprefix("bolt://")
        monkeypatch.setenv("MARA_GRAPH_URL", f"bolt://{USER}:{PASSWORD}@{place}/{endpoint.new_database()}")
        settings = ServerSettings.from_environment()
        assert settings is not None
        publish_graph(root)
        with BoltServer(settings) as server:
            everything = "MATCH (n) WHERE n.id IN ['mia', 'thread', 'm1', 'ann'] RETURN n.id ORDER BY n.id"
            assert server.rows(everything) == [("m1",), ("mia",), ("thread",)]
            with RelationshipRecord.of(root) as record:
                record.put_node(user("ann"))
            publish_graph(root)
            assert server.rows(everything) == [("ann",), ("m1",), ("mia",), ("thread",)]
            forget_user(root, "mia")
            assert server.rows("MATCH (n) WHERE n.id IN ['mia', 'm1', 'm3'] RETURN n.id") == []
            assert server.rows("MATCH (n:User) RETURN n.id") == [("ann",)]
