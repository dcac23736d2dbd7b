"""The command ``mara plot``: pictures of a question's walk and of a workspace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from graph.retrieve.modes import Mode
from workflows.cli.command import Shown, command
from workflows.cli.options import (
    ModelOption,
    PresetOption,
    QuestionArgument,
    WhereOption,
    WorkspaceOption,
    asking_settings,
    path_option,
    words_of_question,
)
from workflows.cli.render import escape
from workflows.explanation.pictures.walk import MOST_NODES

plot = typer.Typer(help="Draw a question's walk or a workspace as a PNG or SVG picture.", no_args_is_help=True)

OutOption = Annotated[Path, path_option("FILE", "Picture to write, ending in .png or .svg.", "--out", "-o")]


@plot.command()
@command
def walk(
    question: QuestionArgument,
    out: OutOption,
    workspace: WorkspaceOption,
    mode: Annotated[
        Mode | None, typer.Option(metavar="MODE", help="Walk to draw: mara (the default), hipporag2 or mara-matrix.")
    ] = None,
    preset: PresetOption = None,
    model: ModelOption = None,
    top_k: Annotated[int | None, typer.Option(help="Number of passages to return and draw (default 5).")] = None,
    nodes: Annotated[int, typer.Option(min=2, max=MOST_NODES, help="Entities and passages to draw, at most.")] = 30,
    where: WhereOption = None,
) -> Shown:
    """Ask a question and draw the part of the graph that its walk used."""
    from workflows.ask import ask
    from workflows.explain import explain
    from workflows.explanation.pictures.style import picture_format
    from workflows.explanation.pictures.walk import draw_walk

    picture_format(out)
    found = 5 if top_k is None else top_k
    context = asking_settings(workspace, where, mode=mode, preset=preset, model=model, top_k=found)
    explanation = explain(ask(words_of_question(question), context), context, max_nodes=nodes)
    return Shown(draw_walk(out, explanation.to_json()), _show_walk)


@plot.command()
@command
def relations(out: OutOption, workspace: WorkspaceOption) -> Shown:
    """Draw the number and the total weight of edges by relation type."""
    from workflows.explanation.pictures.structure import plot_relations

    return Shown(plot_relations(workspace, out), _show_relations)


@plot.command()
@command
def degrees(out: OutOption, workspace: WorkspaceOption) -> Shown:
    """Draw how many edges entities and passages have, and list the best connected entities."""
    from workflows.explanation.pictures.structure import plot_degrees

    return Shown(plot_degrees(workspace, out), _show_degrees)


def _show_walk(console: Console, drawn: Mapping[str, Any]) -> None:
    counts = ", ".join(f"{name} {count}" for name, count in drawn["nodes"].items())
    console.print(f"{counts}; {drawn['shown']['edges']} edges")
    show_picture(console, drawn)


def _show_relations(console: Console, drawn: Mapping[str, Any]) -> None:
    for name, found in drawn["relations"].items():
        console.print(f"{name.lower():<12} {found['edges']:>9,} edges, weight {found['weight']:,.4g}")
    show_picture(console, drawn)


def _show_degrees(console: Console, drawn: Mapping[str, Any]) -> None:
    for name, found in drawn["degrees"].items():
        most = max(found["degree"], default=0)
        console.print(f"{found['nodes']:,} {name}, {found['isolated']:,} without an edge; at most {most:,} edges")
    named = "; ".join(f"{each['entity']} {each['edges']:,}" for each in drawn["best_connected"])
    if named:
        console.print(f"best connected: {escape(named)}")
    show_picture(console, drawn)


def show_picture(console: Console, drawn: Mapping[str, Any]) -> None:
    """Tell where a picture is, and which characters it lacks."""
    console.print(f"[dim]drawn in {escape(drawn['picture'])}[/]")
    if drawn["missing_characters"] and drawn["picture"].lower().endswith(".png"):
        told = f"{drawn['missing_characters']} characters are boxes: no installed font has them"
        console.print(f"[yellow]{told}; install one, or draw an SVG file[/]")
