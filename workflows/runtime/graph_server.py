"""The graph server that follows the relationship graph of a workspace, where one is configured."""

from __future__ import annotations

from pathlib import Path

from graph.environment import environment
from graph.errors import GraphUnavailable, MaraError

GRAPH_SERVER_BEHIND = "GraphServerBehind"
"""The kind of an error that tells that the graph server does not have what was just written."""


def send_to_graph_server(root: Path) -> None:
    """Send what changed in a relationship graph to the configured server, if there is one.

    Raises:
        MaraError: it cannot be sent; the next call sends it, too.
    """
    if not environment().mara_graph_url:
        return
    from workflows.admin.graph_exchange import publish_graph

    publish_graph(root)


def behind_after_sending(root: Path) -> str:
    """Send as `send_to_graph_server` does; return what to tell where that fails, without an address, else nothing."""
    try:
        send_to_graph_server(root)
    except Exception as fault:
        kind = fault.kind if isinstance(fault, MaraError) else type(fault).__name__
        return f"The graph server lacks this turn ({kind}); `mara graph publish` tells why and sends it"
    return ""


def erase_on_graph_server(root: Path) -> None:
    """Let the configured server lose what was erased from a relationship graph.

    Raises GraphUnavailable, a hint in it, where that fails: the server then still holds what was erased here.
    """
    try:
        send_to_graph_server(root)
    except MaraError as fault:
        raise GraphUnavailable(
            f"It is erased here, but the graph server still holds it ({fault.kind})",
            "Run `mara graph publish` until it says that it is done",
        ) from fault
