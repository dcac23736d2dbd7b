"""From the record to the graph: names, facts and evidence become typed, weighted edges.

Only evidence is stored; what depends on the whole corpus (classes, the cap on synonyms, the cut on frequent names)
is derived here, so that a graph depends on its corpus alone and not on the order in which it was indexed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from graph.construction.bm25 import SparseIndex
from graph.construction.columns import IntLists
from graph.construction.corrected_names import CorrectedNames
from graph.construction.edge_weights import (
    PassageClasses,
    PassageLinks,
    count_passages,
    fact_edges,
    join_edges,
    passage_edges,
    synonym_edges,
)
from graph.construction.edges import EDGE_KINDS, Edges, kinds_with, sort_edges
from graph.construction.evidence import Evidence, Floats, Handles, Links, Names, Writings, keep_smallest, read_evidence
from graph.construction.knowledge_graph import FactTable, KnowledgeGraph
from graph.construction.near_names import synonym_columns
from graph.corrections.apply import Corrections
from graph.own_types import OwnTypes
from graph.schema import Fact, RelationType, entity_id
from graph.storage.record import Record, declared_types
from graph.text import IncrementalMatcher

PASSAGE_CLASSES = "passage_classes"
"""The note of the record that says where the classes are cut."""

ADDRESS_SIGNS = frozenset("/\\._@=&?#-")
"""Behind these a word is part of an address, a path or a compound, where even names stand in small letters."""

_SEARCHED_SPELLINGS = 300
_DEAD_HANDLES = 10_000
_BLOCK = 1024

Ints = NDArray[np.int32]
T = TypeVar("T", bound=np.generic)


class GraphBuilder:
    """Builds a record's graph, and keeps what the passages say, so that the next build reads only what changed.

    The graph is the same as that of a new builder. Not safe across threads.
    """

    def __init__(self) -> None:
        self._made_with: tuple[str, ...] = ()
        self._evidence: dict[str, Evidence] = {}
        self._in_order: list[Evidence] = []
        self._names, self._facts, self._terms, self._own_relations = Names(), Handles(), Handles(), Handles()
        self._labels: dict[int, str] = {}
        self._unlabelled: set[int] = set()
        self._shown: dict[int, Fact] = {}
        self._unshown: set[int] = set()
        self._fact_ends: dict[int, tuple[int, int]] = {}
        self._aliases: Counter[tuple[str, int]] = Counter()
        self._matcher = IncrementalMatcher()
        self._corrected = CorrectedNames(Corrections())

    def build(self, record: Record) -> KnowledgeGraph:
        """Derive the graph of the record's present generation."""
        self.update(record)
        return self.graph(record)

    def update(self, record: Record) -> None:
        """Read what the record's passages say, where that changed."""
        made_with = (record.workspace_id, record.embedding_model, record.vectors_id)
        if made_with != self._made_with or self._is_mostly_dead():
            self.__dict__.update(GraphBuilder().__dict__)
            self._made_with = made_with
        names = CorrectedNames(Corrections(record.corrections()))
        fingerprints = record.stated_fingerprints()
        gone = [key for key, evidence in self._evidence.items() if fingerprints.get(key) != evidence.fingerprint]
        spellings = [spelled for key in gone for spelled in self._drop(self._evidence.pop(key))]
        spellings.extend(self._take_over(names))
        new = fingerprints.keys() - self._evidence.keys()
        for entry in record.entries(new):
            stated = names.corrections.stated(entry.passage, entry.extraction)
            made_of = fingerprints[entry.passage.id]
            evidence = read_evidence(entry, stated, made_of, self._names, self._facts, self._terms, self._own_relations)
            self._evidence[entry.passage.id] = evidence
            spellings.extend(self._hold(evidence))
        changed = self._find_mentions(new, set(spellings))
        for start in range(0, len(changed), _BLOCK):
            self._compute_cosines(record, changed[start : start + _BLOCK])
        self._in_order = [self._evidence[key] for key in sorted(self._evidence)]

    def fingerprints(self) -> dict[str, str]:
        """Return {passage id: fingerprint of what it states} of the last update."""
        return {key: evidence.fingerprint for key, evidence in self._evidence.items()}

    def sparse(self) -> SparseIndex:
        """Return the BM25 index of the passages of the last update."""
        return SparseIndex.of_terms([evidence.terms for evidence in self._in_order], self._terms.keys)

    def graph(self, record: Record) -> KnowledgeGraph:
        """Return the graph of the last update, which is to be of this record."""
        entities = self._names.in_use()
        entity_of = _positions(entities, len(self._names.keys))
        passages = self._in_order
        n = len(entities)
        spelled = self._links(entity_of)
        links = spelled.without_frequent(n, len(passages))
        triple_passages = count_passages(links.entities[links.in_triples], n)
        own = self._own_types(record)
        edges = [
            self._fact_edges(entity_of, own),
            self._synonym_edges(record, entity_of, triple_passages),
            self._passage_edges(record, links, n),
        ]
        return KnowledgeGraph(
            generation=record.generation,
            commit_id=record.commit_id,
            embedding_model=record.embedding_model,
            entity_names=tuple([self._names.normal[handle] for handle in entities]),
            entity_labels=self._entity_labels(entities),
            triple_passages=triple_passages,
            name_passages=count_passages(spelled.entities, n),
            name_shares=self._name_shares(entity_of, n),
            passages=tuple(evidence.passage for evidence in passages),
            passage_vectors=_stack([evidence.vector for evidence in passages], record.dimension),
            facts=self._fact_table(entity_of, own),
            aliases=self._all_aliases(entities, entity_of),
            names=self._matcher.renumbered(entity_of),
            edges=sort_edges(join_edges(edges)),
            own=own,
            entity_types=self._typed_entities(entity_of, own),
            known_ids=[self._names.keys[handle] for handle in entities],
        )

    def _all_aliases(self, entities: Sequence[int], entity_of: Ints) -> tuple[tuple[str, int], ...]:
        """Return the full titles, and the names that corrections make another of, each with its entity."""
        known = {(alias, int(entity_of[handle])) for alias, handle in self._aliases}
        for entity, handle in enumerate(entities):
            known.update((form, entity) for form in self._corrected.aliases(self._names.normal[handle]))
        return tuple(sorted(known))

    def _is_mostly_dead(self) -> bool:
        return any(
            len(handles.keys) > _DEAD_HANDLES and 2 * sum(map(bool, handles.held)) < len(handles.keys)
            for handles in (self._names, self._facts)
        )

    def _hold(self, evidence: Evidence) -> Iterable[str]:
        """Take a passage's names and facts in; yield the spellings of names that were not known before."""
        self._forget_spellings(evidence)
        ends = zip(evidence.subjects.tolist(), evidence.objects.tolist(), strict=True)
        for handle, pair in dict(zip(evidence.facts.tolist(), ends, strict=True)).items():
            self._facts.held[handle] += 1
            self._fact_ends[handle] = pair
        for handle in evidence.links.names.tolist():
            self._names.held[handle] += 1
            if self._names.held[handle] == 1:
                yield from self._learn(handle)
        if evidence.alias:
            self._aliases[evidence.alias] += 1
            if self._aliases[evidence.alias] == 1:
                yield self._matcher.learn(*evidence.alias)

    def _drop(self, evidence: Evidence) -> Iterable[str]:
        """Let a passage's names and facts go; yield the spellings of names that nothing holds any more."""
        self._forget_spellings(evidence)
        for handle in set(evidence.facts.tolist()):
            self._facts.held[handle] -= 1
        for handle in evidence.links.names.tolist():
            self._names.held[handle] -= 1
            if not self._names.held[handle]:
                yield from self._forget(handle)
        if evidence.alias:
            self._aliases[evidence.alias] -= 1
            if not self._aliases[evidence.alias]:
                del self._aliases[evidence.alias]
                yield self._matcher.forget(*evidence.alias)

    def _learn(self, handle: int) -> list[str]:
        """Know a name and what corrections make that name of; return the spellings."""
        return [self._matcher.learn(form, handle) for form in self._corrected.spelled(self._names.normal[handle])]

    def _forget(self, handle: int) -> list[str]:
        """Know a name no more; return the spellings."""
        return [self._matcher.forget(form, handle) for form in self._corrected.spelled(self._names.normal[handle])]

    def _take_over(self, names: CorrectedNames) -> Iterable[str]:
        """Let other corrections say what names mean; yield the spellings that may mean another name in some passage."""
        held = [self._names.find(entity_id(name)) for name in names.differing_names(self._corrected)]
        known = [handle for handle in held if handle >= 0 and self._names.held[handle]]
        spellings = [spelled for handle in known for spelled in self._forget(handle)]
        spellings += names.differing_spellings(self._corrected)
        self._corrected = names
        return [*spellings, *(spelled for handle in known for spelled in self._learn(handle))]

    def _forget_spellings(self, evidence: Evidence) -> None:
        """Let the labels of a passage's names, and how its facts are shown, be chosen again."""
        self._unlabelled.update(evidence.links.names.tolist())
        self._unshown.update(evidence.facts.tolist())

    def _find_mentions(self, new: Collection[str], spellings: set[str]) -> list[Evidence]:
        """Find known names in new passages, and again in those that spell a name which came or went; return these."""
        found = []
        sought = [f" {spelled} " for spelled in spellings if spelled]
        for key, evidence in self._evidence.items():
            if key in new or len(sought) > _SEARCHED_SPELLINGS or any(name in evidence.words for name in sought):
                evidence.mentions, evidence.writings = self._mentions(evidence)
                found.append(evidence)
        return found

    def _mentions(self, evidence: Evidence) -> tuple[Links, Writings]:
        own = set(evidence.links.names.tolist())
        content = evidence.passage.content
        offsets: dict[int, int] = {}
        in_small_letters: dict[int, list[bool]] = defaultdict(list)
        words = evidence.words.split()
        for mention in self._matcher.find(words):
            if not self._corrected.admits(words, mention, self._names.normal[mention.name], evidence.passage):
                continue
            start = evidence.starts.item(mention.start)
            if not start or content[start - 1] not in ADDRESS_SIGNS:
                # The last word, since the first of a sentence has a capital whatever it is.
                last = content[evidence.starts.item(mention.end - 1)]
                in_small_letters[mention.name].append(last == last.lower() != last.upper())
            if mention.name not in own:
                offsets.setdefault(mention.name, start)
        return Links.of_mentions(offsets), Writings.of(in_small_letters)

    def _compute_cosines(self, record: Record, waiting: Sequence[Evidence]) -> None:
        parts = [links for evidence in waiting for links in (evidence.links, evidence.mentions) if len(links.names)]
        if not parts:
            return
        handles = np.unique(np.concatenate([links.names for links in parts]))
        vectors = record.name_vectors([self._names.keys[handle] for handle in handles.tolist()])
        for evidence in waiting:
            for links in (evidence.links, evidence.mentions):
                rows = vectors[np.searchsorted(handles, links.names)]
                # Row by row, so that a cosine does not depend on what else is computed with it.
                links.cosines = (rows * evidence.vector).sum(axis=1)

    def _links(self, entity_of: Ints) -> PassageLinks:
        parts = [evidence.links for evidence in self._in_order], [evidence.mentions for evidence in self._in_order]
        counts = [np.array([len(links.names) for links in part], dtype=np.int64) for part in parts]
        every = [*parts[0], *parts[1]]
        numbers = np.arange(len(self._in_order), dtype=np.int32)
        return PassageLinks(
            passages=np.concatenate([np.repeat(numbers, count) for count in counts]),
            entities=entity_of[_joined([links.names for links in every], np.int32)],
            subject_of=_joined([links.subject_of for links in every], np.int32),
            object_of=_joined([links.object_of for links in every], np.int32),
            titled=_joined([links.titled for links in every], np.bool_),
            offsets=_joined([links.offsets for links in every], np.int32),
            cosines=_joined([links.cosines for links in every], np.float32),
            own=np.repeat([True, False], [count.sum() for count in counts]),
        )

    def _name_shares(self, entity_of: Ints, n_entities: int) -> Floats:
        """Of all times that the corpus spells each name outside addresses, the share not in small letters."""
        every = [evidence.writings for evidence in self._in_order]
        entities = entity_of[_joined([writings.names for writings in every], np.int32)]
        times, small = (
            np.bincount(entities, _joined([getattr(writings, column) for writings in every], np.int32), n_entities)
            for column in ("times", "small")
        )
        return np.asarray(1 - small / np.maximum(times, 1), dtype=np.float32)

    def _own_types(self, record: Record) -> OwnTypes:
        """Return the record's own types that the facts of the last update have."""
        kinds = np.unique(_joined([evidence.kinds for evidence in self._in_order], np.int32))
        met = [self._own_relations.keys[kind] for kind in (kinds[kinds >= len(EDGE_KINDS)] - len(EDGE_KINDS)).tolist()]
        relations = [RelationType(name) for name in met]
        return declared_types(record).used(relations, set(self._entity_types().values()))

    def _entity_types(self) -> dict[int, str]:
        """Return the entity type that most passages give each name that has one, by its number; ties by type."""
        found: dict[int, Counter[str]] = defaultdict(Counter)
        for evidence in self._in_order:
            for handle, entity_type in evidence.typed:
                found[handle][entity_type] += 1
        return {handle: most_frequent(types) for handle, types in found.items()}

    def _typed_entities(self, entity_of: Ints, own: OwnTypes) -> NDArray[np.uint8]:
        """Return of each entity the place of its type among the own ones, from 1; 0 where it has none."""
        types = np.zeros(int((entity_of >= 0).sum()), dtype=np.uint8)
        for handle, entity_type in self._entity_types().items():
            types[entity_of[handle]] = own.entity_types.index(entity_type) + 1
        return types

    def _fact_edges(self, entity_of: Ints, own: OwnTypes) -> Edges:
        kind_of = {kind.relation: index for index, kind in enumerate(kinds_with(own.relation_types))}
        met = [kind_of.get(RelationType(name), 0) for name in self._own_relations.keys]
        renumbered = np.array([*range(len(EDGE_KINDS)), *met], dtype=np.uint8)
        return fact_edges(
            entity_of[_joined([evidence.subjects for evidence in self._in_order], np.int32)],
            entity_of[_joined([evidence.objects for evidence in self._in_order], np.int32)],
            renumbered[_joined([evidence.kinds for evidence in self._in_order], np.int32)],
            _joined([evidence.confidences for evidence in self._in_order], np.float64),
        )

    def _synonym_edges(self, record: Record, entity_of: Ints, triple_passages: Ints) -> Edges:
        pairs = synonym_columns(record).without(self._corrected.apart)
        entities = entity_of[np.array([self._names.known(name) for name in pairs.ids], dtype=np.int64)]
        return synonym_edges(entities[pairs.first], entities[pairs.second], pairs.cosines, triple_passages)

    def _passage_edges(self, record: Record, links: PassageLinks, n_entities: int) -> Edges:
        lengths = np.array([len(evidence.passage.content) for evidence in self._in_order], dtype=np.int32)
        chunks = Counter(evidence.chunk_of for evidence in self._in_order)
        shares = [chunks[evidence.chunk_of] ** -0.5 if evidence.chunk_of else 1.0 for evidence in self._in_order]
        classes = PassageClasses(record.note(PASSAGE_CLASSES) or PassageClasses.THIRDS)
        return passage_edges(links, n_entities, lengths, np.array(shares, dtype=np.float64), classes)

    def _entity_labels(self, entities: Sequence[int]) -> tuple[str, ...]:
        """Return how each name is spelled most often; counted where a passage that spells it came or went."""
        sought, self._unlabelled = self._unlabelled, set()
        found: dict[int, Counter[str]] = defaultdict(Counter)
        for evidence in self._holding([evidence.links.names for evidence in self._in_order], sought):
            for handle, spelling in zip(evidence.spelled.tolist(), evidence.spellings, strict=True):
                if handle in sought:
                    found[handle][spelling] += 1
        self._labels.update((handle, most_frequent(spellings)) for handle, spellings in found.items())
        return tuple([self._labels[handle] for handle in entities])

    def _statements(self, facts: Sequence[int]) -> list[Fact]:
        """Return each fact as it is shown; chosen where a passage that states it came or went."""
        sought, self._unshown = self._unshown, set()
        found: dict[int, Fact] = {}
        for evidence in self._holding([evidence.facts for evidence in self._in_order], sought):
            keep_smallest(found, evidence.facts.tolist(), evidence.statements)
        self._shown.update((handle, found[handle]) for handle in found.keys() & sought)
        return [self._shown[handle] for handle in facts]

    def _holding(self, held: Sequence[Ints], sought: Collection[int]) -> list[Evidence]:
        """Return the passages that hold one of these handles, where ``held`` has those of each passage."""
        wanted = np.isin(_joined(held, np.int32), np.fromiter(sought, dtype=np.int32))
        owners = np.repeat(np.arange(len(held)), [len(some) for some in held])
        return [self._in_order[row] for row in np.unique(owners[wanted]).tolist()]

    def _fact_table(self, entity_of: Ints, own: OwnTypes) -> FactTable:
        facts = self._facts.in_use()
        fact_of = _positions(facts, len(self._facts.keys))
        spelled = self._statements(facts)
        ends = [self._fact_ends[handle] for handle in facts]
        held = _joined([evidence.facts for evidence in self._in_order], np.int32)
        counts = [len(evidence.facts) for evidence in self._in_order]
        pairs = np.unique(fact_of[held].astype(np.int64) * len(counts) + np.repeat(np.arange(len(counts)), counts))
        return FactTable.of_columns(
            [self._facts.keys[handle] for handle in facts],
            spelled,
            entity_of[np.array(ends, dtype=np.int64).reshape(len(ends), 2)],
            _lists(pairs, len(counts), len(facts)),
            own.relation_types,
        )


def _positions(handles: Sequence[int], n_handles: int) -> Ints:
    """Return of each handle its position among those in use; -1 of others."""
    positions = np.full(n_handles, -1, dtype=np.int32)
    positions[handles] = np.arange(len(handles), dtype=np.int32)
    return positions


def _joined(parts: Sequence[NDArray[T]], dtype: type[T]) -> NDArray[T]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)


def _stack(vectors: Sequence[NDArray[np.float32]], dimension: int) -> NDArray[np.float32]:
    return np.stack(vectors) if vectors else np.zeros((0, dimension), dtype=np.float32)


def _lists(pairs: NDArray[np.int64], base: int, n_lists: int) -> IntLists:
    """Return the lists of pairs, written as list x base + value and in order."""
    lists, values = np.divmod(pairs, max(1, base))
    return IntLists(
        np.searchsorted(lists, np.arange(n_lists + 1)).astype(np.int32),
        values.astype(np.int32),
    )


def most_frequent(spellings: Mapping[str, int]) -> str:
    """Return what is found most often, such as a spelling of a name; the smallest where several are."""
    return min(spellings, key=lambda spelling: (-spellings[spelling], spelling))
