"""``mara review``: names that may be one or two, with what speaks for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console

from graph.corrections.kinds import Apart, Merge, What
from workflows.cli.command import JsonOption, Shown, command, write
from workflows.cli.correct import show_done
from workflows.cli.options import WorkspaceOption
from workflows.cli.render import escape

_QUOTED = str.maketrans({'"': '\\"', "\\": "\\\\", "$": "\\$", "`": "\\`"})


_MERGES = {"y": 0, "1": 0, "2": 1}
"""Answers that merge a pair, with the place of the name that stays."""


@command
def review(
    workspace: WorkspaceOption,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of proposals of each kind.")] = 20,
    least: Annotated[
        float, typer.Option(min=0, max=1, help="Score from which on names are proposed to be merged.")
    ] = 0.5,
    decide: Annotated[
        bool,
        typer.Option(
            "--decide",
            help="Ask about each pair: y or 1 merges under the first name, 2 under the second, n keeps apart.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> Shown | None:
    """Propose names that may be one, and names that may be two, with the evidence for and against."""
    from workflows.admin.corrections import correct
    from workflows.admin.review import review_names

    found = review_names(workspace, limit, least)
    if as_json or not decide:
        return Shown(found, _show)
    decided = _decided(found)
    return Shown(correct(workspace, decided, "mara review"), show_done) if decided else None


def _decided(found: Mapping[str, Any]) -> list[What]:
    """Ask about each pair."""
    decided: list[What] = []
    for each in found["merges"]:
        write(each, partial(_show_merge, each=each), as_json=False)
        answer = _asked()
        if answer == "q":
            break
        names = tuple(each["names"])
        if answer in _MERGES:
            decided.append(Merge(names, names[_MERGES[answer]]))
        elif answer == "n":
            decided.append(Apart(names))
    return decided


def _asked() -> str:
    """Return y, 1, 2, n, q, or nothing for a pair that is skipped; q where the input ends."""
    print("one name? [y: the first, 2: the second, n: keep apart, Enter skips, q ends] ", end="", flush=True)  # noqa: T201
    line = sys.stdin.readline()
    return line.strip().casefold()[:1] if line else "q"


def _show(console: Console, found: Mapping[str, Any]) -> None:
    for each in found["merges"]:
        _show_merge(console, each)
    for each in found["splits"]:
        _show_split(console, each)
    shown = f"{len(found['merges'])} of {found['of_merges']} pairs that may be one"
    console.print(f"[dim]{shown}; {len(found['splits'])} of {found['of_splits']} names that may be two[/]")


def _show_merge(console: Console, each: Mapping[str, Any]) -> None:
    first, second = each["names"]
    console.print(f"{each['score']:.2f}  [bold]{escape(first)} = {escape(second)}[/]  {', '.join(each['likeness'])}")
    for sign, what, values in (
        ("[green]+[/]", "both", each["shared_facts"]),
        ("[green]+[/]", "neighbours of both", each["shared_neighbours"]),
        ("[red]-[/]", "contradicting", each["contradictions"]),
        (" ", "in one passage", each["passages_with_both"]),
        (" ", first, each["passages"][0]),
        (" ", second, each["passages"][1]),
    ):
        if values:
            console.print(f"    {sign} [dim]{escape(what)}:[/] {escape('; '.join(values))}")
    console.print(f"    [dim]mara correct merge {escape(_quoted(first))} {escape(_quoted(second))}[/]")


def _show_split(console: Console, each: Mapping[str, Any]) -> None:
    console.print(f"{each['score']:.2f}  [bold]{escape(each['name'])}[/] may be two: {escape(each['predicate'])}")
    for value in each["values"]:
        console.print(f"    {escape(value['fact'])} [dim]({escape(', '.join(value['passages']))})[/]")
    place = each["values"][-1]["passages"][0]
    console.print(f"    [dim]mara correct split {escape(_quoted(each['name']))} --in {escape(_quoted(place))}[/]")


def _quoted(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'
