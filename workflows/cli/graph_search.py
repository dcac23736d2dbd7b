"""The command ``mara graph search``: documents by similarity, and by what a conversation is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workflows.cli.command import reports_errors, write
from workflows.cli.options import JsonOption, WhereOption, WorkspaceOption, asking_settings, given_text
from workflows.cli.render import escape

if TYPE_CHECKING:
    from rich.console import Console


@reports_errors
def search(
    text: Annotated[str, typer.Argument(parser=given_text, metavar="TEXT", help="Text to search for, in quotes.")],
    workspace: WorkspaceOption = None,
    conversation: Annotated[
        str | None,
        typer.Option(parser=given_text, metavar="NAME", help="Count what this conversation mentions, by 0.3 to 0.7."),
    ] = None,
    user: Annotated[
        str | None, typer.Option(parser=given_text, metavar="NAME", help="Who asks: the conversation's owner.")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            parser=given_text,
            metavar="NAME",
            help="Keep it under this name as a Query, with SIMILARITY edges.",
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=200, help="Number of documents to return.")] = 5,
    where: WhereOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search documents, not passages: by similarity, and by the concepts of a conversation."""
    from workflows.document_search import search_documents

    context = asking_settings(workspace, where, conversation=conversation, user=user)
    found = search_documents(context, text, k, keep or "")
    write(found, lambda console: _show(console, found), as_json=as_json)


def _show(console: Console, found: Mapping[str, Any]) -> None:
    for number, each in enumerate(found["documents"], start=1):
        shared = f", {each['concepts']} of its concepts in the conversation" if each["concepts"] else ""
        console.print(f"{number}. [bold]{escape(each['title'])}[/]  [dim]{escape(each['path'])}[/]")
        console.print(f"   score {each['score']:.3f}: similarity {each['similarity']:.3f}{shared}")
    if not found["documents"]:
        console.print("No document was found")
