"""How long a saved snapshot takes to load: names, facts and texts are made up around a synthetic graph."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.fresh import measure_load
from graph.construction.edges import EDGE_KINDS, Edges, TypedGraph
from graph.construction.knowledge_graph import FactTable, GraphFact, KnowledgeGraph, save
from graph.schema import ENTITY_RELATIONS, Fact, Passage, entity_id
from graph.text import NameMatcher

TEXT_LENGTH = 500
DIMENSION = 384
_VOCABULARY = 5_000
_WORD_LENGTH = 7
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class SnapshotCost:
    """Loading in fresh processes, the files being in the system's cache.

    Attributes:
        disk: bytes of the snapshot.
        load: seconds to load it, process by process.
        first_walk: seconds of the walk after that, with all that is read or derived then.
    """

    disk: int
    load: list[float]
    first_walk: list[float]


def measure_snapshot(graph: TypedGraph, rng: np.random.Generator) -> SnapshotCost:
    """Save a snapshot around the graph to a temporary folder, and load it in five processes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save(made_up(graph, rng), folder)
        disk = sum(file.stat().st_size for file in folder.iterdir())
        found = [measure_load(folder) for _ in range(_ROUNDS)]
    return SnapshotCost(disk, [load for load, _ in found], [walk for _, walk in found])


def made_up(graph: TypedGraph, rng: np.random.Generator) -> KnowledgeGraph:
    """Return a knowledge graph with these edges: texts of random words, one fact for each fact edge."""
    words = ["".join(letters) for letters in rng.choice(list("abcdefghijklmnopqrst"), (_VOCABULARY, _WORD_LENGTH))]
    names = sorted((f"{words[i % _VOCABULARY]} {i}" for i in range(graph.n_entities)), key=entity_id)
    labels = tuple(name.title() for name in names)
    return KnowledgeGraph(
        generation=1,
        embedding_model="none",
        entity_names=tuple(names),
        entity_labels=labels,
        triple_passages=np.ones(graph.n_entities, dtype=np.int32),
        name_passages=np.ones(graph.n_entities, dtype=np.int32),
        name_shares=np.ones(graph.n_entities, dtype=np.float32),
        passages=tuple(_passage(i, words, rng) for i in range(graph.n_passages)),
        passage_vectors=rng.standard_normal((graph.n_passages, DIMENSION), dtype=np.float32),
        facts=FactTable.of(_facts(graph, labels, rng)),
        aliases=(),
        names=NameMatcher.of((name, index) for index, name in enumerate(names)),
        edges=Edges(
            graph.source,
            graph.target,
            graph.kind,
            graph.weight,
            count=np.ones(len(graph), dtype=np.float32),
            offset=np.full(len(graph), -1, dtype=np.int32),
        ),
    )


def _passage(number: int, words: list[str], rng: np.random.Generator) -> Passage:
    chosen = rng.integers(0, _VOCABULARY, TEXT_LENGTH // (_WORD_LENGTH + 1)).tolist()
    text = " ".join(words[word] for word in chosen)
    return Passage(f"passage-{number:06}", f"Title {number}", text, "corpus.jsonl", {"year": 1900 + number % 120})


def _facts(graph: TypedGraph, labels: tuple[str, ...], rng: np.random.Generator) -> dict[str, GraphFact]:
    is_fact_kind = np.array([kind.relation in ENTITY_RELATIONS for kind in EDGE_KINDS])
    rows = np.flatnonzero(is_fact_kind[graph.kind])
    facts = {}
    for row, passage in zip(rows.tolist(), rng.integers(0, graph.n_passages, len(rows)).tolist(), strict=True):
        subject, object_ = int(graph.source[row]), int(graph.target[row])
        fact = Fact(labels[subject], "is known for", labels[object_], EDGE_KINDS[graph.kind[row]].relation)
        facts[fact.id] = GraphFact(fact, subject, object_, (passage,))
    return facts
