"""Usage of chat models: requests, tokens and time, and their cost at the user's prices."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graph.environment import environment
from graph.errors import BadInput

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
        return Usage(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.unknown + other.unknown,
            self.seconds + other.seconds,
        )


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
    """Return the user's two prices, as given or else as MARA_PRICE_IN and MARA_PRICE_OUT tell them; None without any.

    Raises:
        BadInput: there is only one, or it is no price.
    """
    price_in = _price("MARA_PRICE_IN") if price_in is None else price_in
    price_out = _price("MARA_PRICE_OUT") if price_out is None else price_out
    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise BadInput("Only one price is given", "Give both, or set MARA_PRICE_IN and MARA_PRICE_OUT; 0 is a price")
    return Prices(price_in, price_out)


def _price(variable: str) -> float | None:
    text = environment().value(variable)
    try:
        return float(text) if text else None
    except ValueError:
        raise BadInput(f"{variable} is {text!r}, not a price", "Set what a million tokens cost, 0 or more") from None
