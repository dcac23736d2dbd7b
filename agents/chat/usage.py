"""The usage of chat models: requests, tokens, time and their cost; and the budget of a question."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import astuple, dataclass, field
from operator import add

from graph.environment import environment
from graph.errors import BadInput, BudgetSpent

_TOKENS_PER_PRICE = 1_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of some requests; usages add up.

    Attributes:
        requests: how many were sent, whatever came of them.
        prompt_tokens: as the server counts them; failed and refused replies included, since they are paid for.
        completion_tokens: likewise.
        unknown: replies whose server told no tokens; they are in none of the sums.
        seconds: spent waiting for replies, the waits between requests not included.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unknown: int = 0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a million tokens, in the user's currency. Raises BadInput for a price below 0 or without end."""

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        for price in (self.prompt, self.completion):
            if not (math.isfinite(price) and price >= 0):
                raise BadInput(f"A price is {price:g}", "Give what a million tokens cost, 0 or more")

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Return what that many tokens cost."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _TOKENS_PER_PRICE

    def cost_of(self, usage: Usage) -> float | None:
        """Return what some requests cost; None where a server told no tokens, since the sum would be short."""
        return None if usage.unknown else self.cost(usage.prompt_tokens, usage.completion_tokens)


def prices_of(price_in: float | None = None, price_out: float | None = None) -> Prices | None:
    """Return the user's two prices, as given or, where neither is, as ``MARA_PRICES`` tells them; None without any.

    Raises:
        BadInput: there is only one, or it is no price.
    """
    if price_in is None and price_out is None:
        prices = environment().mara_prices
        if not prices:
            return None
        try:
            price_in, price_out = map(float, prices.split(","))
        except ValueError:
            hint = 'Set it to what a million tokens cost, in and out: "0.15,0.60"'
            raise BadInput(f"MARA_PRICES is {prices!r}, not two prices", hint) from None
    if price_in is None or price_out is None:
        raise BadInput("Only one price is given", 'Give both, or set MARA_PRICES="0.15,0.60"; 0 is a price')
    return Prices(price_in, price_out)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a question; 0 is no limit.

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
    """The seconds, calls and tokens that a question has taken so far."""

    seconds: float = 0.0
    calls: int = 0
    tokens: int = 0


class QuestionBudget:
    """The rest of one question's limits; the nodes that work on it side by side share it safely.

    A call is taken before it is made, so that calls side by side never pass the limit together; one without a reply is
    given back. Tokens are known with the reply: the limit is passed by what is on its way.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._limits = Limits()
        self._calls = self._tokens = self._at_work = 0
        self._seconds = self._since = 0.0

    def begin(self, limits: Limits, before: Spent) -> None:
        """Set the limits once, and add what an earlier run of the same question took."""
        with self._lock:
            self._limits = limits
            self._seconds += before.seconds
            self._calls += before.calls
            self._tokens += before.tokens

    @contextmanager
    def working(self) -> Iterator[Tally]:
        """Count the seconds of the block, once for all that work at the same time, and let its requests be charged.

        Yields the tally of the block.
        """
        with self._lock:
            self._since = self._since if self._at_work else time.monotonic()
            self._at_work += 1
        tally = Tally(self, _TALLY.get())
        token = _TALLY.set(tally)
        try:
            yield tally
        finally:
            _TALLY.reset(token)
            with self._lock:
                self._at_work -= 1
                if not self._at_work:
                    self._seconds += time.monotonic() - self._since

    def spent(self) -> Spent:
        """Return what the question has taken so far."""
        with self._lock:
            running = time.monotonic() - self._since if self._at_work else 0.0
            return Spent(self._seconds + running, self._calls, self._tokens)

    def left_s(self) -> float:
        """Return the seconds that are left; infinity without a limit."""
        limit = self._limits.seconds
        return limit - self.spent().seconds if limit else float("inf")

    def calls_left(self) -> int | None:
        """Return the calls that are left; None without a limit."""
        limit = self._limits.calls
        return max(0, limit - self.spent().calls) if limit else None

    def fault(self) -> BudgetSpent | None:
        """Return the error that says what is used up; None while something of everything is left."""
        limits, spent = self._limits, self.spent()
        if limits.seconds and spent.seconds >= limits.seconds:
            return BudgetSpent(f"The question's {limits.seconds:g} s are over", "Raise question_s or MARA_QUESTION_S")
        if limits.calls and spent.calls >= limits.calls:
            return BudgetSpent(f"The question's {limits.calls} model calls are used up", "Raise max_model_calls")
        if limits.tokens and spent.tokens >= limits.tokens:
            return BudgetSpent(f"The question's {limits.tokens:,} tokens are used up", "Raise max_model_tokens")
        return None

    def take_call(self) -> None:
        """Take a call. Raises BudgetSpent."""
        with self._lock:
            if fault := self.fault():
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


@dataclass(slots=True)
class Tally:
    """The tally of a block's work: its use of chat models, and its notes.

    Attributes:
        budget: what its requests are charged to.
        outer: the tally of the block around it, for which its usage counts, too.
        usage: of its requests so far.
        omissions: the material that their prompts had no room for, in words.
    """

    budget: QuestionBudget
    outer: Tally | None
    usage: Usage = field(default_factory=Usage)
    omissions: list[str] = field(default_factory=list)


_TALLY: ContextVar[Tally | None] = ContextVar("tally", default=None)
_COUNTING = threading.Lock()


def tallied() -> AbstractContextManager[Tally]:
    """Keep a tally of the block, in this context and its copies; its requests are charged as those around it."""
    return budget_of_question().working()


def count_usage(usage: Usage) -> None:
    """Add a reply to all tallies under way: a request that brought none, not even a part of one, is not counted."""
    tally = _TALLY.get()
    with _COUNTING:
        while tally is not None:
            tally.usage += usage
            tally = tally.outer


def tell_omission(omission: str) -> None:
    """Tell the tally of the block what material a prompt has no room for."""
    if (tally := _TALLY.get()) is not None:
        tally.omissions.append(omission)


def budget_of_question() -> QuestionBudget:
    """Return the budget that requests of this context are charged to; one without limits where there is none."""
    tally = _TALLY.get()
    return QuestionBudget() if tally is None else tally.budget
