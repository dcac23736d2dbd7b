from __future__ import annotations

import threading

import pytest

from agents.chat.throttle import Cancelled, Clock, Throttle
from graph.errors import BadInput
from tests.extracting import InstantClock


def sent_at(throttle: Throttle, clock: InstantClock, count: int) -> list[float]:
    """When so many requests could be sent, each as soon as it may."""
    times = []
    for _ in range(count):
        throttle.acquire()
        times.append(clock.time)
    return times


def test_requests_are_spaced_evenly_and_without_limits_nothing_waits() -> None:
    clock = InstantClock()
    throttle = Throttle(clock=clock)
    throttle.spend(10**9)
    assert sent_at(throttle, clock, 100) == [0.0] * 100
    assert clock.waits == []
    throttle = Throttle(requests_per_minute=120, clock=clock)
    assert sent_at(throttle, clock, 5) == [0.0, 0.5, 1.0, 1.5, 2.0]
    clock.time = 100.0
    assert sent_at(throttle, clock, 2) == [100.0, 100.5], "a quiet time is not saved up"


def test_tokens_are_charged_when_they_are_known_and_the_tighter_limit_holds() -> None:
    clock = InstantClock()
    throttle = Throttle(tokens_per_minute=6_000, clock=clock)
    assert sent_at(throttle, clock, 3) == [0.0, 0.0, 0.0]
    throttle.spend(1_000)
    throttle.spend(500)
    assert sent_at(throttle, clock, 2) == [15.0, 15.0]
    clock.time = 100.0
    throttle.spend(100)
    assert sent_at(throttle, clock, 1) == [101.0]
    clock = InstantClock()
    throttle = Throttle(requests_per_minute=60, tokens_per_minute=60, clock=clock)
    throttle.acquire()
    throttle.spend(10)
    assert sent_at(throttle, clock, 2) == [10.0, 11.0]


def test_a_pause_holds_everyone_and_is_never_shortened_and_a_sleep_its_own_worker_alone() -> None:
    clock = InstantClock()
    throttle = Throttle(clock=clock)
    throttle.sleep(4)
    assert sent_at(throttle, clock, 1) == [4.0]
    throttle.pause(30)
    throttle.pause(5)
    assert sent_at(throttle, clock, 2) == [34.0, 34.0]


def test_a_limit_that_lets_nothing_through_is_refused() -> None:
    for limit in [0, -1, float("nan"), float("inf")]:
        with pytest.raises(BadInput, match="a minute"):
            Throttle(requests_per_minute=limit)
        with pytest.raises(BadInput, match="a minute"):
            Throttle(tokens_per_minute=limit)


def test_cancelling_wakes_all_that_wait_and_lets_nothing_through() -> None:
    waiting = threading.Semaphore(0)

    class TellingClock(Clock):
        def wait(self, changed: threading.Condition, seconds: float) -> None:
            waiting.release()
            super().wait(changed, seconds)

    throttle = Throttle(requests_per_minute=0.001, clock=TellingClock())
    throttle.acquire()
    stopped: list[str] = []

    def wait(name: str) -> None:
        try:
            throttle.acquire() if name == "acquire" else throttle.sleep(3_600)
        except Cancelled:
            stopped.append(name)

    threads = [threading.Thread(target=wait, args=(name,), daemon=True) for name in ["acquire", "sleep"] * 2]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert waiting.acquire(timeout=5)
    throttle.cancel()
    for thread in threads:
        thread.join(timeout=5)
    assert sorted(stopped) == ["acquire", "acquire", "sleep", "sleep"]
    for wait_on in (throttle.acquire, lambda: throttle.sleep(0)):
        with pytest.raises(Cancelled):
            wait_on()
