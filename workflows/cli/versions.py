"""The command ``mara versions``: when a document changed, and what changed in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from graph.text import counted
from workflows.cli.command import Shown, command
from workflows.cli.options import WorkspaceOption
from workflows.cli.render import escape

_MARKS = {"added": "[green]+[/]", "changed": "[yellow]~[/]", "removed": "[red]-[/]"}


@command
def versions(
    document: Annotated[
        str, typer.Argument(metavar="DOCUMENT", help="ID of a document or passage, or its source as results name it.")
    ],
    workspace: WorkspaceOption,
    diff: Annotated[bool, typer.Option("--diff", help="Also show the lines that changed.")] = False,
) -> Shown:
    """Show when a document changed, and which passages and facts came and went."""
    from workflows.admin.versions import document_versions

    return Shown(document_versions(workspace, document, with_text=diff), _print_versions)


def _print_versions(console: Console, found: Mapping[str, Any]) -> None:
    for version in found["versions"]:
        console.print(f"[bold]{version['date'] or 'now'}[/]  [dim]{counted(version['passages'], 'passage')}[/]")
        _print_changes(console, version)
    if found["kept_from"]:
        console.print(f"[yellow]Versions are kept from {found['kept_from']} on[/]")
    if not found["keeps_versions"]:
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
    for line in version.get("diff", ()):
        console.print(f"    {escape(line)}")
