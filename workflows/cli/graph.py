"""``mara graph``: the relationship graph of a workspace asked, searched, pruned, as a file, and on a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from graph.errors import BadInput
from graph.relationships.limits import CHUNKS, CONCEPTS, MOST_DRAWN, RELATED, ROWS, TIMEOUT_S
from workflows.cli.command import JsonOption, Shown, command, say, somebody_answers, write
from workflows.cli.options import (
    WhereOption,
    WorkspaceOption,
    asking_settings,
    path_argument,
    path_option,
    text_argument,
    text_option,
)
from workflows.cli.render import escape, relationships_problem
from workflows.output.printable import VisibleConsole, visible_json
from workflows.settings.enums import GraphFormat

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


@graph.command("draw")
@command
def draw(
    document: Annotated[
        str, typer.Argument(metavar="DOCUMENT", help="ID of a document or of a passage of it, or its path.")
    ],
    out: Annotated[Path, path_option("FILE", "File to write, ending in .graphml.", "--out", "-o")],
    workspace: WorkspaceOption,
    chunks: Annotated[int, typer.Option(min=0, max=MOST_DRAWN, help="Passages to draw, at most.")] = CHUNKS,
    concepts: Annotated[
        int, typer.Option(min=0, max=MOST_DRAWN, help="Concepts to draw by their relevance, at most.")
    ] = CONCEPTS,
    related: Annotated[int, typer.Option(min=0, max=MOST_DRAWN, help="Related documents to draw, at most.")] = RELATED,
) -> Shown:
    """Write a document's source, its passages, the concepts it explains, and the documents that share them."""
    from workflows.admin.export import export_surroundings

    return Shown(
        export_surroundings(workspace, document, out, chunks=chunks, concepts=concepts, related=related),
        _show_surroundings,
    )


def _show_surroundings(console: Console, drawn: Mapping[str, Any]) -> None:
    console.print(
        f"[bold]{escape(drawn['title'])}[/]: passages {len(drawn['chunks'])} of {drawn['of_chunks']},"
        f" concepts {len(drawn['concepts'])} of {drawn['of_concepts']}, messages that cite it {drawn['messages']}"
    )
    for other in drawn["related"]:
        console.print(f"{escape(other['title'])}  [dim]shares {escape(', '.join(other['shared']))}[/]")
    console.print(f"[dim]written to {escape(drawn['file'])}[/]")


@graph.command("search")
@command
def search(
    text: Annotated[str, text_argument("TEXT", "Text to search for, in quotes.")],
    workspace: WorkspaceOption,
    conversation: Annotated[
        str | None, text_option("NAME", "Count what this conversation mentions, by 0.3 to 0.7.")
    ] = None,
    user: Annotated[str | None, text_option("NAME", "Who asks: the conversation's owner.")] = None,
    keep: Annotated[
        str | None, text_option("NAME", "Keep it under this name as a Query, with SIMILARITY edges.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=200, help="Number of documents to return.")] = 5,
    where: WhereOption = None,
) -> Shown:
    """Search documents, not passages: by similarity, and by the concepts of a conversation."""
    from workflows.document_search import search_documents

    context = asking_settings(workspace, where, conversation=conversation, user=user)
    return Shown(search_documents(context, text, k, keep or ""), _show_found)


def _show_found(console: Console, found: Mapping[str, Any]) -> None:
    for number, each in enumerate(found["documents"], start=1):
        shared = f", {each['concepts']} of its concepts in the conversation" if each["concepts"] else ""
        console.print(f"{number}. [bold]{escape(each['title'])}[/]  [dim]{escape(each['path'])}[/]")
        console.print(f"   score {each['score']:.3f}: similarity {each['similarity']:.3f}{shared}")
    if not found["documents"]:
        console.print("No document was found")


@graph.command("evaluate")
@command
def evaluate(workspace: WorkspaceOption) -> Shown:
    """Show how much the edges that indexing derived are worth, and how many were pruned."""
    from workflows.admin.graph_queries import evaluate_graph

    return Shown(evaluate_graph(workspace), _show_values)


@graph.command("prune")
@command
def prune(
    below: Annotated[float, typer.Option(help="Value, from 0 to 1, below which edges go.", min=0, max=1)],
    workspace: WorkspaceOption,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove derived edges that are worth little, after asking; they stay away until their evidence changes."""
    from workflows.admin.graph_queries import prune_graph

    wanted = not dry_run and (yes or _confirmed(workspace, below))
    done = prune_graph(workspace, below, dry_run=not wanted)
    write(done, lambda console: _show_pruning(console, done), as_json=as_json)
    if not (wanted or dry_run):
        say("Nothing was removed, as nobody can be asked: give --yes to remove these edges")


@graph.command("restore")
@command
def restore(workspace: WorkspaceOption) -> Shown:
    """Bring back all edges that were pruned."""
    from workflows.admin.graph_queries import restore_graph

    return Shown(restore_graph(workspace), _show_restored)


def _confirmed(root: Path, below: float) -> bool:
    """Show on the terminal what would go, and ask; false where nobody can answer. Raises BadInput where it is no."""
    from workflows.admin.graph_queries import prune_graph

    if not somebody_answers():
        return False
    planned = prune_graph(root, below, dry_run=True)
    _show_pruning(VisibleConsole(stderr=True, emoji=False, highlight=False), planned)
    if not typer.confirm("Remove these edges? `mara graph restore` brings them back", err=True):
        raise BadInput("Nothing was removed", "Answer y to remove")
    return True


def _show_values(console: Console, found: Mapping[str, Any]) -> None:
    for each in found["values"]:
        values = ", ".join(f"{value:.2f}" for value in each["quartiles"]) or "none"
        console.print(
            f"[bold]{each['type']}[/]: {each['edges']} edges, {each['in_use']} in use, {each['pruned']} pruned;"
            f" values (least, quartiles, largest): {values}"
        )


def _show_pruning(console: Console, done: Mapping[str, Any]) -> None:
    for each in done["types"]:
        verb = "would be pruned" if done["dry_run"] else "pruned"
        console.print(f"[bold]{each['type']}[/]: {each['pruned']} of {each['edges']} edges {verb}")
        for one, other, value in each["examples"]:
            console.print(f"    [dim]{escape(one)} – {escape(other)}: {value:.2f}[/]")


def _show_restored(console: Console, done: Mapping[str, Any]) -> None:
    console.print(f"{done['restored']} pruned edges restored in {escape(done['workspace'])}")
    relationships_problem(console, done["relationships"])


@graph.command("query")
@command
def query(
    cypher: Annotated[str, typer.Argument(metavar="CYPHER", help="Query that only reads, in quotes.")],
    workspace: WorkspaceOption,
    param: ParamOption = None,
    limit: Annotated[int, typer.Option(help="Rows to show, at most.", min=1)] = ROWS,
    timeout: Annotated[float, typer.Option(help="Seconds that the query may take.", min=0.001)] = TIMEOUT_S,
    server: Annotated[
        bool, typer.Option("--server", help="Ask the graph server of MARA_GRAPH_URL, as it stands.")
    ] = False,
) -> Shown:
    """Show what a query finds in the relationship graph; it may not write."""
    from workflows.admin.graph_queries import query_graph

    return Shown(
        query_graph(workspace, cypher, param or [], limit=limit, timeout_s=timeout, on_server=server, say=say),
        _show_rows,
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
    from workflows.runtime.graph_server import publish_graph

    return Shown(publish_graph(workspace, whole=whole, with_vectors=vectors), _show_published)


@graph.command("export")
@command
def export(
    file: Annotated[Path, path_argument("FILE", "File to write.")],
    workspace: WorkspaceOption,
    form: FormatOption = None,
) -> Shown:
    """Write the relationship graph, conversations and all, into a file."""
    from workflows.admin.export import export_graph, form_of

    return Shown(export_graph(workspace, file, form or form_of(file)), _show_exchanged)


@graph.command("import")
@command
def import_(
    file: Annotated[Path, path_argument("FILE", "File of an export.")],
    workspace: WorkspaceOption,
    form: FormatOption = None,
) -> Shown:
    """Add the nodes and edges of an export (jsonl, cypher) to the relationship graph, all or none."""
    from workflows.admin.export import form_of, import_graph

    return Shown(import_graph(workspace, file, form or form_of(file)), _show_exchanged)


def _show_published(console: Console, done: Mapping[str, Any]) -> None:
    extent = ", everything compared" if done["whole"] else ""
    console.print(
        f"{escape(done['server'])} is at revision {done['revision']}: {done['written']} nodes and edges sent,"
        f" {done['removed']} removed{extent}"
    )


def _show_exchanged(console: Console, done: Mapping[str, Any]) -> None:
    console.print(f"{escape(done['file'])}: {done['nodes']} nodes, {done['edges']} edges")


def _show_rows(console: Console, found: Mapping[str, Any]) -> None:
    """Print a row of the result on each line, below the names of its columns."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in found["columns"]:
        table.add_column(escape(name), overflow="fold")
    for row in found["rows"]:
        table.add_row(*(escape(value if isinstance(value, str) else visible_json(value)) for value in row))
    if found["columns"]:
        console.print(table)
    console.print(f"[dim]{len(found['rows'])} rows{', and there are more: --limit' if found['cut'] else ''}[/]")
