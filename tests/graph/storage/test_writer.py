from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.construction.build import derive_graph
from graph.construction.edges import IS_SYNONYM_KIND
from graph.errors import EmbeddingMismatch
from graph.schema import RelationType, Triple
from graph.storage.record import Record
from graph.storage.writer import Writer, clean_extraction, reembed
from tests.builders import HashEmbedder, TripleParts, extraction_of, facts_in, names_in, passage_of, write_passages
from tests.graph.construction.test_builder_changes import assert_same


@contextmanager
def new_record() -> Iterator[Record]:
    with tempfile.TemporaryDirectory() as folder, Record(Path(folder) / "record.sqlite", create=True) as record:
        yield record


@pytest.fixture
def record() -> Iterator[Record]:
    with new_record() as record:
        yield record


def synonyms_in(record: Record) -> list[tuple[str, str]]:
    """Return the pairs of names that synonym edges join."""
    graph = derive_graph(record)
    near = IS_SYNONYM_KIND[graph.edges.kind]
    ends = zip(graph.edges.source[near].tolist(), graph.edges.target[near].tolist(), strict=True)
    return sorted((min(pair), max(pair)) for pair in ((graph.entity_names[a], graph.entity_names[b]) for a, b in ends))


def assert_same_record(one: Record, other: Record) -> None:
    """Both hold the same passages, names and facts, and derive the same graph, to the last bit."""
    assert one.fingerprints() == other.fingerprints()
    for mine, theirs in ((names_in(one), names_in(other)), (facts_in(one), facts_in(other))):
        assert mine[:2] == theirs[:2]
        assert mine[2].tolist() == theirs[2].tolist()
    assert_same(derive_graph(one), derive_graph(other))


def test_embedding_anew_gives_what_the_other_model_would_have_written(record: Record) -> None:
    corpus = [
        (passage_of("a", "Nissan (company)", "Near 日産自動車."), extraction_of([("Nissan", "near", "UN")])),
        (passage_of("b", "Nissan Motor", "1933"), extraction_of([("Nissan Motor", "founded", "1933")], ["Nissan."])),
    ]
    with new_record() as fresh:
        Writer(record, HashEmbedder("old")).write(corpus)
        reembed(record, HashEmbedder("new"))
        Writer(fresh, HashEmbedder("new")).write(corpus)
        assert record.embedding_model == "new"
        assert_same_record(record, fresh)


class TestSynonyms:
    def test_names_of_two_letters_have_none(self, record: Record) -> None:
        class Constant(HashEmbedder):
            def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
                return super().embed(["same"] * len(texts))

        write_passages(
            record,
            [passage_of("a", "UN", "."), passage_of("b", "UK", "."), passage_of("c", "USA", ".")],
            {},
            Constant(),
        )
        assert synonyms_in(record) == []


class TestBatch:
    def test_only_texts_that_the_record_lacks_are_embedded(self, record: Record) -> None:
        triples: dict[str, list[TripleParts]] = {
            "a": [("Nissan", "founded", "1933")],
            "b": [("nissan", "Founded", "1933"), ("Nissan", "makes", "cars")],
        }
        write_passages(record, [passage_of("a", "Nissan", "One.")], triples, HashEmbedder())
        embedder = HashEmbedder()
        write_passages(record, [passage_of("b", "NISSAN", "Two.")], triples, embedder)
        assert sorted(embedder.asked) == ["NISSAN\nTwo.", "cars", "nissan makes cars"]

    def test_another_models_record_is_refused_by_name_with_the_command_that_helps(self, record: Record) -> None:
        write_passages(record, [passage_of("a", "", "x")], {}, HashEmbedder("old"))
        with pytest.raises(EmbeddingMismatch, match=r"'old'.*'new'.*mara doctor --reembed"):
            Writer(record, HashEmbedder("new"))

    def test_vectors_of_another_length_are_refused_before_anything_is_written(self, record: Record) -> None:
        class Shorter(HashEmbedder):
            def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
                return super().embed(texts)[:, :8]

        write_passages(record, [passage_of("a", "", "x")], {}, HashEmbedder())
        with pytest.raises(EmbeddingMismatch, match=r"length 64.*gives 8.*mara doctor --reembed"):
            write_passages(record, [passage_of("b", "", "y")], {}, Shorter())
        assert list(record.fingerprints()) == ["a"]


class TestCleaning:
    def test_of_identical_triples_the_most_confident_is_kept(self) -> None:
        parts = [("Nissan", "founded", "1933", RelationType.TEMPORAL, c) for c in (0.4, 0.9, 0.6)]
        cleaned = clean_extraction(extraction_of(parts))
        assert cleaned.triples == (Triple(*parts[1]),)
        assert cleaned.notes == {"identical triples": 2}
        types = [("Nissan", "founded", "1933", kind) for kind in (RelationType.TEMPORAL, RelationType.CAUSALITY)]
        assert len(clean_extraction(extraction_of(types)).triples) == 2

    def test_entities_stand_once_and_nothing_is_without_a_name(self) -> None:
        cleaned = clean_extraction(extraction_of([("", "is", "b"), ("a", "is", "\u200b")], ["A", "", "B", " ", "A"]))
        assert cleaned.entities == ("A", "B")
        assert (cleaned.triples, cleaned.notes) == ((), {"triples without a name": 2})
