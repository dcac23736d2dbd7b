"""The budget of one question: the seconds, calls and tokens that it may take, counted over all that work on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from graph.errors import BudgetSpent


@dataclass(frozen=True, slots=True)
class Limits:
    """What a question may take; 0 is no limit.

    Attributes:
        seconds: of work; a pause in which no node works does not count.
        calls: replies of the chat model.
        tokens: of prompts and replies.
    """

    seconds: float = 0.0
    calls: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Spent:
    """What a question has taken so far."""

    seconds: float = 0.0
    calls: int = 0
    tokens: int = 0


class QuestionBudget:
    """What is left for one question; shared by the nodes that work on it side by side, and safe to.

    A call is taken before it is made, so that calls side by side never pass the limit together; one without a reply is
    given back. Tokens are known with the reply: the limit is passed by what is on its way.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits: Limits | None = None
        self._before = Spent()
        self._calls = self._tokens = self._at_work = 0
        self._seconds = self._since = 0.0

    def begin(self, limits: Limits, before: Spent) -> None:
        """Set the limits, and what an earlier run of the same question took; what comes first counts."""
        with self._lock:
            if self._limits is None:
                self._limits, self._before = limits, before

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count the seconds of the block, once for all that work at the same time, and let its requests be charged."""
        with self._lock:
            self._since = self._since if self._at_work else time.monotonic()
            self._at_work += 1
        token = _BUDGET.set(self)
        try:
            yield
        finally:
            _BUDGET.reset(token)
            with self._lock:
                self._at_work -= 1
                if not self._at_work:
                    self._seconds += time.monotonic() - self._since

    def spent(self) -> Spent:
        """Return what the question has taken so far."""
        with self._lock:
            return self._spent()

    def left_s(self) -> float:
        """Return the seconds that are left; infinity without a limit."""
        with self._lock:
            limit = self._limits.seconds if self._limits else 0
            return limit - self._spent().seconds if limit else float("inf")

    def calls_left(self) -> int | None:
        """Return the calls that are left; None without a limit."""
        with self._lock:
            limit = self._limits.calls if self._limits else 0
            return max(0, limit - self._spent().calls) if limit else None

    def fault(self) -> BudgetSpent | None:
        """Return the error that says what is used up; None while something of everything is left."""
        with self._lock:
            return self._fault()

    def take_call(self) -> None:
        """Take a call. Raises BudgetSpent."""
        with self._lock:
            if fault := self._fault():
                raise fault
            self._calls += 1

    def give_back_call(self) -> None:
        """Take no call after all: there was no reply."""
        with self._lock:
            self._calls -= 1

    def charge(self, tokens: int) -> None:
        """Charge the tokens of a request and its reply."""
        with self._lock:
            self._tokens += tokens

    def _spent(self) -> Spent:
        before = self._before
        running = time.monotonic() - self._since if self._at_work else 0.0
        return Spent(before.seconds + self._seconds + running, before.calls + self._calls, before.tokens + self._tokens)

    def _fault(self) -> BudgetSpent | None:
        limits, spent = self._limits or Limits(), self._spent()
        if limits.seconds and spent.seconds >= limits.seconds:
            return BudgetSpent(f"The question's {limits.seconds:g} s are over", "Raise question_s or MARA_QUESTION_S")
        if limits.calls and spent.calls >= limits.calls:
            return BudgetSpent(f"The question's {limits.calls} model calls are used up", "Raise max_model_calls")
        if limits.tokens and spent.tokens >= limits.tokens:
            return BudgetSpent(f"The question's {limits.tokens:,} tokens are used up", "Raise max_model_tokens")
        return None


_BUDGET: ContextVar[QuestionBudget | None] = ContextVar("budget", default=None)


def budget_of_question() -> QuestionBudget:
    """Return the budget that requests of this context are charged to; one without limits where there is none."""
    return _BUDGET.get() or QuestionBudget()
