"""From columns of evidence to weighted edges: what depends on the whole corpus is decided here, for all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import KIND_INDEX, EdgeKind, Edges
from graph.relations import PassageClasses, PassageLink
from graph.schema import PASSAGE_RELATIONS, RelationType

SYNONYMS_PER_NAME = 100
"""A pair of near names is kept when it is among so many nearest of at least one of its names."""

ROLE_SHARE, SIMILARITY_SHARE, POSITION_SHARE = 0.4, 0.4, 0.2
SUBJECT_ROLE, OBJECT_ROLE, UNTRIPLED_ROLE = 1.0, 0.7, 0.5
ABSENT_POSITION = 0.5
CLASS_QUANTILES = (1 / 3, 2 / 3)
PUBLISHED_CUTS = (0.3, 0.6)
_FREQUENT_PASSAGES, _FREQUENT_SHARE = 20, 0.01

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Marks = NDArray[np.bool_]
Array = NDArray[Any]


PASSAGE_CLASSES = "passage_classes"
"""The note of the record that says where the classes are cut."""


def is_kept(own: Marks, frequency: NDArray[np.integer], n_passages: int) -> Marks:
    """Tell which links stay: a passage's own, and mentions of names that are not too frequent to mean anything.

    Args:
        own: whether each is a name of the passage's own rather than one that its text merely spells out.
        frequency: of each link's name, how many passages spell it.
        n_passages: of the corpus.
    """
    return np.asarray(own | (frequency <= max(_FREQUENT_PASSAGES, _FREQUENT_SHARE * n_passages)))


class LinkTerms(NamedTuple):
    """The parts of the weights of entity-passage edges, one element an edge, each in [0, 1]."""

    role: Doubles
    similarity: Doubles
    position: Doubles

    @property
    def weight(self) -> Doubles:
        """0.4 role + 0.4 similarity + 0.2 position (MARA-RAG)."""
        return ROLE_SHARE * self.role + SIMILARITY_SHARE * self.similarity + POSITION_SHARE * self.position


def link_terms(subject_of: Ints, object_of: Ints, cosines: Floats, offsets: Ints, lengths: Ints) -> LinkTerms:
    """Return the terms of links of entities and passages, one element each.

    Args:
        subject_of: in how many triples of the passage the entity is the subject.
        object_of: in how many it is the object.
        cosines: of the name's vector to the passage's.
        offsets: where the name stands first, in characters; -1 where it does not.
        lengths: of the passages' contents, in characters.

    The role is 0.5 where the entity is in no triple, else its share of being subject (1.0) and object (0.7), at most 1.
    """
    n = subject_of + object_of
    role = np.minimum(1.0, (SUBJECT_ROLE * subject_of + OBJECT_ROLE * object_of) / np.maximum(1, n))
    relative = offsets / np.maximum(1, lengths)
    return LinkTerms(
        role=np.where(n > 0, role, UNTRIPLED_ROLE),
        similarity=(cosines.astype(np.float64) + 1) / 2,
        position=np.where(offsets >= 0, 1 - np.minimum(1, relative), ABSENT_POSITION),
    )


def class_cuts(weights: Doubles, classes: PassageClasses) -> tuple[float, float]:
    """Return the least weights of SECONDARY and of PRIMARY; the weights, of links without titles, are reordered."""
    if classes is not PassageClasses.THIRDS:
        return PUBLISHED_CUTS
    low, high = np.quantile(weights, CLASS_QUANTILES, overwrite_input=True) if len(weights) else (0.0, 0.0)
    return float(low), float(high)


def title_shares(chunk_of: NDArray[np.uint64]) -> Doubles:
    """Return of each passage what share of its title's edge it has: one over the root of its document's chunks.

    ``chunk_of`` has sixteen bytes for the document that each is a chunk of; zeros where it is no chunk.
    """
    _, place, sizes = np.unique(chunk_of, axis=0, return_inverse=True, return_counts=True)
    # Python's power: numpy's differs in the last bit.
    shares = np.array([size**-0.5 for size in sizes.tolist()], dtype=np.float64)
    return np.where(chunk_of.any(axis=1), shares[place.reshape(-1)], 1.0)


def passage_edges(
    entities: Ints, links: Array, is_title: Marks, shares: Doubles, n_entities: int, cuts: tuple[float, float]
) -> Edges:
    """Return the edges of weighed links of entities and passages, classed among those of the corpus.

    Args:
        entities: of the links.
        links: as the build keeps them.
        is_title: whether each entity is the title of some passage.
        shares: of each passage: the share of its title's edge that it has.
        n_entities: how many entities there are; passages are the nodes after them.
        cuts: the least weights of SECONDARY and of PRIMARY.
    """
    titled, weight = links["titled"], links["weight"]
    kind = _passage_kinds(_classify(weight, titled, cuts), titled, is_title)
    share = np.where(titled, shares[links["passage"]], 1.0)
    target = n_entities + links["passage"]
    return _edges(entities, target, kind, weight * share, links["stated"], links["offset"])


def fact_edges(subjects: Ints, objects: Ints, kinds: NDArray[np.uint8], confidences: Doubles) -> Edges:
    """One edge per pair of entities and type: the sum of the confidences of its facts; loops carry nothing.

    Args:
        subjects: entity indices, one element a triple.
        objects: the same.
        kinds: indices into the kinds of the graph.
        confidences: of the triples.
    """
    low, high = np.minimum(subjects, objects), np.maximum(subjects, objects)
    order = np.lexsort((confidences, kinds, high, low))
    order = order[low[order] != high[order]]
    low, high, kind = low[order], high[order], kinds[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1]) | (kind[1:] != kind[:-1])
    first = np.flatnonzero(new)
    sums = np.add.reduceat(confidences[order], first) if len(first) else np.zeros(0)
    counts = np.diff(np.append(first, len(order)))
    return _edges(low[first], high[first], kind[first], sums, counts)


def nearest_pairs(pairs: Ints, cosines: Doubles, start: int, end: int) -> NDArray[np.intp]:
    """Return the places of pairs that are among the nearest ``SYNONYMS_PER_NAME`` of an end within a range.

    Args:
        pairs: all that have such an end, the smaller entity first, shape (n, 2).
        cosines: of their names' vectors.
        start: the first entity of the range.
        end: the one behind it.
    """
    side, place = np.nonzero(((pairs >= start) & (pairs < end)).T)
    name, cosine = pairs[place, side] - start, cosines[place]
    if not len(place):
        return place
    # Names, and of each the nearest first, in one number: sorting these takes a tenth of what sorting by columns does.
    key = name.astype(np.int64) << 32 | ((1 - cosine) * 2**31).astype(np.int64)
    counts = np.bincount(name, minlength=end - start)
    last = np.sort(key)[np.cumsum(counts) - counts + np.minimum(counts, SYNONYMS_PER_NAME) - 1][name]
    near, tied = key < last, np.flatnonzero(key == last)
    ends = pairs[place[tied]]
    order = np.lexsort((ends[:, 1], ends[:, 0], -cosine[tied], name[tied]))
    taken, tied = np.bincount(name[near], minlength=end - start), tied[order]
    tied = tied[taken[name[tied]] + rank_in_group(name[tied]) < SYNONYMS_PER_NAME]
    return np.concatenate([place[near], place[tied]])


def near_name_edges(low: Ints, high: Ints, cosine: Doubles, triple_passages: Ints) -> Edges:
    """Return the edges of pairs of near names.

    HippoRAG 2's weight is 0 where a name stands in no triple: there it is no node.

    Args:
        low: the smaller entity of each pair.
        high: the larger one.
        cosine: of their names' vectors.
        triple_passages: of each entity, in how many passages' triples it stands.
    """
    in_triples = (triple_passages[low] > 0) & (triple_passages[high] > 0)
    kind = np.full(len(low), KIND_INDEX[EdgeKind(RelationType.SYNONYMY)], dtype=np.uint8)
    return _edges(low, high, kind, cosine, np.where(in_triples, cosine, 0.0))


def join_edges(parts: Sequence[Edges]) -> Edges:
    """Return the edges of all parts."""
    return Edges(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Edges)))


def _classify(weight: Doubles, titled: Marks, cuts: tuple[float, float]) -> NDArray[np.intp]:
    """Return 0, 1 or 2: PRIMARY, SECONDARY, PERIPHERAL."""
    low, high = cuts
    classes = np.where(weight >= high, 0, np.where(weight >= low, 1, 2))
    return np.where(titled, 0, classes)


def _passage_kinds(classes: NDArray[np.intp], titled: Marks, is_title: Marks) -> NDArray[np.uint8]:
    of_link = {
        link: np.array([KIND_INDEX[EdgeKind(relation, link)] for relation in PASSAGE_RELATIONS], dtype=np.uint8)
        for link in (PassageLink.OTHER_TITLE, PassageLink.MENTION)
    }
    own = np.uint8(KIND_INDEX[EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE)])
    others = np.where(is_title, of_link[PassageLink.OTHER_TITLE][classes], of_link[PassageLink.MENTION][classes])
    return np.where(titled, own, others).astype(np.uint8)


def rank_in_group(ordered: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return of each element of an ordered column how many equal ones stand before it."""
    return np.arange(len(ordered)) - np.searchsorted(ordered, ordered)


def _edges(
    source: Ints,
    target: Ints,
    kind: NDArray[np.uint8],
    weight: NDArray[np.floating],
    count: NDArray[np.generic],
    offset: Ints | None = None,
) -> Edges:
    return Edges(
        source=source.astype(np.int32),
        target=target.astype(np.int32),
        kind=kind,
        weight=weight.astype(np.float32),
        count=count.astype(np.float32),
        offset=np.full(len(source), -1, dtype=np.int32) if offset is None else offset.astype(np.int32),
    )
