"""``mara graph``: the relationship graph of a workspace, asked in Cypher, drawn, as a file, and on a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from workflows.admin.export import GraphFormat, export_graph, form_of, import_graph
from workflows.admin.graph_queries import LIMIT, TIMEOUT_S, query_graph
from workflows.cli import graph_draw, graph_search, graph_upkeep
from workflows.cli.command import Shown, command, say
from workflows.cli.options import WorkspaceOption, path_argument
from workflows.cli.render import escape
from workflows.output.printable import visible_json
from workflows.runtime.graph_server import publish_graph

graph = typer.Typer(
    help="Ask the relationship graph of a workspace in Cypher, draw it, export it, or send it to a server.",
    no_args_is_help=True,
)

ParamOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Value of a $NAME of the query: a number, a list, or a text. Repeatable."),
]

FormatOption = Annotated[
    GraphFormat | None, typer.Option("--format", help="Form of the file (default: that of its ending, else jsonl).")
]


graph.command("draw")(graph_draw.draw)
graph.command("search")(graph_search.search)
graph.command("evaluate")(graph_upkeep.evaluate)
graph.command("prune")(graph_upkeep.prune)
graph.command("restore")(graph_upkeep.restore)


@graph.command("query")
@command
def query(
    cypher: Annotated[str, typer.Argument(metavar="CYPHER", help="Query that only reads, in quotes.")],
    workspace: WorkspaceOption,
    param: ParamOption = None,
    limit: Annotated[int, typer.Option(help="Rows to show, at most.", min=1)] = LIMIT,
    timeout: Annotated[float, typer.Option(help="Seconds that the query may take.", min=0.001)] = TIMEOUT_S,
    server: Annotated[
        bool, typer.Option("--server", help="Ask the graph server of MARA_GRAPH_URL, as it stands.")
    ] = False,
) -> Shown:
    """Show what a query finds in the relationship graph; it may not write."""
    return Shown(
        query_graph(workspace, cypher, param or [], limit=limit, timeout_s=timeout, on_server=server, say=say), _show
    )


@graph.command("publish")
@command
def publish(
    workspace: WorkspaceOption,
    vectors: Annotated[bool, typer.Option("--vectors", help="Also send the passages' vectors, from now on.")] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Compare everything, also where nothing changed in the workspace.")
    ] = False,
) -> Shown:
    """Bring the graph server of MARA_GRAPH_URL up to date with the workspace."""
    return Shown(publish_graph(workspace, whole=whole, with_vectors=vectors), _show_published)


@graph.command("export")
@command
def export(
    file: Annotated[Path, path_argument("FILE", "File to write.")],
    workspace: WorkspaceOption,
    form: FormatOption = None,
) -> Shown:
    """Write the relationship graph, conversations and all, into a file."""
    return Shown(export_graph(workspace, file, form or form_of(file)), _show_exchanged)


@graph.command("import")
@command
def import_(
    file: Annotated[Path, path_argument("FILE", "File of an export.")],
    workspace: WorkspaceOption,
    form: FormatOption = None,
) -> Shown:
    """Add the nodes and edges of an export (jsonl, cypher) to the relationship graph, all or none."""
    return Shown(import_graph(workspace, file, form or form_of(file)), _show_exchanged)


def _show_published(console: Console, done: Mapping[str, Any]) -> None:
    extent = ", everything compared" if done["whole"] else ""
    console.print(
        f"{escape(done['server'])} is at revision {done['revision']}: {done['written']} nodes and edges sent,"
        f" {done['removed']} removed{extent}"
    )


def _show_exchanged(console: Console, done: Mapping[str, Any]) -> None:
    console.print(f"{escape(done['file'])}: {done['nodes']} nodes, {done['edges']} edges")


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
