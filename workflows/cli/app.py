"""The command line ``mara``: its commands, and its entry point."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup
from typer.exceptions import TyperException

from graph.errors import BadInput, ServiceUnavailable, WorkspaceDamaged, WorkspaceMissing
from graph.explain.matrices import MatrixWeights
from workflows.cli import render
from workflows.cli.batch import batch
from workflows.cli.chat import chat
from workflows.cli.command import REFUSED, JsonOption, Shown, command, error_body, told_beside_the_result, write
from workflows.cli.compare import compare
from workflows.cli.correct import correct
from workflows.cli.discover import discover, provenance
from workflows.cli.edges import edges
from workflows.cli.evaluate import evaluate, export_beta, export_trec
from workflows.cli.feedback import feedback, tune
from workflows.cli.graph import graph
from workflows.cli.history import forget, history
from workflows.cli.key import key
from workflows.cli.options import (
    Asking,
    Indexing,
    QuestionArgument,
    WorkspaceOption,
    asking_settings,
    path_argument,
    path_option,
    text_option,
    words_of_question,
)
from workflows.cli.plot import plot
from workflows.cli.progress_bars import progress_bars
from workflows.cli.record import record
from workflows.cli.review import review
from workflows.cli.serve import serve
from workflows.cli.versions import versions
from workflows.output.printable import visible, visible_json
from workflows.runtime.trace_delivery import traces_delivered

if TYPE_CHECKING:
    from workflows.settings.indexing import IndexingContext


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


_SOURCES_HELP = "Files and folders to read: text, Markdown, HTML, PDF, Word, tables, corpora, lists of web pages."

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
    run: Indexing,
    dry_run: DryRunOption = False,
    sample: SampleOption = 5,
    as_json: JsonOption = False,
) -> Shown:
    """Read documents, extract their facts, and add them to a workspace."""
    return _index(sources, run, run.settings(), dry_run=dry_run, sample=sample, silent=as_json)


@app.command()
@command
def sync(
    sources: Annotated[list[Path], path_argument("FOLDERS", _SOURCES_HELP)],
    run: Indexing,
    replace_all: Annotated[
        bool, typer.Option("--replace-all", help="Continue even if every passage of the workspace would be removed.")
    ] = False,
    dry_run: DryRunOption = False,
    sample: SampleOption = 5,
    as_json: JsonOption = False,
) -> Shown:
    """Make a workspace match its documents: add, replace and remove passages."""
    settings = run.settings(replace_all=replace_all)
    return _index(sources, run, settings, sync=True, dry_run=dry_run, sample=sample, silent=as_json)


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
    sources: list[Path],
    run: Indexing,
    settings: IndexingContext,
    *,
    sync: bool = False,
    dry_run: bool,
    sample: int,
    silent: bool,
) -> Shown:
    """Index or sync, or preview that, as the options of the command say."""
    from workflows.indexing import index_sources
    from workflows.indexing_run.preview import preview_changes

    given = (sources, run.workspace, run.triples)
    if dry_run:
        found = preview_changes(*given, sync=sync, settings=settings, sample=sample)
        return Shown(found, render.preview, REFUSED if found["refused"] else 0)
    with progress_bars(silent=silent) as progress:
        report = index_sources(*given, progress=progress, sync=sync, settings=settings)

    def show(console: Console, body: Any) -> None:
        render.index_report(console, report, run.triples)

    return Shown(report.to_json(), show, REFUSED if report.refused_count else 0)


@app.command()
@command
def ask(
    question: QuestionArgument,
    asked: Asking,
    personalise: Annotated[
        bool | None,
        typer.Option(
            "--personalise/--impersonal",
            help="Move the ranking towards what the user read, marked and asked (default: impersonal).",
        ),
    ] = None,
    source: Annotated[
        str | None, text_option("NAME", "Use only passages of this source: a file, a page, or a website.")
    ] = None,
    newer_than: Annotated[
        str | None, text_option("DATE", "Use only documents that were updated after this date.")
    ] = None,
    cited_before: Annotated[
        bool,
        typer.Option(
            "--cited-before", help="Use only passages that answers cited in the conversation, or to the user."
        ),
    ] = False,
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
    from workflows.explain import DEFAULT_NODES, check_target, write_explanation
    from workflows.explain import explain as explained

    if explain is not None:
        check_target(explain)
    elif explain_nodes is not None:
        raise BadInput("--explain-nodes needs --explain", "Give --explain with it")
    words = words_of_question(question)
    filters = {"source": source, "newer_than": newer_than, "cited_before": cited_before}
    context = asked.settings(personalise=personalise, **filters)
    result = ask_live(words, context, silent=as_json)
    write(result, lambda console: render.answer(console, result, verbose=verbose), as_json=as_json)
    if not as_json:
        sys.stdout.flush()
        print(spent(result), file=sys.stderr)  # noqa: T201
    if explain is not None:
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
    from workflows.admin.doctor import run_doctor

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


@app.command()
@command
def mcp(
    workspace: WorkspaceOption,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Serve only passages with this metadata, as in `mara ask`; clients can only narrow it. Repeatable.",
        ),
    ] = None,
    user: Annotated[
        str | None, text_option("NAME", "Who asks: write their conversations and views to the history.")
    ] = None,
) -> None:
    """Serve a workspace to MCP clients over stdio, with the tools ask and retrieve."""
    import anyio

    from graph.metadata_filter import parse_where
    from workflows.serving.mcp_server import make_server
    from workflows.serving.mcp_stdio import serve_stdio

    filter_of_all = parse_where(where or [])
    if where or user:
        # Documents may still come, and a server may be about to start: calls report that.
        with suppress(WorkspaceMissing, ServiceUnavailable):
            asking_settings(workspace, where, user=user)
    # What a library prints is held back no longer than a line: at the end it would follow the protocol.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    anyio.run(serve_stdio, make_server(workspace.absolute(), filter_of_all, user or ""))


app.add_typer(plot, name="plot")
app.add_typer(graph, name="graph")
app.add_typer(correct, name="correct")
app.add_typer(record, name="record")
app.command("chat")(chat)
app.command("batch")(batch)
app.command("eval")(evaluate)
app.command("compare")(compare)
app.command("edges")(edges)
app.command("feedback")(feedback)
app.command("review")(review)
app.command("serve")(serve)
app.command("tune")(tune)
app.command("versions")(versions)
app.command("key")(key)
app.command("history")(history)
app.command("discover")(discover)
app.command("provenance")(provenance)
app.command("forget")(forget)


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
    from workflows.runtime.cancellable import work_is_left_behind

    if work_is_left_behind():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else bool(code))
