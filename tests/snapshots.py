"""Made-up graphs as snapshots: the product writes those that it builds, as it builds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from graph.construction.columns import IntLists, TextTable
from graph.construction.edges import EDGE_TYPES, write_arcs
from graph.construction.knowledge_graph import (
    BUILT_IN,
    FactTable,
    GraphFact,
    KnowledgeGraph,
    SnapshotHeader,
    table_of_facts,
    table_of_passages,
)


def lists_of(lists: Iterable[Sequence[int]]) -> IntLists:
    """Return some lists."""
    held = list(lists)
    values = np.fromiter(chain.from_iterable(held), dtype=np.int32)
    return IntLists(np.cumsum([0, *map(len, held)], dtype=np.int32), values)


def save_lists(lists: IntLists, folder: Path, name: str) -> None:
    """Write lists of numbers."""
    np.save(folder / f"{name}.starts.npy", lists.starts)
    np.save(folder / f"{name}.values.npy", lists.values)


def facts_of(facts: Mapping[str, GraphFact]) -> FactTable:
    """Return the table of some facts, whatever their order."""
    held = [facts[key] for key in sorted(facts)]
    own = sorted({fact.fact.relation for fact in held if fact.fact.relation.is_own})
    relations = [(*BUILT_IN, *own).index(fact.fact.relation) for fact in held]
    return FactTable(
        table_of_facts(sorted(facts), [fact.fact for fact in held]),
        np.array([(fact.subject, fact.object) for fact in held], dtype=np.int32).reshape(len(held), 2),
        np.array(relations, dtype=np.uint8),
        lists_of(fact.passages for fact in held),
        own,
    )


def save(graph: KnowledgeGraph, folder: Path) -> None:
    """Write a graph into an existing folder."""
    arrays = {name: getattr(graph, name) for name in ("triple_passages", "name_passages", "name_shares")}
    arrays |= {"passage_vectors": graph.passage_vectors, "fact_ends": graph.facts.ends}
    arrays |= {"fact_relations": graph.facts.relations}
    arrays |= {"alias_entities": np.array([entity for _, entity in graph.aliases], dtype=np.int32)}
    arrays |= {f"edge_{name}": getattr(graph.edges, name) for name in EDGE_TYPES}
    if graph.own.entities:
        arrays["entity_types"] = graph.entity_types
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    write_arcs(folder, graph.n_nodes)
    TextTable.of(zip(graph.entity_names, graph.entity_labels, strict=True), 2).save(folder, "entities")
    table_of_passages(graph.passages).save(folder, "passages")
    table_of_facts(graph.facts.ids, [fact.fact for fact in graph.facts.rows]).save(folder, "facts")
    save_lists(graph.facts.passages, folder, "fact_passages")
    TextTable.of_strings(alias for alias, _ in graph.aliases).save(folder, "aliases")
    for name, lists in (("spellings", graph.names.indices), ("first_words", graph.names.lengths)):
        TextTable.of_strings(sorted(lists)).save(folder, name)
        save_lists(lists_of(lists[key] for key in sorted(lists)), folder, f"{name}.numbers")
    SnapshotHeader(
        generation=graph.generation,
        commit_id=graph.commit_id,
        embedding_model=graph.embedding_model,
        passages=len(graph.passages),
        entities=graph.n_entities,
        facts=len(graph.facts),
        edges=len(graph.edges),
        own=graph.own,
    ).save(folder)
