"""The command ``mara graph search``: documents by similarity, and by what a conversation is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from workflows.cli.command import Shown, command
from workflows.cli.options import WhereOption, WorkspaceOption, asking_settings, text_argument, text_option
from workflows.cli.render import escape


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
    return Shown(search_documents(context, text, k, keep or ""), _show)


def _show(console: Console, found: Mapping[str, Any]) -> None:
    for number, each in enumerate(found["documents"], start=1):
        shared = f", {each['concepts']} of its concepts in the conversation" if each["concepts"] else ""
        console.print(f"{number}. [bold]{escape(each['title'])}[/]  [dim]{escape(each['path'])}[/]")
        console.print(f"   score {each['score']:.3f}: similarity {each['similarity']:.3f}{shared}")
    if not found["documents"]:
        console.print("No document was found")
