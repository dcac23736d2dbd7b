"""Questions asked side by side: an error stops all, and so does a service that is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from graph.errors import BadInput, ModelUnavailable, ServiceUnavailable
from workflows.runs.runner import GIVE_UP_AFTER, SideBySide

Work = Callable[[int], ServiceUnavailable | None]


def nothing() -> None:
    pass


def failing(*failed: int) -> tuple[Work, list[int]]:
    done: list[int] = []

    def work(item: int) -> ServiceUnavailable | None:
        done.append(item)
        return ModelUnavailable(f"gone at {item}") if item in failed else None

    return work, done


def test_each_item_is_done_once_in_order_and_counted() -> None:
    work, done = failing()
    counts: list[int] = []
    SideBySide(20).do(range(20), work, 1, lambda: counts.append(len(done)))
    assert done == list(range(20))
    assert counts == list(range(1, 21))


def test_as_many_as_wanted_are_under_way_at_once_and_no_more() -> None:
    together = threading.Barrier(3, timeout=10)
    under_way: set[int] = set()
    counts: list[int] = []
    workers: set[int] = set()

    def waits(item: int) -> None:
        under_way.add(item)
        workers.add(threading.get_ident())
        counts.append(len(under_way))
        together.wait()
        under_way.remove(item)

    SideBySide(6).do(range(6), waits, 3, nothing)
    assert max(counts) == len(workers) == 3


def test_a_service_that_fails_in_a_row_stops_all_with_its_last_fault() -> None:
    work, done = failing(1, *range(3, 30))
    with pytest.raises(ModelUnavailable, match=f"gone at {2 + GIVE_UP_AFTER}"):
        SideBySide(30).do(range(30), work, 1, nothing)
    assert done == list(range(3 + GIVE_UP_AFTER))
    work, done = failing(*(item for item in range(30) if item % GIVE_UP_AFTER))
    SideBySide(30).do(range(30), work, 1, nothing)
    assert len(done) == 30, "one that answers now and then does not"


def test_an_error_is_raised_and_nothing_more_is_begun() -> None:
    for fault in (BadInput("no"), KeyboardInterrupt()):
        done: list[int] = []

        def breaks(item: int, fault: BaseException = fault, done: list[int] = done) -> None:
            done.append(item)
            if item == 2:
                raise fault

        crew = SideBySide(20)
        with pytest.raises(type(fault)):
            crew.do(range(20), breaks, 1, nothing)
        assert crew.stopped
        crew.do(range(20), breaks, 2, nothing)
        assert done == [0, 1, 2]
