"""Extraction waits after a fault, while the server asks for time, and to keep to the limits that the user sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from agents.chat.throttle import Throttle
from agents.chat.usage import Usage
from agents.extraction import ExtractionRun, Retries
from graph.errors import MalformedReply, TransportFault
from tests.extracting import PASSAGES, TOKENS, FakeExtractor, InstantClock, proper_reply, raising, reply_about, run_on
from tests.scripted_server import Reply, scripted


def waits(*faults: Exception, retries: Retries | None = None) -> list[float]:
    """How long a run waits before each attempt to extract one passage."""
    clock = InstantClock()
    run = ExtractionRun(FakeExtractor(raising(*faults)), throttle=Throttle(clock=clock), retries=retries)
    assert run.extract(PASSAGES[0]).extraction is not None
    return clock.waits


def test_waits_double_less_a_random_part_and_never_pass_the_longest() -> None:
    for wait, longest in zip(waits(*[TransportFault("x", cause="server error")] * 4), (1, 2, 4, 8), strict=True):
        assert longest / 2 <= wait <= longest
    retries = Retries(first_wait_s=8, longest_wait_s=20)
    assert max(waits(*[TransportFault("x", cause="rate limit")] * 12, retries=retries)) == pytest.approx(20)
    assert waits(MalformedReply("no", "raw")) == [], "it is asked for again at once"


def test_the_server_may_ask_for_more_but_not_for_ever() -> None:
    assert waits(TransportFault("x", cause="rate limit", retry_after_s=30)) == [30]
    assert waits(TransportFault("x", cause="rate limit", retry_after_s=86_400)) == [120]
    (wait,) = waits(TransportFault("x", cause="rate limit", retry_after_s=0.0))
    assert wait >= 0.5


def test_when_the_server_asks_for_time_every_other_passage_waits_too() -> None:
    at_once = Retries(rate_limit=0, transport=0, first_wait_s=0)
    for status, as_date in ((429, False), (503, True)):
        clock = InstantClock()
        value = format_datetime(datetime.now(UTC) + timedelta(seconds=42), usegmt=True) if as_date else "41"
        busy = Reply("busy", status=status, headers={"Retry-After": value})
        with (
            scripted([busy, reply_about("Lake 1")]) as server,
            run_on(server, throttle=Throttle(clock=clock), retries=at_once) as run,
        ):
            assert run.extract(PASSAGES[0]).extraction is None
            assert clock.time == 0.0
            assert run.extract(PASSAGES[1]).extraction is not None
        assert 40 <= clock.time <= 42


def test_requests_and_tokens_keep_to_the_users_limits_and_are_estimated_where_the_server_sends_none() -> None:
    clock = InstantClock()
    throttle = Throttle(requests_per_minute=60, tokens_per_minute=3_300, clock=clock)
    with scripted(lambda body: Reply(proper_reply(body), usage=TOKENS)) as server:
        with run_on(server, throttle=throttle) as run:
            run.extract_all(PASSAGES)
        assert clock.waits == pytest.approx([2.0, 2.0, 2.0])
        server.script(lambda body: Reply(proper_reply(body), usage={}))
        clock = InstantClock()
        with run_on(server, throttle=Throttle(tokens_per_minute=6_000, clock=clock)) as run:
            extracted = run.extract_all(PASSAGES[:2])
    assert 8 < clock.time < 30
    assert sum((one.usage for one in extracted), Usage()) == Usage(2, unknown=2)
