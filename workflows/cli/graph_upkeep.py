"""``mara graph evaluate``, ``prune`` and ``restore``: what the derived edges are worth, and which go."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from graph.errors import BadInput
from graph.storage.workspace import default_workspace
from workflows.admin.graph_queries import evaluate_graph, prune_graph, restore_graph
from workflows.cli.command import reports_errors, say, write
from workflows.cli.options import JsonOption, WorkspaceOption
from workflows.cli.render import escape, relationships_problem
from workflows.output.printable import VisibleConsole


@reports_errors
def evaluate(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Show how much the edges that indexing derived are worth, and how many were pruned."""
    found = evaluate_graph(workspace or default_workspace())
    write(found, lambda console: _show_values(console, found), as_json=as_json)


@reports_errors
def prune(
    below: Annotated[float, typer.Option(help="Value, from 0 to 1, below which edges go.", min=0, max=1)],
    workspace: WorkspaceOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove derived edges that are worth little, after asking; they stay away until their evidence changes."""
    root = workspace or default_workspace()
    wanted = not dry_run and (yes or _confirmed(root, below))
    done = prune_graph(root, below, dry_run=not wanted)
    write(done, lambda console: _show_pruning(console, done), as_json=as_json)
    if not (wanted or dry_run):
        say("Nothing was removed, as nobody can be asked: give --yes to remove these edges")


@reports_errors
def restore(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Bring back all edges that were pruned."""
    done = restore_graph(workspace or default_workspace())
    write(done, lambda console: _show_restored(console, done), as_json=as_json)


def _confirmed(root: Path, below: float) -> bool:
    """Show on the terminal what would go, and ask; false where nobody can answer. Raises BadInput where it is no."""
    if not _somebody_answers():
        return False
    planned = prune_graph(root, below, dry_run=True)
    _show_pruning(VisibleConsole(stderr=True, emoji=False, highlight=False), planned)
    if not typer.confirm("Remove these edges? `mara graph restore` brings them back", err=True):
        raise BadInput("Nothing was removed", "Answer y to remove")
    return True


def _somebody_answers() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


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
