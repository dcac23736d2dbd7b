from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.synthetic import MUSIQUE, draw_questions, synthetic_graph
from graph.construction.edges import IS_PASSAGE_KIND, KIND_INDEX, EdgeKind, TypedGraph
from graph.schema import RelationType

COUNTS = MUSIQUE.times(0.02)
SYNONYM = KIND_INDEX[EdgeKind(RelationType.SYNONYMY)]


@pytest.fixture(scope="module")
def graph() -> TypedGraph:
    return synthetic_graph(COUNTS, np.random.default_rng(3))


def sorts(graph: TypedGraph) -> dict[str, NDArray[np.bool_]]:
    """Which edges are facts, synonyms and passage edges."""
    links, synonyms = IS_PASSAGE_KIND[graph.kind], graph.kind == SYNONYM
    return {"facts": ~links & ~synonyms, "synonyms": synonyms, "passage_edges": links}


def test_a_graph_has_exactly_the_counts_asked_for(graph: TypedGraph) -> None:
    assert (graph.n_entities, graph.n_passages) == (COUNTS.entities, COUNTS.passages)
    assert {name: int(chosen.sum()) for name, chosen in sorts(graph).items()} == {
        "facts": COUNTS.facts,
        "synonyms": COUNTS.synonyms,
        "passage_edges": COUNTS.passage_edges,
    }


def test_a_seed_stands_for_one_graph(graph: TypedGraph) -> None:
    same, other = (synthetic_graph(COUNTS, np.random.default_rng(seed)) for seed in (3, 4))
    assert np.array_equal(same.target, graph.target)
    assert np.array_equal(same.weight, graph.weight)
    assert not np.array_equal(other.target, graph.target)


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
