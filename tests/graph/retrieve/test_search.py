from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph.construction.edges import KIND_INDEX, EdgeKind
from graph.construction.knowledge_graph import GraphFact
from graph.errors import BadInput
from graph.retrieve.modes import HIPPORAG2, MARA, SEED, WALKING_MODES, EntityRarity, Mode
from graph.retrieve.open_index import Index, open_index
from graph.retrieve.search import (
    Start,
    best,
    best_reached,
    effective_passage_weight,
    factors_for,
    find_facts,
    fuse,
    rank_passages,
    restart_of,
    seed_passages,
    start_near,
    trusting,
    walk_passages,
    weigh_entity_seeds,
)
from graph.retrieve.seeds import COMMON_NOUN_SHARE
from graph.retrieve.selection import Selection
from graph.schema import RelationFactors, RelationType, entity_id
from graph.walk.factors import edge_factors
from graph.walk.settings import DIRECTED, Engine, FactorPolicy
from graph.walk.sparse import SparseVector
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace, typed_graph

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
ALL_PASSAGES = Start(MARA, {}, dict.fromkeys(range(len(PASSAGES)), 1.0))
"""A start from every passage alike."""
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


def passages_of(index: Index, start: Start) -> NDArray[np.float64]:
    """The weights of all passages in a start's restart vector."""
    return restart_of(index, start).dense()[index.graph.n_entities :]


def names(index: Index, seeds: dict[int, float]) -> dict[str, float]:
    return {index.graph.entity_names[entity]: weight for entity, weight in seeds.items()}


def facts_of(index: Index, **scores: float) -> list[tuple[GraphFact, float]]:
    """Facts by their object, with scores."""
    by_object = {fact.fact.object: fact for fact in index.graph.facts.values()}
    return [(by_object[name.strip("_")], score) for name, score in scores.items()]


class TestFuse:
    def test_a_passage_in_one_list_alone_has_nothing_from_the_other(self) -> None:
        fused = fuse([(0, 0.9), (1, 0.5), (2, 0.1)], [(2, 7.0), (3, 3.0), (0, 5.0)], 0.6)
        assert [passage for passage, _ in fused] == [0, 2, 1, 3]
        assert [score for _, score in fused] == pytest.approx([0.8, 0.4, 0.3, 0.0])
        assert dict(fuse([], [(4, 0.01)], 0.65)) == pytest.approx({4: 0.35}), "a single hit counts in full"
        assert dict(fuse([(1, 0.9), (4, 0.1)], [(4, 0.01)], 0.3)) == pytest.approx({4: 0.7, 1: 0.3})
        assert [passage for passage, _ in fuse([(9, 1.0)], [(2, 1.0)], 0.5)] == [2, 9], "ties go by index"


class TestFacts:
    def test_the_baseline_spreads_scores_over_all_facts(self, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
        plain, scaled = (
            find_facts(index, "marn is town", replace(settings, fact_candidates=99)) for settings in (MARA, HIPPORAG2)
        )
        assert [fact for fact, _ in scaled] == [fact for fact, _ in plain]
        assert scaled[0][1] == pytest.approx(1)
        low = index.least_fact_score("marn is town")
        for (_, score), (_, cosine) in zip(scaled, plain, strict=True):
            if cosine > 0:
                assert score == pytest.approx((cosine - low) / (plain[0][1] - low), abs=1e-4)
        last, cosine = plain[-1]
        monkeypatch.setattr(index, "least_fact_score", lambda *_: cosine + 1e-6)
        rounded = find_facts(index, "marn is town", replace(HIPPORAG2, fact_candidates=99))
        assert rounded[-1] == (last, 0.0), "none is below zero where rounding puts a fact below the farthest"


class TestRanking:
    def test_sparse_is_by_words_and_leaves_out_passages_without_any(self, index: Index) -> None:
        ranking = rank_passages(index, "Where is the harbour of Yokohama?", Mode.SPARSE, 9, 0.65)
        assert ids(index, ranking) == ["yokohama", "nissan"]
        assert all(score > 0 for _, score in ranking)
        assert rank_passages(index, "xylophone", Mode.SPARSE, 9, 0.65) == []
        assert ids(index, rank_passages(index, "日産自動車とは", Mode.SPARSE, 1, 0.65)) == ["日産"]

    def test_hybrid_is_the_two_lists_fused_and_a_mode_that_walks_is_no_similarity(self, index: Index) -> None:
        question = "Marn of Yokohama"
        dense, sparse = (rank_passages(index, question, mode, 9, 0) for mode in (Mode.DENSE, Mode.SPARSE))
        assert rank_passages(index, question, Mode.HYBRID, 9, 0.4) == fuse(dense, sparse, 0.4)
        for mode in WALKING_MODES:
            with pytest.raises(BadInput, match="does not rank by similarity"):
                rank_passages(index, question, mode, 9, 0.65)
        for mode, alpha in ((Mode.DENSE, 1.0), (Mode.SPARSE, 0.0)):
            single = rank_passages(index, question, mode, 1, 0.5)
            assert len(single) == 1
            assert rank_passages(index, question, Mode.HYBRID, 1, alpha) == single


class TestSeeds:
    def test_passage_seeds_come_from_all_passages_or_from_the_best(self, index: Index) -> None:
        assert len(seed_passages(index, "Marn", SEED, 99)) == len(PASSAGES)
        assert seed_passages(index, "Marn", SEED, 2) == seed_passages(index, "Marn", SEED, 99)[:2]
        few = seed_passages(index, "Marn", replace(MARA, passage_seeds=2), 99)
        assert few == rank_passages(index, "Marn", Mode.HYBRID, 2, MARA.alpha, exactly=True)
        dense = replace(MARA, passage_seeds=2, hybrid_seeds=False)
        assert seed_passages(index, "Marn", dense, 99) == rank_passages(index, "Marn", Mode.DENSE, 2, 0, exactly=True)

    @given(st.lists(st.integers(-3, 3), max_size=30), st.integers(0, 35))
    def test_the_best_are_those_of_all_in_order_ties_by_index(self, scores: list[int], k: int) -> None:
        order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        assert best(np.array(scores, dtype=np.float64), k) == [(place, scores[place]) for place in order[:k]]

    def test_entities_of_kept_facts_weigh_by_the_passages_that_they_are_linked_with(self, index: Index) -> None:
        seeds = names(index, weigh_entity_seeds(index, "?", facts_of(index, _1933=0.9, Yokohama=0.8), SEED))
        linked = index.graph.name_passages[index.graph.entity_index[entity_id("Nissan")]]
        assert linked == 2
        assert seeds == pytest.approx({"1933": 0.9, "nissan": (0.9 + 0.8) / 2 / 2, "yokohama": 0.8 / 2})
        by_triples = names(index, weigh_entity_seeds(index, "?", facts_of(index, Yokohama=0.8), HIPPORAG2))
        assert by_triples == pytest.approx({"yokohama": 0.8, "nissan": 0.4})

    def test_names_in_the_question_add_to_them_where_the_settings_let_them(self, index: Index) -> None:
        facts = facts_of(index, _1933=0.9)
        in_half_of_four = EntityRarity.LOG_IDF.share(2, len(PASSAGES))
        seeds = names(index, weigh_entity_seeds(index, "When did Nissan begin?", facts, MARA))
        assert seeds == pytest.approx({"1933": 0.9, "nissan": 0.9 * in_half_of_four + MARA.name_weight * 2**-0.5})
        assert "nissan leaf" in names(index, weigh_entity_seeds(index, "the Nissan Leaf", [], MARA))
        assert weigh_entity_seeds(index, "When did Nissan begin?", [], SEED) == {}

    def test_a_fact_counts_that_is_nearer_to_the_question_than_any_passage(self, index: Index) -> None:
        question = "marn is town"
        nearest = float(index.score_passages(question).max())
        facts = facts_of(index, _1933=nearest + 0.01, Oppama=nearest - 0.01)
        settings = replace(MARA, name_weight=0.0)
        assert names(index, weigh_entity_seeds(index, question, facts, settings)).keys() == {"1933", "nissan"}
        every = names(index, weigh_entity_seeds(index, question, facts, replace(settings, fact_bar=0.0)))
        assert every.keys() == {"1933", "nissan", "oppama", "nissan leaf"}

    def test_a_fact_counts_that_holds_a_name_of_the_question_which_the_corpus_writes_as_one(self, index: Index) -> None:
        facts = facts_of(index, _1933=0.01, Oppama=0.01, town=0.01)
        seeds = names(index, weigh_entity_seeds(index, "When did Nissan begin?", facts, MARA))
        assert seeds.keys() == {"1933", "nissan"}
        assert names(index, weigh_entity_seeds(index, "Which town?", facts, MARA)).keys() == {"town"}
        assert weigh_entity_seeds(index, "Why?", [], MARA) == {}

    def test_the_bar_for_facts_is_that_of_the_passages_which_a_filter_selects(self, index: Index) -> None:
        orlo = Selection.of(index.graph, index.graph.passages_of(["orlo"]))
        cosines = index.score_passages("marn is town")
        facts = facts_of(index, _1933=float(cosines.max() + cosines[orlo.rows[0]]) / 2)
        settings = replace(MARA, name_weight=0.0)
        assert weigh_entity_seeds(index, "marn is town", facts, settings) == {}
        assert weigh_entity_seeds(index, "marn is town", facts, settings, orlo)

    def test_entities_weigh_by_how_often_they_are_written_as_names(self, index: Index) -> None:
        """The town of Marn stands in small letters alone."""
        for question, facts, share in [
            ("?", facts_of(index, town=0.9), 0.0),
            ("Which town is Marn?", [], COMMON_NOUN_SHARE),
        ]:
            weighed = names(index, weigh_entity_seeds(index, question, facts, MARA))
            plain = names(index, weigh_entity_seeds(index, question, facts, replace(MARA, name_shares=False)))
            assert weighed["marn"] == plain["marn"] > 0
            assert weighed["town"] == pytest.approx(plain["town"] * share)
            assert plain["town"] > 0

    def test_passage_seeds_are_weighed_and_sharpened_as_the_settings_say(self, index: Index) -> None:
        ranking = [(0, 1.0), (1, 0.5), (2, 0.0)]
        for sharpness, second in ((1.0, 0.5), (2.0, 0.25)):
            settings = replace(MARA, seed_sharpness=sharpness)
            start = start_near(index, "?", {}, 0.05, settings, candidates=ranking)
            assert start.passages == pytest.approx({0: 0.05, 1: second * 0.05})

    def test_entities_come_before_passages_in_a_restart_vector(self, index: Index) -> None:
        restart = restart_of(index, Start(MARA, {2: 1.0, 0: 0.75}, {3: 0.5, 1: 0.05}))
        first = index.graph.n_entities
        assert restart.places.tolist() == [0, 2, first + 1, first + 3]
        assert restart.values.tolist() == [0.75, 1.0, 0.05, 0.5]
        assert restart.length == index.graph.n_nodes


class TestTrust:
    """How far a walk may go from the passages that similarity finds, and whether convergence counts."""

    def damping(self, entity_weights: list[float], settings: Any = MARA) -> float:
        return trusting(entity_weights, settings).damping

    def test_the_damping_rises_with_the_weight_of_the_seeds(self) -> None:
        assert self.damping([]) == MARA.least_damping < MARA.damping
        assert self.damping([MARA.name_weight / 4] * 2) == pytest.approx((MARA.damping + MARA.least_damping) / 2)
        assert self.damping([MARA.name_weight]) == self.damping([2.0, 9.0]) == MARA.damping
        assert self.damping([], replace(MARA, damping=0.1)) == 0.1
        assert self.damping([], replace(MARA, least_damping=0.99)) == MARA.damping

    def test_convergence_counts_where_the_seeds_weigh_more_than_one_name(self) -> None:
        assert trusting([MARA.name_weight], MARA).convergence == 0
        assert trusting([MARA.name_weight, MARA.name_weight / 2], MARA).convergence == MARA.convergence > 0


def test_the_managers_passage_weight_scales_the_set_one_where_the_settings_let_it() -> None:
    for adaptive, weight, effective in [
        (False, 0.1, 1.0),
        (True, None, 1.0),
        (True, 0.05, 1.0),
        (True, 0.1, 2.0),
        (True, 0.01, 0.2),
    ]:
        settings = replace(MARA, passage_weight=1.0, adaptive_passage_weight=adaptive)
        assert effective_passage_weight(settings, weight) == pytest.approx(effective)


def test_factors_are_those_of_the_settings() -> None:
    category = edge_factors(TEMPORAL_ALONE, policy=FactorPolicy.CATEGORY)
    assert np.array_equal(factors_for(TEMPORAL_ALONE, SEED).from_entity, category.from_entity)
    directed = edge_factors(TEMPORAL_ALONE, directions=DIRECTED)
    assert np.array_equal(factors_for(TEMPORAL_ALONE, MARA).from_passage, directed.from_passage)
    deaf = replace(SEED, beta=False)
    assert np.array_equal(factors_for(TEMPORAL_ALONE, deaf).from_entity, factors_for(None, deaf).from_entity)
    assert not HIPPORAG2.beta


class TestWalking:
    def walked(self, index: Index, entities: dict[str, float], settings: Any, **more: Any) -> dict[str, float]:
        places = {index.graph.entity_index[entity_id(name)]: weight for name, weight in entities.items()}
        factors = factors_for(more.pop("beta", None), settings)
        restart = restart_of(index, Start(settings, places, {}))
        ranking, _ = walk_passages(index, more.pop("words", ""), restart, factors, settings, more.pop("k", 99), **more)
        return {index.graph.passages[passage].id: score for passage, score in ranking}

    def test_a_passage_that_is_no_seed_is_reached_from_an_entity_that_it_is_linked_with(self, index: Index) -> None:
        for settings in [MARA, SEED, HIPPORAG2]:
            scores = self.walked(index, {"1933": 1.0}, settings)
            assert scores["nissan"] > scores["marn"] > 0
            assert scores["orlo"] == 0

    def test_anchors_that_converge_change_scores_and_not_how_many_are_found(self, index: Index) -> None:
        seeds, plain = {"1933": 1.0, "Marn": 0.5}, replace(MARA, convergence=0.0)
        alone, together = self.walked(index, seeds, plain), self.walked(index, seeds, MARA)
        assert together.keys() == alone.keys()
        assert together != pytest.approx(alone)
        assert list(self.walked(index, seeds, MARA, k=2).items()) == list(together.items())[:2]
        single = {"1933": 1.0}
        assert self.walked(index, single, MARA) == self.walked(index, single, plain)

    def test_title_and_mention_edges_can_be_left_out_as_in_the_published_baseline(self, index: Index) -> None:
        """Orlo's passage holds no triple: nothing but its title links it."""
        settings = [HIPPORAG2, replace(MARA, title_edges=False), MARA, replace(MARA, mention_edges=False)]
        reached = [self.walked(index, {"Orlo": 1.0}, each)["orlo"] > 0 for each in settings]
        assert reached == [False, False, True, True]
        assert KIND_INDEX[EdgeKind(RelationType.SYNONYMY)] in index.graph.edges.kind
        assert self.walked(index, {"Nissan": 1.0}, SEED)["leaf"] > 0, "synonyms are bridges"

    def test_seeds_count_by_their_weights_and_without_one_a_walk_is_refused(self, index: Index) -> None:
        for start in (Start(MARA, {0: 0.5}, {}), ALL_PASSAGES):
            assert restart_of(index, start)
            entities, passages = dict.fromkeys(start.entities, 0.0), dict.fromkeys(start.passages or (), 0.0)
            assert not restart_of(index, replace(start, entities=entities, passages=passages))
        factors = factors_for(None, MARA)
        with pytest.raises(BadInput, match="no seed"):
            walk_passages(index, "", restart_of(index, Start(MARA, {}, {})), factors, MARA, 5)


nodes_scored = st.dictionaries(st.integers(0, 11), st.sampled_from([0.0, 0.25, 0.5, 0.5, 1.0]), max_size=8)


@given(nodes_scored, st.integers(0, 12), st.none() | st.sets(st.integers(0, 8)))
def test_what_was_reached_ranks_as_all_scores_do(scored: dict[int, float], k: int, shown: set[int] | None) -> None:
    """Three entities and nine passages; passages that were not reached come last, by index."""
    reached = SparseVector.of_mapping(12, scored)
    selection = None
    if shown is not None:
        graph = typed_graph(3, 9, [])
        selection = Selection.of(graph, graph.passages_of([graph.passage_ids[row] for row in shown]))
    assert best_reached(reached, 3, k, selection) == best(reached.dense()[3:], k, selection)


class TestWithinASelection:
    """Marn's passage names Nissan, whose own passage is hidden."""

    @pytest.fixture
    def shown(self, index: Index) -> Selection:
        return Selection.of(index.graph, index.graph.passages_of(["marn", "orlo"]))

    def test_facts_are_those_of_selected_passages_nearest_first(self, index: Index, shown: Selection) -> None:
        hits = find_facts(index, "Nissan founded in 1933", replace(MARA, fact_candidates=9), shown)
        assert {fact.fact.id for fact, _ in hits} == shown.facts.keys()
        assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)
        few = find_facts(index, "Nissan founded in 1933", replace(MARA, fact_candidates=1), shown)
        assert [fact.fact.id for fact, _ in few] == [hits[0][0].fact.id]
        scaled = find_facts(index, "marn is town", replace(HIPPORAG2, fact_candidates=9), shown)
        assert [score for _, score in scaled] == pytest.approx([1.0, 0.0], abs=1e-6), "over the range of the selected"

    def test_similarity_ranks_as_without_it_less_what_is_hidden(self, index: Index, shown: Selection) -> None:
        for mode in [Mode.DENSE, Mode.SPARSE, Mode.HYBRID]:
            question = "Is Marn a town in Yokohama, and Orlo elsewhere?"
            whole = [p for p in ids(index, rank_passages(index, question, mode, 99, 1.0)) if p in ("marn", "orlo")]
            assert ids(index, rank_passages(index, question, mode, 99, 1.0, shown)) == whole
            assert ids(index, rank_passages(index, question, mode, 1, 1.0, shown)) == whole[:1]

    def test_a_hidden_name_is_no_seed_and_hides_no_shorter_one(self, index: Index, shown: Selection) -> None:
        question = "Is the Nissan Leaf of Yokohama built near Marn?"
        seeds = names(index, weigh_entity_seeds(index, question, [], MARA, shown))
        assert seeds.keys() == {"nissan", "marn"}
        assert names(index, weigh_entity_seeds(index, question, [], MARA)).keys() == {"nissan leaf", "yokohama", "marn"}

    def test_passage_seeds_are_selected_ones(self, index: Index, shown: Selection) -> None:
        for settings in [SEED, MARA]:
            assert {*ids(index, seed_passages(index, "Nissan", settings, 99, shown))} == {"marn", "orlo"}
            every = passages_of(index, start_near(index, "Nissan", {}, 1.0, settings, shown))
            assert not every[~shown.passages].any()
            assert every[shown.rows].tolist() == pytest.approx(
                [1.0, 0.0] if every[shown.rows[0]] else [0.0, 1.0], abs=1e-6
            )

    def test_the_walk_crosses_hidden_passages_and_returns_none(self, index: Index, shown: Selection) -> None:
        for engine in [Engine.IGRAPH, Engine.MATRIX, Engine.PUSH]:
            start = Start(MARA, {index.graph.entity_index[entity_id("1933")]: 1.0}, {})
            ranking, _ = walk_passages(
                index, "", restart_of(index, start), factors_for(None, MARA), MARA, 99, engine, shown
            )
            assert ids(index, ranking) == ["marn", "orlo"]
            assert ranking[0][1] > 0, "reached through Nissan's passage"

    def test_nothing_is_found_where_nothing_is_selected(self, index: Index) -> None:
        nothing = Selection.of(index.graph, index.graph.passages_of([]))
        assert nothing.is_empty
        for settings in (MARA, HIPPORAG2):
            assert find_facts(index, "Nissan", settings, nothing) == []
            assert seed_passages(index, "Nissan", settings, 9, nothing) == []
            assert not restart_of(index, start_near(index, "Nissan", {}, 1.0, settings, nothing))
        for mode in (Mode.DENSE, Mode.SPARSE, Mode.HYBRID):
            assert rank_passages(index, "Nissan", mode, 9, 0.5, nothing) == []
        assert weigh_entity_seeds(index, "Nissan", [], MARA, nothing) == {}
