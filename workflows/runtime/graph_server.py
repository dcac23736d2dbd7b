"""The graph server that follows the relationship graph of a workspace, where one is configured."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from graph.environment import environment
from graph.errors import BadInput, GraphUnavailable, MaraError
from graph.relationships.cypher.bolt import URL_VARIABLE, BoltServer, ServerSettings
from graph.relationships.cypher.mirror import mirror


def configured_server() -> ServerSettings:
    """Return how to reach the graph server that the environment names. Raises BadInput where it names none."""
    settings = ServerSettings.from_environment()
    if settings is None:
        raise BadInput("No graph server is configured", f"Set {URL_VARIABLE}, for example to bolt://localhost:7687")
    return settings


def publish_graph(root: Path) -> dict[str, Any]:
    """Bring the configured graph server up to date with a workspace, as `mirror` does; return what was sent.

    Raises:
        BadInput: no server is configured, there is no relationship graph, or the server's database holds another.
        GraphUnavailable: the server does not answer as it should.
    """
    settings = configured_server()
    with BoltServer(settings) as server:
        return {"server": settings.url, **asdict(mirror(root, server))}


def erase_on_graph_server(root: Path) -> None:
    """Let the configured server, if there is one, lose what was erased from a relationship graph.

    Raises GraphUnavailable, a hint in it, where that fails: the server then still holds what was erased here.
    """
    if not environment().mara_graph_url:
        return
    try:
        with BoltServer(configured_server()) as server:
            mirror(root, server, stored_alone=True)
    except MaraError as fault:
        raise GraphUnavailable(
            f"It is erased here, but the graph server still holds it ({fault.kind})",
            "Run `mara graph export` until it says that it is done",
        ) from fault
