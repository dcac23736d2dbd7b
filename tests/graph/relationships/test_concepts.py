"""Concepts of a text: found by name, and only those that the documents hold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graph.relationships.concepts import SpelledConcepts
from graph.retrieve.open_index import Index, open_index
from graph.retrieve.seeds import COMMON_NOUN_SHARE
from graph.schema import entity_id
from tests.builders import HashEmbedder, passage_of, publish_workspace

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


def test_a_message_mentions_the_known_names_that_it_spells_the_surest_first(index: Index) -> None:
    spelled = SpelledConcepts(index.graph)
    assert spelled.concepts_in("Who drinks tea?") == {TEA: COMMON_NOUN_SHARE}
    concepts = spelled.concepts_in("what did Orlo Brandt and Elva Sund build in marn")
    assert list(concepts.items()) == [(ORLO, 1.0), (MARN, COMMON_NOUN_SHARE)]
    for text in ("Did Elva Sund ever visit Tarn?", ""):
        assert spelled.concepts_in(text) == {}
