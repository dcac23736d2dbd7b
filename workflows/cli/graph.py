"""``mara graph``: the relationship graph of a workspace, asked in Cypher, drawn, as a file, and on a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from graph.storage.workspace import default_workspace
from workflows.admin.export import GraphFormat, export_graph, form_of, import_graph
from workflows.admin.graph_queries import LIMIT, TIMEOUT_S, query_graph
from workflows.cli import graph_draw, graph_search, graph_upkeep
from workflows.cli.command import reports_errors, say, write
from workflows.cli.options import JsonOption, WorkspaceOption, named_path
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
    GraphFormat | None,
    typer.Option("--format", help="Form of the file (default: that of its ending, else jsonl).", show_default=False),
]


graph.command("draw")(graph_draw.draw)
graph.command("search")(graph_search.search)
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
    server: Annotated[
        bool, typer.Option("--server", help="Ask the graph server of MARA_GRAPH_URL, as it stands.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a query finds in the relationship graph; it may not write."""
    root = workspace or default_workspace()
    found = query_graph(root, cypher, param or [], limit=limit, timeout_s=timeout, on_server=server, say=say)
    write(found, lambda console: _show(console, found), as_json=as_json)


@graph.command("publish")
@reports_errors
def publish(
    workspace: WorkspaceOption = None,
    vectors: Annotated[bool, typer.Option("--vectors", help="Also send the passages' vectors, from now on.")] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Compare everything, also where nothing changed in the workspace.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring the graph server of MARA_GRAPH_URL up to date with the workspace."""
    done = publish_graph(workspace or default_workspace(), whole=whole, with_vectors=vectors)
    write(done, lambda console: _show_published(console, done), as_json=as_json)


@graph.command("export")
@reports_errors
def export(
    file: Annotated[Path, typer.Argument(parser=named_path, metavar="FILE", help="File to write.")],
    workspace: WorkspaceOption = None,
    form: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the relationship graph, conversations and all, into a file."""
    done = export_graph(workspace or default_workspace(), file, form or form_of(file))
    write(done, lambda console: _show_exchanged(console, done), as_json=as_json)


@graph.command("import")
@reports_errors
def import_(
    file: Annotated[Path, typer.Argument(parser=named_path, metavar="FILE", help="File of an export.")],
    workspace: WorkspaceOption = None,
    form: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add the nodes and edges of an export (jsonl, cypher) to the relationship graph, all or none."""
    done = import_graph(workspace or default_workspace(), file, form or form_of(file))
    write(done, lambda console: _show_exchanged(console, done), as_json=as_json)


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
