"""``mara graph draw``: a picture of a document's surroundings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from graph.relationships.surroundings import CHUNKS, CONCEPTS, RELATED
from graph.storage.workspace import default_workspace
from workflows.cli.command import reports_errors, write
from workflows.cli.options import JsonOption, WorkspaceOption, named_path
from workflows.cli.plot import show_picture
from workflows.cli.render import escape
from workflows.explanation.pictures.surroundings import MOST, draw_surroundings


@reports_errors
def draw(
    document: Annotated[
        str, typer.Argument(metavar="DOCUMENT", help="ID of a document or of a passage of it, or its path.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", parser=named_path, metavar="FILE", help="File to write, ending in .png, .svg or .graphml."
        ),
    ],
    workspace: WorkspaceOption = None,
    chunks: Annotated[int, typer.Option(min=0, max=MOST, help="Passages to draw, at most.")] = CHUNKS,
    concepts: Annotated[
        int, typer.Option(min=0, max=MOST, help="Concepts to draw by their relevance, at most.")
    ] = CONCEPTS,
    related: Annotated[int, typer.Option(min=0, max=MOST, help="Related documents to draw, at most.")] = RELATED,
    as_json: JsonOption = False,
) -> None:
    """Draw a document's source, its passages, the concepts it explains, and the documents that share them."""
    root = workspace or default_workspace()
    drawn = draw_surroundings(root, document, out, chunks=chunks, concepts=concepts, related=related)
    write(drawn, lambda console: _show(console, drawn), as_json=as_json)


def _show(console: Console, drawn: Mapping[str, Any]) -> None:
    console.print(
        f"[bold]{escape(drawn['title'])}[/]: passages {len(drawn['chunks'])} of {drawn['of_chunks']},"
        f" concepts {len(drawn['concepts'])} of {drawn['of_concepts']}, messages that cite it {drawn['messages']}"
    )
    for other in drawn["related"]:
        console.print(f"{escape(other['title'])}  [dim]shares {escape(', '.join(other['shared']))}[/]")
    show_picture(console, drawn)
