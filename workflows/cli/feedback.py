"""``mara tune``: marks of what served, and strengths of relation types learned from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from graph.errors import BadInput
from workflows.cli.command import Shown, command, default_group, progress_bars
from workflows.cli.options import ModelOption, asking_settings, path_argument
from workflows.cli.render import escape

tune = default_group("learn", "Learn the strength of each relation type from marks of which passages served.")


@tune.command("mark")
@command
def feedback(
    *,
    run: Annotated[
        Path | None,
        path_argument(
            "RUN", "Folder of a `mara eval` run: mark its gold passages, else the cited ones that support a claim."
        ),
    ] = None,
    workspace: Path,
    question: Annotated[str | None, typer.Option(help="Question to mark passages for.")] = None,
    passage: Annotated[list[str] | None, typer.Option(metavar="ID", help="Passage to mark. Repeatable.")] = None,
    did_not_serve: Annotated[
        bool, typer.Option("--did-not-serve", help="Mark the passages as not helpful for the question.")
    ] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List all marks.")] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Delete the marks of the question, of the passages, or of both together.")
    ] = False,
) -> Shown:
    """Record which passages helped to answer a question, for `mara tune` to learn from."""
    from workflows.tuning import tune as marks

    asked, passages = question or "", passage or []
    marking = bool(asked and passages) and not forget
    if (run is not None) + list_all + forget + marking != 1:
        raise BadInput(
            "Nothing is told, or several things at once",
            "Give the folder of a run, or --question and --passage, or --list, or --forget",
        )
    if list_all:
        return Shown(marks.list_marks(workspace), _show_marks)
    if forget:
        return Shown(marks.forget(workspace, asked, passages), _show_held)
    if run is not None:
        return Shown(marks.record_run(workspace, run), _show_held)
    return Shown(marks.record_mark(workspace, asked, passages, served=not did_not_serve), _show_held)


@tune.command("learn")
@command
def learn(
    *,
    workspace: Path,
    model: ModelOption = None,
    revert: Annotated[bool, typer.Option("--revert", help="Return to the walk untuned.")] = False,
    as_json: bool,
) -> Shown:
    """Learn the strength of each relation type from marks; adopt it if held-out recall rises."""
    from workflows.tuning.tune import revert_tuning, tune_workspace

    if revert:
        return Shown(revert_tuning(workspace), lambda console, _: console.print("The walk is untuned"))
    context = asking_settings(workspace, model=model)
    with progress_bars(silent=as_json) as progress:
        tuning = tune_workspace(context, progress)
    return Shown(tuning, _show_tuning)


def _show_held(console: Console, done: Mapping[str, Any]) -> None:
    for name in ("recorded", "forgotten", "unknown_passages"):
        if done.get(name):
            console.print(f"{name.replace('_', ' ')}: {done[name]}")
    marks = f"{done['held']} marks in {escape(done['workspace'])}"
    console.print(f"[dim]{marks}; they tell what served {done['questions']} questions[/]")


def _show_marks(console: Console, listed: Mapping[str, Any]) -> None:
    for mark in listed["marks"]:
        sign = "[green]+[/]" if mark["served"] else "[red]-[/]"
        about = f"{escape(mark['passage_id'])} [dim]{mark['kind']}[/]"
        console.print(f"{sign} {about} {escape(mark['question'])}")


def _show_tuning(console: Console, tuning: Mapping[str, Any]) -> None:
    console.print(
        f"recall of {tuning['held_out']} of {tuning['questions']} questions, held out:"
        f" {tuning['recall_before']:.3f} → {tuning['recall_after']:.3f} (standard error {tuning['standard_error']:.3f})"
    )
    changed = ", ".join(f"{name} x{value:g}" for name, value in tuning["strengths"].items() if value != 1)
    console.print(f"strengths fitted: {changed or 'all 1'}")
    if tuning["refusal"]:
        console.print(f"[yellow]Refused[/]: {tuning['refusal']}")
    else:
        console.print("[green]Adopted[/]; `mara tune --revert` undoes it")
