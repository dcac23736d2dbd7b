"""The commands ``mara discover`` and ``mara provenance``: what to read next, and where a passage comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from workflows.cli.command import Shown, command
from workflows.cli.options import WhereOption, WorkspaceOption, asking_settings, text_argument, text_option
from workflows.cli.render import escape

_REASONS_SHOWN = 3


@command
def discover(
    *,
    topic: Annotated[
        str | None, text_argument("TOPIC", "What it is to be about (default: what the user or conversation is about).")
    ] = None,
    workspace: WorkspaceOption,
    user: Annotated[
        str | None, text_option("NAME", "Start from what this user asked and read; leave that out.")
    ] = None,
    conversation: Annotated[str | None, text_option("NAME", "Start from what this conversation mentions.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=200, help="Number of documents to propose.")] = 3,
    where: WhereOption = None,
) -> Shown:
    """Propose what to read next: documents one or two concept steps away that were not viewed, with the reason."""
    from workflows.discovery import what_to_read

    context = asking_settings(workspace, where, user=user, conversation=conversation)
    return Shown(what_to_read(context, topic or "", k), _show_documents)


@command
def provenance(
    passage: Annotated[str, typer.Argument(metavar="PASSAGE", help="ID of a passage, or a source that has one.")],
    workspace: WorkspaceOption,
    user: Annotated[
        str | None, text_option("NAME", "Also show in which conversations of this user it was cited.")
    ] = None,
) -> Shown:
    """Show where a passage comes from, what it is about, and which answers cite it."""
    from workflows.discovery import passage_provenance

    return Shown(passage_provenance(asking_settings(workspace, user=user), passage), _show_provenance)


def _show_documents(console: Console, found: Mapping[str, Any]) -> None:
    from workflows.discovery import reasons_told

    for number, each in enumerate(found["documents"], start=1):
        console.print(f"{number}. [bold]{escape(each['title'])}[/]  [dim]{escape(each['path'])}[/]")
        for told in reasons_told(each["reasons"], _REASONS_SHOWN):
            console.print(f"   {escape(told)}")
    if not found["documents"]:
        console.print("Nothing to propose: no document that was not viewed is one or two concept steps away")


def _show_provenance(console: Console, found: Mapping[str, Any]) -> None:
    from graph.moments import first_moment, shown

    document, store = found["document"], found["vector"]["store"]
    sources = ", ".join(source["uri"] for source in found["sources"])
    rows = {
        "passage": found["passage"],
        "document": f"{document['title']} ({document['id']})",
        "source": sources or document["path"],
        "updated": f"{shown(first_moment(document['updated_at']))}, version {document['version']}",
        "position": ", ".join(f"{key} {value}" for key, value in found["position"].items()),
        "vector": f"{found['vector']['id']}, {store['model']} ({store['dimension']})" if store else "",
        "concepts": ", ".join(concept["name"] for concept in found["concepts"]),
        "stood": "; ".join(f"{each['since']} to {each['until'] or 'now'}" for each in found["versions"]),
        "viewed by": "1 user" if found["viewers"] == 1 else f"{found['viewers']} users",
        "cited in": "; ".join(
            f"{each['conversation']} [{each['number']}], {each['at'][:10]}" for each in found["cited_in"]
        ),
    }
    for name, value in rows.items():
        if value:
            console.print(f"[dim]{name:<10}[/] {escape(value)}")
