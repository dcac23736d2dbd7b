"""The command line ``mara``: its commands, and its entry point."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup
from typer.exceptions import TyperException

from graph.errors import BadInput, WorkspaceDamaged
from graph.retrieve.modes import MatrixWeights
from workflows.cli import render
from workflows.cli.chat import chat
from workflows.cli.command import (
    REFUSED,
    JsonOption,
    Shown,
    command,
    error_body,
    progress_bars,
    publish_interrupted,
    told_beside_the_result,
    write,
)
from workflows.cli.contents import discover, edges, provenance, versions
from workflows.cli.correct import correct, review
from workflows.cli.evaluate import batch, compare, evaluate, export_beta, export_trec
from workflows.cli.feedback import feedback, tune
from workflows.cli.graph import graph
from workflows.cli.history import forget, history
from workflows.cli.options import (
    Asking,
    Indexing,
    QuestionArgument,
    WorkflowOption,
    WorkspaceOption,
    asking_settings,
    path_argument,
    path_option,
    words_of_question,
)
from workflows.cli.serve import key, mcp, serve
from workflows.output.printable import visible, visible_json
from workflows.runtime.trace_delivery import traces_delivered
from workflows.settings.enums import Workflow
from workflows.settings.indexing import IndexingContext

if TYPE_CHECKING:
    from workflows.indexing_run.report import IndexReport


class Commands(TyperGroup):
    """All commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; tell what an option cannot take in the words of every other setting."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as fault:
            from pydantic import ValidationError

            from workflows.settings.problems import problems_of

            if isinstance(fault.__cause__, ValidationError):
                fault.message = problems_of(fault.__cause__)
            raise


app = typer.Typer(
    cls=Commands,
    help="Answers questions that need several documents at once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
export = typer.Typer(
    help="Export a workspace, or the β (relation weights) or rankings of a run, for other programs.",
    no_args_is_help=True,
)
app.add_typer(export, name="export")


@app.callback(invoke_without_command=True)
def show_version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Answers questions that need several documents at once."""
    if version:
        from importlib.metadata import version as version_of

        print(version_of("mara-rag"))  # noqa: T201
        raise typer.Exit


_SOURCES_HELP = "Files and folders to read: text, web pages, PDF, Office documents, mails, books, tables, corpora."

TriplesOption = Annotated[
    Path | None,
    typer.Option(
        help="File of triples to import instead of extracting: HippoRAG OpenIE JSON, or JSONL. A triple is a JSON list"
        " or object, a Python tuple, or text with bars (a ||| b ||| c)."
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change and what extraction would take; write nothing.")
]
SampleOption = Annotated[
    int,
    typer.Option(min=0, max=1000, help="Passages sampled by a dry run to estimate cost; they are sent to the model."),
]


@app.command()
@command
def index(
    sources: Annotated[list[Path], path_argument("SOURCES", _SOURCES_HELP)],
    *,
    workspace: WorkspaceOption,
    triples: TriplesOption = None,
    run: Indexing,
    dry_run: DryRunOption = False,
    sample: SampleOption = 5,
    as_json: JsonOption = False,
) -> Shown:
    """Read documents, extract their facts, and add them to a workspace."""
    return _index((sources, workspace, triples), run.settings(), dry_run=dry_run, sample=sample, silent=as_json)


@app.command()
@command
def sync(
    sources: Annotated[list[Path], path_argument("FOLDERS", _SOURCES_HELP)],
    *,
    workspace: WorkspaceOption,
    triples: TriplesOption = None,
    run: Indexing,
    replace_all: Annotated[
        bool, typer.Option("--replace-all", help="Continue even if every passage of the workspace would be removed.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on: sync again whenever a file of the folders changes.")
    ] = False,
    dry_run: DryRunOption = False,
    sample: SampleOption = 5,
    as_json: JsonOption = False,
) -> Shown | None:
    """Make a workspace match its documents: add, replace and remove passages."""
    settings = run.settings(replace_all=replace_all)
    if watch:
        from workflows.cli.watch import check_folders, follow

        if dry_run:
            raise BadInput("--watch does not go with --dry-run", "Leave one of them out")
        check_folders(sources)
        again = partial(_report, (sources, workspace, triples), settings, sync=True, silent=as_json, transient=True)
        follow(sources, workspace, again, as_json=as_json)
        return None
    return _index((sources, workspace, triples), settings, sync=True, dry_run=dry_run, sample=sample, silent=as_json)


@app.command()
@command
def remove(
    *,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="IDs of passages or documents.")] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(help="File or address whose passages to remove, as their `source` names it. Repeatable."),
    ] = None,
    workspace: WorkspaceOption,
) -> Shown:
    """Remove passages and the facts found only in them."""
    from workflows.admin.removal import remove_passages

    return Shown(remove_passages(workspace, ids or [], source or []), render.removal)


def _index(
    given: tuple[list[Path], Path, Path | None],
    settings: IndexingContext,
    *,
    sync: bool = False,
    dry_run: bool,
    sample: int,
    silent: bool,
) -> Shown:
    """Index or sync, or preview that, as the options of the command say."""
    if dry_run:
        from workflows.indexing_run.preview import preview_changes

        found = preview_changes(*given, sync=sync, settings=settings, sample=sample)
        return Shown(found, render.preview, REFUSED if found["refused"] else 0)
    report = _report(given, settings, sync=sync, silent=silent)

    def show(console: Console, body: Any) -> None:
        render.index_report(console, report, given[-1])

    return Shown(report.to_json(), show, REFUSED if report.refused_count else 0)


def _report(
    given: tuple[list[Path], Path, Path | None],
    settings: IndexingContext,
    *,
    sync: bool,
    silent: bool,
    transient: bool = False,
) -> IndexReport:
    """Index or sync, with bars that tell how far it is, and return what was done."""
    from workflows.indexing import index_sources

    publish_interrupted(given[1])
    with progress_bars(silent=silent, transient=transient) as progress:
        return index_sources(*given, progress=progress, sync=sync, settings=settings)


@app.command()
@command
def ask(
    question: QuestionArgument,
    *,
    workspace: WorkspaceOption,
    workflow: WorkflowOption = Workflow.MARA,
    asked: Asking,
    explain: Annotated[
        Path | None,
        path_option(
            "FILE", "Write an explanation of the answer: a page (.html), its data (.json) or its graph (.graphml)."
        ),
    ] = None,
    explain_nodes: Annotated[
        int | None, typer.Option(help="Entities and passages to explain, at most (default 60).", min=2, max=2000)
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", help="Also show ids, facts, relation weights (β), judge scores and how passages were ranked."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from the workspace, citing passages."""
    from workflows.cli.live_answer import ask_live, spent

    if explain is not None:
        from workflows.explaining import check_target

        check_target(explain)
    elif explain_nodes is not None:
        raise BadInput("--explain-nodes needs --explain", "Give --explain with it")
    words = words_of_question(question)
    context = asking_settings(workspace, workflow=workflow, **asked.given)
    result = ask_live(words, context, silent=as_json)
    has_filter = bool(context.where or context.as_of)
    show = partial(render.answer, result=result, verbose=verbose, has_filter=has_filter)
    write(result, show, as_json=as_json)
    if not as_json:
        sys.stdout.flush()
        print(spent(result), file=sys.stderr)  # noqa: T201
    if explain is not None:
        from workflows.explaining import DEFAULT_NODES, write_explanation
        from workflows.explaining import explain as explained

        with told_beside_the_result():
            write_explanation(explained(result, context, max_nodes=explain_nodes or DEFAULT_NODES), explain)
            print(visible(f"explained in {explain}"), file=sys.stderr)  # noqa: T201


@app.command()
@command
def stats(
    workspace: WorkspaceOption,
    skipped: Annotated[
        bool, typer.Option("--skipped", help="Name the files that indexing did not read, with the reasons, instead.")
    ] = False,
) -> Shown:
    """Show what a workspace contains."""
    from workflows.admin.inspection import skipped_files, workspace_stats

    if skipped:
        return Shown(skipped_files(workspace), render.skipped)
    return Shown(workspace_stats(workspace), render.stats)


@app.command()
@command
def doctor(
    workspace: WorkspaceOption,
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild whatever disagrees with the record; nothing is embedded.")
    ] = False,
) -> Shown:
    """Check that a workspace's record, snapshot and search index are intact and agree."""
    from workflows.admin.upkeep import run_doctor

    if not repair:
        publish_interrupted(workspace)
    result = run_doctor(workspace, repair=repair)
    return Shown(result, render.doctor, 0 if result["ok"] else WorkspaceDamaged.exit_code)


@export.command("matrices")
@command
def matrices(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="New folder, or the folder of an earlier export.")],
    workspace: WorkspaceOption,
    weights: Annotated[
        MatrixWeights, typer.Option(help="Edge weights: those of mode mara-matrix (counts) or of mode mara (evidence).")
    ] = MatrixWeights.COUNTS,
) -> Shown:
    """Write one sparse matrix per relation type (.npz) and their metadata (JSON), readable with scipy alone."""
    from workflows.admin.export import export_matrices

    return Shown(export_matrices(workspace, folder, weights), render.matrices)


export.command("beta")(export_beta)
export.command("trec")(export_trec)


@app.command()
@command
def reembed(workspace: WorkspaceOption) -> Shown:
    """Recompute all embeddings with the configured embedding model."""
    from workflows.indexing import reembed_workspace

    return Shown(reembed_workspace(workspace), render.reembedding)


@app.command()
@command
def demo(
    workspace: Annotated[Path, typer.Option("--workspace", "-w", help="Folder for the sample index.")] = Path(
        ".mara-demo"
    ),
) -> Shown:
    """Index the bundled sample corpus and answer its 20 questions."""
    from workflows.admin.demo import run_demo

    with progress_bars() as progress:
        return Shown(run_demo(workspace, progress), render.demo)


record = typer.Typer(
    help="A record in Postgres, at the address of MARA_RECORD_URL: join one, or move a workspace's to it.",
    no_args_is_help=True,
)

_Name = Annotated[
    str, typer.Argument(metavar="[NAME]", help="Name of the record; by default the one that the address names.")
]


@record.command()
@command
def join(*, name: _Name = "", workspace: WorkspaceOption) -> Shown:
    """Let a folder have a record that is in Postgres, and derive its index; again, to bring it up to date."""
    from workflows.admin.upkeep import join_record

    found = join_record(workspace, name)
    state = "derived" if found["derived"] else "up to date"
    told = f"Record [bold]{render.escape(found['record'])}[/]: generation {found['generation'] or 'none'}, {state}"
    return Shown(found, told)


@record.command()
@command
def move(*, name: _Name = "", workspace: WorkspaceOption) -> Shown:
    """Move a workspace's record and history from SQLite to Postgres; its index stays as it is."""
    from workflows.admin.upkeep import move_record

    found = move_record(workspace, name)
    told = f"Moved to the record [bold]{render.escape(found['record'])}[/]"
    return Shown(found, f"{told}. No longer needed: {', '.join(found['set_aside'])}")


app.add_typer(graph, name="graph")
app.add_typer(correct, name="correct")
app.add_typer(record, name="record")
for each in (mcp, chat, batch):
    app.command()(each)
app.command("eval")(evaluate)
for each in (compare, edges, feedback, review, serve, tune, versions, key, history, discover, provenance, forget):
    app.command()(each)


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
