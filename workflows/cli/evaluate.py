"""The commands ``mara batch``, ``eval`` and ``compare``: the questions of a file answered, measured and compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from graph.errors import BadInput
from graph.retrieve.modes import Mode
from workflows.cli.command import Shown, command, default_group, progress_bars
from workflows.cli.options import (
    AskingBatch,
    ModelOption,
    PriceInOption,
    PriceOutOption,
    WorkflowOption,
    asking_settings,
    path_argument,
    path_option,
)
from workflows.cli.render import escape, pairs
from workflows.output.printable import VisibleConsole
from workflows.settings.enums import Format, Workflow

if TYPE_CHECKING:
    from workflows.evaluation.compare import Comparison
    from workflows.runs.run_folder import Row, Run


_NAMED_QUESTIONS = 5
_SHOWN_DEPTHS = ("2", "5", "10")


ConcurrencyOption = Annotated[int | None, typer.Option(min=1, max=256, help="Questions answered in parallel.")]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Folder of a `mara eval` run, or FOLDER:SYSTEM.")]


evaluation = default_group("run", "Measure systems on questions with answers, and compare them.")


@evaluation.command("run")
@command
def evaluate(
    questions: Annotated[
        Path,
        path_argument("QUESTIONS", "JSON lines of {question, answers, gold_ids}; MuSiQue, HotpotQA, 2Wiki, HippoRAG."),
    ],
    out: Annotated[Path, path_option("FOLDER", "Folder for the run; resumes a run found there.")],
    workspace: Path,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SYSTEM",
            help="System to evaluate: a mode, ragenta or basic-rag, plus switches, as in mara+no-beta+damping=0.5;"
            " closed-book or gold-passages. Repeatable (default: all six modes).",
        ),
    ] = None,
    answers: Annotated[bool, typer.Option("--answers", help="Compare the answers of nine systems in a table.")] = False,
    ablations: Annotated[bool, typer.Option("--ablations", help="Also evaluate ablations and controls.")] = False,
    limit: Annotated[int | None, typer.Option(help="Evaluate a random sample of N questions (default all).")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample and of random β.")] = 0,
    retrieval_only: Annotated[bool, typer.Option("--retrieval-only", help="Write no answers.")] = False,
    model: ModelOption = None,
    concurrency: ConcurrencyOption = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="SYSTEM", help="System to compare with (default hybrid, else the first one).")
    ] = None,
    price_in: PriceInOption = None,
    price_out: PriceOutOption = None,
    restart: Annotated[bool, typer.Option("--restart", help="Delete the run in that folder and start over.")] = False,
) -> Shown:
    """Evaluate systems on a file of questions: recall, answers, latency and a report, in a folder."""
    from agents.chat.usage import prices_of
    from workflows.evaluation.runner import Order
    from workflows.evaluation.runner import evaluate as run_evaluation
    from workflows.evaluation.systems import ABLATIONS, answer_systems
    from workflows.runtime.resources import chat_model_name

    if answers and retrieval_only:
        raise BadInput("--answers and --retrieval-only exclude each other", "Leave one out")
    context = asking_settings(workspace, model=model)
    side_by_side = answer_systems(chat_model_name(context)) if answers else []
    systems = list(mode or (side_by_side if answers else Mode))
    prices = prices_of(price_in, price_out)
    others = [*side_by_side, *(ABLATIONS if ablations else ())]
    order = Order(
        questions,
        out,
        [*systems, *(name for name in dict.fromkeys(others) if name not in systems)],
        context,
        limit=limit,
        seed=seed,
        retrieval_only=retrieval_only,
        concurrency=concurrency,
        prices=prices,
        baseline=baseline,
        restart=restart,
    )
    with progress_bars(VisibleConsole(stderr=True, emoji=False, highlight=False, soft_wrap=True)) as progress:
        run = run_evaluation(order, progress)
    body = {"folder": str(run.folder), **run.metrics}
    return Shown(body, lambda terminal, _: _show_run(terminal, run, answers=answers))


def _show_run(console: Console, run: Run, *, answers: bool) -> None:
    """Print a line for each system, what went wrong, and where the rest is."""
    from workflows.evaluation.report import LESS_BASELINE, SIDE_BY_SIDE, cells_of, difference_cell, remarks, text

    systems, less = run.metrics["systems"], run.metrics["differences"]
    about = run.settings["questions"]
    console.print(f"{about['asked']} questions of {escape(about['file'])}")
    if answers:
        console.print(_table(["system", *SIDE_BY_SIDE], cells_of(systems, SIDE_BY_SIDE)))
        console.print(f"[dim]{text('short_legend')}[/]")
        for remark in remarks(run.settings["models"]["chat"]):
            console.print(f"[yellow]{escape(remark)}[/]")
    else:
        columns = _measures(systems)
        console.print(_table(["system", *columns], cells_of(systems, columns)))
        console.print("[dim]all@k: share of questions with all their gold passages among the first k[/]")
        if about["asked"] > about["without_gold"] and less:
            console.print(f"less {escape(run.metrics['baseline'])}, with 95 % intervals:")
            cells = [[name, *(difference_cell(own[metric]) for metric in LESS_BASELINE)] for name, own in less.items()]
            console.print(_table(["system", *LESS_BASELINE.values()], cells))
    for system, figures in systems.items():
        if figures["failed"]:
            console.print(
                f"[red]{escape(system)}: {figures['failed']} failed ({escape(pairs(figures['failures']))})[/]"
            )
        if figures["fallbacks"]:
            console.print(f"[yellow]{escape(system)}: fallbacks {escape(pairs(figures['fallbacks']))}[/]")
    if about["without_gold"]:
        console.print(f"[yellow]{about['without_gold']} questions without gold passages are not in recall and MRR[/]")
    if about["unresolved_gold"]:
        console.print(f"[yellow]{about['unresolved_gold']} gold passages are not in the workspace[/]")
    console.print(f"[dim]{escape(str(run.folder / 'report.md'))}[/]")


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table: each row begins with a name, which may fold; the others are figures."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column(headings[0], overflow="fold")
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _measures(systems: Mapping[str, Row]) -> dict[str, Any]:
    """Return the columns of the table of systems."""
    from workflows.evaluation.report import RETRIEVAL, number

    shown = [f"{name}@{depth}" for name in ("R", "all") for depth in _SHOWN_DEPTHS]
    columns = {heading: RETRIEVAL[heading] for heading in (*shown, "MRR")}
    if any(figures["f1"]["mean"] is not None for figures in systems.values()):
        columns |= {"EM": number("em"), "F1": number("f1.mean")}
    return {**columns, "p50 ms": number("latency_ms.total.p50", 1)}


@evaluation.command()
@command
def compare(
    run_a: RunArgument,
    run_b: RunArgument,
    metric: Annotated[list[str] | None, typer.Option(help="Metric, as recall@5 (default: all). Repeatable.")] = None,
) -> Shown:
    """Compare two runs question by question: differences B - A with intervals and tests, wins and losses."""
    from workflows.evaluation.compare import compare_runs

    comparisons = compare_runs(run_a, run_b, metric or [])
    body = {"comparisons": [each.to_json() for each in comparisons]}
    return Shown(body, lambda console, _: _show_comparisons(console, comparisons))


def _show_comparisons(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Print the metrics of each comparison, and the questions that are lost."""
    from workflows.evaluation.report import COMPARED, cells_of

    for pair in comparisons:
        console.print(f"A [bold]{escape(pair.a)}[/]  B [bold]{escape(pair.b)}[/]  {pair.paired} questions")
        console.print(_table(["metric", *COMPARED], cells_of({each.metric: each for each in pair.metrics}, COMPARED)))
        console.print(f"B wins {len(pair.won)} questions, loses {len(pair.lost)}, {pair.equal} are equal")
        for verb, ids in (("wins", pair.won), ("loses", pair.lost)):
            if ids:
                console.print(f"[dim]{verb} most clearly: {escape(', '.join(ids[:_NAMED_QUESTIONS]))}[/]")
        if pair.left_out:
            console.print(f"[yellow]left out: {pair.left_out} questions that only one was asked[/]")
        if pair.failed_a or pair.failed_b:
            console.print(f"[yellow]failed, and counted as nothing found: A {pair.failed_a}, B {pair.failed_b}[/]")
        console.print()


@command
def batch(
    *,
    out: Annotated[Path, path_option("FOLDER", "Folder for the answers; resumes a batch found there.")],
    questions: Annotated[
        Path | None,
        path_argument("QUESTIONS", "JSON lines or a list of {id, question}, or any file that `mara eval` reads."),
    ] = None,
    single_question: Annotated[str | None, typer.Option(help="Answer this one question instead of a file.")] = None,
    workspace: Path,
    workflow: WorkflowOption = Workflow.MARA,
    form: Annotated[
        Format,
        typer.Option("--format", help="Write answers.jsonl, answers.json, or full results (debug.jsonl)."),
    ] = Format.JSONL,
    asked: AskingBatch,
    limit: Annotated[int | None, typer.Option(help="Answer only the first N questions (default all).")] = None,
    concurrency: ConcurrencyOption = None,
    restart: Annotated[bool, typer.Option("--restart", help="Delete the batch in that folder and start over.")] = False,
) -> Shown:
    """Answer a file of questions into a folder; resumes if interrupted."""
    from workflows.runs.batch import Order, run_batch

    context = asking_settings(workspace, workflow=workflow, **vars(asked))
    order = Order(out, questions, single_question, context, form, limit, concurrency, restart)
    with progress_bars(VisibleConsole(stderr=True, emoji=False, highlight=False, soft_wrap=True)) as progress:
        done = run_batch(order, progress)
    return Shown(done.summary(), show_summary)


def show_summary(console: Console, summary: Mapping[str, Any]) -> None:
    """Print how many questions have which kind of result, or failed, and where the results are."""
    evidence = f"{summary['evidence']} with quotes that no model checked"
    asked_back = f", {summary['asked_back']} asked back" if summary["asked_back"] else ""
    console.print(
        f"{summary['questions']} questions: {summary['answered']} answered, {evidence},"
        f" {summary['refused']} refused{asked_back}"
    )
    if summary["coverage"]:
        console.print(escape(pairs(summary["coverage"])))
    if summary["failed"]:
        console.print(f"[red]{summary['failed']} failed ({escape(pairs(summary['failures']))})[/]")
    if summary["fallbacks"]:
        console.print(f"[yellow]fallbacks: {escape(pairs(summary['fallbacks']))}[/]")
    if summary["model_calls"]:
        console.print(f"{summary['model_calls']:,} model calls")
    console.print(f"[dim]{escape(summary['file'])}[/]")
