"""The commands ``mara correct ...``: corrections of the graph by its user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graph.corrections.kinds import Apart, Change, Drop, Merge, Split, What
from graph.storage.workspace import default_workspace
from graph.text import counted
from workflows.cli.command import reports_errors, write
from workflows.cli.options import JsonOption, WorkspaceOption, given_text, named_path
from workflows.cli.render import escape, relationships_problem

if TYPE_CHECKING:
    from rich.console import Console

correct = typer.Typer(
    help="Correct the graph: merge and split names, change, drop and pin facts. Corrections survive every sync.",
    no_args_is_help=True,
)

_FACT = '"SUBJECT | PREDICATE | OBJECT", or the id of a fact.'

FactArgument = Annotated[str, typer.Argument(metavar="FACT", help=_FACT)]
NameOption = Annotated[str | None, typer.Option("--as", parser=given_text, metavar="NAME", help="Name of the entity.")]
PlacesOption = Annotated[
    list[str] | None,
    typer.Option("--in", metavar="PLACE", help="Source, document or passage that this is about. Repeatable."),
]
RelationOption = Annotated[
    str | None, typer.Option(metavar="TYPE", help="Relation type of the fact, such as TEMPORAL.", show_default=False)
]
NoteOption = Annotated[str, typer.Option(help="Reason, which is kept with the correction.", show_default=False)]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")]


@correct.command()
@reports_errors
def merge(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names that mean one entity.")],
    name: NameOption = None,
    note: NoteOption = "",
    workspace: WorkspaceOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make one entity of several names; it is called by the first unless --as names it."""
    _correct(Merge(tuple(names), name or names[0]), note, workspace, dry_run=dry_run, as_json=as_json)


@correct.command()
@reports_errors
def split(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name that means another entity in some places.")],
    places: PlacesOption = None,
    into: NameOption = None,
    note: NoteOption = "",
    workspace: WorkspaceOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Let a name mean another entity in some sources, documents or passages."""
    where = tuple(places or ())
    _correct(
        Split(name, where, into or f"{name} ({', '.join(where)})"), note, workspace, dry_run=dry_run, as_json=as_json
    )


@correct.command()
@reports_errors
def apart(
    names: Annotated[list[str], typer.Argument(metavar="NAME NAME...", help="Names that mean different entities.")],
    note: NoteOption = "",
    workspace: WorkspaceOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Keep similar names apart: no synonym edge joins them, and `mara review` does not propose them."""
    _correct(Apart(tuple(names)), note, workspace, dry_run=dry_run, as_json=as_json)


@correct.command()
@reports_errors
def change(
    fact: FactArgument,
    to: Annotated[str, typer.Option(metavar="FACT", help='The right fact: "SUBJECT | PREDICATE | OBJECT".')],
    relation: RelationOption = None,
    places: PlacesOption = None,
    note: NoteOption = "",
    workspace: WorkspaceOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put a right fact in place of a wrong one; it keeps the relation type unless --relation gives another."""
    from workflows.admin.corrections import read_statement

    root = workspace or default_workspace()
    said = Change(read_statement(root, fact), read_statement(root, to, relation or ""), tuple(places or ()))
    _correct(said, note, workspace, dry_run=dry_run, as_json=as_json)


@correct.command()
@reports_errors
def drop(
    fact: FactArgument,
    relation: RelationOption = None,
    places: PlacesOption = None,
    note: NoteOption = "",
    workspace: WorkspaceOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Drop a wrong fact, everywhere or in some places."""
    from workflows.admin.corrections import read_statement

    said = Drop(read_statement(workspace or default_workspace(), fact, relation or ""), tuple(places or ()))
    _correct(said, note, workspace, dry_run=dry_run, as_json=as_json)


@correct.command()
@reports_errors
def pin(
    fact: FactArgument,
    passage: Annotated[str, typer.Option(metavar="ID", help="Passage that states the fact.")],
    relation: RelationOption = None,
    note: NoteOption = "",
    workspace: WorkspaceOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Let a right fact stand in a passage, whether or not the extractor finds it."""
    from workflows.admin.corrections import pinned

    said = pinned(workspace or default_workspace(), fact, passage, relation or "")
    _correct(said, note, workspace, dry_run=dry_run, as_json=as_json)


@correct.command("list")
@reports_errors
def list_all(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List all corrections, with the number of passages that each changes."""
    from workflows.admin.corrections import list_corrections

    listed = list_corrections(workspace or default_workspace())
    write(listed, lambda console: _show_list(console, listed), as_json=as_json)


@correct.command()
@reports_errors
def undo(
    ids: Annotated[list[int], typer.Argument(metavar="ID...", help="Numbers of corrections.")],
    workspace: WorkspaceOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Undo corrections; they stay listed as undone."""
    from workflows.admin.corrections import undo as undo_corrections

    done = undo_corrections(workspace or default_workspace(), ids, dry_run=dry_run)
    write(done, lambda console: show_done(console, done), as_json=as_json)


@correct.command("export")
@reports_errors
def export_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", parser=named_path, help="File to write (JSONL).")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all corrections into a file, one JSON object a line."""
    from workflows.admin.corrections import export_corrections

    done = export_corrections(workspace or default_workspace(), file)
    told = (
        f"{counted(done['standing'], 'correction')} and {done['undone']} that were undone are in {escape(done['file'])}"
    )
    write(done, lambda console: console.print(told), as_json=as_json)


@correct.command("import")
@reports_errors
def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", parser=named_path, help="File of an export (JSONL).")],
    workspace: WorkspaceOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make the corrections of an exported file; those that were undone are left out."""
    from workflows.admin.corrections import import_corrections

    done = import_corrections(workspace or default_workspace(), file, dry_run=dry_run)
    write(done, lambda console: show_done(console, done), as_json=as_json)


def _correct(what: What, note: str, workspace: Path | None, *, dry_run: bool, as_json: bool) -> None:
    from workflows.admin.corrections import correct as make_corrections

    done = make_corrections(workspace or default_workspace(), [what], note, dry_run=dry_run)
    write(done, lambda console: show_done(console, done), as_json=as_json)


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
    told = f"{counted(done['passages'], 'passage')} {'would change' if done['dry_run'] else 'changed'}"
    console.print(f"{told}; {'nothing was written' if done['dry_run'] else 'generation ' + str(done['generation'])}")
    relationships_problem(console, done["relationships"])
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
