"""The command line ``mara``: its commands, and its entry point."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from graph.errors import BadInput, ServiceUnavailable, WorkspaceDamaged, WorkspaceMissing
from graph.explain.matrices import MatrixWeights
from graph.storage.workspace import default_workspace
from workflows.cli import render
from workflows.cli.batch import batch
from workflows.cli.chat import chat
from workflows.cli.command import (
    REFUSED,
    error_body,
    publish_interrupted,
    reports_errors,
    told_beside_the_result,
    write,
)
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
    AddressOption,
    AlphaOption,
    AsOfOption,
    BarOption,
    CheckClaimsOption,
    ChunkOverlapOption,
    ChunkTokensOption,
    CitedBeforeOption,
    ClassesOption,
    ConcurrencyOption,
    ConversationOption,
    DatedOption,
    DryRunOption,
    EngineOption,
    ExtractorOption,
    FieldOption,
    IndexingEngineOption,
    JsonOption,
    KeepVersionsOption,
    MetadataOption,
    ModelCallsOption,
    ModelOption,
    ModelTokensOption,
    ModeOption,
    NewerThanOption,
    PersonalOption,
    PresetOption,
    PriceInOption,
    PriceOutOption,
    QuestionArgument,
    QuestionSecondsOption,
    RateOption,
    RelationshipsOption,
    RememberOption,
    SampleOption,
    SourceFilterOption,
    TopKOption,
    TriplesOption,
    TypesOption,
    UserOption,
    WhereOption,
    WorkersOption,
    WorkflowOption,
    WorkspaceOption,
    asking_settings,
    given_text,
    indexing_settings,
    named_path,
    words_of_question,
)
from workflows.cli.plot import plot
from workflows.cli.progress_bars import progress_bars
from workflows.cli.record import record
from workflows.cli.review import review
from workflows.cli.serve import serve
from workflows.cli.versions import versions
from workflows.runtime.printable import visible, visible_json
from workflows.runtime.trace_delivery import traces_delivered
from workflows.settings.enums import Workflow


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


@app.command()
@reports_errors
def index(
    sources: Annotated[list[Path], typer.Argument(help=_SOURCES_HELP, parser=named_path, metavar="SOURCES")],
    workspace: WorkspaceOption = None,
    triples: TriplesOption = None,
    types: TypesOption = None,
    model: ExtractorOption = None,
    field: FieldOption = None,
    metadata: MetadataOption = None,
    chunk_tokens: ChunkTokensOption = None,
    chunk_overlap: ChunkOverlapOption = None,
    concurrency: ConcurrencyOption = None,
    requests_per_minute: RateOption = None,
    engine: IndexingEngineOption = None,
    address: AddressOption = None,
    workers: WorkersOption = None,
    passage_classes: ClassesOption = None,
    price_in: PriceInOption = None,
    price_out: PriceOutOption = None,
    dated: DatedOption = None,
    keep_versions: KeepVersionsOption = None,
    relationships: RelationshipsOption = None,
    dry_run: DryRunOption = False,
    sample: SampleOption = 5,
    as_json: JsonOption = False,
) -> None:
    """Read documents, extract their facts, and add them to a workspace."""
    _index(sync=False, **locals())


@app.command()
@reports_errors
def sync(
    sources: Annotated[list[Path], typer.Argument(help=_SOURCES_HELP, parser=named_path, metavar="FOLDERS")],
    workspace: WorkspaceOption = None,
    triples: TriplesOption = None,
    types: TypesOption = None,
    model: ExtractorOption = None,
    field: FieldOption = None,
    metadata: MetadataOption = None,
    chunk_tokens: ChunkTokensOption = None,
    chunk_overlap: ChunkOverlapOption = None,
    concurrency: ConcurrencyOption = None,
    requests_per_minute: RateOption = None,
    engine: IndexingEngineOption = None,
    address: AddressOption = None,
    workers: WorkersOption = None,
    passage_classes: ClassesOption = None,
    price_in: PriceInOption = None,
    price_out: PriceOutOption = None,
    dated: DatedOption = None,
    keep_versions: KeepVersionsOption = None,
    relationships: RelationshipsOption = None,
    replace_all: Annotated[
        bool, typer.Option("--replace-all", help="Continue even if every passage of the workspace would be removed.")
    ] = False,
    dry_run: DryRunOption = False,
    sample: SampleOption = 5,
    as_json: JsonOption = False,
) -> None:
    """Make a workspace match its documents: add, replace and remove passages."""
    _index(sync=True, **locals())


@app.command()
@reports_errors
def remove(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="IDs of passages or documents.")] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(help="File or address whose passages to remove, as their `source` names it. Repeatable."),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove passages and the facts found only in them."""
    from workflows.admin.removal import remove_passages

    done = remove_passages(workspace or default_workspace(), ids or [], source or [])
    write(done, lambda console: render.removal(console, done), as_json=as_json)


def _index(
    sources: list[Path],
    workspace: Path | None,
    triples: Path | None,
    *,
    sync: bool,
    dry_run: bool,
    sample: int,
    as_json: bool,
    **given: Any,
) -> None:
    """Index or sync, or preview that, as the options of the command say; ``given`` are settings of the run."""
    from workflows.indexing import index_sources
    from workflows.indexing_run.preview import preview_changes

    settings, root = indexing_settings(**given), workspace or default_workspace()
    if dry_run:
        found = preview_changes(sources, root, triples, sync=sync, settings=settings, sample=sample)
        write(found, lambda console: render.preview(console, found), as_json=as_json)
        refused = len(found["refused"])
    else:
        publish_interrupted(root)
        with progress_bars(silent=as_json) as progress:
            report = index_sources(sources, root, triples, progress=progress, sync=sync, settings=settings)
        write(report.to_json(), lambda console: render.index_report(console, report, triples), as_json=as_json)
        refused = report.refused_count
    if refused:
        raise typer.Exit(REFUSED)


@app.command()
@reports_errors
def ask(
    question: QuestionArgument,
    workspace: WorkspaceOption = None,
    workflow: WorkflowOption = Workflow.MARA,
    mode: ModeOption = None,
    preset: PresetOption = None,
    model: ModelOption = None,
    top_k: TopKOption = None,
    where: WhereOption = None,
    as_of: AsOfOption = None,
    engine: EngineOption = None,
    alpha: AlphaOption = None,
    n: BarOption = None,
    check_claims: CheckClaimsOption = None,
    question_s: QuestionSecondsOption = None,
    max_model_calls: ModelCallsOption = None,
    max_model_tokens: ModelTokensOption = None,
    conversation: ConversationOption = None,
    user: UserOption = None,
    remember: RememberOption = None,
    personalise: PersonalOption = None,
    source: SourceFilterOption = None,
    newer_than: NewerThanOption = None,
    cited_before: CitedBeforeOption = False,
    explain: Annotated[
        Path | None,
        typer.Option(
            parser=named_path,
            metavar="FILE",
            help="Write an explanation of the answer: a page (.html), its data (.json) or its graph (.graphml).",
        ),
    ] = None,
    explain_nodes: Annotated[
        int | None,
        typer.Option(help="Entities and passages to explain, at most (default 60).", min=2, max=2000),
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
    asked = words_of_question(question)
    context = asking_settings(
        workspace,
        where,
        workflow,
        mode=mode,
        preset=preset,
        model=model,
        top_k=top_k,
        as_of=as_of,
        engine=engine,
        alpha=alpha,
        n=n,
        check_claims=check_claims,
        question_s=question_s,
        max_model_calls=max_model_calls,
        max_model_tokens=max_model_tokens,
        conversation=conversation,
        user=user,
        remember=remember,
        personalise=personalise,
        source=source,
        newer_than=newer_than,
        cited_before=cited_before,
    )
    result = ask_live(asked, context, silent=as_json)
    write(result, lambda console: render.answer(console, result, verbose=verbose), as_json=as_json)
    if not as_json:
        sys.stdout.flush()
        print(spent(result), file=sys.stderr)  # noqa: T201
    if explain is not None:
        with told_beside_the_result():
            write_explanation(explained(result, context, max_nodes=explain_nodes or DEFAULT_NODES), explain)
            print(visible(f"explained in {explain}"), file=sys.stderr)  # noqa: T201


@app.command()
@reports_errors
def stats(
    workspace: WorkspaceOption = None,
    skipped: Annotated[
        bool, typer.Option("--skipped", help="Name the files that indexing did not read, with the reasons, instead.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a workspace contains."""
    from workflows.admin.inspection import skipped_files, workspace_stats

    found = (skipped_files if skipped else workspace_stats)(workspace or default_workspace())
    show = render.skipped if skipped else render.stats
    write(found, lambda console: show(console, found), as_json=as_json)


@app.command()
@reports_errors
def doctor(
    workspace: WorkspaceOption = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Rebuild whatever disagrees with the record; nothing is embedded."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check that a workspace's record, snapshot and search index are intact and agree."""
    from workflows.admin.doctor import run_doctor

    if not repair:
        publish_interrupted(workspace)
    result = run_doctor(workspace or default_workspace(), repair=repair)
    write(result, lambda console: render.doctor(console, result), as_json=as_json)
    if not result["ok"]:
        raise typer.Exit(WorkspaceDamaged.exit_code)


@export.command("matrices")
@reports_errors
def matrices(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="New folder, or the folder of an earlier export.")],
    workspace: WorkspaceOption = None,
    weights: Annotated[
        MatrixWeights, typer.Option(help="Edge weights: those of mode mara-matrix (counts) or of mode mara (evidence).")
    ] = MatrixWeights.COUNTS,
    as_json: JsonOption = False,
) -> None:
    """Write one sparse matrix per relation type (.npz) and their metadata (JSON), readable with scipy alone."""
    from workflows.admin.export import export_matrices

    written = export_matrices(workspace or default_workspace(), folder, weights)
    write(written, lambda console: render.matrices(console, written), as_json=as_json)


export.command("beta")(export_beta)
export.command("trec")(export_trec)


@app.command()
@reports_errors
def reembed(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Recompute all embeddings with the configured embedding model."""
    from workflows.indexing import reembed_workspace

    report = reembed_workspace(workspace or default_workspace())
    write(report, lambda console: render.reembedding(console, report), as_json=as_json)


@app.command()
@reports_errors
def demo(
    workspace: Annotated[Path, typer.Option("--workspace", "-w", help="Folder for the sample index.")] = Path(
        ".mara-demo"
    ),
    as_json: JsonOption = False,
) -> None:
    """Index the bundled sample corpus and answer its 20 questions."""
    from workflows.admin.demo import run_demo

    with progress_bars() as progress:
        result = run_demo(workspace, progress)
    write(result, lambda console: render.demo(console, result), as_json=as_json)


@app.command()
@reports_errors
def mcp(
    workspace: WorkspaceOption = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Serve only passages with this metadata, as in `mara ask`; clients can only narrow it. Repeatable.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            parser=given_text, metavar="NAME", help="Who asks: write their conversations and views to the history."
        ),
    ] = None,
) -> None:
    """Serve a workspace to MCP clients over stdio, with the tools ask and retrieve."""
    import anyio

    from graph.metadata_filter import parse_where
    from workflows.serving.mcp_server import make_server
    from workflows.serving.mcp_stdio import serve_stdio

    filter_of_all = parse_where(where or [])
    publish_interrupted(workspace)
    if where or user:
        # Documents may still come, and a server may be about to start: calls report that.
        with suppress(WorkspaceMissing, ServiceUnavailable):
            asking_settings(workspace, where, user=user)
    # What a library prints is held back no longer than a line: at the end it would follow the protocol.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    server = make_server((workspace or default_workspace()).absolute(), filter_of_all, user or "")
    anyio.run(serve_stdio, server)


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
