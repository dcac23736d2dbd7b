"""The figures of the walk's benchmark: as Markdown, and every single one as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.fresh import Memory
from benchmarks.machine import Machine
from benchmarks.walk_timing import DEPTHS, Series, Table, summarise
from benchmarks.walkers import PUBLISHED, REFERENCE

_MIB = 1024**2


@dataclass(frozen=True)
class GraphResult:
    """The measurements on one graph.

    Attributes:
        name: ``size 1``, say.
        array_bytes: of all arrays that ``matrix`` and ``push`` read.
        derived_seconds: to derive them from the columns.
        igraph_seconds: to build igraph's object.
        memory: by way.
    """

    name: str
    entities: int
    passages: int
    edges: int
    array_bytes: int
    derived_seconds: float
    igraph_seconds: float
    tables: list[Table]
    memory: dict[str, Memory]


@dataclass(frozen=True)
class Results:
    """The measurements of one run.

    Attributes:
        seed: of everything drawn.
        seconds: the whole run.
    """

    machine: Machine
    seed: int
    seconds: float
    graphs: list[GraphResult]

    def write_json(self, path: Path) -> None:
        """Write all figures, those of single questions included."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def report(results: Results) -> str:
    """Return all tables, a graph's after another's."""
    parts = [
        "# The walk, measured",
        _machine(results.machine),
        f"All times of one run of {results.seconds:.0f} s; everything was drawn from seed {results.seed}. Ratios are "
        "medians of each question's own ratio.",
    ]
    for graph in results.graphs:
        parts.extend(_graph(graph))
    return "\n\n".join(parts) + "\n"


def headline(results: Results) -> str:
    """Return the times of all graphs alone."""
    return "\n\n".join(
        f"{graph.name}, {table.setting}\n\n{_times(table)}" for graph in results.graphs for table in graph.tables
    )


def _machine(machine: Machine) -> str:
    caches = ", ".join(f"{level} {size}" for level, size in machine.caches.items())
    versions = ", ".join(f"{name} {number}" for name, number in machine.packages.items())
    return (
        f"{machine.processor or 'Unknown processor'}, {machine.cores} cores, {machine.memory / 1024**3:.0f} GiB "
        f"({caches or 'caches unknown'}), {machine.system}; {versions}. Load before the run: {machine.load:.2f}."
    )


def _graph(graph: GraphResult) -> Iterable[str]:
    yield f"## {graph.name[0].upper()}{graph.name[1:]}"
    yield (
        f"{graph.entities:,} entities, {graph.passages:,} passages, {graph.edges:,} edges. The arrays take "
        f"{graph.array_bytes / _MIB:.0f} MiB, {graph.array_bytes / graph.edges:.1f} bytes an undirected edge, and are "
        f"derived in {short(graph.derived_seconds)} s; igraph's object is built in {short(graph.igraph_seconds)} s."
    )
    for table in graph.tables:
        yield f"### {table.setting[0].upper()}{table.setting[1:]}"
        yield _times(table)
        yield _agreement(table)
    yield from ("### Memory", _memory(graph))


def _times(table: Table) -> str:
    rows = []
    for series in table.series:
        low, median, high, late = np.percentile(series.ms, [25, 50, 75, 95])
        rows.append(
            [
                _label(series),
                str(len(series.ms)),
                short(median),
                f"{short(low)} – {short(high)}",
                short(late),
                *(_ratio(table, other, series) for other in (REFERENCE, PUBLISHED)),
            ]
        )
    return markdown_table(["way", "questions", "median ms", "quartiles", "p95", "x igraph", "x published"], rows)


def _label(series: Series) -> str:
    if series.walker != "auto":
        return series.walker
    return f"auto ({', '.join(sorted(set(series.engines)))})"


def _ratio(table: Table, other: str, series: Series) -> str:
    """Return how many times faster than another way, over the questions that both were asked: the first ones."""
    slower = next((one.ms for one in table.series if one.walker == other), [])
    ratios = [a / b for a, b in zip(slower, series.ms, strict=False)]
    return short(float(np.median(ratios))) if ratios else ""


def _agreement(table: Table) -> str:
    rows = []
    for series in table.series:
        if series.walker == REFERENCE or not series.agreement:
            continue
        found = summarise(series.agreement)
        rows.append(
            [
                _label(series),
                str(found.questions),
                _shares(found.same_order),
                _shares(found.same_set),
                " / ".join(f"{100 * found.overlap[depth]:.1f}" for depth in DEPTHS),
                f"{found.median_distance:.1e}",
                f"{found.largest_distance:.1e}",
                f"{found.median_stated:.1e}",
                "yes" if found.holds else "**no**",
            ]
        )
    depths = " / ".join(map(str, DEPTHS))
    head = [
        "against PRPACK",
        "questions",
        f"% same order, top {depths}",
        f"% same set, top {depths}",
        f"% found of top {depths}",
        "L1, median",
        "L1, largest",
        "error stated, median",
        "holds",
    ]
    return markdown_table(head, rows)


def _shares(by_depth: dict[int, float]) -> str:
    return " / ".join(f"{100 * by_depth[depth]:.0f}" for depth in DEPTHS)


def _memory(graph: GraphResult) -> str:
    columns = 13 * graph.edges / _MIB
    rows = [
        [name, *(short(part / _MIB) for part in (found.library, found.graph, found.peak))]
        for name, found in graph.memory.items()
    ]
    head = ["way", "library, MiB", "arrays or igraph's object, MiB", "peak of the first question, MiB"]
    return f"Growth of a fresh process that holds the graph's columns ({columns:.0f} MiB).\n\n" + markdown_table(
        head, rows
    )


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is text, the others are figures."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def short(number: float) -> str:
    """Return a number with three digits that count, or all of those before the point."""
    if not math.isfinite(number):
        return "–"
    rounded = float(f"{number:.3g}")
    if rounded == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{number:,.{decimals}f}"
