from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.chat.reply_cache import ReplyCache
from agents.chat.throttle import Throttle
from agents.chat.usage import Prices, Usage
from agents.extraction import ExtractionRun, estimate_extraction
from agents.extractor import ChatExtractor
from agents.offline.extractor import OfflineExtractor
from graph.errors import ModelUnavailable
from graph.schema import Passage
from tests.extracting import InstantClock, extractor_on, passages, proper_reply, titles_asked
from tests.scripted_server import Reply, ReplyLike, ScriptedServer, scripted

TOKENS = {"prompt_tokens": 2_000, "completion_tokens": 100}


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ReplyCache]:
    with ReplyCache(tmp_path / "replies.sqlite") as cache:
        yield cache


class TenSecondsAReply(InstantClock):
    """A clock by which each reply takes ten seconds."""

    def reply(self, body: Mapping[str, Any]) -> ReplyLike:
        self.time += 10
        return Reply(proper_reply(body), usage=TOKENS)


def run_on(server: ScriptedServer, cache: ReplyCache | None = None, **limits: Any) -> ExtractionRun:
    return ExtractionRun(extractor_on(server), cache=cache, throttle=Throttle(**limits))


def test_a_sample_spread_evenly_is_asked_once_and_tells_the_rest(cache: ReplyCache) -> None:
    clock = TenSecondsAReply()
    with scripted(clock.reply) as server:
        run = run_on(server, cache, clock=clock)
        estimate = estimate_extraction(run, passages(100), sample=5, prices=Prices(1.0, 10.0))
        again = estimate_extraction(run, passages(100), sample=5)
        assert titles_asked(server) == ["Lake 10", "Lake 30", "Lake 50", "Lake 70", "Lake 90"]
    assert (estimate.passages, estimate.kept, estimate.repeated, estimate.to_ask) == (100, 5, 0, 95)
    assert estimate.requests == 95
    assert estimate.prompt_tokens == pytest.approx(95 * 2_000, rel=0.01)
    assert estimate.completion_tokens == pytest.approx(95 * 100, rel=0.05)
    assert estimate.seconds == pytest.approx(950)
    assert estimate.cost == pytest.approx((95 * 2_000 + 95 * 100 * 10) / 1e6, rel=0.03)
    assert estimate.sample.usage == Usage(5, 10_000, 500, 0, 50.0)
    assert (again.sample.usage, again.sample.cached) == (Usage(), 5)
    names = ("to_ask", "requests", "prompt_tokens", "completion_tokens", "seconds")
    assert [getattr(again, name) for name in names] == [getattr(estimate, name) for name in names]


def test_what_is_kept_and_what_is_repeated_is_taken_off_and_nothing_left_costs_nothing(cache: ReplyCache) -> None:
    with scripted(proper_reply) as server:
        run_on(server, cache).extract_all(passages(10))
        copies = [Passage(f"copy {number}", "Lake 19", "Lake 19 lies in Karv.") for number in range(3)]
        estimate = estimate_extraction(run_on(server, cache), [*passages(20), *copies], sample=0)
        assert (estimate.passages, estimate.kept, estimate.repeated, estimate.to_ask) == (23, 10, 3, 10)
        for sample in (0, 5):
            estimate = estimate_extraction(run_on(server, cache), passages(10), sample=sample, prices=Prices(1, 1))
            assert (estimate.requests, estimate.prompt_tokens, estimate.completion_tokens) == (0, 0, 0)
            assert estimate.cost == 0
        assert len(server.requests) == 10


def test_the_unknown_is_named_without_a_sample_or_where_the_server_does_not_tell_it() -> None:
    with scripted(lambda body: Reply(proper_reply(body), usage={})) as server:
        run = run_on(server)
        estimate = estimate_extraction(run, passages(10), sample=0, prices=Prices(1.0, 1.0))
        assert server.requests == []
        sampled = estimate_extraction(run, passages(10), sample=2)
    assert isinstance(run.extractor, ChatExtractor)
    assert estimate.prompt_tokens == sum(map(run.extractor.estimate_prompt_tokens, passages(10)))
    assert (estimate.completion_tokens, estimate.seconds, estimate.cost) == (None, None, None)
    assert estimate.requests == 10
    assert (sampled.completion_tokens, sampled.seconds is None) == (None, False)
    assert sampled.sample.usage.unknown == 2


def test_limits_a_minute_and_concurrency_tell_the_time() -> None:
    clock = TenSecondsAReply()
    with scripted(clock.reply) as server:
        by_requests = estimate_extraction(run_on(server, requests_per_minute=2, clock=clock), passages(60), sample=2)
        by_tokens = estimate_extraction(run_on(server, tokens_per_minute=2_100, clock=clock), passages(60), sample=2)
        with ExtractionRun(extractor_on(server), concurrency=4, throttle=Throttle(clock=clock)) as run:
            together = estimate_extraction(run, passages(60), sample=1)
    assert by_requests.seconds == pytest.approx(30 * 60)
    assert by_tokens.seconds == pytest.approx(60 * 60, rel=0.02)
    assert together.seconds == pytest.approx(600 / 4)


def test_a_sample_with_retries_or_failures_says_so_and_a_refused_key_ends_it() -> None:
    with scripted(["prose", proper("Lake 1"), proper("Lake 2")]) as server:
        assert estimate_extraction(run_on(server), passages(10), sample=2).requests == 15
    with scripted([Reply("too long", status=413)]) as server:
        estimate = estimate_extraction(run_on(server), passages(10), sample=3)
    assert estimate.sample.failed == {"refused request": 3}
    assert (estimate.to_ask, estimate.completion_tokens) == (10, None)
    with scripted([Reply("no", status=401)]) as server, pytest.raises(ModelUnavailable, match="OPENAI_API_KEY"):
        estimate_extraction(run_on(server), passages(10))


def test_a_sample_larger_than_the_corpus_is_the_corpus_and_rules_ask_nothing() -> None:
    with scripted(proper_reply) as server:
        assert estimate_extraction(run_on(server), passages(3), sample=50).sample.passages == 3
        assert estimate_extraction(run_on(server), [], sample=5).requests == 0
    estimate = estimate_extraction(ExtractionRun(OfflineExtractor()), passages(50), prices=Prices(1.0, 1.0))
    assert (estimate.requests, estimate.prompt_tokens, estimate.completion_tokens, estimate.cost) == (0, 0, 0, 0.0)
    assert estimate_extraction(ExtractionRun(OfflineExtractor()), passages(50), sample=0).seconds is None


def proper(title: str) -> str:
    return proper_reply({"messages": [{}, {"content": f'x\n```json\n{{"title": "{title}"}}'}]})
