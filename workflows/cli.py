"""The command line: ``mara index``, ``ask``, ``stats``, ``export``, ``reembed`` and ``demo``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from typer.exceptions import TyperException

from graph.errors import BadInput, MaraError
from graph.matrices import MatrixWeights
from graph.modes import Mode, Preset
from graph.pagerank import Engine
from graph.workspace import default_workspace
from workflows import render

app = typer.Typer(
    help="Answers to questions that need several documents at once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
export = typer.Typer(help="Write a workspace out for other programs.", no_args_is_help=True)
app.add_typer(export, name="export")

P = ParamSpec("P")

WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace", "-w", help="Workspace folder; MARA_WORKSPACE or ./.mara by default.", show_default=False
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write the result as JSON on standard output.")]


def _fail(error: MaraError, *, as_json: bool) -> NoReturn:
    if as_json:
        print(json.dumps(_error_body(error), ensure_ascii=False))  # noqa: T201
    else:
        Console(stderr=True, emoji=False, highlight=False).print(render.error(error))
    raise typer.Exit(error.exit_code)


def _error_body(error: MaraError) -> dict[str, Any]:
    return {"error": {"kind": error.kind, "message": error.message, "hint": error.hint}}


def _reports_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Turn the project's errors, and what the disk refuses, into a message and an exit code."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except MaraError as error:
            _fail(error, as_json=bool(kwargs.get("as_json")))
        except OSError as fault:
            place = f"{fault.filename}: " if fault.filename else ""
            refused = BadInput(
                f"{str(place)[:200]}{fault.strerror or fault}", "Check the path, its permissions and the disk"
            )
            _fail(refused, as_json=bool(kwargs.get("as_json")))
        except KeyboardInterrupt:
            Console(stderr=True).print("Stopped. What was committed is kept; run the same command to go on.")
            raise typer.Exit(130) from None

    return guarded


@contextmanager
def _progress_bars() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a progress function that draws bars on a terminal and is silent elsewhere."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bars: dict[str, Any] = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                bars[stage] = progress.add_task(stage, total=total)
            progress.update(bars[stage], completed=done, total=total)

        yield advance


def _write(value: Any, pretty: Callable[[Console], None], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(value, ensure_ascii=False, indent=2))  # noqa: T201
    else:
        pretty(Console(soft_wrap=not sys.stdout.isatty(), emoji=False, highlight=False))


@app.command()
@_reports_errors
def index(
    sources: Annotated[list[Path], typer.Argument(help="Files and folders: .txt, .md, .jsonl, .json.")],
    workspace: WorkspaceOption = None,
    triples: Annotated[
        Path | None,
        typer.Option(help="Precomputed triples: HippoRAG OpenIE JSON, or JSONL of {id, entities, triples}."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read documents, find their facts, and add them to a workspace."""
    from workflows.indexing import index_sources

    with _progress_bars() as progress:
        report = index_sources(sources, workspace or default_workspace(), triples, progress=progress)
    _write(report.to_json(), lambda console: render.index_report(console, report), as_json=as_json)


@app.command()
@_reports_errors
def ask(
    question: Annotated[str, typer.Argument(help="The question; at most 10,000 characters.")],
    workspace: WorkspaceOption = None,
    mode: Annotated[Mode | None, typer.Option(help="How passages are found.")] = None,
    preset: Annotated[Preset | None, typer.Option(help="Settings of the mara walk.")] = None,
    model: Annotated[str | None, typer.Option(help="Chat model, or 'offline'.")] = None,
    top_k: Annotated[int | None, typer.Option(help="How many passages are returned (10).")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Passages that may be seen, by metadata: KEY=VALUE, or with != < <= > >=; may be repeated.",
        ),
    ] = None,
    engine: Annotated[Engine | None, typer.Option(help="What computes the walk (auto).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a question; the answer cites its passages."""
    from graph.where import parse_where
    from workflows.ask import ask as run
    from workflows.context import make_context

    context = make_context(
        workspace=str(workspace) if workspace else None,
        mode=mode,
        preset=preset,
        model=model,
        top_k=top_k,
        where=parse_where(where or []),
        engine=engine,
    )
    result = run(question, context)
    _write(result, lambda console: render.answer(console, result), as_json=as_json)


@app.command()
@_reports_errors
def stats(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Print what a workspace holds."""
    from workflows.inspection import workspace_stats

    found = workspace_stats(workspace or default_workspace())
    _write(found, lambda console: render.stats(console, found), as_json=as_json)


@export.command("matrices")
@_reports_errors
def matrices(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, or that of an earlier export.")],
    workspace: WorkspaceOption = None,
    weights: Annotated[
        MatrixWeights, typer.Option(help="What mode mara-matrix walks on (counts), or mode mara (evidence).")
    ] = MatrixWeights.COUNTS,
    as_json: JsonOption = False,
) -> None:
    """Write one sparse matrix a relation (.npz) and their metadata (JSON), to read with scipy alone."""
    from workflows.export import export_matrices

    written = export_matrices(workspace or default_workspace(), folder, weights)
    _write(written, lambda console: render.matrices(console, written), as_json=as_json)


@app.command()
@_reports_errors
def reembed(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Embed a workspace anew with the configured embedding model."""
    from workflows.indexing import reembed_workspace

    report = reembed_workspace(workspace or default_workspace())
    _write(report, lambda console: render.reembedding(console, report), as_json=as_json)


@app.command()
@_reports_errors
def demo(
    workspace: Annotated[Path, typer.Option("--workspace", "-w", help="Where the sample corpus is indexed.")] = Path(
        ".mara-demo"
    ),
    as_json: JsonOption = False,
) -> None:
    """Index the bundled sample corpus and answer its questions."""
    from workflows.demo import run_demo

    with _progress_bars() as progress:
        result = run_demo(workspace, progress)
    _write(result, lambda console: render.demo(console, result), as_json=as_json)


def main() -> None:
    """Run the command line; with ``--json``, what is wrong with the arguments is told in JSON too."""
    try:
        if "--json" not in sys.argv[1:]:
            app()
        sys.exit(app(standalone_mode=False))
    except TyperException as fault:
        message = getattr(fault, "format_message", fault.__str__)()
        usage = BadInput(message.rstrip("."), "See `mara --help`")
        print(json.dumps(_error_body(usage), ensure_ascii=False))  # noqa: T201
        sys.exit(usage.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
