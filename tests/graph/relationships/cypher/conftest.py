from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.relationships.cypher.bolt import BoltServer, ServerSettings
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType
from tests.bolt_server import MISSING, PASSWORD, USER, BoltEndpoint, is_installed
from tests.graph.relationships.small_graph import NOON, cite, small_record

SIMILARITIES = {"d-plain": 0.9, "d-nissan": 0.8, "d-alliance": 0.5, "d-renault": 0.6, "d-port": 0.1, "d-silk": 0.05}


def fill(root: Path) -> RelationshipRecord:
    """Return the small graph with a stored query, an order of its messages and a citation."""
    record = small_record(root)
    record.put_node(Node(NodeType.QUERY, "q", {"text": "Who works with Nissan?", "created_at": NOON}))
    record.link_all(
        Edge(EdgeType.SIMILARITY, (NodeType.QUERY, "q"), (NodeType.DOCUMENT, key), {"score": score})
        for key, score in SIMILARITIES.items()
    )
    record.link_all(
        Edge(EdgeType.FOLLOWS, (NodeType.MESSAGE, later), (NodeType.MESSAGE, earlier))
        for later, earlier in (("m2", "m1"), ("m3", "m2"))
    )
    cite(record, "m2", "d-nissan")
    return record


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoltEndpoint]:
    if not is_installed():
        pytest.skip(MISSING)
    with BoltEndpoint(tmp_path_factory.mktemp("bolt")) as running:
        yield running


@pytest.fixture
def settings(endpoint: BoltEndpoint) -> ServerSettings:
    """How to reach an empty database."""
    return ServerSettings(ServerSettings.of(endpoint.address).url, USER, PASSWORD, endpoint.new_database())


@pytest.fixture
def server(settings: ServerSettings) -> Iterator[BoltServer]:
    with BoltServer(settings) as connected:
        yield connected


@pytest.fixture
def record(tmp_path: Path) -> RelationshipRecord:
    return fill(tmp_path)
