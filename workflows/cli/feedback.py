"""``mara tune``: marks of what served, and strengths of relation types learned from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from graph.errors import BadInput
from graph.storage.marks import MarkKind
from workflows.cli.command import Shown, command, default_group, progress_bars
from workflows.cli.options import ModelOption, asking_settings, path_argument
from workflows.cli.render import escape, pairs

tune = default_group("learn", "Learn the strength of each relation type from marks of which passages served.")


@tune.command("mark")
@command
def feedback(
    *,
    run: Annotated[
        Path | None,
        path_argument(
            "RUN", "Folder of a `mara eval` run: mark its gold passages and the cited ones that support a claim."
        ),
    ] = None,
    workspace: Path,
    question: Annotated[str | None, typer.Option(help="Question to mark passages for.")] = None,
    passage: Annotated[list[str] | None, typer.Option(metavar="ID", help="Passage to mark. Repeatable.")] = None,
    did_not_serve: Annotated[
        bool, typer.Option("--did-not-serve", help="Mark the passages as not helpful for the question.")
    ] = False,
    list_all: Annotated[
        bool, typer.Option("--list", help="List all marks, or those of a question, of passages or of a kind.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Delete the marks of a question, of passages or of a kind.")
    ] = False,
    kind: Annotated[
        MarkKind | None, typer.Option(help="Kind of marks for --list or --forget, by who made them.")
    ] = None,
) -> Shown:
    """Record which passages helped to answer a question, for `mara tune` to learn from."""
    import workflows.tuning.marks_of_runs as marks

    asked, passages = question or "", passage or []
    marking = bool(asked and passages)
    if (run is not None) + list_all + forget > 1 or (run is not None and (asked or passages)):
        raise BadInput("Several things are asked for at once", "Give a run, or a mark, or --list, or --forget")
    if did_not_serve and (list_all or forget or not marking):
        raise BadInput("--did-not-serve is about no mark", "Give --question and --passage with it")
    if kind is not None and not (list_all or forget):
        raise BadInput("--kind is for --list and --forget", "A mark that you give is your own")
    if list_all:
        return Shown(marks.list_marks(workspace, asked, passages, kind or ""), _show_marks)
    if forget:
        return Shown(marks.forget(workspace, asked, passages, kind or ""), _show_forgotten)
    if run is not None:
        return Shown(marks.record_run(workspace, run), _show_recorded)
    if marking:
        return Shown(marks.record_mark(workspace, asked, passages, served=not did_not_serve), _show_recorded)
    lacking = "A mark needs a question and a passage" if asked or passages else "Nothing is told"
    hint = "Give the folder of a run, or --question and --passage, or --list, or --forget"
    raise BadInput(lacking, hint)


@tune.command("learn")
@command
def learn(
    *,
    workspace: Path,
    seed: Annotated[int, typer.Option(min=0, help="Seed that deals the questions into halves.")] = 0,
    model: ModelOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what was learned; adopt nothing.")] = False,
    revert: Annotated[
        int | None, typer.Option(min=0, metavar="VERSION", help="Return to an earlier version; 0 is untuned.")
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="List all versions.")] = False,
    as_json: bool,
) -> Shown:
    """Learn the strength of each relation type from marks; adopt it if held-out recall rises."""
    from workflows.tuning.tune import revert_tuning, tune_workspace, tuning_history

    if history + dry_run + (revert is not None) > 1:
        raise BadInput("Several things are asked for at once", "Give one of --history, --revert and --dry-run")
    if history:
        return Shown(tuning_history(workspace), _show_history)
    if revert is not None:
        return Shown(revert_tuning(workspace, revert), _show_reverted)
    context = asking_settings(workspace, model=model)
    with progress_bars(silent=as_json) as progress:
        tuning = tune_workspace(context, seed=seed, dry_run=dry_run, progress=progress)
    return Shown(tuning, _show_tuning)


def _show_recorded(console: Console, done: Mapping[str, Any]) -> None:
    console.print(f"Marks: {pairs(done['marks'])}; {pairs({key: done[key] for key in ('new', 'changed')})}")
    if done["unknown_passages"]:
        console.print(f"[yellow]left out, as the workspace does not hold them: {done['unknown_passages']} passages[/]")
    _show_held(console, done)


def _show_forgotten(console: Console, gone: Mapping[str, Any]) -> None:
    console.print(f"{gone['forgotten']} marks forgotten")
    _show_held(console, gone)


def _show_held(console: Console, result: Mapping[str, Any]) -> None:
    marks = f"{result['held']} marks in {escape(result['workspace'])}"
    console.print(f"[dim]{marks}; they tell what served {result['questions']} questions[/]")


def _show_marks(console: Console, listed: Mapping[str, Any]) -> None:
    for mark in listed["marks"]:
        sign = "[green]+[/]" if mark["served"] else "[red]-[/]"
        about = f"{escape(mark['passage_id'])} [dim]{mark['kind']}[/]"
        console.print(f"{sign} {about} {escape(mark['question'])}")
    if not listed["marks"]:
        console.print(f"No such mark in {escape(listed['workspace'])}")


def _show_tuning(console: Console, tuning: Mapping[str, Any]) -> None:
    made = tuning["made_from"]
    console.print(f"{made['questions']} questions, {made['passages']} passages that served; {tuning['walks']} walks")
    depth, held_out = tuning["settings"]["recall_at"], tuning["settings"]["held_out"]
    console.print(
        f"recall@{depth} of {held_out} questions held out: {tuning['recall_before']:.3f} → {tuning['recall_after']:.3f}"
        f" ({tuning['difference']:+.3f}, standard error {tuning['standard_error']:.3f};"
        f" {tuning['gained']} questions gained, {tuning['lost']} lost)"
    )
    for name in ("unknown_passages", "questions_without_passages", "questions_without_walk", "fallbacks"):
        if tuning[name]:
            console.print(f"[yellow]{name.replace('_', ' ')}: {tuning[name]}[/]")
    console.print(f"strengths fitted: {_changed(tuning['strengths'])}")
    if tuning["refusal"]:
        console.print(f"[yellow]Refused[/]: {tuning['refusal']}. Version {tuning['parent']} stays")
    elif tuning["adopted"]:
        console.print(
            f"[green]Adopted[/] as version {tuning['version']}; `mara tune --revert {tuning['parent']}` undoes it"
        )
    else:
        console.print("Worth adopting; nothing was written")


def _show_reverted(console: Console, done: Mapping[str, Any]) -> None:
    console.print(f"Version {done['before']} → version {done['version']}: {_changed(done['strengths'])}")


def _show_history(console: Console, history: Mapping[str, Any]) -> None:
    for each in history["versions"]:
        mark = "[green]●[/]" if each["version"] == history["current"] else " "
        console.print(f"{mark} version {each['version']}: {_changed(each['strengths'])}")
        if each["version"]:
            made = each["made_from"]
            origin = f"from version {each['parent']}, {pairs(made)}" if made else f"from version {each['parent']}"
            recall = f"{each['recall_before']:.3f} → {each['recall_after']:.3f}"
            console.print(f"    [dim]{escape(origin)}; held-out recall {recall}[/]")


def _changed(strengths: Mapping[str, float]) -> str:
    return ", ".join(f"{name} x{value:g}" for name, value in strengths.items() if value != 1) or "all 1 (untuned)"
