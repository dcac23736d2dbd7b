"""Own types in the graph: facts and names carry them, and a type that nothing carries changes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from graph.construction.build import derive_graph
from graph.construction.edges import EDGE_KINDS, EdgeKind
from graph.construction.knowledge_graph import KnowledgeGraph, load, load_header
from graph.own_types import NO_TYPES, own_types_of
from graph.schema import Extraction, RelationFactors, RelationType, Triple
from graph.storage.record import Record, declare_types, declared_types
from graph.storage.writer import Writer
from graph.walk.factors import edge_factors
from graph.walk.pagerank import walk
from graph.walk.settings import Engine
from graph.walk.strengths import tuned
from tests.builders import HashEmbedder, passage_of
from tests.snapshots import save

SUPPLIES, OWNS, TEMPORAL = RelationType("SUPPLIES"), RelationType("OWNS"), RelationType.TEMPORAL
TRIPLES = (
    Triple("Orrin", "supplies", "Halden", SUPPLIES, 0.75),
    Triple("Halden", "founded in", "1933", TEMPORAL, 0.5),
    Triple("Vestra", "owns", "Halden", OWNS, 0.5),
    Triple("Halden", "buys from", "Orrin", SUPPLIES, 0.5),
)
DECLARED: Mapping[str, Any] = {
    "relations": {"SUPPLIES": {"meaning": "one delivers to the other"}, "OWNS": {}, "BERTHS_AT": {"cues": ["berth"]}},
    "entities": {"Maker": {"meaning": "makes things"}, "Vessel": {"shapes": ["MV *"]}},
}
ENTITIES = ("Orrin", "Halden", "Vestra", "1933")


def built(
    triples: Sequence[Triple] = TRIPLES, declared: Mapping[str, Any] = DECLARED, types: Mapping[str, str] | None = None
) -> KnowledgeGraph:
    """Return the graph of one passage a triple, in a workspace that declares these types."""
    with TemporaryDirectory() as folder, Record(Path(folder) / "record.sqlite", create=True) as record:
        declare_types(record, own_types_of(declared))
        batch = [
            (passage_of(f"p{i}", triple.subject, str(triple)), Extraction(ENTITIES, (triple,), "t", types=types or {}))
            for i, triple in enumerate(triples)
        ]
        Writer(record, HashEmbedder()).write(batch)
        return derive_graph(record)


def scores(graph: KnowledgeGraph, beta: RelationFactors | None, engine: Engine = Engine.IGRAPH) -> list[float]:
    factors = edge_factors(beta, own=graph.own.relation_types)
    found: list[float] = walk(graph.typed, np.arange(1.0, graph.n_nodes + 1), factors, 0.7, engine).scores.tolist()
    return found


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    return built(types={"Orrin": "Maker", "Halden": "Maker"})


class TestGraph:
    def test_facts_of_own_types_make_edges_of_kinds_behind_the_built_in_ones(self, graph: KnowledgeGraph) -> None:
        assert graph.own.relation_types == (OWNS, SUPPLIES)
        assert graph.kinds == (*EDGE_KINDS, EdgeKind(OWNS), EdgeKind(SUPPLIES))
        weights = {
            graph.kinds[kind].relation: weight
            for kind, weight in zip(graph.edges.kind, graph.edges.weight, strict=True)
        }
        assert (weights[SUPPLIES], weights[OWNS], weights[TEMPORAL]) == (1.25, 0.5, 0.5)
        assert sorted(fact.fact.relation for fact in graph.facts.values()) == [OWNS, SUPPLIES, SUPPLIES, TEMPORAL]

    def test_names_have_own_types_and_a_graph_the_meaning_of_those_that_it_has(self, graph: KnowledgeGraph) -> None:
        types = {label: graph.entity_type(node) for node, label in enumerate(graph.entity_labels)}
        assert types == {"Orrin": "Maker", "Halden": "Maker", "Vestra": None, "1933": None}
        assert graph.entity_type(graph.n_entities) is None
        assert graph.own == own_types_of(DECLARED).used([SUPPLIES, OWNS], ["Maker"])
        assert built(TRIPLES[1:2]).own == NO_TYPES


class TestBeta:
    def test_an_own_type_that_beta_prefers_carries_more(self, graph: KnowledgeGraph) -> None:
        own = graph.own.relation_types
        preferred = {**dict.fromkeys(RelationFactors.uniform(own).entity_entity, 0.1), "SUPPLIES": 0.4}
        factors = edge_factors(RelationFactors(preferred, {}), own=own)
        by_kind = dict(zip(graph.kinds, factors.from_entity, strict=True))
        assert by_kind[EdgeKind(SUPPLIES)] == pytest.approx(7 * 0.4)
        assert by_kind[EdgeKind(OWNS)] == by_kind[EdgeKind(TEMPORAL)] == pytest.approx(7 * 0.1)
        orrin = list(graph.entity_labels).index("Orrin")
        assert scores(graph, RelationFactors(preferred, {}))[orrin] > scores(graph, None)[orrin]


class TestSnapshot:
    @pytest.fixture
    def folder(self, graph: KnowledgeGraph, tmp_path: Path) -> Path:
        save(graph, tmp_path)
        return tmp_path

    def test_with_other_types_its_numbers_would_be_misread_so_it_is_refused(self, folder: Path) -> None:
        others: list[dict[str, Any]] = [
            {},
            {"relations": {"SUPPLIES": {}}},
            {"relations": {"SUPPLIES": {}, "TEMPORAL": {}}},
        ]
        for types in others:
            path = folder / "snapshot.json"
            path.write_text(json.dumps({**json.loads(path.read_text()), "own_types": types}))
            for read in (load_header, load):
                with pytest.raises(ValueError, match=r"."):
                    read(folder)

    def test_a_number_that_stands_for_no_type_is_refused(self, folder: Path) -> None:
        for name in ("edge_kind", "fact_relations", "entity_types"):
            column = np.load(folder / f"{name}.npy")
            np.save(folder / f"{name}.npy", np.r_[np.uint8(40), column[1:]])
            with pytest.raises(ValueError, match=r"."):
                load(folder)
            np.save(folder / f"{name}.npy", column)
        (folder / "entity_types.npy").unlink()
        with pytest.raises(OSError, match="entity_types"):
            load(folder)


class TestRecord:
    def test_types_are_kept_in_a_commit_of_their_own_and_the_same_ones_in_none(self, tmp_path: Path) -> None:
        own = own_types_of(DECLARED)
        with Record(tmp_path / "record.sqlite", create=True) as record:
            before = record.generation
            declare_types(record, own)
            declare_types(record, own)
            assert (declared_types(record), record.generation) == (own, before + 1)
            declare_types(record, NO_TYPES)
            assert declared_types(record) == NO_TYPES


class TestWhatFollows:
    def test_a_strength_of_an_own_type_multiplies_its_edges_alone_and_is_1_where_none_was_learned(
        self, graph: KnowledgeGraph
    ) -> None:
        own = graph.own.relation_types
        learned = {SUPPLIES: 4.0, RelationType("GONE"): 2.0}
        plain = edge_factors(None, own=own)
        factors = tuned(plain, learned, own)
        changed = {graph.kinds[index].relation for index in np.flatnonzero(plain.from_entity != factors.from_entity)}
        assert changed == {SUPPLIES}
