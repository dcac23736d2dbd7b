"""``mara edges``: the edges of an entity, and what each stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from workflows.cli.command import Shown, command
from workflows.cli.options import WorkspaceOption
from workflows.cli.render import escape

_SHOWN = 20


@command
def edges(
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="An entity's name, in any spelling, or its id.")],
    workspace: WorkspaceOption,
    to: Annotated[
        str | None,
        typer.Option(metavar="ENTITY|PASSAGE", help="The other end: an entity, or a passage by its id or title."),
    ] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of edges to show, heaviest first.", min=1)] = _SHOWN,
) -> Shown:
    """Show the edges of an entity: their triples with confidence, or role, similarity and position."""
    from workflows.admin.inspection import entity_edges

    return Shown(entity_edges(workspace, entity, to, limit), _show)


def _show(console: Console, found: Mapping[str, Any]) -> None:
    """Print each edge, and below it what it stands for."""
    shown, total = len(found["edges"]), found["of_edges"]
    ends = escape(" – ".join(_named(end) for end in (found["entity"], found["to"]) if end))
    if not total:
        hint = "; omit --to to show all of its edges" if found["to"] else ""
        console.print(f"[bold]{ends}[/]: no edges{hint}")
        return
    console.print(f"[bold]{ends}[/]: {shown} of {total} edges")
    for edge in found["edges"]:
        kind = edge["relation"] if edge["link"] is None else f"{edge['relation']}, {edge['link']}"
        console.print(f"— [bold]{escape(_named(edge['other']))}[/]  {kind}, weight {edge['weight']:.3f}")
        if edge.get("meaning"):
            console.print(f"    [dim]{edge['relation']}: {escape(edge['meaning'])}[/]")
        for triple in edge.get("triples", []):
            words = f"{triple['subject']} | {triple['predicate']} | {triple['object']}"
            console.print(
                f"    {escape(words)}  confidence {triple['confidence']:.2f} [dim]({escape(triple['passage'])})[/]"
            )
        if terms := edge.get("terms"):
            console.print("    " + ", ".join(f"{name} {value:.3f}" for name, value in terms.items()))


def _named(node: Mapping[str, str]) -> str:
    """Return what an end of an edge is called."""
    if node["kind"] == "passage":
        return f"passage {node['label']} ({node['id']})"
    return f"{node['label']} ({node['type']})" if "type" in node else node["label"]
