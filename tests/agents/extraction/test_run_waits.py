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


class TestWaiting:
    def waits(self, *faults: Exception, retries: Retries | None = None) -> list[float]:
        clock = InstantClock()
        run = ExtractionRun(FakeExtractor(raising(*faults)), throttle=Throttle(clock=clock), retries=retries)
        assert run.extract(PASSAGES[0]).extraction is not None
        return clock.waits

    def test_waits_double_less_a_random_part(self) -> None:
        found = self.waits(*[TransportFault("x", cause="server error")] * 4)
        for wait, longest in zip(found, (1, 2, 4, 8), strict=True):
            assert longest / 2 <= wait <= longest

    def test_a_malformed_reply_is_asked_again_at_once(self) -> None:
        assert self.waits(MalformedReply("no", "raw")) == []

    def test_the_server_may_ask_for_more_but_not_for_ever(self) -> None:
        assert self.waits(TransportFault("x", cause="rate limit", retry_after_s=30)) == [30]
        assert self.waits(TransportFault("x", cause="rate limit", retry_after_s=86_400)) == [120]
        (wait,) = self.waits(TransportFault("x", cause="rate limit", retry_after_s=0.0))
        assert wait >= 0.5

    def test_no_wait_is_longer_than_the_longest(self) -> None:
        found = self.waits(
            *[TransportFault("x", cause="rate limit")] * 12, retries=Retries(first_wait_s=8, longest_wait_s=20)
        )
        assert max(found) == pytest.approx(20)

    @pytest.mark.parametrize("status", [429, 503])
    @pytest.mark.parametrize("as_date", [False, True])
    def test_when_the_server_asks_for_time_every_other_passage_waits_too(self, status: int, as_date: bool) -> None:
        clock = InstantClock()
        value = format_datetime(datetime.now(UTC) + timedelta(seconds=42), usegmt=True) if as_date else "41"
        busy = Reply("busy", status=status, headers={"Retry-After": value})
        retries = Retries(rate_limit=0, transport=0, first_wait_s=0)
        with (
            scripted([busy, reply_about("Lake 1")]) as server,
            run_on(server, throttle=Throttle(clock=clock), retries=retries) as run,
        ):
            assert run.extract(PASSAGES[0]).extraction is None
            assert clock.time == 0.0
            assert run.extract(PASSAGES[1]).extraction is not None
        assert 40 <= clock.time <= 42

    def test_requests_and_tokens_keep_to_the_users_limits(self) -> None:
        clock = InstantClock()
        throttle = Throttle(requests_per_minute=60, tokens_per_minute=3_300, clock=clock)
        with (
            scripted(lambda body: Reply(proper_reply(body), usage=TOKENS)) as server,
            run_on(server, throttle=throttle) as run,
        ):
            run.extract_all(PASSAGES)
        assert clock.waits == pytest.approx([2.0, 2.0, 2.0])

    def test_tokens_that_no_server_tells_are_estimated_for_the_limit(self) -> None:
        clock = InstantClock()
        throttle = Throttle(tokens_per_minute=6_000, clock=clock)
        with (
            scripted(lambda body: Reply(proper_reply(body), usage={})) as server,
            run_on(server, throttle=throttle) as run,
        ):
            found = run.extract_all(PASSAGES[:2])
        assert 8 < clock.time < 30
        assert sum((one.usage for one in found), Usage()) == Usage(2, unknown=2)
