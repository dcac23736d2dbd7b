"""The command line ``mara``: its commands, and its entry point."""

from __future__ import annotations

import os
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup
from typer.exceptions import TyperException

from graph.errors import BadInput, MaraError, WorkspaceDamaged
from workflows.cli import render
from workflows.cli.chat import chat
from workflows.cli.command import (
    REFUSED,
    Everywhere,
    Shown,
    command,
    complain,
    error_body,
    progress_bars,
    publish_interrupted,
    say,
    write,
)
from workflows.cli.command_line import in_present_names, options_first
from workflows.cli.contents import show
from workflows.cli.correct import correct
from workflows.cli.evaluate import batch, evaluation
from workflows.cli.feedback import tune
from workflows.cli.graph import graph
from workflows.cli.history import history
from workflows.cli.options import (
    Asking,
    Indexing,
    QuestionArgument,
    WorkflowOption,
    asking_settings,
    path_argument,
    path_option,
)
from workflows.cli.serve import serve
from workflows.output.printable import visible, visible_json
from workflows.runtime.trace_delivery import traces_delivered
from workflows.settings.enums import Workflow
from workflows.settings.indexing import IndexingContext
from workflows.settings.renamed import RenamedSetting

if TYPE_CHECKING:
    from workflows.indexing_run.report import IndexReport


class Commands(TyperGroup):
    """All commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read a command line: earlier names become those of today, and options of every command may stand anywhere."""
        args, notices = in_present_names(args)
        for line in notices:
            say(line)
        return super().parse_args(ctx, options_first(args))

    def invoke(self, ctx: Any) -> Any:
        """Run a command; warnings are told in a line each, those of earlier names of settings among them."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", RenamedSetting)
            warnings.showwarning = lambda message, *_, **__: say(str(message))
            return super().invoke(ctx)


app = typer.Typer(
    cls=Commands,
    help="Answers questions that need several documents at once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
ASK, INDEX, LOOK_AFTER, MEASURE, SERVE = "Ask", "Index", "Look after", "Measure", "Serve"


@app.callback(invoke_without_command=True)
def read_options(
    ctx: typer.Context,
    workspace: Annotated[
        Path | None,
        path_option("FOLDER", "Workspace (default: MARA_WORKSPACE, else ./.mara).", "--workspace", "-w"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Answers questions that need several documents at once. The options may also stand behind a command."""
    ctx.obj = Everywhere(workspace, as_json)
    if version:
        from importlib.metadata import version as version_of

        print(version_of("mara-rag"))  # noqa: T201
        raise typer.Exit


@app.command(rich_help_panel=ASK)
@command
def ask(
    question: QuestionArgument,
    *,
    workspace: Path,
    workflow: WorkflowOption = Workflow.MARA,
    asked: Asking,
    explain: Annotated[Path | None, path_option("FILE", "Also explain it: a page (.html) or data (.json).")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also show how passages were found and judged.")] = False,
    as_json: bool,
) -> None:
    """Answer a question from the workspace, citing passages."""
    from workflows.cli.live_answer import ask_live, spent

    if explain is not None:
        from workflows.explaining import check_target

        check_target(explain)
    context = asking_settings(workspace, workflow=workflow, **vars(asked))
    result = ask_live(" ".join(question), context, silent=as_json)
    has_filter = bool(context.where or context.as_of)
    show = partial(render.answer, result=result, verbose=verbose, has_filter=has_filter)
    write(result, show, as_json=as_json)
    if not as_json:
        sys.stdout.flush()
        print(spent(result), file=sys.stderr)  # noqa: T201
    if explain is not None:
        from workflows.explaining import explain as explained
        from workflows.explaining import write_explanation

        try:
            write_explanation(explained(result, context), explain)
        except MaraError as fault:  # The result stands on standard output already.
            complain(fault)
            raise typer.Exit(fault.exit_code) from None
        print(visible(f"explained in {explain}"), file=sys.stderr)  # noqa: T201


@app.command(rich_help_panel=ASK)
@command
def demo(workspace: Path = Path(".mara-demo")) -> Shown:
    """Index the bundled sample corpus (into .mara-demo, unless -w names a folder) and answer its 20 questions."""
    from workflows.admin.demo import run_demo

    with progress_bars() as progress:
        return Shown(run_demo(workspace, progress), render.demo)


_SOURCES_HELP = "Files and folders to read: text, web pages, PDF, Office documents, mails, books, tables, corpora."


@app.command(rich_help_panel=INDEX)
@command
def index(
    sources: Annotated[list[Path], path_argument("SOURCES", _SOURCES_HELP)],
    *,
    workspace: Path,
    run: Indexing,
    as_json: bool,
) -> Shown:
    """Read documents, extract their facts, and add them to a workspace."""
    return _index(run, (sources, workspace, run.triples), run.made(), silent=as_json)


@app.command(rich_help_panel=INDEX)
@command
def sync(
    sources: Annotated[list[Path], path_argument("FOLDERS", _SOURCES_HELP)],
    *,
    workspace: Path,
    run: Indexing,
    replace_all: Annotated[bool, typer.Option("--replace-all", help="Remove even every earlier passage.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on: sync again whenever a file changes.")] = False,
    as_json: bool,
) -> Shown | None:
    """Make a workspace match its documents: passages of all others are removed. `mara index` only adds."""
    paths, settings = (sources, workspace, run.triples), run.made(replace_all=replace_all)
    if not watch:
        return _index(run, paths, settings, sync=True, silent=as_json)
    from workflows.cli.watch import check_folders, follow

    if run.dry_run:
        raise BadInput("--watch does not go with --dry-run", "Leave one of them out")
    check_folders(sources)
    again = partial(_report, paths, settings, sync=True, silent=as_json, transient=True)
    follow(sources, again, as_json=as_json)
    return None


@app.command(rich_help_panel=INDEX)
@command
def remove(
    *,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="IDs of passages or documents.")] = None,
    source: Annotated[list[str] | None, typer.Option(help="`source` of passages to remove. Repeatable.")] = None,
    workspace: Path,
) -> Shown:
    """Remove passages and the facts found only in them."""
    from workflows.admin.removal import remove_passages

    return Shown(remove_passages(workspace, ids or [], source or []), render.removal)


def _index(
    run: Indexing,
    paths: tuple[list[Path], Path, Path | None],
    settings: IndexingContext,
    *,
    sync: bool = False,
    silent: bool,
) -> Shown:
    """Index or sync, or preview that, as the options of the command say."""
    if run.dry_run:
        from workflows.indexing_run.preview import preview_changes

        changes = preview_changes(*paths, sync=sync, settings=settings, sample=run.sample)
        return Shown(changes, render.preview, REFUSED if changes["refused"] else 0)
    report = _report(paths, settings, sync=sync, silent=silent)

    def show(console: Console, body: Any) -> None:
        render.index_report(console, report, paths[-1])

    return Shown(report.to_json(), show, REFUSED if report.refused_count else 0)


def _report(
    paths: tuple[list[Path], Path, Path | None],
    settings: IndexingContext,
    *,
    sync: bool,
    silent: bool,
    transient: bool = False,
) -> IndexReport:
    """Index or sync, with bars that tell how far it is, and return what was done."""
    from workflows.indexing import index_sources

    publish_interrupted(paths[1])
    with progress_bars(silent=silent, transient=transient) as progress:
        return index_sources(*paths, progress=progress, sync=sync, settings=settings)


@app.command(rich_help_panel=LOOK_AFTER)
@command
def doctor(
    *,
    workspace: Path,
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild what disagrees with the record.")] = False,
    reembed: Annotated[bool, typer.Option("--reembed", help="Embed everything by the configured model.")] = False,
    join: Annotated[bool, typer.Option("--join-record", help="Let the folder have a record in Postgres.")] = False,
    move: Annotated[bool, typer.Option("--move-record", help="Move record and history to Postgres.")] = False,
    record: Annotated[str, typer.Option(metavar="NAME", help="Record to join or to move to.")] = "",
) -> Shown:
    """Check that a workspace's record, snapshot and search index are intact and agree; repair or move them."""
    from workflows.admin.upkeep import join_record, move_record, run_doctor
    from workflows.indexing import reembed_workspace

    if repair + reembed + join + move > 1 or (record and not (join or move)):
        raise BadInput("It is not clear what is to be done", "Give one of --repair, --reembed, --join-record, ...")
    if reembed:
        return Shown(reembed_workspace(workspace), render.fields)
    if join:
        return Shown(join_record(workspace, record), render.fields)
    if move:
        return Shown(move_record(workspace, record), render.fields)
    if not repair:
        publish_interrupted(workspace)
    result = run_doctor(workspace, repair=repair)
    return Shown(result, render.doctor, 0 if result["ok"] else WorkspaceDamaged.exit_code)


for answering in (chat, batch):
    app.command(rich_help_panel=ASK)(answering)
for name, group, panel in (
    ("show", show, LOOK_AFTER),
    ("correct", correct, LOOK_AFTER),
    ("history", history, LOOK_AFTER),
    ("graph", graph, LOOK_AFTER),
    ("eval", evaluation, MEASURE),
    ("tune", tune, MEASURE),
    ("serve", serve, SERVE),
):
    app.add_typer(group, name=name, rich_help_panel=panel)
for commands in (app, show, correct, history, graph, evaluation, tune, serve):
    for registered in commands.registered_commands:
        registered.epilog = "Every command takes -w FOLDER, its workspace, and --json."


def main() -> None:
    """Run the command line; with ``--json``, what is wrong with the arguments is told in JSON too."""
    try:
        with traces_delivered():
            if "--json" not in sys.argv[1:]:
                app()
            sys.exit(app(standalone_mode=False))
    except SystemExit as end:
        _leave_at_once_if_stopped(end.code)
        raise
    except TyperException as fault:
        message = getattr(fault, "format_message", fault.__str__)()
        usage = BadInput(message.rstrip("."), "See `mara --help`")
        print(visible_json(error_body(usage)))  # noqa: T201
        sys.exit(usage.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except OSError as fault:
        sys.exit(f"The result cannot be written: {fault.strerror or fault}")


def _leave_at_once_if_stopped(code: str | int | None) -> None:
    """End the process where a stopped run still waits for replies; everything committed is on the disk."""
    # Where nothing imported it, nothing ran.
    runs = sys.modules.get("workflows.runtime.own_run")
    if runs is not None and runs.work_is_left_behind():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else bool(code))
