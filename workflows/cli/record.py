"""The commands ``mara record``: a workspace's record in Postgres."""

from __future__ import annotations

from typing import Annotated

import typer

from graph.storage.workspace import default_workspace
from workflows.cli.command import reports_errors, write
from workflows.cli.options import JsonOption, WorkspaceOption
from workflows.cli.render import escape

record = typer.Typer(
    help="A record in Postgres, at the address of MARA_RECORD_URL: join one, or move a workspace's to it.",
    no_args_is_help=True,
)

_Name = Annotated[
    str, typer.Argument(metavar="[NAME]", help="Name of the record; by default the one that the address names.")
]


@record.command()
@reports_errors
def join(name: _Name = "", workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Let a folder have a record that is in Postgres, and derive its index; again, to bring it up to date."""
    from workflows.admin.upkeep import join_record

    found = join_record(workspace or default_workspace(), name)
    state = "derived" if found["derived"] else "up to date"
    told = f"Record [bold]{escape(found['record'])}[/]: generation {found['generation'] or 'none'}, {state}"
    write(found, lambda console: console.print(told), as_json=as_json)


@record.command()
@reports_errors
def move(name: _Name = "", workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Move a workspace's record and history from SQLite to Postgres; its index stays as it is."""
    from workflows.admin.upkeep import move_record

    found = move_record(workspace or default_workspace(), name)
    told = f"Moved to the record [bold]{escape(found['record'])}[/]. No longer needed: {', '.join(found['set_aside'])}"
    write(found, lambda console: console.print(told), as_json=as_json)
