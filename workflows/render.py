"""How results look on a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape as escape_markup
from rich.padding import Padding
from rich.table import Table

from graph.errors import MaraError
from workflows.indexing import IndexReport

_SHOWN_PASSAGES = 5
_UNSHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def escape(text: str) -> str:
    """Return text that comes from users, documents or models as a terminal may safely show it.

    Markup is taken literally; control characters and marks that turn the direction of writing are left out.
    """
    return escape_markup(_UNSHOWN.sub("", text))


def error(fault: MaraError) -> str:
    """Return an error as one message with what to do."""
    hint = f"\n[dim]{escape(fault.hint)}.[/]" if fault.hint else ""
    return f"[red]{fault.kind}[/]: {escape(fault.message)}.{hint}"


def index_report(console: Console, report: IndexReport) -> None:
    """Print what an indexing run did."""
    console.print(
        f"[bold]{report.passages}[/] passages in {escape(report.workspace)}: {report.added} added,"
        f" {report.replaced} replaced, {report.unchanged} unchanged, in {report.seconds:.1f} s"
    )
    console.print(f"{report.entities} entities, {report.facts} facts, {report.edges} edges")
    console.print(f"[dim]{_pairs(report.models)}; {report.imported} with imported triples[/]")
    for name in ("long_passages", "identical", "unmatched_triples"):
        if getattr(report, name):
            console.print(f"[yellow]{name.replace('_', ' ')}: {getattr(report, name)}[/]")
    if report.notes:
        console.print(f"[dim]extraction: {_pairs(report.notes)}[/]")
    if report.skipped:
        kinds = {suffix or "(no suffix)": count for suffix, count in report.skipped.items()}
        console.print(f"[yellow]skipped files of other kinds: {escape(_pairs(kinds))}[/]")
    for refused in report.refused:
        console.print(f"[yellow]refused: {escape(refused.reason)}[/]")
    if not report.facts:
        console.print("[yellow]no facts: the walk has only names and passages to go by[/]")


def answer(console: Console, result: Mapping[str, Any]) -> None:
    """Print an answer with its passages, and what happened on the way."""
    console.print(escape(result["answer"]), style="bold")
    console.print()
    cited = {citation["number"] for citation in result["citations"]}
    for number, passage in enumerate(result["passages"][:_SHOWN_PASSAGES], start=1):
        mark = "[green]●[/]" if number in cited else " "
        console.print(
            f"{mark} {escape(f'[{number}]')} [bold]{escape(passage['title'])}[/] [dim]{escape(passage['id'])}[/]"
        )
        console.print(Padding(escape(_shorten(passage["text"])), (0, 0, 0, 6)), soft_wrap=False)
    kept = [fact for fact in result["facts"] if fact["kept"]]
    if kept:
        facts = "; ".join(f"{fact['subject']} {fact['predicate']} {fact['object']}" for fact in kept)
        console.print(f"\n[dim]facts: {escape(facts)}[/]")
    if result["relation_factors"]:
        beta = sorted(result["relation_factors"]["entity_entity"].items(), key=lambda item: -item[1])
        console.print(f"[dim]β: {', '.join(f'{name} {share:.2f}' for name, share in beta)}[/]")
    spent = sum(result["timings_ms"].values())
    ranked_by = result["ranked_by"] or "nothing"
    engine = f" ({result['walk']['engine']})" if result["walk"] else ""
    console.print(f"[dim]ranked by {ranked_by}{engine}; {_pairs(result['models'])}; {spent:.0f} ms[/]")
    for record in result["errors"]:
        console.print(f"[yellow]{escape(record['node'])} (attempt {record['attempt']}): {escape(record['message'])}[/]")


def stats(console: Console, found: Mapping[str, Any]) -> None:
    """Print a workspace's numbers."""
    table = Table(show_header=False, box=None)
    for name, value in found.items():
        table.add_row(name.replace("_", " "), escape(_pairs(value) if isinstance(value, Mapping) else str(value)))
    console.print(table)


def matrices(console: Console, written: Mapping[str, Any]) -> None:
    """Print what an export of relation matrices wrote."""
    edges = {name: matrix["edges"] for name, matrix in written["matrices"].items()}
    console.print(f"Edges by matrix, weighed by {written['weights']}: {_pairs(edges)}")
    nodes = f"{written['n_entities']} entities, {written['n_passages']} passages"
    console.print(f"{nodes}: graph_metadata.json says who they are; all in {escape(written['folder'])}")


def reembedding(console: Console, report: Mapping[str, Any]) -> None:
    """Print what a new embedding did."""
    console.print(
        f"{report['passages']} passages of {escape(report['workspace'])} embedded anew:"
        f" {report['from']} → {report['to']} ({report['dimension']} dimensions)"
    )


def demo(console: Console, result: Mapping[str, Any]) -> None:
    """Print the sample's questions and answers."""
    for each in result["results"]:
        console.print(f"[cyan]?[/] {escape(each['question'])}")
        console.print(Padding(escape(each["answer"]), (0, 0, 0, 2)), style="bold", soft_wrap=False)
        cited = {citation["number"] for citation in each["citations"]}
        for number, passage in enumerate(each["passages"], start=1):
            if number in cited:
                console.print(f"  [dim]{escape(f'[{number}]')} {escape(passage['title'])}[/]")
    n = len(result["results"])
    report = result["index"]
    console.print(
        f"\n{report['passages']} passages, {report['entities']} entities, {report['facts']} facts;"
        f" {n} questions: recall@5 {result['recall_at_5']:.2f},"
        f" {result['answers_with_gold']} answers hold the gold answer"
    )
    console.print(f"[dim]{_pairs(result['results'][0]['models'])}[/]")
    console.print(f'Ask it yourself: mara ask "..." --workspace {escape(report["workspace"])}')


def _pairs(values: Mapping[str, Any]) -> str:
    """Return names and values on one line."""
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _shorten(text: str, limit: int = 240) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
