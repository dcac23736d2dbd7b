"""A build that takes over what earlier ones read gives the graph of a fresh build, edge for edge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction.bm25 import SparseIndex
from graph.construction.build import build_generation, derive_graph
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.schema import Extraction, Passage, RelationType, Triple
from graph.storage.record import Record
from graph.storage.writer import Writer, reembed
from tests.builders import HashEmbedder, passage_of, write_passages

NAMES = [
    "Nissan",
    "NISSAN",
    "Nissan Motor",
    "Motor",
    "Lake Sund",
    "Sund",
    "Paris (Texas)",
    "Paris",
    "1933",
    "日産",
    "Зима",
]

names = st.sampled_from(NAMES)
triples = st.builds(
    Triple,
    names,
    st.sampled_from(["founded", "is in", "Is In"]),
    names,
    st.sampled_from([RelationType.TEMPORAL, RelationType.SPATIAL, RelationType("SUPPLIES"), RelationType("OWNS")]),
    st.sampled_from([0.3, 0.5, 0.7, 0.9]),
)
extractions = st.builds(
    lambda found, entities, types: Extraction(
        tuple(entities), tuple(found), "test", types=dict(zip(entities, types, strict=False))
    ),
    st.lists(triples, max_size=4),
    st.lists(names, max_size=2),
    st.lists(st.sampled_from(["Maker", "Place"]), max_size=2),
)
texts = st.lists(st.sampled_from([*NAMES, "the", "by", "sea"]), max_size=8).map(" ".join)
passages = st.builds(
    lambda key, title, text, chunk: Passage(f"p{key}", title, text, "doc", {"chunk": 0} if chunk else {}),
    st.integers(0, 7),
    st.sampled_from(["", *NAMES]),
    texts,
    st.booleans(),
)
batches = st.tuples(
    st.lists(st.tuples(passages, extractions), max_size=4, unique_by=lambda item: item[0].id),
    st.sets(st.integers(0, 7).map(lambda key: f"p{key}"), max_size=3),
)


def assert_same(graph: KnowledgeGraph, fresh: KnowledgeGraph) -> None:
    assert tuple(graph.entity_names) == tuple(fresh.entity_names)
    assert tuple(graph.entity_labels) == tuple(fresh.entity_labels)
    assert tuple(graph.passages) == tuple(fresh.passages)
    assert dict(graph.facts) == dict(fresh.facts)
    assert tuple(graph.aliases) == tuple(fresh.aliases)
    for learnt in ("indices", "lengths"):
        here, there = (getattr(one.names, learnt).items() for one in (graph, fresh))
        assert {key: tuple(numbers) for key, numbers in here} == {key: tuple(numbers) for key, numbers in there}
    assert graph.own == fresh.own
    for name in ("entity_types", "triple_passages", "name_passages", "name_shares", "passage_vectors"):
        assert np.array_equal(getattr(graph, name), getattr(fresh, name))
    for column in fields(graph.edges):
        assert np.array_equal(getattr(graph.edges, column.name), getattr(fresh.edges, column.name)), column.name


def assert_same_terms(one: SparseIndex, other: SparseIndex) -> None:
    for word in ("nissan", "sund", "motor", "paris", "日産", "sea"):
        assert one.scores(word).tolist() == pytest.approx(other.scores(word).tolist(), abs=1e-9)


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    with Record(tmp_path / "record.sqlite", create=True) as record:
        yield record


class Builds:
    """Builds of records, each of which takes over what the ones before it read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0

    def build(self, record: Record) -> KnowledgeGraph:
        """Return the graph of a record's present generation."""
        self._number += 1
        into = self._folder / f"generation{self._number}"
        into.mkdir()
        build_generation(record, into, self._folder / "cache")
        return load(into)

    def terms(self, record: Record) -> SparseIndex:
        """Return the words of the last build."""
        return SparseIndex.load(self._folder / f"generation{self._number}" / "bm25", record.count_passages())


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path)


@settings(max_examples=5, deadline=None)
@given(st.lists(batches, min_size=2, max_size=4))
def test_any_sequence_of_changes_gives_the_graph_of_a_fresh_build(
    changes: list[tuple[list[tuple[Passage, Extraction]], set[str]]],
) -> None:
    corpus: dict[str, tuple[Passage, Extraction]] = {}
    with TemporaryDirectory() as folder, Record(Path(folder) / "a.sqlite", create=True) as record:
        builds, writer = Builds(Path(folder)), Writer(record, HashEmbedder())
        for batch, removed in changes:
            gone = removed - {passage.id for passage, _ in batch}
            writer.write(batch, sorted(gone))
            corpus = {key: item for key, item in corpus.items() if key not in gone} | {p.id: (p, x) for p, x in batch}
            graph = builds.build(record)
            assert_same(graph, derive_graph(record))
        words = builds.terms(record)
        with Record(Path(folder) / "b.sqlite", create=True) as other:
            Writer(other, HashEmbedder()).write(list(corpus.values()))
            if corpus:
                assert_same(graph, builds.build(other))
                assert_same_terms(words, builds.terms(other))


def test_vectors_that_were_all_replaced_are_read_anew(record: Record, builds: Builds) -> None:
    write_passages(record, [passage_of("a", "Nissan", "Nissan is old.")], {}, HashEmbedder())
    builds.build(record)
    reembed(record, HashEmbedder("another"))
    assert_same(builds.build(record), derive_graph(record))


def test_what_was_read_of_one_record_is_not_taken_for_another(record: Record, tmp_path: Path, builds: Builds) -> None:
    write_passages(record, [passage_of("a", "Nissan", "Nissan is old.")], {}, HashEmbedder())
    builds.build(record)
    with Record(tmp_path / "other.sqlite", create=True) as other:
        write_passages(other, [passage_of("a", "Sund", "Another one.")], {}, HashEmbedder())
        assert_same(builds.build(other), derive_graph(other))
    assert_same(builds.build(record), derive_graph(record))
