"""``mara graph``: the relationship graph of a workspace asked, searched, as a file, and on a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from graph.errors import BadInput
from graph.relationships.cypher.reading import ROWS, TIMEOUT_S
from graph.retrieve.modes import MatrixWeights
from workflows.cli.command import Shown, command, say
from workflows.cli.options import (
    WhereOption,
    asking_settings,
    path_argument,
    text_argument,
    text_option,
)
from workflows.cli.render import escape
from workflows.output.printable import visible_json
from workflows.settings.enums import GraphFormat

graph = typer.Typer(
    help="The relationship graph: ask it in Cypher, find documents, export it, or send it to a server.",
    no_args_is_help=True,
)
_FOUND, _NEXT, _REASONS_SHOWN = 5, 3, 3

ParamOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Value of a $NAME of the query: a number, a list, or a text. Repeatable."),
]


@graph.command()
@command
def documents(
    *,
    text: Annotated[str | None, text_argument("TEXT", "Text, in quotes, that they are like or about.")] = None,
    workspace: Path,
    following: Annotated[bool, typer.Option("--next", help="Propose what to read next, by shared concepts.")] = False,
    conversation: Annotated[str | None, text_option("NAME", "Count this conversation; --next starts from it.")] = None,
    user: Annotated[str | None, text_option("NAME", "The user; --next starts from what they read.")] = None,
    keep: Annotated[str | None, text_option("NAME", "Keep the search in the graph under this name.")] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, max=200, help="Documents (default 5; with --next 3).")] = None,
    where: WhereOption = None,
) -> Shown:
    """Find documents, not passages: those like a text, or what to read next, with the reason."""
    from workflows.discovery import search_documents, what_to_read

    context = asking_settings(workspace, where, conversation=conversation, user=user)
    if following:
        if keep:
            raise BadInput("A proposal is not kept", "Leave --keep or --next out")
        return Shown(what_to_read(context, text or "", k or _NEXT), _show_next)
    if text is None:
        raise BadInput("There is no text to search for", "Give one, in quotes, or --next")
    return Shown(search_documents(context, text, k or _FOUND, keep or ""), _show_found)


def _show_next(console: Console, proposals: Mapping[str, Any]) -> None:
    for number, each in enumerate(proposals["documents"], start=1):
        console.print(f"{number}. [bold]{escape(each['title'])}[/]  [dim]{escape(each['path'])}[/]")
        for reason in each["reasons"][:_REASONS_SHOWN]:
            console.print(f"   {escape(reason['told'])}")
    if not proposals["documents"]:
        console.print("Nothing to propose: no document that was not viewed is one or two concept steps away")


def _show_found(console: Console, matches: Mapping[str, Any]) -> None:
    for number, each in enumerate(matches["documents"], start=1):
        shared = f", {each['concepts']} of its concepts in the conversation" if each["concepts"] else ""
        console.print(f"{number}. [bold]{escape(each['title'])}[/]  [dim]{escape(each['path'])}[/]")
        console.print(f"   score {each['score']:.3f}: similarity {each['similarity']:.3f}{shared}")
    if not matches["documents"]:
        console.print("No document was found")


@graph.command()
@command
def prune(
    *,
    below: Annotated[float | None, typer.Option(help="Value below which edges are hidden.", min=0, max=1)] = None,
    restore: Annotated[bool, typer.Option("--restore", help="Bring back all edges that were pruned.")] = False,
    workspace: Path,
) -> Shown:
    """Show what the edges of concepts are worth; with --below, hide those that are worth little."""
    from workflows.admin.graph_queries import graph_values, prune_graph

    if restore and below is not None:
        raise BadInput("Edges cannot be pruned and brought back at once", "Give either --below or --restore")
    bar = 0.0 if restore else below
    return Shown(graph_values(workspace) if bar is None else prune_graph(workspace, bar), _show_values)


def _show_values(console: Console, summary: Mapping[str, Any]) -> None:
    for each in summary["values"]:
        values = ", ".join(f"{value:.2f}" for value in each["quartiles"]) or "none"
        console.print(
            f"[bold]{each['type']}[/]: {each['pruned']} of {each['edges']} edges are pruned;"
            f" values (least, quartiles, largest): {values}"
        )


@graph.command("query")
@command
def query(
    cypher: Annotated[str, typer.Argument(metavar="CYPHER", help="Query that only reads, in quotes.")],
    workspace: Path,
    param: ParamOption = None,
    limit: Annotated[int, typer.Option(help="Rows to show, at most.", min=1)] = ROWS,
    timeout: Annotated[float, typer.Option(help="Seconds that the query may take.", min=0.001)] = TIMEOUT_S,
    server: Annotated[bool, typer.Option("--server", help="Ask the graph server of MARA_GRAPH_URL.")] = False,
) -> Shown:
    """Show what a query finds in the relationship graph; it may not write."""
    from workflows.admin.graph_queries import query_graph

    return Shown(
        query_graph(workspace, cypher, param or [], limit=limit, timeout_s=timeout, on_server=server, say=say),
        _show_rows,
    )


@graph.command()
@command
def export(
    *,
    file: Annotated[Path | None, path_argument("FILE", "File, or folder (default: the graph server).")] = None,
    workspace: Path,
    form: Annotated[GraphFormat, typer.Option("--format", help="Lines of JSON, or a folder of matrices.")] = (
        GraphFormat.JSONL
    ),
    weights: Annotated[
        MatrixWeights, typer.Option(help="Of matrices: those of mode mara-matrix (counts) or of mode mara (evidence).")
    ] = MatrixWeights.COUNTS,
) -> Shown:
    """Write the relationship graph into a file, or without one, bring the server of MARA_GRAPH_URL up to date."""
    from workflows.admin.export import export_graph, export_matrices
    from workflows.runtime.graph_server import publish_graph

    if file is None and form is GraphFormat.MATRICES:
        raise BadInput("There is no folder to write", "Name one")
    if file is None:
        done = publish_graph(workspace)
        sent = f"{done['written']} nodes and edges sent, {done['removed']} removed"
        return Shown(done, f"{escape(done['server'])} is at revision {done['revision']}: {sent}")
    if form is GraphFormat.MATRICES:
        written = export_matrices(workspace, file, weights)
        return Shown(written, f"Matrices weighted by {weights} are in {escape(str(file))}")
    return _exchanged(export_graph(workspace, file))


@graph.command("import")
@command
def import_(
    file: Annotated[Path, path_argument("FILE", "File of an export.")],
    workspace: Path,
) -> Shown:
    """Add the nodes and edges of a JSONL export to the relationship graph, all or none."""
    from workflows.admin.export import import_graph

    return _exchanged(import_graph(workspace, file))


def _exchanged(done: Mapping[str, Any]) -> Shown:
    return Shown(done, f"{escape(done['file'])}: {done['nodes']} nodes, {done['edges']} edges")


def _show_rows(console: Console, result: Mapping[str, Any]) -> None:
    """Print a row of the result on each line, below the names of its columns."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in result["columns"]:
        table.add_column(escape(name), overflow="fold")
    for row in result["rows"]:
        table.add_row(*(escape(value if isinstance(value, str) else visible_json(value)) for value in row))
    if result["columns"]:
        console.print(table)
    console.print(f"[dim]{len(result['rows'])} rows{', and there are more: --limit' if result['cut'] else ''}[/]")
