"""The snapshot of the knowledge graph that questions are answered on: arrays in memory, derived from the record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.names import NameMatcher
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS, Fact, Passage, RelationType, entity_id

SNAPSHOT_VERSION = 1


class PassageLink(StrEnum):
    """How an entity stands to a passage that it is linked with."""

    OWN_TITLE = "own title"
    OTHER_TITLE = "title of another passage"
    MENTION = "mention"


@dataclass(frozen=True, slots=True)
class EdgeKind:
    """What tells the edges apart in the walk: the relation type and, for passage edges, the link."""

    relation: RelationType
    link: PassageLink | None = None


EDGE_KINDS: tuple[EdgeKind, ...] = (
    *(EdgeKind(relation) for relation in ENTITY_RELATIONS),
    EdgeKind(RelationType.SYNONYMY),
    EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE),
    *(EdgeKind(relation, PassageLink.OTHER_TITLE) for relation in PASSAGE_RELATIONS),
    *(EdgeKind(relation, PassageLink.MENTION) for relation in PASSAGE_RELATIONS),
)
"""All kinds; an edge stores its kind's index in this tuple."""

KIND_INDEX: Mapping[EdgeKind, int] = {kind: index for index, kind in enumerate(EDGE_KINDS)}
IS_PASSAGE_KIND: NDArray[np.bool_] = np.asarray([kind.link is not None for kind in EDGE_KINDS])


@dataclass(frozen=True, slots=True)
class Edges:
    """Undirected edges, one per (pair, type); all arrays have one element an edge.

    Attributes:
        source: node index, an entity.
        target: node index, an entity, or a passage for passage edges.
        kind: index into ``EDGE_KINDS``.
        weight: confidence sum, cosine, or composite weight.
        count: the weight that HippoRAG 2 gives: how often a fact stands, the cosine, 1 or 0 for passage edges.
        offset: for passage edges, where the name stands in the passage's content, in characters; -1 where absent.
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    kind: NDArray[np.uint8]
    weight: NDArray[np.float32]
    count: NDArray[np.float32]
    offset: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class GraphFact:
    """A fact with its place in the graph: node indices of its ends, indices of the passages that hold it."""

    fact: Fact
    subject: int
    object: int
    passages: tuple[int, ...]


@dataclass(frozen=True)
class KnowledgeGraph:
    """Entities, passages, facts and typed edges of one generation.

    Node indices: entities first (0 … n_entities-1), passages after them, each in the order of their ids.

    Attributes:
        entity_names: normal forms.
        entity_labels: how each name is most often spelled.
        triple_passages: for each entity, in how many passages' triples it stands.
        name_passages: for each entity, how many passages it is linked with.
        passage_vectors: unit vectors, (n_passages, dimension).
        aliases: full titles that differ from the entity they stand for, with its index.
        commit_id: the record's commit that it was derived from.
    """

    generation: int
    embedding_model: str
    entity_names: tuple[str, ...]
    entity_labels: tuple[str, ...]
    triple_passages: NDArray[np.int32]
    name_passages: NDArray[np.int32]
    passages: tuple[Passage, ...]
    passage_vectors: NDArray[np.float32]
    facts: Mapping[str, GraphFact]
    aliases: tuple[tuple[str, int], ...]
    edges: Edges
    commit_id: str = ""

    @property
    def n_entities(self) -> int:
        """How many entities there are; the index of the first passage node."""
        return len(self.entity_names)

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.entity_names) + len(self.passages)

    @cached_property
    def passage_index(self) -> Mapping[str, int]:
        """Passage id -> position among the passages."""
        return {passage.id: index for index, passage in enumerate(self.passages)}

    @cached_property
    def entity_index(self) -> Mapping[str, int]:
        """Entity id -> node index."""
        return {entity_id(name): index for index, name in enumerate(self.entity_names)}

    @cached_property
    def names(self) -> NameMatcher:
        """Matcher of every entity's name and of the full titles."""
        return NameMatcher([*((name, index) for index, name in enumerate(self.entity_names)), *self.aliases])

    @cached_property
    def undirected(self) -> Any:
        """The igraph graph with one edge an edge; built on first use."""
        return _igraph(self.n_nodes, self.edges.source, self.edges.target)

    @cached_property
    def directed(self) -> Any:
        """The igraph graph with one arc each way: first all forward, then all backward; built on first use."""
        source = np.concatenate([self.edges.source, self.edges.target])
        target = np.concatenate([self.edges.target, self.edges.source])
        return _igraph(self.n_nodes, source, target, directed=True)


def _igraph(n_nodes: int, source: NDArray[np.int32], target: NDArray[np.int32], *, directed: bool = False) -> Any:
    import igraph

    return igraph.Graph(n=n_nodes, edges=np.column_stack([source, target]).tolist(), directed=directed)


_EDGE_ARRAYS = ("source", "target", "kind", "weight", "count", "offset")


def save(graph: KnowledgeGraph, folder: Path) -> None:
    """Write the snapshot into an existing folder as arrays and JSON lines."""
    for name in _EDGE_ARRAYS:
        np.save(folder / f"edge_{name}.npy", getattr(graph.edges, name))
    np.save(folder / "triple_passages.npy", graph.triple_passages)
    np.save(folder / "name_passages.npy", graph.name_passages)
    np.save(folder / "passage_vectors.npy", graph.passage_vectors)
    _write_lines(folder / "entities.jsonl", zip(graph.entity_names, graph.entity_labels, strict=True))
    _write_lines(folder / "aliases.jsonl", graph.aliases)
    _write_lines(
        folder / "passages.jsonl", ([p.id, p.title, p.text, p.source, dict(p.metadata)] for p in graph.passages)
    )
    _write_lines(
        folder / "facts.jsonl",
        (
            [key, f.fact.subject, f.fact.predicate, f.fact.object, f.fact.relation, f.subject, f.object, f.passages]
            for key, f in graph.facts.items()
        ),
    )
    header = {
        "snapshot_version": SNAPSHOT_VERSION,
        "generation": graph.generation,
        "commit_id": graph.commit_id,
        "embedding_model": graph.embedding_model,
        "passages": len(graph.passages),
        "entities": graph.n_entities,
        "facts": len(graph.facts),
        "edges": len(graph.edges),
    }
    (folder / "snapshot.json").write_text(json.dumps(header, indent=2), encoding="utf-8")


def load_header(folder: Path) -> dict[str, Any]:
    """Return the snapshot's header. Raises OSError or ValueError when there is none that can be read."""
    header: dict[str, Any] = json.loads((folder / "snapshot.json").read_text(encoding="utf-8"))
    if header.get("snapshot_version") != SNAPSHOT_VERSION:
        raise ValueError(f"snapshot version {header.get('snapshot_version')}")
    return header


def load(folder: Path) -> KnowledgeGraph:
    """Read a snapshot; vectors stay on disk, memory-mapped. Raises OSError or ValueError when it is damaged."""
    header = load_header(folder)
    entities = list(_read_lines(folder / "entities.jsonl"))
    facts = {
        key: GraphFact(Fact(s, p, o, RelationType(relation)), subject, object_, tuple(passages))
        for key, s, p, o, relation, subject, object_, passages in _read_lines(folder / "facts.jsonl")
    }
    graph = KnowledgeGraph(
        generation=header["generation"],
        commit_id=header["commit_id"],
        embedding_model=header["embedding_model"],
        entity_names=tuple(name for name, _ in entities),
        entity_labels=tuple(label for _, label in entities),
        triple_passages=np.load(folder / "triple_passages.npy"),
        name_passages=np.load(folder / "name_passages.npy"),
        passages=tuple(Passage(*row) for row in _read_lines(folder / "passages.jsonl")),
        passage_vectors=np.load(folder / "passage_vectors.npy", mmap_mode="r"),
        facts=facts,
        aliases=tuple((alias, index) for alias, index in _read_lines(folder / "aliases.jsonl")),
        edges=Edges(*(np.load(folder / f"edge_{name}.npy") for name in _EDGE_ARRAYS)),
    )
    found = {
        "passages": len(graph.passages),
        "entities": graph.n_entities,
        "facts": len(graph.facts),
        "edges": len(graph.edges),
    }
    if any(header[name] != count for name, count in found.items()):
        raise ValueError(f"the snapshot holds {found}, its header promises otherwise")
    return graph


def _write_lines(path: Path, rows: Iterable[Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _read_lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
