"""A synthetic graph of a given size, and questions on it: what the walk is measured on.

What is as in graphs of text:

* how many nodes and edges of each sort there are: HippoRAG 2's MuSiQue graph, or a multiple of it;
* a passage holds a dozen names, the first of them its title; most names stand in one passage, few in hundreds;
* facts join names of one passage, so that a name has about as many facts as its passages give it;
* synonyms come in clusters of alike names, from two to a hundred, nearly complete, with bridges between clusters;
* nodes are numbered without regard to their neighbours, as ids that are hashes do: nothing is local in memory.

What is not: which relation type an edge has and what it weighs is drawn, each for itself; passages have no topics, so
that two of them share names by chance alone; bridges lead anywhere; and the seeds of a question lie all over the
graph, where those of a real one are near each other. The last two are hard on caches and on pushing: they err on the
side of slow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import EDGE_KINDS, KIND_INDEX, EdgeKind, TypedGraph
from graph.relations import PassageLink
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS, RelationFactors, RelationType

Keys = NDArray[np.int64]
"""A pair of nodes as one number, first x base + second; ascending, each once."""

_POPULARITY = 0.75
"""Exponent of the share that the n-th most popular name has in further mentions."""
_PASSAGE_SPREAD = 0.5
"""Standard deviation of the logarithm of a passage's share in names."""
_CLUSTER_TAIL = 1.1
_LARGEST_CLUSTER = 101
_BRIDGES = 0.1
"""Share of the synonym edges that leave their cluster."""
_ATTEMPTS = 200
_LEAST_BETA = 0.02


@dataclass(frozen=True, slots=True)
class Counts:
    """How many nodes and edges of each sort a graph has."""

    entities: int
    passages: int
    facts: int
    synonyms: int
    passage_edges: int

    def times(self, factor: float) -> Counts:
        """Return the counts of a graph ``factor`` times as large."""
        return Counts(*(round(getattr(self, field.name) * factor) for field in fields(self)))


MUSIQUE = Counts(entities=85_288, passages=11_656, facts=140_830, synonyms=1_125_951, passage_edges=132_586)
"""The graph that HippoRAG 2 builds of MuSiQue's 11,656 passages."""


def synthetic_graph(counts: Counts, rng: np.random.Generator) -> TypedGraph:
    """Return a graph of exactly these counts: no loops, and each pair of nodes once as fact, synonym or passage edge.

    Raises:
        ValueError: there are fewer names than passages, or no room for so many edges.
    """
    if not counts.passages <= counts.entities <= counts.passage_edges:
        raise ValueError("each passage is to have a name of its own, and each name a passage")
    titles, links = _links(counts, rng)
    base = counts.passages
    facts = _facts(links // base, links % base, counts, rng)
    synonyms = _synonyms(counts, rng)
    source = np.concatenate([facts // counts.entities, synonyms // counts.entities, links // base])
    passages = counts.entities + links % base
    target = np.concatenate([facts % counts.entities, synonyms % counts.entities, passages])
    kind = np.concatenate([_fact_kinds(counts, rng), _synonym_kinds(counts), _link_kinds(links, titles, rng)])
    weight = np.concatenate(
        [
            rng.uniform(0.5, 1, counts.facts) * (1 + rng.poisson(0.1, counts.facts)),
            rng.uniform(0.8, 1, counts.synonyms),
            rng.uniform(0.2, 1, counts.passage_edges),
        ]
    )
    order = np.argsort((source * (counts.entities + counts.passages) + target) * len(EDGE_KINDS) + kind)
    return TypedGraph(
        counts.entities,
        counts.passages,
        source[order].astype(np.int32),
        target[order].astype(np.int32),
        kind[order],
        weight[order].astype(np.float32),
    )


@dataclass(frozen=True)
class Question:
    """A question to a walk: where it starts, which restart weights, and the manager's β."""

    restart: NDArray[np.float64]
    beta: RelationFactors


def draw_questions(
    graph: TypedGraph,
    n: int,
    rng: np.random.Generator,
    *,
    entity_seeds: int = 60,
    passage_seeds: int = 200,
    every_passage: bool = False,
) -> list[Question]:
    """Return questions with seeds all over the graph, each with a β of its own.

    Entity seeds weigh between 0 and 1, alike; passage seeds the fourth power of that: few weigh much. With
    ``every_passage`` all of them are seeds, as published: between 0 and 0.05, alike.
    """
    questions = []
    for _ in range(n):
        restart = np.zeros(graph.n_nodes)
        entities = rng.choice(graph.n_entities, min(entity_seeds, graph.n_entities), replace=False)
        restart[entities] = rng.random(len(entities))
        if every_passage:
            restart[graph.n_entities :] = 0.05 * rng.random(graph.n_passages)
        else:
            passages = rng.choice(graph.n_passages, min(passage_seeds, graph.n_passages), replace=False)
            restart[graph.n_entities + passages] = rng.random(len(passages)) ** 4
        questions.append(Question(restart, _draw_beta(rng)))
    return questions


def _draw_beta(rng: np.random.Generator) -> RelationFactors:
    """Return factors drawn from the flat Dirichlet distribution, none below the floor that the manager's have."""
    by_category = []
    for relations in (ENTITY_RELATIONS, PASSAGE_RELATIONS):
        shares = _LEAST_BETA + (1 - _LEAST_BETA * len(relations)) * rng.dirichlet(np.ones(len(relations)))
        by_category.append({relation.value: float(share) for relation, share in zip(relations, shares, strict=True)})
    return RelationFactors(*by_category)


def _links(counts: Counts, rng: np.random.Generator) -> tuple[Keys, Keys]:
    """Return the titles' pairs (entity, passage), and all pairs: each name has a home, popular ones stand elsewhere."""
    base = counts.passages
    names = rng.permutation(counts.entities)
    share = np.cumsum(rng.lognormal(0.0, _PASSAGE_SPREAD, counts.passages))
    popularity = np.cumsum(np.arange(1.0, counts.entities + 1) ** -_POPULARITY)
    popular = rng.permutation(counts.entities)

    def passages(size: int) -> Keys:
        return np.asarray(np.searchsorted(share, rng.random(size) * share[-1], side="right"), dtype=np.int64)

    def mentions(size: int) -> Keys:
        ranks = np.searchsorted(popularity, rng.random(size) * popularity[-1], side="right")
        return np.asarray(popular[ranks] * base + passages(size))

    titles = names[:base] * base + rng.permutation(base)
    homes = names[base:] * base + passages(counts.entities - base)
    links = _distinct(counts.passage_edges, mentions, rng, kept=np.concatenate([titles, homes]))
    return np.sort(titles), links


def _facts(entity: Keys, passage: Keys, counts: Counts, rng: np.random.Generator) -> Keys:
    """Return pairs of names that share a passage."""
    order = np.argsort(passage, kind="stable")
    entity, passage = entity[order], passage[order]
    size = np.bincount(passage, minlength=counts.passages)
    start = np.cumsum(size) - size

    def pairs(n: int) -> Keys:
        one = rng.integers(0, len(entity), n)
        within = passage[one]
        other = start[within] + (rng.random(n) * size[within]).astype(np.int64)
        return _pairs(entity[one], entity[other], counts.entities)

    return _distinct(counts.facts, pairs, rng)


def _synonyms(counts: Counts, rng: np.random.Generator) -> Keys:
    """Return pairs of names within clusters, and the bridges between clusters."""
    n = counts.entities
    names = rng.permutation(n)
    drawn = 1 + np.minimum(_LARGEST_CLUSTER - 1, rng.pareto(_CLUSTER_TAIL, n)).astype(np.int64)
    ends = np.minimum(np.cumsum(drawn), n)
    sizes = np.diff(ends, prepend=0)
    sizes = sizes[sizes > 0]
    first, second = _pairs_within(sizes)
    alike = min(round((1 - _BRIDGES) * counts.synonyms), len(first))
    chosen = rng.choice(len(first), alike, replace=False, shuffle=False)
    within = _pairs(names[first[chosen]], names[second[chosen]], n)
    cluster = np.empty(n, dtype=np.int64)
    cluster[names] = np.repeat(np.arange(len(sizes)), sizes)

    def bridges(size: int) -> Keys:
        one, other = rng.integers(0, n, (2, size))
        apart = cluster[one] != cluster[other]
        return _pairs(one[apart], other[apart], n)

    return np.concatenate([within, _distinct(counts.synonyms - alike, bridges, rng)])


def _pairs_within(sizes: Keys) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return all pairs of places within runs of these sizes, which follow one another."""
    starts = np.cumsum(sizes) - sizes
    firsts, seconds = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for size in np.unique(sizes):
        one, other = np.triu_indices(size, 1)
        at = starts[sizes == size][:, None]
        firsts.append((at + one).ravel().astype(np.int32))
        seconds.append((at + other).ravel().astype(np.int32))
    return np.concatenate(firsts), np.concatenate(seconds)


def _pairs(one: NDArray[np.int64], other: NDArray[np.int64], base: int) -> Keys:
    """Return the pairs whose ends differ, lower end first."""
    pairs: Keys = (np.minimum(one, other) * base + np.maximum(one, other))[one != other]
    return pairs


def _distinct(count: int, draw: Callable[[int], Keys], rng: np.random.Generator, *, kept: Keys | None = None) -> Keys:
    """Return ``count`` different keys, ``kept`` among them, drawing until there are enough."""
    keys = np.unique(kept) if kept is not None else np.empty(0, np.int64)
    for _ in range(_ATTEMPTS):
        missing = count - len(keys)
        if not missing:
            return keys
        fresh = np.setdiff1d(draw(missing + missing // 4 + 10), keys)
        keys = np.union1d(keys, rng.permutation(fresh)[:missing])
    raise ValueError(f"there is no room for {count} different pairs")


def _fact_kinds(counts: Counts, rng: np.random.Generator) -> NDArray[np.uint8]:
    kinds = np.array([KIND_INDEX[EdgeKind(relation)] for relation in ENTITY_RELATIONS], dtype=np.uint8)
    return rng.choice(kinds, counts.facts)


def _synonym_kinds(counts: Counts) -> NDArray[np.uint8]:
    return np.full(counts.synonyms, KIND_INDEX[EdgeKind(RelationType.SYNONYMY)], dtype=np.uint8)


def _link_kinds(links: Keys, titles: Keys, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return the kinds of passage edges: one own title a passage, the others alike."""
    own = KIND_INDEX[EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE)]
    others = [index for index, kind in enumerate(EDGE_KINDS) if kind.link is not None and index != own]
    kinds = rng.choice(np.array(others, dtype=np.uint8), len(links))
    kinds[np.searchsorted(links, titles)] = own
    return kinds
