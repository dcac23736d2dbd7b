from __future__ import annotations

import numpy as np
import pytest

from agents.manager import Manager, OfflineManager
from benchmarks.offline_agents import PROTOTYPES, ProductManager, PrototypeManager, fact_filters, held_out, managers
from graph.embedding.bert import MiniLMEmbedder
from graph.schema import ENTITY_RELATIONS, RelationType
from workflows.evaluation.controls import UniformManager

QUESTIONS = ["When was Nissan founded?", "What caused the famine?", "日産自動車はいつ設立されたか", ""]


@pytest.fixture(scope="module")
def prototypes() -> PrototypeManager:
    return PrototypeManager(MiniLMEmbedder())


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_router_gives_shares_that_sum_to_one_and_uniform_classes(
    prototypes: PrototypeManager, question: str
) -> None:
    routers: list[Manager] = [prototypes, ProductManager(OfflineManager(), prototypes)]
    for router in routers:
        factors = router.weigh(question).factors
        assert sum(factors.entity_entity.values()) == pytest.approx(1)
        assert set(factors.entity_passage.values()) == {1 / 3}


@pytest.mark.parametrize(
    ("question", "relation"),
    [
        ("In which year did the bridge open?", RelationType.TEMPORAL),
        ("In which town does the museum stand?", RelationType.SPATIAL),
        ("Why did the dam break?", RelationType.CAUSALITY),
    ],
)
def test_a_question_is_nearest_to_the_prototypes_of_its_type(
    prototypes: PrototypeManager, question: str, relation: RelationType
) -> None:
    shares = prototypes.weigh(question).factors.entity_entity
    assert max(shares, key=shares.__getitem__) == relation


def test_a_product_with_no_preference_changes_nothing(prototypes: PrototypeManager) -> None:
    alone = prototypes.weigh(QUESTIONS[0]).factors.entity_entity
    assert ProductManager(prototypes, UniformManager()).weigh(QUESTIONS[0]).factors.entity_entity == pytest.approx(
        alone
    )


def test_prototypes_name_every_type_alike_often() -> None:
    assert list(PROTOTYPES) == list(ENTITY_RELATIONS)
    assert {len(questions) for questions in PROTOTYPES.values()} == {4}


def test_no_choice_comes_first_so_that_a_tie_chooses_nothing() -> None:
    assert managers(MiniLMEmbedder())[0].name == "uniform"
    assert fact_filters()[0].name == "every candidate"
    tied = np.ones((3, 10))
    assert held_out(tied * [[1.0], [1.0], [0.5]], 5, 0).tolist() == [1.0] * 10


def test_what_is_best_on_the_other_folds_is_judged_where_it_was_not_chosen() -> None:
    """One candidate is right on a single question: chosen by it alone, it would look better than it is."""
    table = np.stack([np.full(10, 0.5), np.zeros(10)])
    table[1, 3] = 6.0
    assert table[1].mean() > table[0].mean()
    assert held_out(table, 5, 0).mean() < table[0].mean()
