from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graph.errors import BadInput
from graph.factors import DIRECTED, FactorPolicy, edge_factors
from graph.index import Index, open_index
from graph.knowledge_graph import KIND_INDEX, EdgeKind, GraphFact
from graph.modes import HIPPORAG2, MARA, SEED, Mode
from graph.schema import RelationFactors, RelationType, entity_id
from graph.search import (
    Seeds,
    effective_passage_weight,
    factors_for,
    find_facts,
    rank_passages,
    seed_passages,
    walk_passages,
    weigh_entity_seeds,
    weigh_passage_seeds,
)
from graph.seeds import fuse
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace

PASSAGES = [
    passage_of("nissan", "Nissan", "Nissan was founded in 1933 in Yokohama."),
    passage_of("yokohama", "Yokohama", "Yokohama is a harbour city."),
    passage_of("leaf", "Nissan Leaf", "The Leaf is built in Oppama."),
    passage_of("marn", "Marn", "Marn is a town."),
    passage_of("日産", "日産自動車", "日産自動車は会社である。"),
    passage_of("orlo", "Orlo", "Orlo lived elsewhere."),
]
TRIPLES: dict[str, list[TripleParts]] = {
    "nissan": [
        ("Nissan", "founded in", "1933", RelationType.TEMPORAL),
        ("Nissan", "founded in", "Yokohama", RelationType.SPATIAL),
    ],
    "leaf": [("Nissan Leaf", "built in", "Oppama", RelationType.SPATIAL)],
    "marn": [("Marn", "is", "town", RelationType.HIERARCHICAL), ("Marn", "near", "Nissan", RelationType.SPATIAL)],
}
TEMPORAL_ALONE = RelationFactors(
    {"HIERARCHICAL": 0, "TEMPORAL": 1, "SPATIAL": 0, "CAUSALITY": 0, "ATTRIBUTION": 0},
    RelationFactors.uniform().entity_passage,
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("search")
    publish_workspace(root, PASSAGES, TRIPLES)
    index = open_index(root, HashEmbedder())
    yield index
    index.close()


def ids(index: Index, ranking: list[tuple[int, float]]) -> list[str]:
    return [index.graph.passages[passage].id for passage, _ in ranking]


def names(index: Index, seeds: dict[int, float]) -> dict[str, float]:
    return {index.graph.entity_names[entity]: weight for entity, weight in seeds.items()}


def facts_of(index: Index, **scores: float) -> list[tuple[GraphFact, float]]:
    """Facts by their object, with scores."""
    by_object = {fact.fact.object: fact for fact in index.graph.facts.values()}
    return [(by_object[name.strip("_")], score) for name, score in scores.items()]


class TestFacts:
    def test_candidates_are_the_nearest_with_their_cosines(self, index: Index) -> None:
        found = find_facts(index, "marn is town", replace(MARA, fact_candidates=2))
        assert len(found) == 2
        assert found[0][0].fact.text == "Marn is town"
        assert found[0][1] == pytest.approx(1, abs=1e-5)

    def test_the_published_baseline_spreads_scores_over_the_range_of_all_facts(self, index: Index) -> None:
        plain = find_facts(index, "marn is town", replace(MARA, fact_candidates=99))
        scaled = find_facts(index, "marn is town", replace(HIPPORAG2, fact_candidates=99))
        assert [fact for fact, _ in scaled] == [fact for fact, _ in plain]
        assert scaled[0][1] == pytest.approx(1)
        low = index.least_fact_score("marn is town")
        for (_, score), (_, cosine) in zip(scaled, plain, strict=True):
            if cosine > 0:
                assert score == pytest.approx((cosine - low) / (plain[0][1] - low), abs=1e-4)


class TestRanking:
    def test_dense_is_by_cosine(self, index: Index) -> None:
        question = PASSAGES[3].content
        ranking = rank_passages(index, question, Mode.DENSE, 3, 0.65)
        assert ids(index, ranking)[0] == "marn"
        exact = index.score_passages(question)
        assert [score for _, score in ranking] == pytest.approx([exact[p] for p, _ in ranking], abs=1e-5)

    def test_sparse_is_by_words_and_leaves_out_passages_without_any(self, index: Index) -> None:
        ranking = rank_passages(index, "Where is the harbour of Yokohama?", Mode.SPARSE, 9, 0.65)
        assert ids(index, ranking) == ["yokohama", "nissan"]
        assert all(score > 0 for _, score in ranking)
        assert rank_passages(index, "xylophone", Mode.SPARSE, 9, 0.65) == []

    def test_hybrid_is_the_two_lists_fused(self, index: Index) -> None:
        question = "Marn of Yokohama"
        dense = rank_passages(index, question, Mode.DENSE, 9, 0)
        sparse = rank_passages(index, question, Mode.SPARSE, 9, 0)
        assert rank_passages(index, question, Mode.HYBRID, 9, 0.4) == fuse(dense, sparse, 0.4)

    @pytest.mark.parametrize(("alpha", "mode"), [(1.0, Mode.DENSE), (0.0, Mode.SPARSE)])
    def test_hybrid_at_either_end_begins_as_the_single_ranking(self, index: Index, alpha: float, mode: Mode) -> None:
        hybrid = rank_passages(index, "harbour of Yokohama", Mode.HYBRID, 2, alpha)
        assert ids(index, hybrid)[0] == ids(index, rank_passages(index, "harbour of Yokohama", mode, 2, alpha))[0]

    @pytest.mark.parametrize("mode", [Mode.DENSE, Mode.SPARSE, Mode.HYBRID])
    def test_no_more_than_k_are_returned(self, index: Index, mode: Mode) -> None:
        assert len(rank_passages(index, "Yokohama and Nissan", mode, 1, 0.5)) == 1

    def test_scripts_that_the_embedding_does_not_know_are_found_by_words(self, index: Index) -> None:
        assert ids(index, rank_passages(index, "日産自動車とは", Mode.SPARSE, 1, 0.65)) == ["日産"]


class TestSeeds:
    def test_passage_seeds_come_from_all_passages_or_from_the_best(self, index: Index) -> None:
        assert len(seed_passages(index, "Marn", SEED)) == len(PASSAGES)
        best = seed_passages(index, "Marn", replace(MARA, passage_seeds=2))
        assert best == rank_passages(index, "Marn", Mode.HYBRID, 2, MARA.alpha)
        dense = replace(MARA, passage_seeds=2, hybrid_seeds=False)
        assert seed_passages(index, "Marn", dense) == rank_passages(index, "Marn", Mode.DENSE, 2, 0)

    def test_entities_of_kept_facts_weigh_by_the_passages_that_they_are_linked_with(self, index: Index) -> None:
        seeds = names(index, weigh_entity_seeds(index, "?", facts_of(index, _1933=0.9, Yokohama=0.8), SEED))
        linked = index.graph.name_passages[index.graph.entity_index[entity_id("Nissan")]]
        assert linked == 2
        assert seeds == pytest.approx({"1933": 0.9, "nissan": (0.9 + 0.8) / 2 / 2, "yokohama": 0.8 / 2})

    def test_the_published_baseline_counts_passages_by_their_triples(self, index: Index) -> None:
        seeds = names(index, weigh_entity_seeds(index, "?", facts_of(index, Yokohama=0.8), HIPPORAG2))
        assert seeds == pytest.approx({"yokohama": 0.8, "nissan": 0.4})

    def test_names_in_the_question_add_to_them_where_the_settings_let_them(self, index: Index) -> None:
        kept = facts_of(index, _1933=0.9)
        seeds = names(index, weigh_entity_seeds(index, "When did Nissan begin?", kept, MARA))
        assert seeds == pytest.approx({"1933": 0.9, "nissan": 0.45 + 2**-0.5})
        assert "nissan leaf" in names(index, weigh_entity_seeds(index, "the Nissan Leaf", [], MARA))
        assert weigh_entity_seeds(index, "When did Nissan begin?", [], SEED) == {}

    def test_without_facts_and_names_there_is_none(self, index: Index) -> None:
        assert weigh_entity_seeds(index, "Why?", [], MARA) == {}

    def test_passage_seeds_are_weighed_and_sharpened_as_the_settings_say(self, index: Index) -> None:
        ranking = [(0, 1.0), (1, 0.5), (2, 0.0)]
        assert weigh_passage_seeds(ranking, SEED, 0.05) == pytest.approx({0: 0.05, 1: 0.025})
        assert weigh_passage_seeds(ranking, replace(MARA, seed_sharpness=2.0), 1.0) == pytest.approx({0: 1.0, 1: 0.25})


class TestPassageWeight:
    @pytest.mark.parametrize(
        ("adaptive", "given_weight", "effective"),
        [(False, 0.1, 1.0), (True, None, 1.0), (True, 0.05, 1.0), (True, 0.1, 2.0), (True, 0.01, 0.2)],
    )
    def test_the_managers_scales_it_around_the_documents_where_the_settings_let_it(
        self, adaptive: bool, given_weight: float | None, effective: float
    ) -> None:
        settings = replace(MARA, passage_weight=1.0, adaptive_passage_weight=adaptive)
        assert effective_passage_weight(settings, given_weight) == pytest.approx(effective)


class TestFactors:
    def test_they_are_those_of_the_settings(self) -> None:
        beta = TEMPORAL_ALONE
        by_settings = factors_for(beta, SEED)
        expected = edge_factors(beta, policy=FactorPolicy.CATEGORY, synonymy=SEED.synonymy)
        assert np.array_equal(by_settings.from_entity, expected.from_entity)
        directed = edge_factors(beta, strength=MARA.relation_strength, directions=DIRECTED)
        assert np.array_equal(factors_for(beta, MARA).from_passage, directed.from_passage)

    def test_beta_counts_for_nothing_where_the_settings_do_not_let_it(self) -> None:
        deaf = replace(SEED, beta=False)
        assert np.array_equal(factors_for(TEMPORAL_ALONE, deaf).from_entity, factors_for(None, deaf).from_entity)
        assert not HIPPORAG2.beta


class TestWalking:
    def walked(self, index: Index, entities: dict[str, float], settings: Any, **more: Any) -> dict[str, float]:
        seeds = Seeds({index.graph.entity_index[entity_id(name)]: w for name, w in entities.items()}, {})
        ranking = walk_passages(index, seeds, factors_for(more.get("beta"), settings), settings, more.get("k", 99))
        return {index.graph.passages[passage].id: score for passage, score in ranking}

    @pytest.mark.parametrize("settings", [MARA, SEED, HIPPORAG2], ids=["mara", "seed", "hipporag2"])
    def test_a_passage_that_is_no_seed_is_reached_from_an_entity_that_it_is_linked_with(
        self, index: Index, settings: Any
    ) -> None:
        scores = self.walked(index, {"1933": 1.0}, settings)
        assert scores["nissan"] > scores["marn"] > 0
        assert scores["orlo"] == 0

    def test_passages_are_ranked_by_score_and_cut(self, index: Index) -> None:
        scores = list(self.walked(index, {"1933": 1.0}, MARA, k=3).values())
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)

    def test_uniform_beta_ranks_as_none_does(self, index: Index) -> None:
        for settings in (MARA, replace(SEED, policy=FactorPolicy.NEUTRAL, synonymy=MARA.synonymy)):
            without = self.walked(index, {"1933": 1.0, "Marn": 0.5}, settings)
            with_beta = self.walked(index, {"1933": 1.0, "Marn": 0.5}, settings, beta=RelationFactors.uniform())
            assert list(with_beta) == list(without)
            assert with_beta == pytest.approx(without, abs=1e-9)

    def test_beta_steers_the_walk(self, index: Index) -> None:
        spatial = RelationFactors(
            {**TEMPORAL_ALONE.entity_entity, "SPATIAL": 1, "TEMPORAL": 0}, TEMPORAL_ALONE.entity_passage
        )
        settings = replace(SEED, damping=0.85)
        by_time = self.walked(index, {"Nissan": 1.0}, settings, beta=TEMPORAL_ALONE)
        by_place = self.walked(index, {"Nissan": 1.0}, settings, beta=spatial)
        assert by_place["yokohama"] > by_time["yokohama"]

    def test_the_published_baseline_knows_no_title_or_mention_edge(self, index: Index) -> None:
        """Orlo's passage holds no triple: nothing but its title links it."""
        assert self.walked(index, {"Orlo": 1.0}, HIPPORAG2)["orlo"] == 0
        assert self.walked(index, {"Orlo": 1.0}, MARA)["orlo"] > 0

    def test_a_passage_may_be_a_seed_by_itself(self, index: Index) -> None:
        marn = index.graph.passage_index["marn"]
        ranking = walk_passages(index, Seeds({}, {marn: 0.05}), factors_for(None, MARA), MARA, 9)
        assert ids(index, ranking)[0] == "marn"
        assert sum(score for _, score in ranking) < 1

    def test_without_a_seed_it_is_refused(self, index: Index) -> None:
        with pytest.raises(BadInput, match="no seed"):
            walk_passages(index, Seeds({}, {}), factors_for(None, MARA), MARA, 5)

    def test_synonyms_are_bridges(self, index: Index) -> None:
        assert KIND_INDEX[EdgeKind(RelationType.SYNONYMY)] in index.graph.edges.kind
        assert self.walked(index, {"Nissan": 1.0}, SEED)["leaf"] > 0
