"""Extraction with a reply cache: what was replied once is not asked for again, and nothing unusable is kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.chat.reply_cache import KeptReply, ReplyCache
from agents.chat.usage import Usage
from agents.extraction import ExtractionRun, ExtractionTotals
from graph.schema import Passage
from tests.extracting import PASSAGES, TOKENS, extractor_on, proper_reply, reply_about, run_on
from tests.scripted_server import Reply, ReplyLike, scripted


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
    for concurrency in (1, 4):
        with scripted(proper_reply) as server, ReplyCache(tmp_path / f"{concurrency}.sqlite") as cache:
            with run_on(server, cache=cache, concurrency=concurrency) as run:
                extracted = run.extract_all(alike)
            assert len(server.requests) == 1
        assert [one.passage_id for one in extracted] == [passage.id for passage in alike]
        assert len({one.extraction.entities for one in extracted if one.extraction}) == 1
        assert sorted(one.cached for one in extracted) == [False] + [True] * 7
        assert ExtractionTotals.of(extracted).usage.requests == 1


def test_passages_that_wait_for_one_of_their_content_fail_with_it() -> None:
    asked = threading.Event()

    def script(body: Mapping[str, Any]) -> ReplyLike:
        asked.wait(5)
        return Reply("too long", status=413)

    alike = [Passage(f"copy {number}", "Lake", "It is deep.") for number in range(2)]
    with scripted(script) as server, run_on(server, concurrency=2) as run:
        threading.Timer(0.05, asked.set).start()
        extracted = run.extract_all(alike)
    assert [one.kind for one in extracted] == ["refused request"] * 2
    assert len({one.failure for one in extracted}) == 1
