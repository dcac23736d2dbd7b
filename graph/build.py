"""From the record to the graph: names, facts and evidence become typed, weighted edges.

Only evidence is stored; what depends on the whole corpus (classes, the cap on synonyms, the cut on frequent names)
is derived here, so that a graph depends on its corpus alone and not on the order in which it was indexed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graph.edges import KIND_INDEX, EdgeKind, Edges, PassageLink
from graph.knowledge_graph import GraphFact, KnowledgeGraph
from graph.names import NameMatcher, find_name
from graph.record import Entry, Record
from graph.schema import PASSAGE_RELATIONS, Fact, RelationType, entity_id
from graph.text import normalise_name, title_name, token_spans

ROLE_SHARE, SIMILARITY_SHARE, POSITION_SHARE = 0.4, 0.4, 0.2
SUBJECT_ROLE, OBJECT_ROLE, UNTRIPLED_ROLE = 1.0, 0.7, 0.5
ABSENT_POSITION = 0.5
SYNONYMS_PER_NAME = 100
CLASS_QUANTILES = (1 / 3, 2 / 3)
_FREQUENT_PASSAGES, _FREQUENT_SHARE = 20, 0.01


@dataclass(slots=True)
class _Link:
    """What is known of one entity in one passage while the graph is built."""

    as_subject: int = 0
    as_object: int = 0
    own_title: bool = False
    offset: int = -1

    @property
    def in_triples(self) -> bool:
        return self.as_subject + self.as_object > 0

    @property
    def role(self) -> float:
        n = self.as_subject + self.as_object
        return min(1.0, (SUBJECT_ROLE * self.as_subject + OBJECT_ROLE * self.as_object) / n) if n else UNTRIPLED_ROLE


@dataclass(slots=True)
class _Columns:
    """Edge columns while they grow."""

    rows: list[tuple[int, int, int, float, float, int]] = field(default_factory=list)

    def to_edges(self) -> Edges:
        columns = list(zip(*sorted(self.rows), strict=True)) or [()] * 6
        kinds: list[type[np.generic]] = [np.int32, np.int32, np.uint8, np.float32, np.float32, np.int32]
        return Edges(*(np.asarray(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)))


def build_graph(record: Record) -> KnowledgeGraph:
    """Derive the graph of the record's present generation."""
    entries = list(record.entries())
    name_ids, names, name_vectors = record.names()
    entity_of = {key: index for index, key in enumerate(name_ids)}
    passage_vectors = (
        np.stack([entry.vector for entry in entries]) if entries else np.zeros((0, record.dimension), np.float32)
    )
    links, aliases = _link_passages(entries, entity_of)
    matcher = NameMatcher([*((name, index) for index, name in enumerate(names)), *aliases])
    _add_mentions(entries, links, names, matcher)
    facts = _collect_facts(entries, entity_of)
    columns = _Columns()
    _add_fact_edges(columns, entries, entity_of)
    triple_passages = _count_passages(links, len(names), in_triples=True)
    _add_synonym_edges(columns, record.synonyms(), entity_of, triple_passages)
    _add_passage_edges(columns, entries, links, passage_vectors, name_vectors)
    return KnowledgeGraph(
        generation=record.generation,
        commit_id=record.commit_id,
        embedding_model=record.embedding_model,
        entity_names=tuple(names),
        entity_labels=_labels(entries, names, entity_of),
        triple_passages=triple_passages,
        name_passages=_count_passages(links, len(names), in_triples=False),
        passages=tuple(entry.passage for entry in entries),
        passage_vectors=passage_vectors,
        facts=facts,
        aliases=aliases,
        edges=columns.to_edges(),
        matcher=matcher,
    )


def _entity(entity_of: Mapping[str, int], name: str) -> int:
    return entity_of[entity_id(name)]


def _link_passages(
    entries: Sequence[Entry], entity_of: Mapping[str, int]
) -> tuple[list[dict[int, _Link]], tuple[tuple[str, int], ...]]:
    """Return for each passage {entity: link}, from its extraction and its title, and the full titles as aliases."""
    links: list[dict[int, _Link]] = []
    aliases: dict[str, int] = {}
    for entry in entries:
        found: dict[int, _Link] = defaultdict(_Link)
        for name in entry.extraction.entities:
            if normalise_name(name):
                found[_entity(entity_of, name)]
        for triple in entry.extraction.triples:
            found[_entity(entity_of, triple.subject)].as_subject += 1
            found[_entity(entity_of, triple.object)].as_object += 1
        title = entry.passage.title
        if normalise_name(title_name(title)):
            entity = _entity(entity_of, title_name(title))
            found[entity].own_title = True
            if normalise_name(title) != normalise_name(title_name(title)):
                aliases[normalise_name(title)] = entity
        links.append(found)
    return links, tuple(sorted(aliases.items()))


def _add_mentions(
    entries: Sequence[Entry], links: Sequence[dict[int, _Link]], names: Sequence[str], matcher: NameMatcher
) -> None:
    """Link each passage with the known names its text spells out, but for names too frequent to mean anything."""
    mentioned: list[dict[int, int]] = []
    frequency: Counter[int] = Counter()
    for entry, found in zip(entries, links, strict=True):
        spans = token_spans(entry.passage.content)
        spelled = [token for token, _, _ in spans]
        joined = f" {' '.join(spelled)} "
        offsets: dict[int, int] = {}
        for mention in matcher.find(spelled):
            offsets.setdefault(mention.name, spans[mention.start][1])
        for entity, link in found.items():
            at = find_name(joined, names[entity])
            link.offset = spans[at][1] if at >= 0 else -1
        mentioned.append(offsets)
        frequency.update(offsets.keys() | found.keys())
    limit = max(_FREQUENT_PASSAGES, _FREQUENT_SHARE * len(entries))
    for offsets, found in zip(mentioned, links, strict=True):
        for entity, offset in offsets.items():
            if entity not in found and frequency[entity] <= limit:
                found[entity] = _Link(offset=offset)


def _collect_facts(entries: Sequence[Entry], entity_of: Mapping[str, int]) -> dict[str, GraphFact]:
    spelled: dict[str, Fact] = {}
    held: dict[str, list[int]] = defaultdict(list)
    for index, entry in enumerate(entries):
        for triple in entry.extraction.triples:
            fact = Fact(triple.subject, triple.predicate, triple.object, triple.relation)
            key = fact.id
            known = spelled.get(key)
            if known is None or fact.text < known.text:
                spelled[key] = fact
            if not held[key] or held[key][-1] != index:
                held[key].append(index)
    return {
        key: GraphFact(
            spelled[key],
            _entity(entity_of, spelled[key].subject),
            _entity(entity_of, spelled[key].object),
            tuple(held[key]),
        )
        for key in sorted(spelled)
    }


def _add_fact_edges(columns: _Columns, entries: Sequence[Entry], entity_of: Mapping[str, int]) -> None:
    """One edge per pair of entities and type: the sum of the confidences of its facts; loops carry nothing."""
    weights: dict[tuple[int, int, RelationType], list[float]] = defaultdict(list)
    for entry in entries:
        for triple in entry.extraction.triples:
            ends = sorted((_entity(entity_of, triple.subject), _entity(entity_of, triple.object)))
            if ends[0] != ends[1]:
                weights[ends[0], ends[1], triple.relation].append(triple.confidence)
    for (a, b, relation), confidences in weights.items():
        kind = KIND_INDEX[EdgeKind(relation)]
        columns.rows.append((a, b, kind, float(np.sum(sorted(confidences))), float(len(confidences)), -1))


def _add_synonym_edges(
    columns: _Columns,
    synonyms: Sequence[tuple[str, str, float]],
    entity_of: Mapping[str, int],
    triple_passages: NDArray[np.int32],
) -> None:
    """Keep a pair when it is among the nearest ``SYNONYMS_PER_NAME`` of at least one of its names.

    HippoRAG 2's weight is 0 where a name stands in no triple: there it is no node.
    """
    ranked = sorted(synonyms, key=lambda pair: (-pair[2], pair[0], pair[1]))
    taken: Counter[str] = Counter()
    kind = KIND_INDEX[EdgeKind(RelationType.SYNONYMY)]
    for a, b, cosine in ranked:
        if taken[a] < SYNONYMS_PER_NAME or taken[b] < SYNONYMS_PER_NAME:
            ends = sorted((entity_of[a], entity_of[b]))
            in_triples = triple_passages[ends[0]] > 0 and triple_passages[ends[1]] > 0
            columns.rows.append((ends[0], ends[1], kind, cosine, cosine if in_triples else 0.0, -1))
        taken[a] += 1
        taken[b] += 1


def _add_passage_edges(
    columns: _Columns,
    entries: Sequence[Entry],
    links: Sequence[dict[int, _Link]],
    passage_vectors: NDArray[np.float32],
    name_vectors: NDArray[np.float32],
) -> None:
    """Weigh each entity-passage edge by role, similarity and position, and class it among the corpus's edges."""
    pairs = [(index, entity, link) for index, found in enumerate(links) for entity, link in sorted(found.items())]
    if not pairs:
        return
    rows = np.asarray([index for index, _, _ in pairs])
    entities = np.asarray([entity for _, entity, _ in pairs])
    cosine = np.einsum("ij,ij->i", passage_vectors[rows], name_vectors[entities])
    role = np.asarray([link.role for _, _, link in pairs])
    lengths = np.asarray([max(1, len(entry.passage.content)) for entry in entries])[rows]
    offsets = np.asarray([link.offset for _, _, link in pairs])
    position = np.where(offsets >= 0, 1 - np.minimum(1, offsets / lengths), ABSENT_POSITION)
    weight = ROLE_SHARE * role + SIMILARITY_SHARE * (cosine + 1) / 2 + POSITION_SHARE * position
    titled = np.asarray([link.own_title for _, _, link in pairs])
    classes = _classify(weight, titled)
    is_title = np.zeros(len(name_vectors), dtype=bool)
    is_title[entities[titled]] = True
    share = _title_shares(entries)
    for n, (index, entity, link) in enumerate(pairs):
        kind = _passage_kind(PASSAGE_RELATIONS[classes[n]], own_title=link.own_title, is_title=bool(is_title[entity]))
        scaled = float(weight[n]) * (share[index] if link.own_title else 1.0)
        columns.rows.append((entity, len(name_vectors) + index, kind, scaled, float(link.in_triples), link.offset))


def _classify(weight: NDArray[np.float64], titled: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return 0, 1 or 2 (PRIMARY, SECONDARY, PERIPHERAL) by thirds of the edges that are no titles."""
    low, high = np.quantile(weight[~titled], CLASS_QUANTILES) if (~titled).any() else (0.0, 0.0)
    classes = np.where(weight >= high, 0, np.where(weight >= low, 1, 2))
    return np.where(titled, 0, classes)


def _passage_kind(relation: RelationType, *, own_title: bool, is_title: bool) -> int:
    if own_title:
        return KIND_INDEX[EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE)]
    return KIND_INDEX[EdgeKind(relation, PassageLink.OTHER_TITLE if is_title else PassageLink.MENTION)]


def _title_shares(entries: Sequence[Entry]) -> list[float]:
    """Return 1/sqrt(chunks) for each passage: the chunks of one document share the edge to its title."""
    documents = Counter((e.passage.source, e.passage.title) for e in entries if "chunk" in e.passage.metadata)
    return [
        documents[e.passage.source, e.passage.title] ** -0.5 if "chunk" in e.passage.metadata else 1.0 for e in entries
    ]


def _count_passages(links: Sequence[dict[int, _Link]], n_entities: int, *, in_triples: bool) -> NDArray[np.int32]:
    counts = np.zeros(n_entities, dtype=np.int32)
    for found in links:
        for entity, link in found.items():
            counts[entity] += not in_triples or link.in_triples
    return counts


def _labels(entries: Sequence[Entry], names: Sequence[str], entity_of: Mapping[str, int]) -> tuple[str, ...]:
    """Return how each name is spelled most often; the smallest spelling where several are."""
    spellings: dict[int, Counter[str]] = defaultdict(Counter)
    for entry in entries:
        spelled = [*entry.extraction.entities, *(e for t in entry.extraction.triples for e in (t.subject, t.object))]
        if entry.passage.title:
            spelled.append(title_name(entry.passage.title))
        for spelling in spelled:
            if normalise_name(spelling):
                spellings[_entity(entity_of, spelling)][spelling.strip()] += 1
    return tuple(
        min(spellings[i], key=lambda s: (-spellings[i][s], s)) if i in spellings else name
        for i, name in enumerate(names)
    )
