"""The commands ``mara history`` and ``mara forget``: what is kept of conversations and users, and erasing it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graph.errors import BadInput
from graph.storage.workspace import default_workspace
from workflows.cli.command import reports_errors, write
from workflows.cli.options import JsonOption, WorkspaceOption, given_text, named_path
from workflows.cli.render import escape
from workflows.results import label_of, labelled

if TYPE_CHECKING:
    from rich.console import Console

PageFileOption = Annotated[
    Path | None,
    typer.Option(
        "--conversations",
        parser=named_path,
        metavar="FILE",
        help="File that keeps the conversations of the page (default: conversations.sqlite in the workspace).",
    ),
]


@reports_errors
def history(
    conversation: Annotated[
        str | None,
        typer.Argument(
            parser=given_text,
            metavar="CONVERSATION",
            help="Conversation to show (default: list all).",
            show_default=False,
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    user: Annotated[
        str | None,
        typer.Option(
            parser=given_text, metavar="NAME", help="Show what is kept of this user: conversations and views."
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(parser=named_path, metavar="FILE", help="Write all of it to this file (.json), texts included."),
    ] = None,
    conversations: PageFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the conversations that are kept, or all that is kept of a user."""
    from workflows.admin.history import list_history, read_conversation

    root = workspace or default_workspace()
    if conversation is not None and (user is not None or export is not None):
        raise BadInput("A conversation is shown whole", "Leave --user and --export out, or the conversation")
    if conversation is not None:
        found = read_conversation(root, conversation)
        write(found, lambda console: _show_conversation(console, found), as_json=as_json)
        return
    if export is not None:
        _export(root, user or "", conversations, export)
    listed = list_history(root, user or "")
    write(listed, lambda console: _show_list(console, listed), as_json=as_json)


@reports_errors
def forget(
    user: Annotated[str, typer.Argument(help="User whose history is erased.")],
    workspace: WorkspaceOption = None,
    export: Annotated[
        Path | None,
        typer.Option(
            parser=named_path, metavar="FILE", help="First write all that is kept of them to this file (.json)."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Erase without asking.")] = False,
    conversations: PageFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase all that is kept of a user: questions, answers, conversations, views and marks."""
    from workflows.admin.history import forget_user

    root = workspace or default_workspace()
    if not user.strip():
        raise BadInput("No user is named", "Name one: `mara history` lists the users of conversations")
    if export is not None:
        _export(root, user, conversations, export)
    if not yes:
        _confirm(user)
    done = forget_user(root, user, conversations)
    write(done, lambda console: _show_forgotten(console, done), as_json=as_json)


def _export(root: Path, user: str, page_file: Path | None, path: Path) -> None:
    from workflows.admin.history import export_history, write_export
    from workflows.runs.output_files import check_output

    check_output(path, ".json")
    write_export(export_history(root, user, page_file), path)


def _confirm(user: str) -> None:
    """Ask on the terminal. Raises BadInput where nobody can answer, or the answer is no."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise BadInput("Nobody can be asked whether to erase", "Give --yes to erase without asking")
    if not typer.confirm(f"Erase all that is kept of {user}? It cannot be undone", err=True):
        raise BadInput("Nothing was erased", "Answer y to erase")


def _show_list(console: Console, listed: Mapping[str, Any]) -> None:
    for each in listed["conversations"]:
        owner = f" [dim]of {escape(each['owner'])}[/]" if each["owner"] else ""
        when = escape(each["updated_at"][:16].replace("T", " "))
        console.print(f"{when}  [bold]{escape(each['id'])}[/]{owner}  {escape(each['title'])}")
    for each in listed.get("questions", ()):
        said = escape(_shortened(each["content"]))
        is_question = each["role"] == "user"
        label = label_of(each["kind"])
        when = escape(each["created_at"][:16].replace("T", " ")) if is_question else " " * 16
        console.print(f"{when}  [bold]> {said}[/]" if is_question else f"{when}  {f'{label}: ' if label else ''}{said}")
    if views := listed.get("views"):
        console.print("Documents viewed:")
        for each in views:
            console.print(f"  {each['view_count']:>3} x  {escape(each['title'] or each['document'])}")
    if not any(listed.get(part) for part in ("conversations", "questions", "views")):
        console.print(f"Nothing is kept in {escape(listed['workspace'])}")


def _show_conversation(console: Console, found: Mapping[str, Any]) -> None:
    for each in found["messages"]:
        if each["role"] == "user":
            console.print(f"[bold]> {escape(each['content'])}[/]")
        else:
            console.print(escape(labelled(each["content"], each.get("kind", ""))))
            for cited in each.get("cited", ()):
                named = " · ".join(filter(None, (cited["title"], cited["path"]))) or cited["passage"]
                console.print(f"[dim]\\[{cited['number']}] {escape(named)}[/]")
            console.print()


def _show_forgotten(console: Console, done: Mapping[str, Any]) -> None:
    from workflows.admin.history import SERVER_NOT_NAMED

    parts = {
        "conversation": done["conversations"] + done["page_conversations"],
        "message": done["messages"],
        "view": done["views"],
        "mark": done["marks"],
    }
    told = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in parts.items() if count)
    console.print(f"Erased: {told or 'nothing, since nothing was kept'}")
    if done["graph_server"] == SERVER_NOT_NAMED:
        console.print("[yellow]A graph server still has a copy: name it in MARA_GRAPH_URL, and forget them again[/]")


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
