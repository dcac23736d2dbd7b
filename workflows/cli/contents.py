"""``mara show``: what a workspace holds, of a document, a passage or an entity, and since when."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from graph.text import counted
from workflows.cli import render
from workflows.cli.command import Shown, command, default_group
from workflows.cli.options import asking_settings, text_option
from workflows.cli.render import escape

show = default_group("contents", "Show a workspace: its contents, an entity's edges, a document, a passage.")

_MARKS = {"added": "[green]+[/]", "changed": "[yellow]~[/]", "removed": "[red]-[/]"}
_EDGES_SHOWN = 20


@show.command()
@command
def contents(
    workspace: Path,
    skipped: Annotated[bool, typer.Option("--skipped", help="Name the files that indexing did not read.")] = False,
) -> Shown:
    """Show what a workspace contains."""
    from workflows.admin.inspection import skipped_files, workspace_stats

    if skipped:
        return Shown(skipped_files(workspace), render.skipped)
    return Shown(workspace_stats(workspace), render.fields)


@show.command("passage")
@command
def provenance(
    passage: Annotated[str, typer.Argument(metavar="PASSAGE", help="ID of a passage, as results have it.")],
    workspace: Path,
    user: Annotated[str | None, text_option("NAME", "Also show where this user's answers cite it.")] = None,
) -> Shown:
    """Show where a passage comes from, what it is about, and which answers cite it."""
    from workflows.discovery import passage_provenance

    return Shown(passage_provenance(asking_settings(workspace, user=user), passage), _show_provenance)


def _show_provenance(console: Console, record: Mapping[str, Any]) -> None:
    from graph.moments import first_moment, shown

    document, store = record["document"], record["vector"]["store"]
    sources = ", ".join(source["uri"] for source in record["sources"])
    rows = {
        "passage": record["passage"],
        "document": f"{document['title']} ({document['id']})",
        "source": sources or document["path"],
        "updated": f"{shown(first_moment(document['updated_at']))}, version {document['version']}",
        "position": ", ".join(f"{key} {value}" for key, value in record["position"].items()),
        "vector": f"{record['vector']['id']}, {store['model']} ({store['dimension']})" if store else "",
        "concepts": ", ".join(concept["name"] for concept in record["concepts"]),
        "stood": "; ".join(f"{each['since']} to {each['until'] or 'now'}" for each in record["versions"]),
        "viewed by": "1 user" if record["viewers"] == 1 else f"{record['viewers']} users",
        "cited in": "; ".join(
            f"{each['conversation']} [{each['number']}], {each['at'][:10]}" for each in record["cited_in"]
        ),
    }
    render.fields(console, rows)


@show.command("document")
@command
def versions(
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="ID of a document or passage, or its source.")],
    workspace: Path,
) -> Shown:
    """Show when a document changed, and which passages and facts came and went."""
    from workflows.admin.versions import document_versions

    return Shown(document_versions(workspace, document), _show_versions)


def _show_versions(console: Console, history: Mapping[str, Any]) -> None:
    for version in history["versions"]:
        console.print(f"[bold]{version['date'] or 'now'}[/]  [dim]{counted(version['passages'], 'passage')}[/]")
        _print_changes(console, version)
    if history["kept_from"]:
        console.print(f"[yellow]Versions are kept from {history['kept_from']} on[/]")
    if not history["keeps_versions"]:
        console.print("[yellow]This workspace keeps no versions: only what stands now is known[/]")


def _print_changes(console: Console, version: Mapping[str, Any]) -> None:
    for kind, mark in _MARKS.items():
        for passage in version[kind]:
            named = " ".join(part for part in (passage["title"], f"({passage['id']})") if part)
            console.print(f"  {mark} {kind} {escape(named)}: {escape(passage['text'])}")
    if version["moved"]:
        console.print(f"  [dim]with other metadata: {counted(len(version['moved']), 'passage')}[/]")
    for kind in ("new_facts", "dropped_facts"):
        for fact in version[kind]:
            console.print(f"  [dim]{kind.removesuffix('s').replace('_', ' ')}: {escape(fact)}[/]")


@show.command()
@command
def edges(
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="An entity's name, in any spelling, or its id.")],
    workspace: Path,
    to: Annotated[str | None, typer.Option(metavar="END", help="The other end: entity, or id of a passage.")] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of edges to show, heaviest first.", min=1)] = _EDGES_SHOWN,
) -> Shown:
    """Show the edges of an entity: their triples with confidence, or role, similarity and position."""
    from workflows.admin.inspection import entity_edges

    return Shown(entity_edges(workspace, entity, to, limit), _show_edges)


def _show_edges(console: Console, listing: Mapping[str, Any]) -> None:
    """Print each edge, and below it what it stands for."""
    shown, total = len(listing["edges"]), listing["of_edges"]
    ends = escape(" – ".join(_named(end) for end in (listing["entity"], listing["to"]) if end))
    if not total:
        hint = "; omit --to to show all of its edges" if listing["to"] else ""
        console.print(f"[bold]{ends}[/]: no edges{hint}")
        return
    console.print(f"[bold]{ends}[/]: {shown} of {total} edges")
    for edge in listing["edges"]:
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
