"""The search for strengths: it takes clear gains alone, judged by questions that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.schema import ENTITY_RELATIONS, RelationType
from workflows.tuning.tune import GRID, Recall, Strengths, fit

RELATIONS = ENTITY_RELATIONS[:3]
ONES = dict.fromkeys(RELATIONS, 1.0)
FIRST, SECOND, _ = RELATIONS
N = 60


def questions(recall: Callable[[int, Strengths], float]) -> list[Recall]:
    return [partial(recall, number) for number in range(N)]


def helped_by(best: Strengths) -> list[Recall]:
    """Every second question gains 0.1 for each strength, the nearer it is to a best one."""

    def recall(number: int, strengths: Strengths) -> float:
        distance = sum(abs(np.log2(strengths[each]) - np.log2(best[each])) for each in best)
        return float(1 - 0.1 * distance) if number % 2 else 0.5

    return questions(recall)


def strengths_of(*values: float) -> dict[RelationType, float]:
    return dict(zip(RELATIONS, values, strict=True))


class TestFit:
    @given(st.tuples(*[st.sampled_from(GRID)] * 3), st.tuples(*[st.sampled_from(GRID)] * 3))
    @settings(max_examples=25)
    def test_climbs_to_the_best_strengths_wherever_it_begins(
        self, best: tuple[float, ...], start: tuple[float, ...]
    ) -> None:
        wanted = strengths_of(*best)
        assert fit(helped_by(wanted), strengths_of(*start), RELATIONS) == wanted

    def test_changes_no_strength_but_those_it_may(self) -> None:
        assert fit(helped_by(strengths_of(4.0, 4.0, 4.0)), ONES, [SECOND]) == {**ONES, SECOND: 4.0}

    def test_of_equal_gains_it_takes_the_nearest(self) -> None:
        raised = questions(lambda _, strengths: 0.5 + 0.1 * (strengths[FIRST] > 1))
        assert fit(raised, ONES, RELATIONS) == {**ONES, FIRST: 2.0}

    def test_a_few_questions_are_chance_some_more_are_not(self) -> None:
        def gaining(count: int) -> list[Recall]:
            return questions(lambda number, strengths: 0.5 * (number < count and strengths[SECOND] == 2))

        assert fit(gaining(3), ONES, RELATIONS) == ONES
        assert fit(gaining(5), ONES, RELATIONS) == {**ONES, SECOND: 2.0}

    def test_a_gain_for_all_that_is_next_to_none_is_not_taken(self) -> None:
        start = {**ONES, FIRST: 2.0}
        assert fit(questions(lambda _, strengths: 0.001 * strengths[FIRST]), start, [FIRST])[FIRST] == 4.0
        assert fit(questions(lambda _, strengths: 0.0005 * strengths[FIRST]), start, [FIRST])[FIRST] == 2.0
