"""``mara graph draw``: a picture of a document's surroundings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from graph.relationships.surroundings import CHUNKS, CONCEPTS, RELATED
from workflows.cli.command import Shown, command
from workflows.cli.options import WorkspaceOption, path_option
from workflows.cli.plot import show_picture
from workflows.cli.render import escape
from workflows.explanation.pictures.surroundings import MOST, draw_surroundings


@command
def draw(
    document: Annotated[
        str, typer.Argument(metavar="DOCUMENT", help="ID of a document or of a passage of it, or its path.")
    ],
    out: Annotated[Path, path_option("FILE", "File to write, ending in .png, .svg or .graphml.", "--out", "-o")],
    workspace: WorkspaceOption,
    chunks: Annotated[int, typer.Option(min=0, max=MOST, help="Passages to draw, at most.")] = CHUNKS,
    concepts: Annotated[
        int, typer.Option(min=0, max=MOST, help="Concepts to draw by their relevance, at most.")
    ] = CONCEPTS,
    related: Annotated[int, typer.Option(min=0, max=MOST, help="Related documents to draw, at most.")] = RELATED,
) -> Shown:
    """Draw a document's source, its passages, the concepts it explains, and the documents that share them."""
    return Shown(draw_surroundings(workspace, document, out, chunks=chunks, concepts=concepts, related=related), _show)


def _show(console: Console, drawn: Mapping[str, Any]) -> None:
    console.print(
        f"[bold]{escape(drawn['title'])}[/]: passages {len(drawn['chunks'])} of {drawn['of_chunks']},"
        f" concepts {len(drawn['concepts'])} of {drawn['of_concepts']}, messages that cite it {drawn['messages']}"
    )
    for other in drawn["related"]:
        console.print(f"{escape(other['title'])}  [dim]shares {escape(', '.join(other['shared']))}[/]")
    show_picture(console, drawn)
