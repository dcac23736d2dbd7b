"""An open index under a filter: what it selects, and the facts and passages that are found within."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.errors import BadInput
from graph.metadata_filter import Condition
from graph.publish.generation_vectors import GenerationVectors
from graph.retrieve import open_index as module
from graph.retrieve import search
from graph.retrieve.modes import MARA
from graph.retrieve.open_index import Index, open_index
from graph.retrieve.search import seed_passages
from graph.retrieve.selection import Selection
from graph.text import normalise_name
from tests.builders import HashEmbedder, passage_of, publish_workspace

SHOWN = 20
HOUSES = 120
"""Of these, three in a hundred belong to Ann."""


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("houses")
    owned = [
        passage_of(f"h{i}", f"House {i}", f"House {i} stands.", owner="ann" if i % 33 == 0 else "bob", built=1900 + i)
        for i in range(HOUSES)
    ]
    publish_workspace(root, owned, {p.id: [(p.title, "stands in", f"Street {p.id}")] for p in owned})
    index = open_index(root, HashEmbedder())
    yield index
    index.close()


def cosines(index: Index, question: str, facts: Iterable[str]) -> NDArray[np.float32]:
    embedder = HashEmbedder()
    texts = [index.graph.facts[key].fact for key in facts]
    spelled = [" ".join(map(normalise_name, (f.subject, f.predicate, f.object))) for f in texts]
    return np.asarray(embedder.embed(spelled) @ embedder.embed([question])[0])


@pytest.fixture
def searches(houses: Index, monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """How many ids each search of the store was restricted to."""
    seen: list[int | None] = []
    search = GenerationVectors.search

    def watched(self: GenerationVectors, name: str, vector: Any, k: int, within: Any = None) -> Any:
        seen.append(None if within is None else len(within))
        return search(self, name, vector, k, within)

    monkeypatch.setattr(GenerationVectors, "search", watched)
    return seen


def test_conditions_select_passages_and_no_condition_nothing(houses: Index, searches: list[int | None]) -> None:
    selection = houses.select({"owner": "ann", "built": {"$gt": 1900, "$lte": 1966}})
    assert selection is not None
    assert {houses.graph.passages[row].id for row in selection.rows} == {"h33", "h66"}
    assert houses.select({}) is None
    with pytest.raises(BadInput, match="'owner' compares with null"):
        houses.select({"owner": None})
    for count in (0, 3, 100):
        rows = np.arange(HOUSES)[::-1][:count]
        assert houses.score_passages("House 5", rows).tolist() == houses.score_passages("House 5")[rows].tolist()
    assert houses.search_facts("House", 3, Selection.of(houses.graph, np.zeros(0, dtype=np.intp))) == []
    assert searches == [], "there is nothing to search"


def test_the_nearest_facts_of_a_selection_are_found(houses: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    for at_most in [0, 1_000]:
        for k in [1, 3, 99]:
            monkeypatch.setattr(module, "_MOST_OVERFETCHED", at_most)
            selection = houses.select({"owner": "ann"})
            assert selection is not None
            for question in ("House 5 stands", "street", "Where is house 66?"):
                whole = [hit for hit in houses.search_facts(question, HOUSES) if hit[0].fact.id in selection.facts]
                hits = houses.search_facts(question, k, selection)
                assert [score for _, score in hits] == pytest.approx([score for _, score in whole[:k]], abs=1e-6)
                assert {fact.fact.id for fact, _ in hits} <= selection.facts.keys()
                least = min(float(c) for c in cosines(houses, question, selection.facts))
                assert houses.least_fact_score(question, selection) == pytest.approx(least, abs=1e-5)


def test_more_are_asked_for_first_and_the_selected_alone_where_that_is_too_few_or_too_many(
    houses: Index, searches: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide, narrow = houses.select({"owner": "bob"}), houses.select({"owner": "ann"})
    houses.search_facts("House 5 stands", 3, wide)
    assert searches == [None]
    monkeypatch.setattr(module, "_MOST_OVERFETCHED", 50)
    houses.search_facts("House 5 stands", 3, narrow)
    assert searches == [None, 4]
    monkeypatch.setattr(module, "_OVERFETCH", 0)
    houses.search_facts("House 5 stands", 3, wide)
    assert searches == [None, 4, None, HOUSES - 4]


def test_above_a_size_the_nearest_passages_are_looked_up_and_are_those_of_a_comparison_with_all(
    houses: Index, searches: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for at_most in [0, 1_000]:
        for owner in ["ann", "bob", "nobody"]:
            monkeypatch.setattr(module, "_MOST_OVERFETCHED", at_most)
            for selection in (houses.select({"owner": owner}), None):
                for question in ("House 5 stands", "street", "House 66"):
                    compared = seed_passages(houses, question, MARA, SHOWN, selection)
                    assert not searches
                    with pytest.MonkeyPatch.context() as patch:
                        patch.setattr(search, "_COMPARED", 0)
                        looked_up = seed_passages(houses, question, MARA, SHOWN, selection)
                        bar = search._nearest_cosine(houses, question, selection)
                    assert [score for _, score in looked_up] == pytest.approx(
                        [score for _, score in compared], abs=1e-6
                    )
                    assert bar == pytest.approx(search._nearest_cosine(houses, question, selection), abs=1e-6)
                    searches.clear()


def test_what_was_selected_last_is_kept_and_no_more_than_that(houses: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    select = GenerationVectors.select

    def watched(self: GenerationVectors, where: Sequence[Condition]) -> Any:
        asked.append(where)
        return select(self, where)

    monkeypatch.setattr(GenerationVectors, "select", watched)
    first = houses.select({"built": {"$gt": 1950, "$lt": 1960}})
    assert houses.select({"built": {"$lt": 1960, "$gt": 1950}}) is first
    assert len(asked) == 1
    for year in range(20):
        houses.select({"built": year})
    assert len(houses._selections) == module._SELECTIONS_KEPT
    assert houses.select({"built": {"$gt": 1950, "$lt": 1960}}) is not first
