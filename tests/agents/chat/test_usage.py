from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from agents.chat.usage import Prices, Usage, count_usage, prices_of, tallied
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


def test_usage_of_many_threads_is_counted_whole() -> None:
    with tallied() as spent, ThreadPoolExecutor(8) as pool:
        scopes = [copy_context() for _ in range(200)]
        list(pool.map(lambda scope: scope.run(count_usage, Usage(1, 10, 1)), scopes))
    assert spent.usage == Usage(200, 2_000, 200)


def test_prices_are_those_of_the_caller_or_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prices_of(None, None) is None
    assert prices_of(1.0, 0.0) == Prices(1.0, 0.0)
    for price_in, price_out in [(1.0, None), (None, 1.0), (-1.0, 1.0), (1.0, float("nan"))]:
        with pytest.raises(BadInput, match="price"):
            prices_of(price_in, price_out)
    monkeypatch.setenv("MARA_PRICES", "0.15, 0.6")
    assert prices_of() == Prices(0.15, 0.6)
    assert prices_of(2.0, 0.0) == Prices(2.0, 0.0)
    assert prices_of(price_out=2.0) == Prices(0.15, 2.0)
    for wrong in ("0.15", "0,15;0,6", "cheap,dear"):
        monkeypatch.setenv("MARA_PRICES", wrong)
        with pytest.raises(BadInput, match=f"'{wrong}', not two prices"):
            prices_of()
