"""The memory that a walk needs, measured in a process of its own.

    python -m benchmarks.fresh ARGUMENTS-AS-JSON

It prints one line of JSON.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.synthetic import Counts, draw_questions, synthetic_graph
from benchmarks.walkers import WALKERS
from graph.construction.edges import TypedGraph
from graph.walk.factors import edge_factors

_COLUMNS = ("source", "target", "kind", "weight")
_TINY = Counts(entities=300, passages=50, facts=400, synonyms=900, passage_edges=450)
_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Memory:
    """Growth of a process's resident memory while it answers its first question, in bytes.

    Attributes:
        library: by what the engine is made of (igraph, scipy, numba), loaded and tried on a tiny graph.
        graph: by what the engine derives from the graph's columns, or igraph's object.
        peak: at the highest point, over all of this and the walk.
    """

    library: int
    graph: int
    peak: int


def measure_peak(graph: TypedGraph, engine: str) -> Memory:
    """Measure what one walk needs; ``engine`` is one of ``WALKERS``."""
    with tempfile.TemporaryDirectory() as folder:
        for name in _COLUMNS:
            np.save(Path(folder) / f"{name}.npy", getattr(graph, name))
        arguments = {"folder": folder, "engine": engine, "entities": graph.n_entities, "passages": graph.n_passages}
        command = [sys.executable, "-m", "benchmarks.fresh", json.dumps(arguments)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
    return Memory(**json.loads(done.stdout.splitlines()[-1]))


def _memory(folder: str, engine: str, entities: int, passages: int) -> dict[str, int]:
    columns = (np.load(Path(folder) / f"{name}.npy") for name in _COLUMNS)
    graph = TypedGraph(entities, passages, *columns)
    tiny = synthetic_graph(_TINY, np.random.default_rng(0))
    before = _resident()
    _walk_once(tiny, engine)
    library = _resident() - before
    prepared = WALKERS[engine].prepare(graph, True)
    derived = _resident() - before - library
    _walk_once(graph, engine, prepared)
    return {"library": library, "graph": derived, "peak": _peak() - before}


def _walk_once(graph: TypedGraph, engine: str, prepared: Any = None) -> None:
    question = draw_questions(graph, 1, np.random.default_rng(1))[0]
    walker = WALKERS[engine]
    prepared = walker.prepare(graph, True) if prepared is None else prepared
    walker.answer(graph, prepared, question.restart, edge_factors(question.beta), 0.5)


def _resident() -> int:
    """Return the bytes of memory that this process holds now."""
    return _status("VmRSS") or _own_peak()


def _peak() -> int:
    """Return the most that this process ever held.

    ``ru_maxrss`` alone will not do on Linux: a child begins with its parent's.
    """
    return _status("VmHWM") or _own_peak()


def _status(name: str) -> int:
    """Return a line of /proc/self/status in bytes, 0 where there is none."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def _own_peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    print(json.dumps(_memory(**json.loads(sys.argv[1]))))
