"""The snapshot of the knowledge graph that questions are answered on: derived from the record, read where it is used.

On disk it is a folder of numpy's arrays. Loading it maps them into memory and checks that they fit together; names,
texts and facts become Python objects when they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import (
    CHECKED_TO,
    IntLists,
    LazySequence,
    SortedMapping,
    TextTable,
    check_range,
    load_array,
)
from graph.construction.edges import (
    EDGE_KINDS,
    EDGE_TYPES,
    IS_OWN_TITLE,
    IS_PASSAGE_KIND,
    EdgeKind,
    Edges,
    NodeArcs,
    TypedGraph,
    kinds_with,
    load_arcs,
)
from graph.metadata_filter import askable_keys
from graph.own_types import NO_TYPES, OwnTypes, own_types_of
from graph.schema import Fact, Passage, RelationType, entity_id
from graph.text import NameMatcher

BUILT_IN = tuple(RelationType)
"""The built-in relation types; a fact stores its type's index in those of its graph, which begin with these."""


@dataclass(frozen=True, slots=True)
class GraphFact:
    """A fact with its place in the graph: node indices of its ends, indices of the passages that hold it."""

    fact: Fact
    subject: int
    object: int
    passages: tuple[int, ...]


class FactTable(SortedMapping[GraphFact]):
    """Facts by their ids, ascending: a table of id, subject, predicate and object, and columns beside it.

    Attributes:
        table: id, subject, predicate and object of each.
        ends: node indices of subjects and objects, shape (n, 2).
        relations: each fact's relation type, by its place in ``types``.
        types: the built-in relation types, and the own ones of the facts.
        passages: indices of the passages that hold each.
        ids: by their place.
        rows: the facts by their place.
    """

    _WIDTH = 4

    def __init__(
        self,
        table: TextTable,
        ends: NDArray[np.int32],
        relations: NDArray[np.uint8],
        passages: IntLists,
        own: Sequence[RelationType] = (),
    ) -> None:
        self.table = table
        self.ends = ends
        self.relations = relations
        self.types = (*BUILT_IN, *own)
        self.passages = passages
        self.rows = LazySequence(len(table), self._fact)
        self.ids = table.column(0)
        super().__init__(self.ids, self.rows)

    @staticmethod
    def load(
        folder: Path, n_facts: int, n_entities: int, n_passages: int, own: Sequence[RelationType] = ()
    ) -> FactTable:
        """Read a table. Raises OSError or ValueError when it is damaged."""
        table = TextTable.load(folder, "facts", FactTable._WIDTH, n_facts)
        ends = load_array(folder / "fact_ends.npy", np.int32, (n_facts, 2))
        relations = load_array(folder / "fact_relations.npy", np.uint8, (n_facts,))
        passages = IntLists.load(folder, "fact_passages", n_facts, n_passages)
        check_range(relations, len(BUILT_IN) + len(own))
        check_range(ends, n_entities)
        return FactTable(table, ends, relations, passages, own)

    def _fact(self, place: int) -> GraphFact:
        """Return one fact. Raises ValueError where its text cannot be read."""
        _, subject, predicate, object_ = self.table.row(place)
        fact = Fact(subject, predicate, object_, self.types[self.relations.item(place)])
        return GraphFact(fact, self.ends.item(place, 0), self.ends.item(place, 1), self.passages.at(place))


def table_of_facts(ids: Iterable[str], facts: Iterable[Fact]) -> TextTable:
    """Return id, subject, predicate and object of each fact."""
    return TextTable.of(((key, f.subject, f.predicate, f.object) for key, f in zip(ids, facts, strict=True)), 4)


class StoredPassages(LazySequence[Passage]):
    """Passages of a table: id, title, text, source, metadata as JSON."""

    WIDTH = 5

    def __init__(self, table: TextTable) -> None:
        super().__init__(len(table), self._passage)
        self.table = table
        self.ids = table.column(0)
        self.sources = table.column(3)

    def _passage(self, index: int) -> Passage:
        """Return one passage. Raises ValueError where its text or metadata cannot be read."""
        key, title, text, source, metadata = self.table.row(index)
        return Passage(key, title, text, source, json.loads(metadata))


def table_of_passages(passages: Iterable[Passage]) -> TextTable:
    """Return the table that `StoredPassages` reads."""
    rows = ((p.id, p.title, p.text, p.source, json.dumps(dict(p.metadata), ensure_ascii=False)) for p in passages)
    return TextTable.of(rows, StoredPassages.WIDTH)


SNAPSHOT_VERSION = 6

_LOOKED_UP = 20
"""Ids are looked up one by one unless they are more than this part of all: then all are gone through."""


@dataclass(frozen=True)
class KnowledgeGraph:
    """Entities, passages, facts and typed edges of one generation.

    Node indices: entities first (0 … n_entities-1), passages after them, each in the order of their ids.

    Attributes:
        entity_names: normal forms.
        entity_labels: how each name is most often spelled.
        triple_passages: for each entity, in how many passages' triples it stands.
        name_passages: for each entity, how many passages spell its name, those that are not linked for it included.
        name_shares: for each entity, of all times that the corpus spells its name outside addresses, the share in which
            it is written as a name, rather than in small letters; 1 where it never does, and in a script without
            capitals.
        passage_vectors: unit vectors, (n_passages, dimension).
        aliases: full titles that differ from the entity they stand for, and names that corrections make another of,
            with the entity's index.
        names: finds every entity's name, and the aliases, in text.
        own: the user's own types that its facts and entities have.
        entity_types: of each entity, the place of its type among the own ones, from 1; 0 where it has none. Empty
            stands for none at all.
        commit_id: the record's commit that it was derived from.
        arcs: of its edges, where a snapshot holds them.
    """

    generation: int
    embedding_model: str
    entity_names: Sequence[str]
    entity_labels: Sequence[str]
    triple_passages: NDArray[np.int32]
    name_passages: NDArray[np.int32]
    name_shares: NDArray[np.float32]
    passages: StoredPassages
    passage_vectors: NDArray[np.float32]
    facts: FactTable
    aliases: Sequence[tuple[str, int]]
    names: NameMatcher
    edges: Edges
    own: OwnTypes = NO_TYPES
    entity_types: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    commit_id: str = ""
    arcs: NodeArcs | None = None

    @property
    def n_entities(self) -> int:
        """How many entities there are; the index of the first passage node."""
        return len(self.entity_names)

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.entity_names) + len(self.passages)

    @cached_property
    def kinds(self) -> tuple[EdgeKind, ...]:
        """The kinds of its edges, by their indices."""
        return kinds_with(self.own.relation_types)

    def entity_type(self, node: int) -> str | None:
        """Return the user's own type of an entity; None for one without, and for a passage."""
        place = self.entity_types.item(node) if node < len(self.entity_types) else 0
        return self.own.entity_types[place - 1] if place else None

    @property
    def passage_ids(self) -> Sequence[str]:
        """The passages' ids, in their order: without reading the passages themselves."""
        return self.passages.ids

    @cached_property
    def passage_index(self) -> Mapping[str, int]:
        """Passage id -> position among the passages."""
        return SortedMapping(self.passages.ids, range(len(self.passages)))

    def passages_from(self, source: str, most: int) -> list[int]:
        """Return the places of a source's passages, ascending; none where it has more than ``most``."""
        places = list(islice(self.passages.sources.places_of(source), most + 1))
        return places if len(places) <= most else []

    def parts_of(self, document: str, source: str, most: int) -> list[int]:
        """Return the places of a document's passages, in their order; none where its source has more than ``most``.

        Args:
            document: its id.
            source: where it comes from, as its passages name it.
            most: passages of that source that are looked at.
        """
        alone = self.passage_index.get(document)
        if alone is not None and self.passages[alone].document == document:
            return [alone]
        parts = [(self.passages[place], place) for place in self.passages_from(source, most)]
        own = [(passage.number, place) for passage, place in parts if passage.document == document]
        return [place for _, place in sorted(own)]

    def passages_of(self, passage_ids: Collection[str]) -> NDArray[np.intp]:
        """Return the places of some passages, ascending; ids that the graph does not know are left out."""
        if len(passage_ids) * _LOOKED_UP < len(self.passages):
            known = self.passage_index
            rows = {known[key] for key in passage_ids if key in known}
            return np.array(sorted(rows), dtype=np.intp)
        wanted = frozenset(passage_ids)
        places = (place for place, key in enumerate(self.passage_ids) if key in wanted)
        return np.fromiter(places, dtype=np.intp)

    def entities_in(self, passage: int) -> NDArray[np.int32]:
        """Return the entities that a passage is linked with, one for each link, ascending."""
        arcs, node = self.typed.backward, self.n_entities + passage
        return arcs.node[arcs.starts.item(node) : arcs.starts.item(node + 1)]

    def passages_with(self, entity: int) -> NDArray[np.int32]:
        """Return the passages that an entity is linked with, one for each link, ascending."""
        arcs = self.typed.forward
        ends = arcs.node[arcs.starts.item(entity) : arcs.starts.item(entity + 1)]
        return ends[ends >= self.n_entities] - np.int32(self.n_entities)

    @cached_property
    def metadata_keys(self) -> frozenset[str]:
        """The keys that a filter may ask for, of all passages."""
        return frozenset(key for passage in self.passages for key in askable_keys(passage))

    @cached_property
    def entity_index(self) -> Mapping[str, int]:
        """Entity id -> node index."""
        names = self.entity_names
        ids = LazySequence(len(names), lambda index: entity_id(names[index]))
        return SortedMapping(ids, range(self.n_entities))

    @cached_property
    def typed(self) -> TypedGraph:
        """The edges that a walk reads."""
        return TypedGraph.of(self.edges, self.n_entities, len(self.passages), kinds=self.kinds, arcs=self.arcs)

    @cached_property
    def counted(self) -> TypedGraph:
        """The same with HippoRAG 2's weights."""
        return TypedGraph.of(self.edges, self.n_entities, len(self.passages), counts=True, kinds=self.kinds)

    def with_links(self, *, titles: bool, mentions: bool) -> TypedGraph:
        """Return what a walk reads, with or without the links of passages to names that no fact of theirs holds.

        Args:
            titles: keep those to a passage's own title.
            mentions: keep those to other names that its text spells out.
        """
        if titles and mentions:
            return self.typed
        edges = self.edges
        is_title = IS_OWN_TITLE[edges.kind]
        in_fact = ~IS_PASSAGE_KIND[edges.kind] | (edges.count > 0)
        kept = edges.where(in_fact | (is_title & titles) | (~is_title & mentions))
        return TypedGraph.of(kept, self.n_entities, len(self.passages), kinds=self.kinds)


_HEADER_TYPES = {
    **dict.fromkeys(("generation", "passages", "entities", "facts", "edges"), int),
    **dict.fromkeys(("commit_id", "embedding_model"), str),
}


_NUMBERED = {
    "relations": [*map(str, BUILT_IN)],
    "edge_kinds": [f"{kind.relation} ({kind.link})" if kind.link else str(kind.relation) for kind in EDGE_KINDS],
}
"""The names behind a snapshot's numbers, in the order of this version; those of own types come behind them, by name."""


def _numbered(own: OwnTypes) -> dict[str, list[str]]:
    """Return the names behind the numbers of a snapshot with some own types."""
    return {key: [*names, *map(str, own.relation_types)] for key, names in _NUMBERED.items()}


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    """The header of a snapshot: its source, its size, and the meaning of its numbers."""

    generation: int
    commit_id: str
    embedding_model: str
    passages: int
    entities: int
    facts: int
    edges: int
    own: OwnTypes

    def save(self, folder: Path) -> None:
        """Write it as the last file of a snapshot: without it there is none."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "own"}
        header = {
            "snapshot_version": SNAPSHOT_VERSION,
            **values,
            **_numbered(self.own),
            **({"own_types": self.own.to_mapping()} if self.own else {}),
        }
        (folder / "snapshot.json").write_text(json.dumps(header, indent=2), encoding="utf-8")


def load_header(folder: Path) -> dict[str, Any]:
    """Return the snapshot's header. Raises OSError or ValueError when there is none that can be read."""
    header: Any = json.loads((folder / "snapshot.json").read_text(encoding="utf-8"))
    if not isinstance(header, dict) or header.get("snapshot_version") != SNAPSHOT_VERSION:
        raise ValueError(f"this is no header of a snapshot of version {SNAPSHOT_VERSION}: {header}")
    lacking = [name for name, kind in _HEADER_TYPES.items() if not isinstance(header.get(name), kind)]
    if lacking:
        raise ValueError(f"the header of the snapshot does not tell {lacking}")
    other = [name for name, names in _numbered(_own_types(header)).items() if header.get(name) != names]
    if other:
        raise ValueError(f"the snapshot numbers its {' and '.join(other)} otherwise than this version")
    return header


def _own_types(header: Mapping[str, Any]) -> OwnTypes:
    """Return the own types that a header states. Raises ValueError where it states something else."""
    return own_types_of(header["own_types"]) if "own_types" in header else NO_TYPES


def load(folder: Path) -> KnowledgeGraph:
    """Open a snapshot; what is large stays on disk, memory-mapped, and is not read.

    Args:
        folder: holds it.

    Raises:
        OSError: a file cannot be read.
        ValueError: it is damaged: the files do not fit together, or not with the header. That the block of a text
            is UTF-8 shows when it is read.
    """
    header = load_header(folder)
    n_entities, n_passages, n_facts, own = header["entities"], header["passages"], header["facts"], _own_types(header)
    entities = TextTable.load(folder, "entities", 2, n_entities)
    aliases = TextTable.load(folder, "aliases", 1)
    alias_names = aliases.column(0)
    alias_entities = load_array(folder / "alias_entities.npy", np.int32, (len(aliases),))
    check_range(alias_entities, n_entities)
    passages = TextTable.load(folder, "passages", StoredPassages.WIDTH, n_passages)
    entity_types = np.zeros(0, dtype=np.uint8)
    if own.entities:
        types = load_array(folder / "entity_types.npy", np.uint8, (n_entities,))
        entity_types = check_range(types, len(own.entities) + 1)
    edges = load_edges(folder, header["edges"], n_entities, n_entities + n_passages, own)
    return KnowledgeGraph(
        generation=header["generation"],
        commit_id=header["commit_id"],
        embedding_model=header["embedding_model"],
        entity_names=entities.column(0),
        entity_labels=entities.column(1),
        triple_passages=load_array(folder / "triple_passages.npy", np.int32, (n_entities,)),
        name_passages=load_array(folder / "name_passages.npy", np.int32, (n_entities,)),
        name_shares=load_array(folder / "name_shares.npy", np.float32, (n_entities,)),
        passages=StoredPassages(passages),
        passage_vectors=load_array(folder / "passage_vectors.npy", np.float32, (n_passages, None)),
        facts=FactTable.load(folder, n_facts, n_entities, n_passages, own.relation_types),
        aliases=LazySequence(len(aliases), lambda index: (alias_names[index], alias_entities.item(index))),
        names=NameMatcher(
            load_lists(folder, "spellings", n_entities),
            load_lists(folder, "first_words", np.iinfo(np.int32).max),
        ),
        edges=edges,
        own=own,
        entity_types=entity_types,
        arcs=load_arcs(
            folder,
            (edges.target, edges.kind, edges.weight),
            n_entities,
            n_entities + n_passages,
            len(kinds_with(own.relation_types)),
        ),
    )


def load_edges(folder: Path, n_edges: int, n_entities: int, n_nodes: int, own: OwnTypes) -> Edges:
    """Read the edges. Raises OSError or ValueError when they are damaged."""
    columns = {name: load_array(folder / f"edge_{name}.npy", kind, (n_edges,)) for name, kind in EDGE_TYPES.items()}
    n_kinds = len(kinds_with(own.relation_types))
    for name, limit in (("source", n_entities), ("target", n_nodes), ("kind", n_kinds)):
        check_range(columns[name], limit)
    if n_edges <= CHECKED_TO and (columns["source"][1:] < columns["source"][:-1]).any():
        raise ValueError("the edges are not in the order of their sources")
    return Edges(**columns)


def load_lists(folder: Path, name: str, limit: int) -> SortedMapping[Sequence[int]]:
    """Read lists of numbers from 0 to limit - 1 by name. Raises OSError or ValueError when they are damaged."""
    table = TextTable.load(folder, name, 1)
    lists = IntLists.load(folder, f"{name}.numbers", len(table), limit)
    return SortedMapping(table.column(0), lists)
