"""From columns of evidence to weighted edges: what depends on the whole corpus is decided here, for all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import KIND_INDEX, EdgeKind, Edges, PassageLink
from graph.schema import PASSAGE_RELATIONS, RelationType
from graph.storage.synonym_pairs import SYNONYMS_PER_NAME

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


class PassageClasses(StrEnum):
    """Where PRIMARY, SECONDARY and PERIPHERAL are cut: by thirds of the corpus, or at the published 0.6 and 0.3."""

    THIRDS = "thirds"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class PassageLinks:
    """All links of entities and passages, one element each.

    Attributes:
        passages: indices of the passages.
        entities: indices of the entities.
        subject_of: in how many triples of the passage the entity is the subject.
        object_of: in how many it is the object.
        titled: whether it is the passage's own title.
        offsets: where its name stands first, in characters; -1 where it does not.
        cosines: of the name's vector to the passage's.
        own: whether it is a name of the passage's own rather than one that its text merely spells out.
    """

    passages: Ints
    entities: Ints
    subject_of: Ints
    object_of: Ints
    titled: Marks
    offsets: Ints
    cosines: Floats
    own: Marks

    @property
    def in_triples(self) -> Marks:
        """Whether the entity stands in a triple of the passage."""
        return np.asarray(self.subject_of + self.object_of > 0)

    def without_frequent(self, n_entities: int, n_passages: int) -> PassageLinks:
        """Return the links less the mentions of names that are too frequent to mean anything."""
        frequency = np.bincount(self.entities, minlength=n_entities)
        kept = is_kept(self.own, frequency[self.entities], n_passages)
        return PassageLinks(*(getattr(self, column.name)[kept] for column in fields(PassageLinks)))


def is_kept(own: Marks, frequency: NDArray[np.integer], n_passages: int) -> Marks:
    """Tell which links stay: a passage's own, and mentions of names that are not too frequent to mean anything.

    Args:
        own: see `PassageLinks`.
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
    """Return the terms of links: see `PassageLinks`; ``lengths`` are of the passages' contents, in characters.

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


def passage_edges(
    links: PassageLinks, n_entities: int, lengths: Ints, title_shares: Doubles, classes: PassageClasses
) -> Edges:
    """Weigh each entity-passage edge by role, similarity and position, and class it among the corpus's edges.

    Args:
        links: without frequent mentions.
        n_entities: how many entities there are; passages are the nodes after them.
        lengths: of each passage's content, in characters.
        title_shares: of each passage: the share of its title's edge that it has.
        classes: where the classes are cut.
    """
    weight = link_terms(links.subject_of, links.object_of, links.cosines, links.offsets, lengths[links.passages]).weight
    is_title = np.zeros(n_entities, dtype=bool)
    is_title[links.entities[links.titled]] = True
    low, high = PUBLISHED_CUTS
    if classes is PassageClasses.THIRDS:
        ranked = weight[~links.titled]
        low, high = np.quantile(ranked, CLASS_QUANTILES) if len(ranked) else (0.0, 0.0)
    weighed = WeighedLinks(
        links.passages, links.entities, weight, links.titled, is_title[links.entities], links.in_triples, links.offsets
    )
    return classed_edges(weighed, n_entities, title_shares[links.passages], (float(low), float(high)))


class WeighedLinks(NamedTuple):
    """Links of entities and passages with their weights, one element each; see `PassageLinks`.

    Attributes:
        weight: before it is shared among the chunks of a document.
        is_title: whether the entity is the title of some passage.
    """

    passages: Ints
    entities: Ints
    weight: Doubles
    titled: Marks
    is_title: Marks
    in_triples: Marks
    offsets: Ints


def classed_edges(links: WeighedLinks, n_entities: int, title_shares: Doubles, cuts: tuple[float, float]) -> Edges:
    """Return the edges of weighed links.

    Args:
        links: without frequent mentions.
        n_entities: how many entities there are; passages are the nodes after them.
        title_shares: of each link's passage: the share of its title's edge that it has.
        cuts: the least weights of SECONDARY and of PRIMARY.
    """
    kind = _passage_kinds(_classify(links.weight, links.titled, cuts), links.titled, links.is_title)
    share = np.where(links.titled, title_shares, 1.0)
    target = n_entities + links.passages
    return _edges(links.entities, target, kind, links.weight * share, links.in_triples, links.offsets)


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


def synonym_edges(a: Ints, b: Ints, cosines: Doubles, triple_passages: Ints) -> Edges:
    """Keep a pair when it is among the nearest ``SYNONYMS_PER_NAME`` of at least one of its names.

    HippoRAG 2's weight is 0 where a name stands in no triple: there it is no node.

    Args:
        a: entity index of one name of each pair.
        b: of the other.
        cosines: of their names' vectors.
        triple_passages: of each entity, in how many passages' triples it stands.
    """
    low, high = np.minimum(a, b), np.maximum(a, b)
    order = np.lexsort((high, low, -cosines))
    low, high, cosine = low[order], high[order], cosines[order]
    rank = _rank_of_occurrence(np.stack([low, high], axis=1).ravel()).reshape(-1, 2)
    kept = (rank < SYNONYMS_PER_NAME).any(axis=1)
    return near_name_edges(low[kept], high[kept], cosine[kept], triple_passages)


def near_name_edges(low: Ints, high: Ints, cosine: Doubles, triple_passages: Ints) -> Edges:
    """Return the edges of pairs of names that are kept, see `synonym_edges`."""
    in_triples = (triple_passages[low] > 0) & (triple_passages[high] > 0)
    kind = np.full(len(low), KIND_INDEX[EdgeKind(RelationType.SYNONYMY)], dtype=np.uint8)
    return _edges(low, high, kind, cosine, np.where(in_triples, cosine, 0.0))


def count_passages(entities: Ints, n_entities: int) -> Ints:
    """Return how often each entity occurs among the links."""
    return np.bincount(entities, minlength=n_entities).astype(np.int32)


def join_edges(parts: Sequence[Edges]) -> Edges:
    """Return the edges of all parts."""
    return Edges(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Edges)))


def _classify(weight: Doubles, titled: Marks, cuts: tuple[float, float]) -> NDArray[np.intp]:
    """Return 0, 1 or 2: PRIMARY, SECONDARY, PERIPHERAL."""
    low, high = cuts
    found = np.where(weight >= high, 0, np.where(weight >= low, 1, 2))
    return np.where(titled, 0, found)


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


def _rank_of_occurrence(values: Ints) -> NDArray[np.intp]:
    """Return of each element how many equal ones stand before it."""
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values), dtype=np.intp)
    rank[order] = rank_in_group(values[order])
    return rank


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
