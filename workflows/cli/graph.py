"""``mara graph``: the relationship graph of a workspace, asked in Cypher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from graph.storage.workspace import default_workspace
from workflows.admin.graph_queries import LIMIT, TIMEOUT_S, query_graph
from workflows.cli import graph_upkeep
from workflows.cli.command import reports_errors, say, write
from workflows.cli.options import JsonOption, WorkspaceOption
from workflows.cli.render import escape
from workflows.runtime.printable import visible_json

graph = typer.Typer(help="Ask the relationship graph of a workspace in Cypher.", no_args_is_help=True)

ParamOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Value of a $NAME of the query: a number, a list, or a text. Repeatable."),
]


graph.command("evaluate")(graph_upkeep.evaluate)
graph.command("prune")(graph_upkeep.prune)
graph.command("restore")(graph_upkeep.restore)

@graph.command("query")
@reports_errors
def query(
    cypher: Annotated[str, typer.Argument(metavar="CYPHER", help="Query that only reads, in quotes.")],
    workspace: WorkspaceOption = None,
    param: ParamOption = None,
    limit: Annotated[int, typer.Option(help="Rows to show, at most.", min=1)] = LIMIT,
    timeout: Annotated[float, typer.Option(help="Seconds that the query may take.", min=0.001)] = TIMEOUT_S,
    as_json: JsonOption = False,
) -> None:
    """Show what a query finds in the relationship graph; it may not write."""
    root = workspace or default_workspace()
    found = query_graph(root, cypher, param or [], limit=limit, timeout_s=timeout, say=say)
    write(found, lambda console: _show(console, found), as_json=as_json)


def _show(console: Console, found: Mapping[str, Any]) -> None:
    """Print a row of the result on each line, below the names of its columns."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in found["columns"]:
        table.add_column(escape(name), overflow="fold")
    for row in found["rows"]:
        table.add_row(*(escape(value if isinstance(value, str) else visible_json(value)) for value in row))
    if found["columns"]:
        console.print(table)
    console.print(f"[dim]{len(found['rows'])} rows{', and there are more: --limit' if found['cut'] else ''}[/]")
