"""Times the ways to walk side by side, question by question, and compares their rankings with those of PRPACK."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.synthetic import Question, draw_questions
from benchmarks.walkers import PUBLISHED, REFERENCE, WALKERS
from graph.construction.edges import TypedGraph
from graph.retrieve.modes import MARA
from graph.walk.engines.reference import PRPACK_ERROR
from graph.walk.factors import edge_factors
from graph.walk.pagerank import Walk
from graph.walk.settings import DIRECTED, UNDIRECTED, Directions

DEPTHS = (5, 20, 100)


@dataclass(frozen=True, slots=True)
class Agreement:
    """One walk beside PRPACK's.

    Attributes:
        equal: by depth, whether the best passages are the same in the same order.
        overlap: by depth, the share of PRPACK's best passages that are among the walk's.
        distance: L1 distance of the scores, over all nodes.
        stated: what the engine says that the distance is at most.
    """

    equal: dict[int, bool]
    overlap: dict[int, float]
    distance: float
    stated: float

    @property
    def holds(self) -> bool:
        """Whether the stated error holds, but for PRPACK's own."""
        return self.distance <= self.stated + PRPACK_ERROR


def compare(scores: NDArray[np.float64], reference: NDArray[np.float64], n_entities: int, stated: float) -> Agreement:
    """Compare two walks of one question; passages are ranked by score, ties by index."""
    ranking, expected = (np.argsort(-found[n_entities:], kind="stable")[: max(DEPTHS)] for found in (scores, reference))
    return Agreement(
        equal={depth: bool(np.array_equal(ranking[:depth], expected[:depth])) for depth in DEPTHS},
        overlap={depth: _share(ranking[:depth], expected[:depth]) for depth in DEPTHS},
        distance=float(np.abs(scores - reference).sum()),
        stated=stated,
    )


def _share(found: NDArray[np.intp], expected: NDArray[np.intp]) -> float:
    return len(np.intersect1d(found, expected)) / len(expected) if len(expected) else 1.0


@dataclass(frozen=True, slots=True)
class Summary:
    """The agreement of an engine over several questions.

    Attributes:
        questions: how many were compared.
        same_order: by depth, the share of questions with the same best passages in the same order.
        same_set: by depth, the share of questions with the same best passages in any order.
        overlap: by depth, the mean share of PRPACK's best passages that were found.
        median_distance: of the scores, L1.
        largest_distance: the same, of the question that is farthest off.
        median_stated: the error that the engine states.
        holds: whether no question is farther off than stated.
    """

    questions: int
    same_order: dict[int, float]
    same_set: dict[int, float]
    overlap: dict[int, float]
    median_distance: float
    largest_distance: float
    median_stated: float
    holds: bool


def summarise(found: Sequence[Agreement]) -> Summary:
    """Sum up the agreement of one engine; there is to be at least one question."""
    distances = [one.distance for one in found]
    return Summary(
        questions=len(found),
        same_order={depth: float(np.mean([one.equal[depth] for one in found])) for depth in DEPTHS},
        same_set={depth: float(np.mean([one.overlap[depth] == 1 for one in found])) for depth in DEPTHS},
        overlap={depth: float(np.mean([one.overlap[depth] for one in found])) for depth in DEPTHS},
        median_distance=float(np.median(distances)),
        largest_distance=max(distances),
        median_stated=float(np.median([one.stated for one in found])),
        holds=all(one.holds for one in found),
    )


@dataclass(frozen=True, slots=True)
class Setting:
    """The common part of all walks of a table.

    Attributes:
        every_passage: whether all passages are seeds, rather than 200.
        walkers: the ways that are measured.
    """

    name: str
    directions: Directions
    damping: float
    every_passage: bool
    walkers: tuple[str, ...]


_OURS_AND_REFERENCE = tuple(name for name in WALKERS if name != PUBLISHED)

UNDIRECTED_SETTING = Setting("undirected, damping 0.5", UNDIRECTED, 0.5, False, tuple(WALKERS))
"""The setting of the published walk."""

SETTINGS = (
    UNDIRECTED_SETTING,
    Setting(f"by direction, damping {MARA.damping}", DIRECTED, MARA.damping, False, _OURS_AND_REFERENCE),
    Setting("undirected, damping 0.5, every passage a seed", UNDIRECTED, 0.5, True, _OURS_AND_REFERENCE),
)
"""The published walk, the default one of mode ``mara``, and the published seeding."""


@dataclass(frozen=True)
class Series:
    """The runs of one way, question by question; all lists have one element a question that it was asked.

    Attributes:
        walker: which way.
        engines: the engine that answered.
        ms: how long it took.
        arcs: how many arcs were followed; None where the engine does not tell.
        agreement: with the reference, for the questions that this was asked too.
    """

    walker: str
    engines: list[str] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)
    arcs: list[int | None] = field(default_factory=list)
    agreement: list[Agreement] = field(default_factory=list)


@dataclass(frozen=True)
class Table:
    """The series of one setting."""

    setting: str
    symmetric: bool
    series: list[Series]

    def of(self, walker: str) -> Series:
        """Return the series of a way."""
        return next(series for series in self.series if series.walker == walker)


def measure_setting(
    graph: TypedGraph,
    setting: Setting,
    n_questions: int,
    rng: np.random.Generator,
    limits: Mapping[str, int] | None = None,
) -> Table:
    """Ask every way every question, one after the other, in an order that changes; one question more warms up.

    The order is drawn for each question: what a walk finds in the caches depends on the walk before it.

    Args:
        graph: the graph.
        setting: what the walks have in common.
        n_questions: how many questions are timed.
        rng: draws the questions and the order.
        limits: for ways that are asked less often: how many of the first questions they are asked.
    """
    warming, *questions = draw_questions(graph, 1 + n_questions, rng, every_passage=setting.every_passage)
    symmetric = edge_factors(warming.beta, directions=setting.directions).symmetric
    prepared = {name: WALKERS[name].prepare(graph, symmetric) for name in setting.walkers}
    for name in setting.walkers:
        _answer(graph, setting, name, prepared[name], warming)
    table = Table(setting.name, symmetric, [Series(name) for name in setting.walkers])
    for number, question in enumerate(questions):
        asked = [name for name in setting.walkers if number < (limits or {}).get(name, n_questions)]
        _ask_all(graph, setting, table, [asked[at] for at in rng.permutation(len(asked))], prepared, question)
    return table


def _ask_all(
    graph: TypedGraph,
    setting: Setting,
    table: Table,
    walkers: Sequence[str],
    prepared: Mapping[str, Any],
    question: Question,
) -> None:
    """Time one question by some ways, and add what they did to their series."""
    walks: dict[str, Walk] = {}
    for name in walkers:
        start = time.perf_counter()
        walks[name] = _answer(graph, setting, name, prepared[name], question)
        series = table.of(name)
        series.ms.append(1000 * (time.perf_counter() - start))
        series.engines.append(walks[name].engine.value)
        series.arcs.append(walks[name].arcs)
    if REFERENCE in walks:
        reference = walks[REFERENCE].scores
        for name, found in walks.items():
            table.of(name).agreement.append(compare(found.scores, reference, graph.n_entities, found.error))


def _answer(graph: TypedGraph, setting: Setting, walker: str, prepared: Any, question: Question) -> Walk:
    factors = edge_factors(question.beta, directions=setting.directions)
    return WALKERS[walker].answer(graph, prepared, question.restart, factors, setting.damping)
