"""``mara batch``: answer the questions of a file into a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from workflows.cli.command import reports_errors, write
from workflows.cli.options import (
    AlphaOption,
    AsOfOption,
    BarOption,
    JsonOption,
    ModelOption,
    ModeOption,
    TopKOption,
    WhereOption,
    WorkflowOption,
    WorkspaceOption,
    asking_settings,
    named_path,
)
from workflows.cli.progress_bars import progress_bars
from workflows.cli.render import escape
from workflows.output.printable import VisibleConsole
from workflows.runs.batch_rows import Format
from workflows.settings.enums import Workflow


@reports_errors
def batch(
    out: Annotated[
        Path,
        typer.Option(parser=named_path, metavar="FOLDER", help="Folder for the answers; resumes a batch found there."),
    ],
    questions: Annotated[
        Path | None,
        typer.Argument(
            parser=named_path,
            metavar="QUESTIONS",
            help="Questions: JSON lines or a JSON list of {id, question}, or any file that `mara eval` reads.",
            show_default=False,
        ),
    ] = None,
    single_question: Annotated[
        str | None, typer.Option(help="Answer this one question instead of a file.", show_default=False)
    ] = None,
    workspace: WorkspaceOption = None,
    workflow: WorkflowOption = Workflow.MARA,
    form: Annotated[
        Format,
        typer.Option(
            "--format", help="Write answers.jsonl (jsonl), answers.json (json), or full results as debug.jsonl (debug)."
        ),
    ] = Format.JSONL,
    mode: ModeOption = None,
    alpha: AlphaOption = None,
    n: BarOption = None,
    top_k: TopKOption = None,
    model: ModelOption = None,
    where: WhereOption = None,
    as_of: AsOfOption = None,
    limit: Annotated[
        int | None, typer.Option(help="Answer only the first N questions (default all).", show_default=False)
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1, max=256, help="Questions answered in parallel (default 4 with a chat model).", show_default=False
        ),
    ] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Delete the batch in that folder and start over.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Answer a file of questions into a folder; resumes if interrupted."""
    from workflows.runs.batch import Order, run_batch

    context = asking_settings(
        workspace,
        where,
        workflow,
        mode=mode,
        alpha=alpha,
        n=n,
        top_k=top_k,
        model=model,
        as_of=as_of,
    )
    order = Order(
        out=out,
        questions=questions,
        single_question=single_question,
        context=context,
        form=form,
        limit=limit,
        concurrency=concurrency,
        restart=restart,
    )
    with progress_bars(VisibleConsole(stderr=True, emoji=False, highlight=False, soft_wrap=True)) as progress:
        done = run_batch(order, progress)
    body = done.summary()
    write(body, lambda console: show_summary(console, body), as_json=as_json)


def show_summary(console: Console, summary: Mapping[str, Any]) -> None:
    """Print how many questions have which kind of result, or failed, and where the results are."""
    evidence = f"{summary['evidence']} with evidence, which nobody judged"
    asked_back = f", {summary['asked_back']} asked back" if summary["asked_back"] else ""
    console.print(
        f"{summary['questions']} questions: {summary['answered']} answered, {evidence},"
        f" {summary['refused']} refused{asked_back}"
    )
    if summary["coverage"]:
        console.print(_listed(summary["coverage"]))
    if summary["failed"]:
        console.print(f"[red]{summary['failed']} failed ({_listed(summary['failures'])})[/]")
    if summary["fallbacks"]:
        console.print(f"[yellow]fallbacks: {_listed(summary['fallbacks'])}[/]")
    if summary["model_calls"]:
        console.print(f"{summary['model_calls']:,} model calls")
    console.print(f"[dim]{escape(summary['file'])}[/]")


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{escape(kind)} {count}" for kind, count in counts.items())
