from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.retrieve.modes import EntityRarity
from graph.retrieve.seeds import entity_seeds, min_max, name_seeds, passage_seeds
from graph.text import NameMatcher

NISSAN, YEAR, JAPAN = 0, 1, 2


def once(entity: int) -> int:
    return 1


def rare(entity: int) -> float:
    return 1.0


class TestEntitySeeds:
    def test_an_entity_has_the_mean_of_its_facts_as_far_as_it_is_rare(self) -> None:
        facts = [(NISSAN, YEAR, 0.9), (NISSAN, JAPAN, 0.8)]
        assert entity_seeds(facts, rare, 5) == pytest.approx({YEAR: 0.9, NISSAN: 0.85, JAPAN: 0.8}), "the walkthrough"
        assert entity_seeds([(NISSAN, NISSAN, 0.6), (NISSAN, YEAR, 0.2)], rare, 5) == pytest.approx(
            {NISSAN: 0.4, YEAR: 0.2}
        )
        rarity = {NISSAN: 0.25, YEAR: 1.0}
        assert entity_seeds([(NISSAN, YEAR, 0.8)], rarity.__getitem__, 5) == {YEAR: 0.8, NISSAN: 0.2}
        assert entity_seeds([], rare, 5) == {}

    def test_the_best_come_first_ties_by_index_and_the_rest_is_cut(self) -> None:
        facts = [(5, 4, 0.5), (3, 2, 0.9)]
        assert list(entity_seeds(facts, rare, 3)) == [2, 3, 4]


class TestRarity:
    def test_the_rarest_weighs_one_and_one_over_n_falls_faster_than_the_logarithm(self) -> None:
        for rarity in EntityRarity:
            assert rarity.share(1, 1000) == pytest.approx(rarity.share(0, 1000), rel=1e-12)
        assert EntityRarity.INVERSE.share(0, 1000) == 1.0
        assert EntityRarity.INVERSE.share(10, 999) == 0.1
        assert EntityRarity.LOG_IDF.share(10, 999) == pytest.approx(2 / 3)

    @given(st.sampled_from(EntityRarity), st.integers(1, 5000), st.integers(0, 5000))
    def test_more_passages_never_weigh_more_nor_nothing(self, rarity: EntityRarity, n: int, more: int) -> None:
        assert 0 < rarity.share(n + more, n + more) <= 1
        assert rarity.share(n + more, 20_000) <= rarity.share(n, 20_000)


class TestNameSeeds:
    matcher = NameMatcher.of([("Nissan", NISSAN), ("Nissan Leaf", 3), ("Japan", JAPAN), ("日産自動車", 4)])

    def test_the_longest_names_in_the_question_are_seeds_once_and_less_where_they_are_frequent(self) -> None:
        assert name_seeds("Is the Nissan Leaf from Japan?", self.matcher, once, 1.0) == {3: 1.0, JAPAN: 1.0}
        assert name_seeds("Nissan or Nissan?", self.matcher, once, 1.0) == {NISSAN: 1.0}
        assert name_seeds("Nissan?", self.matcher, lambda entity: 16, 0.8) == {NISSAN: pytest.approx(0.2)}

    def test_a_common_noun_counts_little_where_names_are_written_with_capitals(self) -> None:
        for question, nissan in [
            ("which nissan is from Japan?", 0.25),
            ("which Nissan is from Japan?", 1.0),
            ("which NISSAN is from Japan?", 1.0),
            ("is nissan from japan?", 1.0),
            ("Is nissan from japan?", 1.0),
            ("nissan or Nissan, from Japan?", 1.0),
            ("the nissan of 1933, from japan?", 1.0),
            ("Nissan and Japan", 0.25),
        ]:
            assert name_seeds(question, self.matcher, once, 1.0) == {NISSAN: nissan, JAPAN: 1.0}


class TestPassageSeeds:
    def test_scores_reach_from_zero_to_one_and_equal_ones_are_ones(self) -> None:
        assert min_max(np.array([2.0, -2.0, 1.0])).tolist() == [1.0, 0.0, 0.75]
        for scores in ([], [0.3], [0.0, 0.0], [-4.0, -4.0, -4.0]):
            assert min_max(np.array(scores)).tolist() == [1.0] * len(scores)

    def test_scores_are_scaled_sharpened_and_weighed_and_the_last_is_no_seed(self) -> None:
        ranking = ((7, 0.9), (3, 0.5), (1, 0.1))
        assert passage_seeds(ranking, 0.05, 0, 1.0) == {7: 0.05, 3: pytest.approx(0.025)}
        assert passage_seeds(ranking, 1.0, 0, 4.0) == {7: 1.0, 3: pytest.approx(0.0625)}
        assert passage_seeds(ranking, 1.0, 1, 1.0) == {7: 1.0}, "only the best"
        assert passage_seeds([(2, 0.4), (1, 0.4)], 0.05, 0, 8.0) == {2: 0.05, 1: 0.05}
        assert passage_seeds([], 0.05, 0, 1.0) == {}
