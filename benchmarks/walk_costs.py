"""What parts of a walk cost: preparing β, the nodes alone, an arc."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.machine import Touched, touched_by_matrix, touched_by_push
from benchmarks.synthetic import Question
from benchmarks.walk_timing import Table
from graph.construction.edges import TypedGraph
from graph.walk.engines import push
from graph.walk.engines.transition import degrees
from graph.walk.factors import edge_factors
from graph.walk.pagerank import Engine, walk
from graph.walk.sparse import SparseVector

_DAMPING = 0.5


@dataclass(frozen=True, slots=True)
class BetaCost:
    """Preparing β beside the walk of the engine ``matrix`` that it is a part of, in ms, question by question."""

    degrees: list[float]
    walk: list[float]


def measure_beta(graph: TypedGraph, questions: Sequence[Question]) -> BetaCost:
    """Measure how long the degrees under β take, and how long a walk takes."""
    cost = BetaCost([], [])
    for question in questions:
        factors = edge_factors(question.beta)
        cost.degrees.append(_ms(degrees, graph, factors))
        cost.walk.append(_ms(walk, graph, question.restart, factors, _DAMPING, Engine.MATRIX))
    return cost


def measure_push_floor(graph: TypedGraph, questions: Sequence[Question]) -> list[float]:
    """Measure walks of ``push`` that leave all mass where it is, in ms."""
    found = []
    for question in questions:
        restart = SparseVector.of(question.restart / question.restart.sum())
        factors = edge_factors(question.beta)
        found.append(_ms(push.solve, graph, restart, factors, _DAMPING, threshold=1.0))
    return found


def _ms(run: Callable[..., object], *arguments: object, **named: object) -> float:
    start = time.perf_counter()
    run(*arguments, **named)
    return 1000 * (time.perf_counter() - start)


@dataclass(frozen=True, slots=True)
class Limit:
    """What a way followed and touched in its median walk.

    Attributes:
        walker: which way.
        setting: of which table.
        arcs: how many arcs were followed.
        ns_an_arc: time of a walk / its arcs.
        touched: what it must touch in memory, at least.
        ms: time of a walk.
    """

    walker: str
    setting: str
    arcs: int
    ns_an_arc: float
    touched: Touched
    ms: float


def find_limits(graph: TypedGraph, table: Table) -> list[Limit]:
    """Return what our engines followed and touched; PRPACK does not tell."""
    limits = []
    for walker in ("matrix64", "matrix", "push"):
        series = table.of(walker)
        followed = np.array([arcs for arcs in series.arcs if arcs is not None], dtype=float)
        arcs = int(np.median(followed))
        if walker == "push":
            touched = touched_by_push(arcs)
        else:
            touched = touched_by_matrix(graph, arcs, 8 if walker == "matrix64" else 4)
        ns_an_arc = float(np.median(1e6 * np.array(series.ms) / np.maximum(followed, 1)))
        limits.append(Limit(walker, table.setting, arcs, ns_an_arc, touched, float(np.median(series.ms))))
    return limits
