"""Question time without a workflow: rank passages, weigh seeds, walk. Plain functions over an open index.

Each takes the selection of a filter, and then neither reads nor returns what lies outside it; the walk alone crosses
all of the graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import TypedGraph
from graph.construction.knowledge_graph import GraphFact, KnowledgeGraph
from graph.errors import BadInput
from graph.retrieve.convergence import COMPARED, anchors_of, converged
from graph.retrieve.coverage import second_for_open_words
from graph.retrieve.modes import DEFAULT_PASSAGE_WEIGHT, Mode, WalkSettings
from graph.retrieve.open_index import Index
from graph.retrieve.seeds import COMMON_NOUN_SHARE, entity_seeds, min_max, name_seeds, passage_seeds, seed_weights
from graph.retrieve.selection import Selection
from graph.schema import RelationFactors, RelationType
from graph.walk.engines import matrix
from graph.walk.factors import EdgeFactors, edge_factors
from graph.walk.neighbourhood import reach
from graph.walk.pagerank import Walk, walk
from graph.walk.settings import Engine
from graph.walk.sparse import SparseVector

ANCHOR_WEIGHT = 1.0
"""A name in the question that weighs this much anchors the facts that hold it: as much as a fact's entity may weigh."""

CONVERGING = 1.2
"""The weight of entity seeds from which convergence counts, in names of a question that one passage holds: a single
name is one anchor, so they must weigh more."""

FUSED_DEPTH = 200
"""The least number of passages of each list that go into the hybrid one."""

_COMPARED = 8_000_000
"""Numbers in the passages' vectors up to which comparing all takes less time than looking 200 up in Chroma's index:
20,000 passages of 384 dimensions."""

Ranking = list[tuple[int, float]]
"""(passage, score), best first."""


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The description of where a walk starts, from which `restart_of` computes its restart vector.

    Attributes:
        settings: of the walk.
        entities: the weight of each entity seed, by index.
        passages: the weight of each passage seed, by index; None where every passage is one, see `weigh_every_passage`.
        words: the words that every passage is compared with.
        passage_weight: the weight of the passage nearest to them.
        selection: the passages that may be seeds.
    """

    settings: WalkSettings
    entities: Mapping[int, float]
    passages: Mapping[int, float] | None
    words: str = ""
    passage_weight: float = 0.0
    selection: Selection | None = None


def find_facts(
    index: Index, question: str, settings: WalkSettings, selection: Selection | None = None
) -> list[tuple[GraphFact, float]]:
    """Return the candidate facts with their scores, best first.

    The score is the cosine clipped to [0, 1]; HippoRAG 2 normalises over the range of all facts instead.
    """
    facts = index.search_facts(question, settings.fact_candidates, selection)
    if not settings.counts or not facts:
        return facts
    # The farthest fact is looked up by another vector: of few facts, rounding may put one that was found below it.
    low, high = index.least_fact_score(question, selection), facts[0][1]
    return [(fact, max(0.0, (score - low) / (high - low)) if high > low else 1.0) for fact, score in facts]


def rank_passages(
    index: Index,
    question: str,
    mode: Mode,
    k: int,
    alpha: float,
    selection: Selection | None = None,
    *,
    exactly: bool = False,
) -> Ranking:
    """Return the best ``k`` passages by similarity: dense, sparse, or the hybrid of the two lists.

    At alpha 1 the hybrid is the dense ranking, and at alpha 0 the sparse one, with their own scores. With ``exactly``
    the dense list is computed passage by passage, rather than looked up in Chroma's index.
    """
    if mode is Mode.HYBRID and alpha in (0, 1):
        mode = Mode.DENSE if alpha else Mode.SPARSE
    if mode is Mode.DENSE:
        return _rank_dense(index, question, k, selection, exactly=exactly)
    if mode is Mode.SPARSE:
        return _rank_sparse(index, question, k, selection)
    if mode is not Mode.HYBRID:
        raise BadInput(f"Mode {mode} does not rank by similarity", "Choose dense, sparse or hybrid")
    depth = max(k, FUSED_DEPTH)
    sparse = _rank_sparse(index, question, depth, selection)
    return fuse(_rank_dense(index, question, depth, selection, exactly=exactly), sparse, alpha)[:k]


def fuse(dense: Sequence[tuple[int, float]], sparse: Sequence[tuple[int, float]], alpha: float) -> Ranking:
    """Mix two rankings: alpha x dense + (1 - alpha) x sparse, each min-max normalised, absent = 0 (RAGentA).

    Returns (passage, score), best first, ties by index.
    """
    fused: dict[int, float] = defaultdict(float)
    for ranking, share in ((dense, alpha), (sparse, 1 - alpha)):
        scaled = min_max(np.asarray([score for _, score in ranking]))
        for (passage, _), score in zip(ranking, scaled, strict=True):
            fused[passage] += share * float(score)
    return sorted(sorted(fused.items()), key=itemgetter(1), reverse=True)


def seed_passages(
    index: Index, question: str, settings: WalkSettings, limit: int, selection: Selection | None = None
) -> Ranking:
    """Return the ranking that passage seeds are taken from; where all are seeds, the first ``limit`` of it."""
    if not settings.passage_seeds:
        return _rank_exactly(index, question, limit, selection)
    mode = Mode.HYBRID if settings.hybrid_seeds else Mode.DENSE
    return rank_passages(
        index, question, mode, settings.passage_seeds, settings.alpha, selection, exactly=_is_compared(index)
    )


def weigh_entity_seeds(
    index: Index,
    question: str,
    facts: Sequence[tuple[GraphFact, float]],
    settings: WalkSettings,
    selection: Selection | None = None,
) -> dict[int, float]:
    """Return {entity: weight} from the kept facts and from the names that the question spells out.

    A fact counts that holds a name of the question, or that is nearer to the question than any passage is: it is
    shorter, and says one thing. A name counts as far as the corpus writes it as one.
    """
    names = _weigh_names(index, question, settings, selection)
    kept = _anchored(index, question, facts, names, settings, selection)
    passages_of, total, name_shares = _passages_of(index, settings), len(index.graph.passages), index.graph.name_shares

    def rarity_of(entity: int) -> float:
        rarity = settings.entity_rarity.share(passages_of(entity), total)
        return rarity * name_shares.item(entity) if settings.name_shares else rarity

    ends = [(fact.subject, fact.object, score) for fact, score in kept]
    seeds = entity_seeds(ends, rarity_of, settings.entity_seeds)
    for entity, weight in names.items():
        seeds[entity] = seeds.get(entity, 0.0) + weight
    return seeds


def _weigh_names(index: Index, question: str, settings: WalkSettings, selection: Selection | None) -> dict[int, float]:
    """Return {entity: weight} of the names that the question spells out."""
    if not settings.name_weight:
        return {}
    known = None if selection is None else selection.entities
    seeds = name_seeds(question, index.graph.names, _passages_of(index, settings), settings.name_weight, known)
    if not settings.name_shares:
        return seeds
    share_of = index.graph.name_shares.item
    return {entity: weight * max(COMMON_NOUN_SHARE, share_of(entity)) for entity, weight in seeds.items()}


def _anchored(
    index: Index,
    question: str,
    facts: Sequence[tuple[GraphFact, float]],
    names: Mapping[int, float],
    settings: WalkSettings,
    selection: Selection | None,
) -> list[tuple[GraphFact, float]]:
    """Return the facts that hold a name of the question, or are nearer to it than any passage."""
    if not settings.fact_bar or not facts:
        return list(facts)
    bar = settings.fact_bar * _nearest_cosine(index, question, selection)
    anchors = {entity for entity, weight in names.items() if weight >= ANCHOR_WEIGHT}
    return [
        (fact, score) for fact, score in facts if score >= bar or not anchors.isdisjoint((fact.subject, fact.object))
    ]


def _nearest_cosine(index: Index, question: str, selection: Selection | None) -> float:
    """Return the cosine of the passage nearest to a question, of those that are shown; 0 where none is near."""
    nearest = _rank_dense(index, question, FUSED_DEPTH, selection, exactly=_is_compared(index))
    return max(0.0, nearest[0][1]) if nearest else 0.0


def _passages_of(index: Index, settings: WalkSettings) -> Callable[[int], int]:
    """Return what counts the passages of an entity."""
    graph = index.graph
    return (graph.triple_passages if settings.counts else graph.name_passages).item


def trusting(entity_weights: Iterable[float], settings: WalkSettings) -> WalkSettings:
    """Return the settings of a walk as far as its entity seeds are to be trusted: a walk without stays with similarity.

    The damping rises from ``least_damping`` to ``damping``, which it has where the entity seeds weigh as much together
    as one name that the question spells out and one passage holds. Convergence takes more than one name: `CONVERGING`.
    """
    most, least = settings.damping, min(settings.least_damping, settings.damping)
    names = sum(entity_weights) / settings.name_weight if settings.name_weight else CONVERGING
    return replace(
        settings,
        damping=least + (most - least) * min(1.0, names),
        convergence=settings.convergence if names >= CONVERGING else 0.0,
    )


def start_near(
    index: Index,
    words: str,
    entities: Mapping[int, float],
    weight: float,
    settings: WalkSettings,
    selection: Selection | None = None,
    candidates: Ranking | None = None,
) -> Start:
    """Return a start from entities and from the passages nearest to some words: as many as the settings take.

    Args:
        index: the open generation.
        words: the words that are searched with.
        entities: the weight of each entity seed.
        weight: the best passage's, see `effective_passage_weight`.
        settings: of the walk.
        selection: the passages that may be seeds.
        candidates: the ranking that passage seeds are taken from; by default that of `seed_passages`.
    """
    passages = None
    if settings.passage_seeds:
        if candidates is None:
            candidates = seed_passages(index, words, settings, settings.passage_seeds, selection)
        passages = passage_seeds(candidates, weight, settings.passage_seeds, settings.seed_sharpness)
    return Start(settings, entities, passages, words, weight, selection)


def weigh_every_passage(index: Index, start: Start) -> SparseVector:
    """Return the weight of every passage by its similarity to the words of a start; 0 outside its selection."""
    n_passages, selection = len(index.graph.passages), start.selection
    rows = np.arange(n_passages) if selection is None else selection.rows
    scores = index.score_passages(start.words, None if selection is None else rows)
    return SparseVector(n_passages, rows, seed_weights(scores, start.passage_weight, start.settings.seed_sharpness))


def effective_passage_weight(settings: WalkSettings, adaptive_weight: float | None) -> float:
    """Return the passage weight that a walk uses: the manager's scales it where the settings say so."""
    if adaptive_weight is None or not settings.adaptive_passage_weight:
        return settings.passage_weight
    return settings.passage_weight * adaptive_weight / DEFAULT_PASSAGE_WEIGHT


def factors_for(beta: RelationFactors | None, settings: WalkSettings, own: Sequence[RelationType] = ()) -> EdgeFactors:
    """Return the factors of a walk; β counts only where the settings let it.

    Args:
        beta: the manager's factors.
        settings: of the walk.
        own: the graph's own relation types.
    """
    return edge_factors(
        beta if settings.beta else None,
        policy=settings.policy,
        directions=settings.directions,
        own=own,
    )


def walk_passages(
    index: Index,
    words: str,
    restart: SparseVector,
    factors: EdgeFactors,
    settings: WalkSettings,
    k: int,
    engine: Engine = Engine.AUTO,
    selection: Selection | None = None,
) -> tuple[Ranking, Walk]:
    """Walk from a restart vector, see `restart_of`; return the best ``k`` passages, and the walk.

    They are ranked by PageRank. As far as the settings say, the best of them are then ranked by how the walk's anchors
    converge on each, and the second one is chosen for the words that the first one lacks.

    Args:
        index: the open generation.
        words: the question's.
        restart: where the walk starts.
        factors: of its edges.
        settings: of the walk.
        k: how many passages are wanted.
        engine: which engine walks.
        selection: passages that are shown.

    Raises:
        BadInput: there is no seed.
        DependencyMissing: the engine needs a package that is not installed.
    """
    graph, n_entities = walked_graph(index.graph, settings), index.graph.n_entities
    walked = walk(graph, restart, factors, settings.damping, engine, tolerance=matrix.RANKED)
    near = best_reached(walked.reached, n_entities, max(k, COMPARED), selection)
    anchors = anchors_of(restart, n_entities) if settings.convergence else []
    if len(anchors) > 1:
        compared = np.array([n_entities + passage for passage, _ in near[:COMPARED]], dtype=np.intp)
        reached = reach(graph, compared, [anchor.restart for anchor in anchors], factors, settings.damping)
        near = converged(near, [anchor.share for anchor in anchors], reached, settings.convergence)
    if settings.coverage:
        near = _covered(index, words, near, settings.coverage)
    return near[:k], walked


def _covered(index: Index, words: str, near: Ranking, strength: float) -> Ranking:
    """Choose the second passage among the best ones, see `second_for_open_words`."""
    if len(near) < 3:
        return near
    best_ones = near[:COMPARED]
    rows = np.array([passage for passage, _ in best_ones], dtype=np.intp)
    names = [set(index.graph.entities_in(passage).tolist()) for passage in rows.tolist()]
    joined = np.array([not names[0].isdisjoint(others) for others in names], dtype=np.bool_)
    return second_for_open_words(best_ones, *index.held_words(words, rows), joined, strength) + near[COMPARED:]


def walked_graph(graph: KnowledgeGraph, settings: WalkSettings) -> TypedGraph:
    """Return what a walk reads of a graph: its edges with the weights that the settings ask for."""
    if settings.counts:
        return graph.counted
    return graph.with_links(titles=settings.title_edges, mentions=settings.mention_edges)


def restart_of(index: Index, start: Start) -> SparseVector:
    """Return the restart vector of a walk, not normalised: entities ascending, and passages after them."""
    graph = index.graph
    if start.passages is None:
        passages = weigh_every_passage(index, start).nonzero()
    else:
        passages = SparseVector.of_mapping(len(graph.passages), start.passages).nonzero()
    entities = SparseVector.of_mapping(graph.n_entities, start.entities)
    return SparseVector(
        graph.n_nodes,
        np.concatenate([entities.places, graph.n_entities + passages.places]),
        np.concatenate([entities.values, passages.values]),
    )


def best(scores: NDArray[np.float64], k: int, selection: Selection | None = None) -> Ranking:
    """Return the best ``k`` passages by score, ties by index."""
    rows = np.arange(len(scores)) if selection is None else selection.rows
    return _ranked(rows, scores[rows], k)


def best_reached(reached: SparseVector, n_entities: int, k: int, selection: Selection | None = None) -> Ranking:
    """Return the best ``k`` passages of a walk, ties by index; those that it did not reach come last.

    Args:
        reached: the scores of the nodes that it reached.
        n_entities: the node of the first passage.
        k: how many are wanted.
        selection: passages that are shown.
    """
    passages = reached.places >= n_entities
    rows, scores = reached.places[passages].astype(np.int64) - n_entities, reached.values[passages]
    shown = scores > 0 if selection is None else (scores > 0) & selection.passages[rows]
    k = min(k, reached.length - n_entities)
    ranking = _ranked(rows[shown], scores[shown], k)
    if len(ranking) < k:
        others = range(reached.length - n_entities) if selection is None else selection.rows.tolist()
        ranked = {passage for passage, _ in ranking}
        ranking += islice(((row, 0.0) for row in others if row not in ranked), k - len(ranking))
    return ranking


def _is_compared(index: Index) -> bool:
    """Whether a question is compared with every passage, rather than looked up in the search index."""
    return bool(index.graph.passage_vectors.size <= _COMPARED)


def _rank_dense(index: Index, question: str, k: int, selection: Selection | None, *, exactly: bool) -> Ranking:
    if exactly or (selection is not None and _is_few(index, selection)):
        return _rank_exactly(index, question, k, selection)
    return index.search_passages(question, k, selection)


def _is_few(index: Index, selection: Selection) -> bool:
    """Whether a question is compared with every passage of a selection: there are few."""
    return bool(len(selection.rows) * index.graph.passage_vectors.shape[1] <= _COMPARED)


def _rank_exactly(index: Index, question: str, k: int, selection: Selection | None) -> Ranking:
    """Return the best ``k`` passages by cosine, computed for each."""
    if selection is None:
        return best(index.score_passages(question), k)
    return _ranked(selection.rows, index.score_passages(question, selection.rows), k)


def _rank_sparse(index: Index, question: str, k: int, selection: Selection | None) -> Ranking:
    """Return the best ``k`` passages that hold any word of the question."""
    return index.search_words(question, k, None if selection is None else selection.passages)


def _ranked(rows: NDArray[np.intp], scores: NDArray[np.float64], k: int) -> Ranking:
    """Return the best ``k`` of some passages, whose scores come in the same order; ties go to the lower index."""
    least = np.partition(scores, -k)[-k] if 0 < k < len(scores) else -np.inf
    near = np.flatnonzero(scores >= least)
    order = near[np.lexsort((rows[near], -scores[near]))[:k]]
    return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))
