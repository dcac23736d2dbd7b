"""The usage of chat models and its cost, and the budget of a question: seconds of work are counted once."""

from __future__ import annotations

import pytest

from agents.chat import usage as budget_module
from agents.chat.usage import Limits, Prices, QuestionBudget, Spent, Usage, count_usage, prices_of, tallied
from graph.errors import BadInput


def test_usage_adds_up_and_costs_the_price_of_a_million_tokens_unless_some_are_unknown() -> None:
    assert Usage(1, 20, 3, 1, 0.5) + Usage(2, 10, 1, 0, 0.25) == Usage(3, 30, 4, 1, 0.75)
    assert Prices(2.0, 8.0).cost(500_000, 1_000_000) == 9.0
    assert Prices(1.0, 1.0).cost_of(Usage(2, 10, 10)) == 2e-5
    assert Prices(1.0, 1.0).cost_of(Usage(2, 10, 10, unknown=1)) is None


def test_usage_is_counted_within_a_block_and_within_all_around_it() -> None:
    count_usage(Usage(1, 5, 5))
    with tallied() as whole:
        count_usage(Usage(1, 20, 3))
        with tallied() as part:
            count_usage(Usage(1, 10, 1, unknown=1))
        count_usage(Usage(1))
    count_usage(Usage(1, 5, 5))
    assert (part.usage, whole.usage) == (Usage(1, 10, 1, 1), Usage(3, 30, 4, 1))


def test_prices_are_those_of_the_caller_or_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prices_of(None, None) is None
    assert prices_of(1.0, 0.0) == Prices(1.0, 0.0)
    for price_in, price_out in [(1.0, None), (None, 1.0), (-1.0, 1.0), (1.0, float("nan"))]:
        with pytest.raises(BadInput, match="price"):
            prices_of(price_in, price_out)
    monkeypatch.setenv("MARA_PRICES", "0.15, 0.6")
    assert prices_of() == Prices(0.15, 0.6)
    for wrong in ("0.15", "0,15;0,6", "cheap,dear"):
        monkeypatch.setenv("MARA_PRICES", wrong)
        with pytest.raises(BadInput, match=f"'{wrong}', not two prices"):
            prices_of()


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(budget_module, "time", made)
    return made


def test_work_at_the_same_time_counts_once_and_a_pause_not_at_all(clock: Clock) -> None:
    budget = QuestionBudget()
    with budget.working():
        clock.seconds += 1
        with budget.working():
            clock.seconds += 2
        clock.seconds += 4
    clock.seconds += 3600
    with budget.working():
        clock.seconds += 8
        assert budget.spent().seconds == 15
    assert budget.spent().seconds == 15


def test_what_an_earlier_run_took_counts_once_and_without_limits_something_is_always_left(clock: Clock) -> None:
    budget = QuestionBudget()
    budget.begin(Limits(seconds=10.0), Spent(seconds=4.0, calls=2, tokens=30))
    with budget.working():
        clock.seconds += 5
    assert budget.spent() == Spent(9.0, 2, 30)
    assert budget.left_s() == 1.0
    assert budget.fault() is None
    with budget.working():
        clock.seconds += 1
    assert str(budget.fault()) == "The question's 10 s are over. Raise question_s or MARA_QUESTION_S"
    budget = QuestionBudget()
    budget.begin(Limits(), Spent(1e9, 10**9, 10**9))
    assert (budget.fault(), budget.left_s(), budget.calls_left()) == (None, float("inf"), None)
