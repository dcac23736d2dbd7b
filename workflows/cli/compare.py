"""``mara compare``: two runs, question by question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from workflows.cli.command import reports_errors, write
from workflows.cli.options import JsonOption, named_path
from workflows.cli.render import escape

if TYPE_CHECKING:
    from workflows.evaluation.compare import Comparison

RunArgument = Annotated[
    str,
    typer.Argument(metavar="RUN", help="Folder written by `mara eval`, or FOLDER:SYSTEM for one of its systems."),
]


@reports_errors
def compare(
    run_a: RunArgument,
    run_b: RunArgument,
    metric: Annotated[
        list[str] | None, typer.Option(help="Metric to compare, such as recall@5. Repeatable (default: all).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(parser=named_path, metavar="FILE.md", help="Write a page that lists the questions won and lost."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs question by question: differences B - A with intervals and tests, wins and losses."""
    from graph.storage.workspace import write_atomically
    from workflows.evaluation.compare import compare_runs
    from workflows.evaluation.reports.comparison_page import comparison_page
    from workflows.runs.output_files import check_output

    if out:
        check_output(out, ".md")
    comparisons = compare_runs(run_a, run_b, metric or [])
    if out:
        write_atomically(out, comparison_page(comparisons))
    body = {"comparisons": [each.to_json() for each in comparisons]}
    write(body, lambda console: _show(console, comparisons, out), as_json=as_json)


def _show(console: Console, comparisons: Sequence[Comparison], out: Path | None) -> None:
    """Print the metrics of each comparison, and where the rest is."""
    from workflows.evaluation.reports.comparison_page import main_metric, verdict
    from workflows.output.markdown import figure, interval, p_value, signed

    for found in comparisons:
        console.print(f"A [bold]{escape(found.a)}[/]  B [bold]{escape(found.b)}[/]  {found.paired} questions")
        table = Table(box=None, pad_edge=False, header_style="dim")
        for heading in ("metric", "questions", "A", "B", "B - A", "95 % interval", "p (Holm)"):
            table.add_column(heading, justify="left" if heading == "metric" else "right", no_wrap=True)
        for each in found.metrics:
            bounds = escape(interval(each.low, each.high))
            cells = (figure(each.a), figure(each.b), signed(each.difference), bounds, p_value(each.p_holm))
            table.add_row(each.metric, str(each.n), *cells)
        console.print(table)
        console.print(f"B wins {len(found.won)} questions, loses {len(found.lost)}, {found.equal} are equal")
        left_out = len(found.only_a) + len(found.only_b)
        if left_out:
            console.print(f"[yellow]left out: {left_out} questions that only one was asked[/]")
        if found.failed_a or found.failed_b:
            console.print(f"[yellow]failed, and counted as nothing found: A {found.failed_a}, B {found.failed_b}[/]")
        console.print(f"{escape(verdict(main_metric(found)))}\n")
    told = f"The page is {escape(str(out))}" if out else "With --out FILE.md: a page with the questions won and lost"
    console.print(f"[dim]{told}[/]")
