"""The budget of a question: seconds of work, counted once however many work at once, and not while nobody does."""

from __future__ import annotations

import pytest

from agents.chat import usage as budget_module
from agents.chat.usage import Limits, QuestionBudget, Spent, budget_of_question


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
    budget.begin(Limits(), Spent(seconds=400.0))
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


def test_requests_are_charged_to_the_budget_of_their_context() -> None:
    outer, inner = QuestionBudget(), QuestionBudget()
    assert budget_of_question() not in (outer, inner)
    with outer.working():
        with inner.working():
            assert budget_of_question() is inner
        assert budget_of_question() is outer
