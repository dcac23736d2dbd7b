"""Controls: a uniform β, a β drawn at random, and a filter and a β that know the gold passages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from graph.construction.knowledge_graph import GraphFact
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS, Fact, RelationFactors, RelationType, ScoredFact
from tests.workflows.small_world import QUESTION, QUESTION_PASSAGES
from workflows.context import Context, Question
from workflows.evaluation import recall_at_k, reciprocal_rank
from workflows.evaluation.ask_system import (
    FixedManager,
    OracleFilter,
    RandomManager,
    best_factors,
    candidate_factors,
    context_for,
)
from workflows.evaluation.systems import parse_system
from workflows.retrieval import graph

MakeContext = Callable[..., Context]


def retrieved(context: Context, question: str = QUESTION) -> dict[str, Any]:
    result: dict[str, Any] = graph.invoke(Question(question=question), context=context)
    return result


def ids_of(result: dict[str, Any]) -> list[str]:
    return [hit["id"] for hit in result["passages"]]


@examples(max_examples=25)
@given(st.integers(), st.text())
def test_random_beta_is_a_share_of_each_type_and_depends_on_seed_and_question_alone(seed: int, question: str) -> None:
    drawn = RandomManager(seed).weigh(question)
    for shares, relations in (
        (drawn.factors.entity_entity, ENTITY_RELATIONS),
        (drawn.factors.entity_passage, PASSAGE_RELATIONS),
    ):
        assert list(shares) == [relation.value for relation in relations]
        assert all(0 <= share <= 1 for share in shares.values())
        assert sum(shares.values()) == pytest.approx(1)
    assert RandomManager(seed).weigh(question) == drawn
    assert RandomManager(seed + 1).weigh(question) != drawn
    assert RandomManager(seed).weigh(f"{question}?") != drawn


def fact_at(subject: str, *passages: int) -> tuple[ScoredFact, GraphFact]:
    fact = Fact(subject, "flows into", "Lake Sund", RelationType.SPATIAL)
    return ScoredFact(fact, 0.5), GraphFact(fact, 0, 1, passages)


def test_the_oracle_filter_keeps_the_candidates_that_a_gold_passage_supports_in_their_order() -> None:
    (velm, in_velm), (marn, in_marn), (kesh, in_kesh) = fact_at("Velm", 1, 4), fact_at("Marn", 2), fact_at("Kesh", 4)
    facts = {each.fact.id: each for each in (in_velm, in_marn, in_kesh)}
    candidates = [kesh, marn, velm]

    assert OracleFilter(facts, [4]).choose("?", candidates, 10).kept == (kesh, velm)
    assert OracleFilter(facts, [4]).choose("?", candidates, 1).kept == (kesh,)
    assert OracleFilter(facts, []).choose("?", candidates, 10).kept == ()


def test_an_oracle_filter_walks_from_facts_of_gold_passages_alone(settings: MakeContext) -> None:
    system = parse_system("mara+oracle-filter", settings())
    result = retrieved(context_for(system, QUESTION, ["marn"], 0))
    kept = {(fact["subject"], fact["predicate"]) for fact in result["facts"] if fact["kept"]}
    assert kept == {("Marn", "founded in"), ("Marn", "founded by")}
    assert any(not fact["kept"] for fact in result["facts"])


def test_the_oracle_chooses_among_uniform_and_one_dominant_type_of_either_category() -> None:
    candidates = candidate_factors()
    assert candidates[0] == RelationFactors.uniform()
    assert len(candidates) == 1 + len(ENTITY_RELATIONS) + len(PASSAGE_RELATIONS)
    dominant = [max(factors.entity_entity.values()) for factors in candidates]
    assert dominant == [0.2, 0.6, 0.6, 0.6, 0.6, 0.6, 0.2, 0.2, 0.2]


def test_no_candidate_ranks_the_gold_passages_better_than_the_oracles_choice(settings: MakeContext) -> None:
    golds = (QUESTION_PASSAGES, ("kesh", "orlo"), ("flood", "brandt"))
    for mode, gold in (("mara", golds[0]), ("mara", golds[1]), ("mara-matrix", golds[2])):
        context = settings(mode=mode, top_k=20, walk={"passage_weight": 0.05})
        worths = []
        for factors in candidate_factors():
            ids = ids_of(retrieved(context.with_agents(manager=FixedManager(factors))))
            worths.append((recall_at_k(ids, gold, 5), reciprocal_rank(ids, gold)))
        first_best = candidate_factors()[worths.index(max(worths))]
        assert best_factors(context, QUESTION, gold) == first_best, (mode, gold)


def test_without_gold_or_without_a_walk_the_oracle_says_uniform(settings: MakeContext) -> None:
    assert best_factors(settings(), QUESTION, []) == RelationFactors.uniform()
    unfounded = settings(mode="mara-matrix", where={"source": "no such file"})
    assert best_factors(unfounded, QUESTION, QUESTION_PASSAGES) == RelationFactors.uniform()


def test_each_beta_control_gives_the_walk_its_factors(settings: MakeContext) -> None:
    by_control = {
        name: retrieved(context_for(parse_system(f"mara+{name}", settings()), QUESTION, QUESTION_PASSAGES, 7))
        for name in ("uniform-beta", "random-beta", "oracle-beta")
    }
    assert set(by_control["uniform-beta"]["relation_factors"]["entity_entity"].values()) == {0.2}
    drawn = RandomManager(7).weigh(QUESTION).factors
    assert by_control["random-beta"]["relation_factors"]["entity_entity"] == drawn.entity_entity
    best = best_factors(settings(), QUESTION, QUESTION_PASSAGES)
    assert by_control["oracle-beta"]["relation_factors"]["entity_passage"] == best.entity_passage
