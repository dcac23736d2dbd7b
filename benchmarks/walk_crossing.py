"""Up to which size of a graph PRPACK costs no more than the engine ``matrix``: what ``auto`` goes by on small graphs.

    python -m benchmarks.walk_crossing [--workspace W ...] [--edges 100 300 ...] [--questions 50] [--seed 0]

Both engines get every question, one after the other, in an order that is drawn, with what a graph needs once prepared:
igraph's object keeps the graph's shape, so that a question only brings its weights. Ratios are between times of the
same question. It prints a table a setting; processor time, since a machine with other work interrupts either.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.agreement import compare
from benchmarks.synthetic import Counts, draw_questions, synthetic_graph
from benchmarks.walk_report import markdown_table, short
from benchmarks.walk_timing import SETTINGS, Setting
from benchmarks.walkers import WALKERS
from graph.construction.edges import TypedGraph
from graph.construction.knowledge_graph import load
from graph.storage.workspace import Workspace
from graph.walk.factors import edge_factors

DEVELOPMENT = Counts(entities=19_400, passages=1_890, facts=16_659, synonyms=11_395, passage_edges=30_463)
"""The graph that mara builds of MuSiQue's development data, in its proportions of edges."""

SIZES = (100, 300, 1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 50_000, 100_000)
_WAYS = ("igraph", "matrix")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", type=Path, nargs="*", default=[], help="measure graphs of workspaces too")
    parser.add_argument("--edges", type=int, nargs="+", default=list(SIZES), help="sizes of synthetic graphs")
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    graphs = list(_graphs(options))
    head = ["graph", "edges", *(f"{way}: ms (quartiles)" for way in _WAYS), "igraph / matrix", "same top 20"]
    for setting in SETTINGS:
        rng = np.random.default_rng([options.seed, 1])
        rows = [[name, *measure(graph, setting, options.questions, rng)] for name, graph in graphs]
        print(f"{setting.name}\n\n{markdown_table(head, rows)}\n", flush=True)


def _graphs(options: argparse.Namespace) -> Iterator[tuple[str, TypedGraph]]:
    for root in options.workspace:
        workspace = Workspace(root)
        generation = workspace.current()
        assert generation is not None
        yield root.name, load(workspace.index_folder(generation)).typed
    for edges in options.edges:
        counts = DEVELOPMENT.times(edges / 58_517)
        yield "synthetic", synthetic_graph(counts, np.random.default_rng(options.seed))


def measure(graph: TypedGraph, setting: Setting, n_questions: int, rng: np.random.Generator) -> list[str]:
    """Return a row: the edges, each way's times, how many times the one the other takes, and their agreement."""
    warming, *questions = draw_questions(graph, 1 + n_questions, rng, every_passage=setting.every_passage)
    symmetric = edge_factors(None, directions=setting.directions).symmetric
    prepared = {way: WALKERS[way].prepare(graph, symmetric) for way in _WAYS}
    ms: dict[str, list[float]] = {way: [] for way in _WAYS}
    alike = 0
    for question in (warming, *questions):
        factors = edge_factors(question.beta, directions=setting.directions)
        scores = {}
        for at in rng.permutation(len(_WAYS)):
            way = _WAYS[at]
            start = time.process_time()
            found = WALKERS[way].answer(graph, prepared[way], question.restart, factors, setting.damping)
            ms[way].append(1000 * (time.process_time() - start))
            scores[way] = found
        agreement = compare(scores["matrix"].scores, scores["igraph"].scores, graph.n_entities, scores["matrix"].error)
        alike += agreement.equal[20]
    timed = {way: np.array(times[1:]) for way, times in ms.items()}
    ratio = np.percentile(timed["igraph"] / timed["matrix"], [25, 50, 75])
    cells = []
    for times in timed.values():
        low, median, high = np.percentile(times, [25, 50, 75])
        cells.append(f"{short(median)} ({short(low)} – {short(high)})")
    low, median, high = ratio
    return [
        f"{len(graph):,}",
        *cells,
        f"{short(median)} ({short(low)} – {short(high)})",
        f"{100 * alike / len(ms['igraph']):.0f} %",
    ]


if __name__ == "__main__":
    main()
