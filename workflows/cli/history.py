"""``mara history``: what is kept of conversations and users, and erasing it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from graph.errors import BadInput
from graph.text import counted
from workflows.cli.command import Shown, command, default_group, somebody_answers
from workflows.cli.options import path_option, text_argument, text_option
from workflows.cli.render import escape
from workflows.results import kept_answer, labelled, name_of

history = default_group("show", "Show the conversations that are kept, and erase a user.")


@history.command("show")
@command
def show_history(
    *,
    conversation: Annotated[str | None, text_argument("CONVERSATION", "To show (default: list all).")] = None,
    workspace: Path,
    user: Annotated[str | None, text_option("NAME", "Show what is kept of this user: conversations and views.")] = None,
    export: Annotated[Path | None, path_option("FILE", "Write all of it to this file (.json), texts included.")] = None,
) -> Shown:
    """Show the conversations that are kept, or all that is kept of a user."""
    from workflows.admin.history import export_history, list_history, read_conversation
    from workflows.runs.run_folder import check_output, write_output

    if conversation is not None and (user is not None or export is not None):
        raise BadInput("A conversation is shown whole", "Leave --user and --export out, or the conversation")
    if conversation is not None:
        shown = read_conversation(workspace, conversation)
        return Shown(shown, lambda console, each: _show_messages(console, each["messages"]))
    if export is not None:
        check_output(export, ".json")
        write_output(export, json.dumps(export_history(workspace, user or ""), ensure_ascii=False, indent=2) + "\n")
    return Shown(list_history(workspace, user or ""), _show_list)


@history.command()
@command
def forget(
    user: Annotated[str, typer.Argument(help="User whose history is erased.")],
    workspace: Path,
    yes: Annotated[bool, typer.Option("--yes", help="Erase without asking.")] = False,
) -> Shown:
    """Erase all that is kept of a user: questions, answers, conversations, views and marks."""
    from workflows.admin.history import forget_user

    if not user.strip():
        raise BadInput("No user is named", "Name one: `mara history` lists the users of conversations")
    if not yes:
        if not somebody_answers():
            raise BadInput("There is no terminal to confirm the erasure", "Give --yes to erase without asking")
        if not typer.confirm(f"Erase all that is kept of {user}? It cannot be undone", err=True):
            raise BadInput("Nothing was erased", "Answer y to erase")
    return Shown(forget_user(workspace, user), _show_forgotten)


def _show_list(console: Console, listed: Mapping[str, Any]) -> None:
    for each in listed["conversations"]:
        owner = f" [dim]of {escape(each['owner'])}[/]" if each["owner"] else ""
        when = escape(each["updated_at"][:16].replace("T", " "))
        console.print(f"{when}  [bold]{escape(each['id'])}[/]{owner}  {escape(each['title'])}")
    _show_messages(console, listed.get("questions", ()))
    if views := listed.get("views"):
        console.print("Documents viewed:")
        for each in views:
            console.print(f"  {each['view_count']:>3} x  {escape(each['title'] or each['document'])}")
    if names := listed.get("users"):
        console.print(f"Users: {escape(', '.join(names))}; `mara history --user NAME` shows all that is kept of one")
    if not any(listed.get(part) for part in ("conversations", "questions", "views", "users")):
        console.print(f"Nothing is kept in {escape(listed['workspace'])}")


def _show_messages(console: Console, messages: Iterable[Mapping[str, Any]]) -> None:
    question = ""
    for each in messages:
        if each["role"] == "user":
            question = each["content"]
            console.print(f"[bold]> {escape(each['content'])}[/]")
        else:
            console.print(escape(labelled(kept_answer(each["content"], each.get("kind", ""), question), str)))
            for cited in each.get("cited", ()):
                named = name_of({"title": cited["title"], "source": cited["path"], "id": cited["passage"]})
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
    counts = ", ".join(counted(count, name) for name, count in parts.items() if count)
    console.print(f"Erased: {counts or 'nothing, since nothing was kept'}")
    if done["graph_server"] == SERVER_NOT_NAMED:
        console.print("[yellow]A graph server still has a copy: name it in MARA_GRAPH_URL, and forget them again[/]")
