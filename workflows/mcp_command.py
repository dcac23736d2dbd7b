"""``mara mcp``: a workspace for agents that speak the Model Context Protocol."""

from __future__ import annotations

from graph.workspace import default_workspace
from workflows.command import reports_errors
from workflows.options import WorkspaceOption


@reports_errors
def mcp(workspace: WorkspaceOption = None) -> None:
    """Serve a workspace over stdio to agents that speak MCP: the tools ask and retrieve."""
    from workflows.mcp_server import make_server

    make_server((workspace or default_workspace()).absolute()).run("stdio")
