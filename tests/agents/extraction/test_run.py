"""Extraction of one passage and of many: whatever the model replies and the server does, and with kept replies."""

from __future__ import annotations

import contextvars
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.chat.reply_cache import KeptReply, ReplyCache
from agents.chat.throttle import Throttle
from agents.chat.usage import Usage
from agents.extraction import Extracted, ExtractionRun, ExtractionTotals, Retries
from graph.errors import MalformedReply, ModelUnavailable, TransportCause, TransportFault
from graph.schema import Passage
from tests.extracting import (
    PASSAGES,
    TOKENS,
    FakeExtractor,
    InstantClock,
    extractor_on,
    passages,
    proper_reply,
    raising,
    reply_about,
    run_on,
)
from tests.scripted_server import Fault, Reply, ReplyLike, Script, scripted

PASSING: dict[TransportCause, list[Reply]] = {
    "rate limit": [Reply("slow down", status=429, headers={"Retry-After": "7"}), Reply("slow", status=429)],
    "server error": [Reply("oops", status=500), Reply("starting", status=503, headers={"Retry-After": "7"})],
    "connection": [Reply(fault=Fault.RESET), Reply(fault=Fault.GARBAGE)],
    "broken reply": [
        Reply("yes", fault=Fault.TRUNCATED),
        Reply(body="<html>It works!</html>"),
        Reply(body='{"choices": []}'),
    ],
}


def extract_one(script: Script, **how: Any) -> Extracted:
    with scripted(script) as server, run_on(server, **how) as run:
        return run.extract(PASSAGES[0])


def test_a_proper_reply_is_done_at_the_first_attempt() -> None:
    done = extract_one([Reply(reply_about("Lake 0"), usage=TOKENS)])
    assert done.extraction is not None
    assert done.extraction.entities == ("Lake 0", "Karv")
    assert (done.passage_id, done.attempts, done.cached, done.kind, done.failure) == ("p0", 1, False, None, "")
    assert done.usage == Usage(1, 100, 10)


def test_a_reply_that_cannot_be_used_is_asked_for_again_and_then_the_passage_fails() -> None:
    failed = extract_one(["The lake lies in Karv."])
    assert (failed.extraction, failed.kind, failed.attempts) == (None, "malformed reply", 3)
    assert failed.failure
    assert (failed.retries, failed.usage.requests) == ({"malformed reply": 2}, 3)


def test_the_reason_alone_is_fed_back_and_all_tokens_count() -> None:
    prose = Reply("The lake lies in Karv.", usage=TOKENS)
    cut = Reply("{", usage=TOKENS, finish_reason="length")
    with scripted([prose, cut, Reply(reply_about("Lake 0"), usage=TOKENS)]) as server, run_on(server) as run:
        done = run.extract(PASSAGES[0])
    assert done.extraction is not None
    assert (done.attempts, done.usage) == (3, Usage(3, 300, 30))
    assert "The lake lies in Karv." not in server.requests[1].text_of(2)
    assert "no JSON object" in server.requests[1].text_of(2)
    assert "cut at the token limit" in server.requests[2].text_of(2)
    assert [len(request.body["messages"]) for request in server.requests] == [2, 3, 3]


def test_a_fault_that_passes_is_tried_again_and_one_that_stays_fails_the_passage() -> None:
    for cause, replies in PASSING.items():
        for reply in replies:
            done = extract_one([reply, reply, reply_about("Lake 0")])
            assert done.extraction is not None
            assert (done.attempts, done.retries, done.usage.requests) == (3, {cause: 2}, 3)
        attempts = 13 if cause == "rate limit" else 5
        failed = extract_one(replies[:1])
        assert (failed.extraction, failed.kind, failed.attempts) == (None, cause, attempts)
        assert failed.failure
        assert failed.retries == {cause: attempts - 1}
    hanging = Retries(transport=1, first_wait_s=0)
    failed = extract_one([Reply(fault=Fault.HANG)], timeout_s=0.05, retries=hanging)
    assert (failed.kind, failed.attempts) == ("timeout", 2)


def test_faults_of_different_kinds_share_their_attempts_and_a_retry_keeps_its_feedback() -> None:
    server_error, connection = PASSING["server error"][0], PASSING["connection"][0]
    script: list[ReplyLike] = ["prose", server_error, connection, server_error, connection, server_error]
    with scripted(script) as server, run_on(server) as run:
        failed = run.extract(PASSAGES[0])
    assert failed.retries == {"malformed reply": 1, "server error": 2, "connection": 2}
    assert failed.kind == "server error"
    assert [len(request.body["messages"]) for request in server.requests] == [2, 3, 3, 3, 3, 3]


def test_a_refused_request_fails_its_passage_at_once_and_a_refused_key_or_model_stops_the_run() -> None:
    for status in (400, 413, 422):
        failed = extract_one([Reply("the prompt is 9000 tokens too long", status=status)])
        assert (failed.kind, failed.attempts) == ("refused request", 1)
        assert f"({status}): the prompt is 9000 tokens too long" in failed.failure
    for status in (401, 402, 403, 404):
        with pytest.raises(ModelUnavailable, match=str(status)):
            extract_one([Reply("no", status=status)])


def test_results_come_in_the_order_of_the_passages_and_each_is_told_once_in_the_callers_context() -> None:
    traced = contextvars.ContextVar("traced", default="unset")
    contexts = set()
    done: list[str] = []
    with ExtractionRun(FakeExtractor(lambda passage: contexts.add(traced.get())), concurrency=4) as run:
        traced.set("caller")
        extracted = run.extract_all(passages(50), lambda one: done.append(one.passage_id))
        assert len(run.extract_all(passages(3))) == 3
    assert [one.passage_id for one in extracted] == [passage.id for passage in passages(50)]
    assert sorted(done) == sorted(one.passage_id for one in extracted)
    assert contexts == {"caller"}
    assert ExtractionRun(FakeExtractor()).extract_all([]) == []


def test_as_many_are_asked_at_once_as_wanted_and_no_more() -> None:
    together = threading.Barrier(4)
    now = Counter[str]()
    most = []
    lock = threading.Lock()

    def act(passage: Passage) -> None:
        with lock:
            now["running"] += 1
            most.append(now["running"])
        together.wait(timeout=5)
        with lock:
            now["running"] -= 1

    with ExtractionRun(FakeExtractor(act), concurrency=4) as run:
        run.extract_all(passages(16))
    assert max(most) == 4


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ReplyCache]:
    with ReplyCache(tmp_path / "replies.sqlite") as cache:
        yield cache


def test_a_second_run_asks_nothing_unless_for_another_model_or_temperature(cache: ReplyCache) -> None:
    with scripted(proper_reply) as server:
        with run_on(server, cache=cache) as run:
            first = run.extract_all(PASSAGES)
        with run_on(server, cache=cache) as run:
            second = run.extract_all(PASSAGES)
        assert len(server.requests) == len(PASSAGES)
        for how in ({"model": "other"}, {"temperature": 0.5}):
            with ExtractionRun(extractor_on(server, **how), cache=cache) as run:
                run.extract(PASSAGES[0])
        assert len(server.requests) == len(PASSAGES) + 2
    assert [one.extraction for one in second] == [one.extraction for one in first]
    assert {(one.cached, one.attempts, one.usage) for one in second} == {(True, 0, Usage())}


def test_replies_that_cannot_be_used_are_never_kept(cache: ReplyCache) -> None:
    with scripted(["prose"]) as server, run_on(server, cache=cache) as run:
        key = extractor_on(server).key(PASSAGES[0])
        run.extract(PASSAGES[0])
        assert cache.known([key]) == set()
        server.script(["prose", Reply(reply_about("Lake 0"), usage=TOKENS)])
        done = run.extract(PASSAGES[0])
        assert done.attempts == 2
        assert run.extract(PASSAGES[0]).cached
        reply = cache.get(key)
    assert reply is not None
    assert (reply.usage, reply.usage.requests) == (done.usage, 2), "kept with all that it took"


def test_a_kept_reply_that_can_no_longer_be_read_is_asked_for_again(cache: ReplyCache) -> None:
    with scripted(proper_reply) as server, run_on(server, cache=cache) as run:
        key = extractor_on(server).key(PASSAGES[0])
        cache.put(key, "model#1", KeptReply('{"entities": "none"}', Usage()))
        assert (run.extract(PASSAGES[0]).attempts, run.extract(PASSAGES[0]).cached) == (1, True)
    assert cache.known([key]) == {key}


def test_one_content_under_several_ids_is_asked_for_once(tmp_path: Path) -> None:
    alike = [Passage(f"copy {number}", "Lake", "It is deep.") for number in range(8)]
    with scripted(proper_reply) as server, ReplyCache(tmp_path / "replies.sqlite") as cache:
        with run_on(server, cache=cache) as run:
            extracted = run.extract_all(alike)
        assert len(server.requests) == 1
    assert [one.passage_id for one in extracted] == [passage.id for passage in alike]
    assert sorted(one.cached for one in extracted) == [False] + [True] * 7
    assert ExtractionTotals.of(extracted).usage.requests == 1


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


def test_when_the_server_asks_for_time_every_other_passage_waits_too() -> None:
    at_once = Retries(rate_limit=0, transport=0, first_wait_s=0)
    clock = InstantClock()
    busy = Reply("busy", status=503, headers={"Retry-After": "41"})
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
