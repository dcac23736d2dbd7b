"""``mara correct``: corrections of the graph by its user, and proposals for them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from graph.corrections.kinds import Apart, Change, Drop, Merge, Split, What
from graph.errors import BadInput
from graph.text import counted
from workflows.cli.command import Group, Shown, command
from workflows.cli.options import path_argument, path_option, text_option
from workflows.cli.render import escape, relationships_problem

correct = typer.Typer(
    help="Correct the graph: merge and split names, change, drop and pin facts. Corrections survive every sync.",
    no_args_is_help=True,
)

_FACT = '"SUBJECT | PREDICATE | OBJECT", or the id of a fact.'

FactArgument = Annotated[str, typer.Argument(metavar="FACT", help=_FACT)]
NameOption = Annotated[str | None, text_option("NAME", "Name of the entity.", "--as")]
PlacesOption = Annotated[
    list[str] | None,
    typer.Option("--in", metavar="PLACE", help="Source, document or passage that this is about. Repeatable."),
]
RelationOption = Annotated[str | None, typer.Option(metavar="TYPE", help="Relation type, such as TEMPORAL.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")]


@dataclass(kw_only=True)
class Making(Group):
    """The options of a command that makes a correction."""

    note: Annotated[str, typer.Option(help="Reason, which is kept with the correction.", show_default=False)] = ""
    workspace: Path
    dry_run: DryRunOption = False

    def made(self, what: What) -> Shown:
        """Make a correction."""
        from workflows.admin.corrections import correct as make_corrections

        return Shown(make_corrections(self.workspace, [what], self.note, dry_run=self.dry_run), show_done)


@correct.command()
@command
def merge(
    *,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names that mean one entity.")],
    name: NameOption = None,
    making: Making,
) -> Shown:
    """Make one entity of several names; it is called by the first unless --as names it."""
    return making.made(Merge(tuple(names), name or names[0]))


@correct.command()
@command
def split(
    *,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Name to split, or names to keep apart.")],
    places: PlacesOption = None,
    into: NameOption = None,
    making: Making,
) -> Shown:
    """Let a name mean another entity in some places; or keep several names apart, which no synonym edge joins then."""
    if len(names) > 1:
        if places or into:
            raise BadInput("Several names are kept apart everywhere", "Leave --in and --as out, or give one name")
        return making.made(Apart(tuple(names)))
    (name,), where = names, tuple(places or ())
    return making.made(Split(name, where, into or f"{name} ({', '.join(where)})"))


@correct.command()
@command
def fact(
    *,
    fact: FactArgument,
    to: Annotated[str | None, typer.Option(metavar="FACT", help=f"The right fact: {_FACT}")] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop it, everywhere or in some places.")] = False,
    pin: Annotated[str | None, text_option("ID", "Let it stand in this passage in any case.")] = None,
    relation: RelationOption = None,
    places: PlacesOption = None,
    making: Making,
) -> Shown:
    """Put a right fact in place of a wrong one (--to), drop a wrong one (--drop), or pin a right one (--pin)."""
    from workflows.admin.corrections import pinned, read_statement

    if (to is not None) + drop + (pin is not None) != 1:
        raise BadInput("It is not clear what is to be done with the fact", "Give one of --to, --drop and --pin")
    if pin is not None:
        if places:
            raise BadInput("A fact is pinned in one passage", "Leave --in out")
        return making.made(pinned(making.workspace, fact, pin, relation or ""))
    where = tuple(places or ())
    if to is None:
        return making.made(Drop(read_statement(making.workspace, fact, relation or ""), where))
    right = read_statement(making.workspace, to, relation or "")
    return making.made(Change(read_statement(making.workspace, fact), right, where))


@correct.command("list")
@command
def list_all(
    workspace: Path,
    out: Annotated[Path | None, path_option("FILE", "Write all of them into this file (JSONL), to import.")] = None,
) -> Shown:
    """List all corrections, with the number of passages that each changes."""
    from workflows.admin.corrections import export_corrections, list_corrections

    if out is None:
        return Shown(list_corrections(workspace), _show_list)
    done = export_corrections(workspace, out)
    made = f"{counted(done['standing'], 'correction')} and {done['undone']} that were undone"
    return Shown(done, f"{made} are in {escape(done['file'])}")


@correct.command()
@command
def undo(
    ids: Annotated[list[int], typer.Argument(metavar="ID...", help="Numbers of corrections.")],
    workspace: Path,
    dry_run: DryRunOption = False,
) -> Shown:
    """Undo corrections; they stay listed as undone."""
    from workflows.admin.corrections import undo as undo_corrections

    return Shown(undo_corrections(workspace, ids, dry_run=dry_run), show_done)


@correct.command("import")
@command
def import_file(
    file: Annotated[Path, path_argument("FILE", "File of an export (JSONL).")],
    workspace: Path,
    dry_run: DryRunOption = False,
) -> Shown:
    """Make the corrections of an exported file; those that were undone are left out."""
    from workflows.admin.corrections import import_corrections

    return Shown(import_corrections(workspace, file, dry_run=dry_run), show_done)


def show_done(console: Console, done: Mapping[str, Any]) -> None:
    """Print corrections that were made or undone, and examples of what they change."""
    for sign, key in (("[green]+[/]", "made"), ("[red]-[/]", "undone")):
        for each in done[key]:
            console.print(f"{sign} {_line(each)}")
            if key == "made" and not each["passages"] and each["kind"] != "apart":
                console.print("  [yellow]no passage holds what it is about: it waits for one that does[/]")
    for each in done["known"]:
        console.print(f"[dim]stands already: {_line(each)}[/]")
    for example in done["examples"]:
        console.print(f"  [dim]{escape(example['passage'])}[/]")
        for sign, key in (("-", "was"), ("+", "now")):
            for line in example[key]:
                console.print(f"    {sign} {escape(line)}")
    change = f"{counted(done['passages'], 'passage')} {'would change' if done['dry_run'] else 'changed'}"
    console.print(f"{change}; {'nothing was written' if done['dry_run'] else 'generation ' + str(done['generation'])}")
    relationships_problem(console, done["relationships"])
    if done["made"]:
        console.print("[dim]documents, and what answers quote of them, stay as they are[/]")
    if done.get("left_out"):
        console.print(f"[dim]left out, as they were undone: {done['left_out']}[/]")


def _show_list(console: Console, listed: Mapping[str, Any]) -> None:
    for each in listed["corrections"]:
        if each["undone_at"]:
            console.print(f"[dim]{_line(each)}  undone {each['undone_at']}[/]")
            continue
        # Names that are kept apart change no passage.
        changed = "" if each["kind"] == "apart" else f"  [dim]{counted(each['passages'], 'passage')}[/]"
        console.print(f"{_line(each)}{changed}")
    if not listed["corrections"]:
        console.print(f"No correction in {escape(listed['workspace'])}")


def _line(each: Mapping[str, Any]) -> str:
    """Return a correction on one line."""
    note = f" [dim]({escape(each['note'])})[/]" if each["note"] else ""
    return f"{each['id']:>4}  {each['kind']}  {escape(_said(each))}{note}"


def _said(each: Mapping[str, Any]) -> str:
    where = f" in {', '.join(each['places'])}" if each.get("places") else ""
    match each["kind"]:
        case "merge":
            return f"{', '.join(each['names'])} → {each['name']}"
        case "apart":
            return " ≠ ".join(each["names"])
        case "split":
            return f"{each['name']}{where} → {each['into']}"
        case "change":
            return f"{_fact(each['fact'])} → {_fact(each['to'])}{where}"
        case "pin":
            return f"{_fact(each['fact'])} in {each['passage']}"
        case _:
            return f"{_fact(each['fact'])}{where}"


def _fact(fact: Mapping[str, str]) -> str:
    relation = f" ({fact['relation']})" if fact["relation"] else ""
    return f"{fact['subject']} | {fact['predicate']} | {fact['object']}{relation}"


@correct.command()
@command
def review(
    *,
    workspace: Path,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of proposals.")] = 20,
    least: Annotated[float, typer.Option(min=0, max=1, help="Least score of names that may be one.")] = 0.5,
) -> Shown:
    """Propose names that may be one, with the evidence for and against."""
    from workflows.admin.corrections import review_names

    return Shown(review_names(workspace, limit, least), _show_proposals)


def _show_proposals(console: Console, proposals: Mapping[str, Any]) -> None:
    for each in proposals["merges"]:
        _show_merge(console, each)
    shown = f"{len(proposals['merges'])} of {proposals['of_merges']} pairs that may be one (--least: less likely ones)"
    console.print(f"[dim]{shown}[/]")


def _show_merge(console: Console, each: Mapping[str, Any]) -> None:
    first, second = each["names"]
    console.print(f"{each['score']:.2f}  [bold]{escape(first)} = {escape(second)}[/]  {', '.join(each['likeness'])}")
    for sign, what, values in (
        ("[green]+[/]", "both", each["shared_facts"]),
        ("[green]+[/]", "neighbours of both", each["shared_neighbours"]),
        (" ", "in one passage", each["passages_with_both"]),
        (" ", first, each["passages"][0]),
        (" ", second, each["passages"][1]),
    ):
        if values:
            console.print(f"    {sign} [dim]{escape(what)}:[/] {escape('; '.join(values))}")
    console.print(f"    [dim]{escape(shlex.join(['mara', 'correct', 'merge', first, second]))}[/]")
