"""Concepts of a text: found by name or by an extractor, and only those that the documents hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agents.offline.extractor import OfflineExtractor
from graph.relationships.concepts import NAME_ALONE, ConceptExtractor, ExtractedConcepts, SpelledConcepts
from graph.retrieve.open_index import Index, open_index
from graph.retrieve.seeds import COMMON_NOUN_SHARE
from graph.schema import Extraction, Passage, RelationType, Triple, entity_id
from tests.builders import HashEmbedder, extraction_of, passage_of, publish_workspace

PASSAGES = [
    passage_of("orlo", "Orlo Brandt", "Orlo Brandt built ships in Marn."),
    passage_of("marn", "Marn", "Marn is a town by the sea."),
    passage_of("tea", "tea", "People drink tea, and tea is good."),
]
ORLO, MARN, TEA = (entity_id(name) for name in ("Orlo Brandt", "Marn", "tea"))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("concepts")
    publish_workspace(root, PASSAGES)
    opened = open_index(root, HashEmbedder())
    yield opened
    opened.close()


@pytest.fixture(params=["spelled", "extracted"])
def extractor(request: pytest.FixtureRequest, index: Index) -> ConceptExtractor:
    if request.param == "spelled":
        return SpelledConcepts(index.graph)
    return ExtractedConcepts(OfflineExtractor().extract, index.graph)


def test_a_message_mentions_the_names_that_it_spells(extractor: ConceptExtractor) -> None:
    assert set(extractor.concepts_in("When did Orlo Brandt leave Marn?")) == {ORLO, MARN}


def test_names_that_no_document_holds_are_no_concepts(extractor: ConceptExtractor) -> None:
    for text in ("Did Elva Sund ever visit Tarn?", ""):
        assert extractor.concepts_in(text) == {}


def test_every_confidence_is_a_share_and_the_surest_stands_first(extractor: ConceptExtractor) -> None:
    confidences = list(extractor.concepts_in("Orlo Brandt was born in Marn, where people drink tea.").values())
    assert confidences == sorted(confidences, reverse=True)
    assert all(0 < confidence <= 1 for confidence in confidences)


def test_a_word_in_small_letters_counts_less(index: Index) -> None:
    spelled = SpelledConcepts(index.graph)
    assert spelled.concepts_in("Who drinks tea?") == {TEA: COMMON_NOUN_SHARE}
    assert spelled.concepts_in("what did Orlo Brandt build in marn") == {ORLO: 1.0, MARN: COMMON_NOUN_SHARE}


def test_an_extracted_name_is_as_sure_as_its_surest_statement(index: Index) -> None:
    def extract(passage: Passage) -> Extraction:
        assert passage.text == "asked"
        weak, strong = (
            Triple("Orlo Brandt", predicate, "Marn", RelationType.SPATIAL, confidence)
            for predicate, confidence in (("near", 0.2), ("lives in", 0.7))
        )
        return Extraction(("tea", "Elva Sund"), (weak, strong), "test")

    concepts = ExtractedConcepts(extract, index.graph).concepts_in("asked")
    assert concepts == {ORLO: 0.7, MARN: 0.7, TEA: NAME_ALONE}
    assert list(concepts)[-1] == TEA
    none = extraction_of([("Orlo Brandt", "near", "Marn", RelationType.SPATIAL, 0.0)])
    assert ExtractedConcepts(lambda _: none, index.graph).concepts_in("asked") == {}
