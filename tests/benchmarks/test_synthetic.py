from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.synthetic import MUSIQUE, Counts, draw_questions, synthetic_graph
from graph.construction.edges import EDGE_KINDS, IS_PASSAGE_KIND, KIND_INDEX, EdgeKind, TypedGraph
from graph.relations import PassageLink
from graph.schema import RelationType
from graph.walk.factors import edge_factors

COUNTS = MUSIQUE.times(0.02)
SYNONYM = KIND_INDEX[EdgeKind(RelationType.SYNONYMY)]
TITLE = KIND_INDEX[EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE)]


@pytest.fixture(scope="module")
def graph() -> TypedGraph:
    return synthetic_graph(COUNTS, np.random.default_rng(3))


def sorts(graph: TypedGraph) -> dict[str, NDArray[np.bool_]]:
    """Which edges are facts, synonyms and passage edges."""
    links, synonyms = IS_PASSAGE_KIND[graph.kind], graph.kind == SYNONYM
    return {"facts": ~links & ~synonyms, "synonyms": synonyms, "passage_edges": links}


def pairs(graph: TypedGraph, chosen: NDArray[np.bool_]) -> list[tuple[int, int]]:
    return list(zip(graph.source[chosen].tolist(), graph.target[chosen].tolist(), strict=True))


def degree(graph: TypedGraph, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    ends = np.concatenate([graph.source[chosen], graph.target[chosen]])
    return np.bincount(ends, minlength=graph.n_nodes)


def test_a_graph_has_exactly_the_counts_asked_for(graph: TypedGraph) -> None:
    assert (graph.n_entities, graph.n_passages) == (COUNTS.entities, COUNTS.passages)
    assert {name: int(chosen.sum()) for name, chosen in sorts(graph).items()} == {
        "facts": COUNTS.facts,
        "synonyms": COUNTS.synonyms,
        "passage_edges": COUNTS.passage_edges,
    }


def test_a_pair_stands_once_in_each_sort_and_has_two_ends(graph: TypedGraph) -> None:
    for sort in ["facts", "synonyms", "passage_edges"]:
        found = pairs(graph, sorts(graph)[sort])
        assert len(set(found)) == len(found), sort
        assert all(source < target for source, target in found), sort
        assert all((target >= graph.n_entities) == (sort == "passage_edges") for _, target in found), sort


def test_edges_are_in_the_order_that_a_snapshot_keeps(graph: TypedGraph) -> None:
    rows = list(zip(graph.source.tolist(), graph.target.tolist(), graph.kind.tolist(), strict=True))
    assert rows == sorted(rows)


def test_every_kind_of_edge_occurs(graph: TypedGraph) -> None:
    assert set(graph.kind.tolist()) == set(range(len(EDGE_KINDS)))


def test_each_passage_has_one_title_and_each_name_a_passage(graph: TypedGraph) -> None:
    titles = graph.target[graph.kind == TITLE]
    assert sorted(titles.tolist()) == list(range(graph.n_entities, graph.n_nodes))
    assert degree(graph, sorts(graph)["passage_edges"])[: graph.n_entities].min() == 1


def test_facts_join_names_of_one_passage(graph: TypedGraph) -> None:
    chosen = sorts(graph)
    passages: dict[int, set[int]] = {}
    for entity, passage in pairs(graph, chosen["passage_edges"]):
        passages.setdefault(entity, set()).add(passage)
    assert all(passages[one] & passages[other] for one, other in pairs(graph, chosen["facts"]))


def test_a_seed_stands_for_one_graph(graph: TypedGraph) -> None:
    same, other = (synthetic_graph(COUNTS, np.random.default_rng(seed)) for seed in (3, 4))
    assert np.array_equal(same.target, graph.target)
    assert np.array_equal(same.weight, graph.weight)
    assert not np.array_equal(other.target, graph.target)


def test_counts_that_no_graph_can_have_are_refused() -> None:
    for counts, reason in [
        (Counts(5, 6, 1, 1, 10), "name of its own"),
        (Counts(5, 2, 1, 1, 4), "each name a passage"),
        (Counts(5, 2, 1, 1, 11), "no room"),
        (Counts(5, 2, 11, 1, 5), "no room"),
        (Counts(5, 2, 1, 11, 5), "no room"),
    ]:
        with pytest.raises(ValueError, match=reason):
            synthetic_graph(counts, np.random.default_rng(0))


def test_questions_have_sixty_entity_and_two_hundred_passage_seeds(graph: TypedGraph) -> None:
    first, second = draw_questions(graph, 2, np.random.default_rng(0))
    for question in (first, second):
        assert np.count_nonzero(question.restart[: graph.n_entities]) == 60
        assert np.count_nonzero(question.restart[graph.n_entities :]) == 200
        assert question.restart.min() >= 0
    passages = first.restart[graph.n_entities :]
    assert np.median(passages[passages > 0]) == pytest.approx(0.5**4, abs=0.05)
    assert not np.array_equal(first.restart, second.restart)
    assert first.beta != second.beta


def test_as_published_every_passage_is_a_seed(graph: TypedGraph) -> None:
    (question,) = draw_questions(graph, 1, np.random.default_rng(0), every_passage=True)
    passages = question.restart[graph.n_entities :]
    assert passages.min() > 0
    assert passages.max() <= 0.05


def test_a_graph_with_few_nodes_has_as_many_seeds_as_it_can() -> None:
    small = synthetic_graph(Counts(20, 5, 10, 20, 25), np.random.default_rng(0))
    (question,) = draw_questions(small, 1, np.random.default_rng(0))
    assert np.count_nonzero(question.restart) == small.n_nodes


def test_beta_is_what_a_manager_gives(graph: TypedGraph) -> None:
    for question in draw_questions(graph, 20, np.random.default_rng(0)):
        for category in (question.beta.entity_entity, question.beta.entity_passage):
            assert sum(category.values()) == pytest.approx(1)
            assert min(category.values()) >= 0.02
        assert edge_factors(question.beta).unknown == ()
