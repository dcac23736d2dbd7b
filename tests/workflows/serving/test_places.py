"""Places for questions: who is let in, who waits, who is refused, and who frees a place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.runtime.resources import OFFLINE
from workflows.serving.service import Overloaded, Places, Service


class Asker:
    """Somebody who asks, and stays in their place until they are let go."""

    def __init__(self, places: Places) -> None:
        self.answered = asyncio.Event()
        self.is_at_work = False
        self.fault: Exception | None = None
        self._places = places
        self.task = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        try:
            async with self._places.place():
                self.is_at_work = True
                await self.answered.wait()
        except Overloaded as fault:
            self.fault = fault


async def settle() -> None:
    """Let everybody do what they can."""
    for _ in range(10):
        await asyncio.sleep(0)


def run(story: Callable[[], Awaitable[Any]]) -> None:
    async def told() -> None:
        await story()

    asyncio.run(told())


def test_those_who_wait_come_in_in_their_order() -> None:
    async def story() -> None:
        places = Places(1, 3)
        askers = [Asker(places) for _ in range(4)]
        for asker in askers:
            await settle()
            assert [each for each in askers if each.is_at_work and not each.answered.is_set()] == [asker]
            asker.answered.set()

    run(story)


def test_nobody_waits_longer_than_their_patience() -> None:
    async def story() -> None:
        places = Places(1, 3, patience_s=0.01)
        first, second = Asker(places), Asker(places)
        await asyncio.wait({second.task})
        assert isinstance(second.fault, Overloaded)
        assert (places.at_work, places.waiting) == (1, 0)
        first.answered.set()
        await settle()
        assert places.at_work == 0

    run(story)


def test_who_goes_while_waiting_or_as_their_turn_comes_leaves_it_to_the_next_one() -> None:
    async def story() -> None:
        for goes_before in (True, False):
            places = Places(1, 3)
            first, second, third = (Asker(places) for _ in range(3))
            await settle()
            if goes_before:
                second.task.cancel()
                await settle()
            first.answered.set()
            second.task.cancel()
            await settle()
            assert (second.is_at_work, third.is_at_work) == (False, True), goes_before
            third.answered.set()
            await settle()
            assert places.at_work == 0, goes_before

    run(story)


@given(st.lists(st.sampled_from(["ask", "answer", "cancel"]), max_size=60), st.integers(1, 3), st.integers(0, 3))
def test_whatever_happens_places_are_neither_lost_nor_made(events: list[str], at_once: int, waiting: int) -> None:
    async def story() -> None:
        places = Places(at_once, waiting)
        askers: list[Asker] = []
        for event in events:
            here = [each for each in askers if not each.task.done()]
            if event == "ask":
                askers.append(Asker(places))
            elif here and event == "answer":
                here[0].answered.set()
            elif here and event == "cancel":
                here[-1].task.cancel()
            await settle()
            at_work = sum(each.is_at_work and not each.task.done() for each in askers)
            assert places.at_work == at_work <= at_once
            assert places.waiting == sum(not each.is_at_work and not each.task.done() for each in askers) <= waiting
        for each in askers:
            each.answered.set()
        await settle()
        await settle()
        for each in askers:
            each.answered.set()
            await settle()
        assert (places.at_work, places.waiting) == (0, 0)

    run(story)


def test_the_places_follow_the_cores_or_the_model_unless_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[tuple[int | None, int, str, int]] = [
        (None, 1000, OFFLINE, 1),
        (None, 4, "some-model", 32),
        (7, 2, "some-model", 7),
    ]
    for at_once, workers, model, expected in cases:
        monkeypatch.setattr("workflows.serving.service.chat_model_name", lambda _, named=model: named)
        places = Service(at_once, workers).places
        assert (places.at_once, places.most_waiting) == (expected, 4 * expected)
