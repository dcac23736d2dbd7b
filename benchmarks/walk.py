"""The walk: the three engines and the published way side by side, in one run.

    python -m benchmarks.walk [--out DIR] [--sizes 1 8] [--questions 50] [--workspace W] [--seed 0]

Size 1 is a synthetic graph with the counts of HippoRAG 2's graph of MuSiQue. Each question is asked of every way, one
after the other, in an order that is drawn. DIR gets walk.md (tables) and walk.json (every single figure). It takes
about ten minutes at sizes 1 and 8, on a machine that should do nothing else, and needs the extra ``push``. docs/walk.md
tells how to read it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.fresh import measure_peak
from benchmarks.machine import describe_machine
from benchmarks.synthetic import MUSIQUE, synthetic_graph
from benchmarks.walk_report import GraphResult, Results, headline, report
from benchmarks.walk_timing import SETTINGS, UNDIRECTED_SETTING, Table, measure_setting
from benchmarks.walkers import PUBLISHED, REFERENCE, WALKERS
from graph.construction.edges import TypedGraph
from graph.construction.knowledge_graph import load
from graph.errors import MaraError, WorkspaceDamaged, WorkspaceMissing
from graph.storage.workspace import Workspace
from graph.walk.engines import push

_LARGE = 5_000_000
"""From so many edges on, slow ways are asked fewer questions."""


def main() -> None:
    """Measure, write and print."""
    options = _options()
    try:
        push.compiled()
        options.out.mkdir(parents=True, exist_ok=True)
        results = measure(options)
    except MaraError as fault:
        sys.exit(str(fault))
    results.write_json(options.out / "walk.json")
    (options.out / "walk.md").write_text(report(results), encoding="utf-8")
    print(headline(results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/walk"), help="folder for the tables")
    parser.add_argument("--sizes", type=float, nargs="+", default=[1.0, 8.0], help="multiples of MuSiQue's graph")
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--workspace", type=Path, help="measure the graph of a workspace too")
    parser.add_argument("--seed", type=int, default=0)
    large = parser.add_argument_group(f"on graphs of more than {_LARGE:,} edges")
    large.add_argument("--reference-questions", type=int, default=12, help="how many igraph is asked")
    large.add_argument("--published-questions", type=int, default=2, help="how many the published way is asked")
    large.add_argument("--other-questions", type=int, default=5, help="questions by direction, and of all passages")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> Results:
    """Measure everything. Raises MaraError where an extra is not installed or the workspace cannot be read."""
    start = time.perf_counter()
    machine = describe_machine()
    graphs = [measure_graph(name, graph, options) for name, graph in _graphs(options)]
    return Results(machine, options.seed, time.perf_counter() - start, graphs)


def _graphs(options: argparse.Namespace) -> Iterator[tuple[str, TypedGraph]]:
    """Yield the graphs to measure, the real one first: what can fail, fails at once."""
    if options.workspace:
        workspace = Workspace(options.workspace)
        generation = workspace.current()
        if generation is None:
            raise WorkspaceMissing(f"There is no index at {options.workspace}", "Make one with `mara index`")
        try:
            yield "workspace", load(workspace.index_folder(generation)).typed
        except (OSError, ValueError) as fault:
            hint = "Ask it a question with mara, which rebuilds the index"
            raise WorkspaceDamaged(f"The index of {options.workspace} cannot be read ({fault})", hint) from fault
    for size in options.sizes:
        yield f"size {size:g}", synthetic_graph(MUSIQUE.times(size), np.random.default_rng(options.seed))


def measure_graph(name: str, graph: TypedGraph, options: argparse.Namespace) -> GraphResult:
    """Measure all that one graph can tell; its caches are to be empty."""
    rng = np.random.default_rng([options.seed, 1])
    _say(f"{name}: arrays")
    start = time.perf_counter()
    array_bytes = bytes_of_arrays(graph)
    derived = time.perf_counter() - start
    graph.undirected  # noqa: B018 (built on first use)
    built = time.perf_counter() - start - derived
    tables = list(_tables(name, graph, options, rng))
    _say(f"{name}: memory")
    return GraphResult(
        name=name,
        entities=graph.n_entities,
        passages=graph.n_passages,
        edges=len(graph),
        array_bytes=array_bytes,
        derived_seconds=derived,
        igraph_seconds=built,
        tables=tables,
        memory={walker: measure_peak(graph, walker) for walker in WALKERS if walker != "auto"},
    )


def bytes_of_arrays(graph: TypedGraph) -> int:
    """Return the bytes of all arrays that the engines ``matrix`` and ``push`` read."""
    arrays = (graph.source, *graph.forward, *graph.backward, *graph.arriving, graph.n_arcs, graph.kind_degrees)
    return sum(array.nbytes for array in arrays)


def _tables(name: str, graph: TypedGraph, options: argparse.Namespace, rng: np.random.Generator) -> Iterator[Table]:
    limits = {REFERENCE: options.reference_questions, PUBLISHED: options.published_questions}
    for setting in SETTINGS:
        _say(f"{name}: {setting.name}")
        if len(graph) <= _LARGE:
            yield measure_setting(graph, setting, options.questions, rng)
        elif setting is UNDIRECTED_SETTING:
            yield measure_setting(graph, setting, options.questions, rng, limits)
        else:
            yield measure_setting(graph, setting, min(options.questions, options.other_questions), rng)


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
