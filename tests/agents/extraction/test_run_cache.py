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


class TestCache:
    @pytest.fixture
    def cache(self, tmp_path: Path) -> Iterator[ReplyCache]:
        with ReplyCache(tmp_path / "replies.sqlite") as cache:
            yield cache

    def test_a_second_run_asks_nothing(self, cache: ReplyCache) -> None:
        with scripted(proper_reply) as server:
            with run_on(server, cache=cache) as run:
                first = run.extract_all(PASSAGES)
            with run_on(server, cache=cache) as run:
                second = run.extract_all(PASSAGES)
            assert len(server.requests) == len(PASSAGES)
        assert [one.extraction for one in second] == [one.extraction for one in first]
        assert {(one.cached, one.attempts, one.usage) for one in second} == {(True, 0, Usage())}

    def test_replies_that_cannot_be_used_are_never_kept(self, cache: ReplyCache) -> None:
        with scripted(["prose"]) as server, run_on(server, cache=cache) as run:
            run.extract(PASSAGES[0])
            assert cache.known([extractor_on(server).key(PASSAGES[0])]) == set()
            server.script(["prose", reply_about("Lake 0")])
            assert run.extract(PASSAGES[0]).attempts == 2
            assert run.extract(PASSAGES[0]).cached

    def test_a_kept_reply_that_can_no_longer_be_read_is_asked_for_again(self, cache: ReplyCache) -> None:
        with scripted(proper_reply) as server, run_on(server, cache=cache) as run:
            key = extractor_on(server).key(PASSAGES[0])
            cache.put(key, "model#1", KeptReply('{"entities": "none"}', Usage()))
            assert (run.extract(PASSAGES[0]).attempts, run.extract(PASSAGES[0]).cached) == (1, True)
        assert cache.known([key]) == {key}

    @pytest.mark.parametrize("concurrency", [1, 4])
    def test_one_content_under_several_ids_is_asked_for_once(self, cache: ReplyCache, concurrency: int) -> None:
        alike = [Passage(f"copy {number}", "Lake", "It is deep.") for number in range(8)]
        with scripted(proper_reply) as server, run_on(server, cache=cache, concurrency=concurrency) as run:
            found = run.extract_all(alike)
            assert len(server.requests) == 1
        assert [one.passage_id for one in found] == [passage.id for passage in alike]
        assert len({one.extraction.entities for one in found if one.extraction}) == 1
        assert sorted(one.cached for one in found) == [False] + [True] * 7
        assert ExtractionTotals.of(found).usage.requests == 1

    def test_those_who_wait_for_a_passage_of_their_content_fail_with_it(self) -> None:
        asked = threading.Event()

        def script(body: Mapping[str, Any]) -> ReplyLike:
            asked.wait(5)
            return Reply("too long", status=413)

        alike = [Passage(f"copy {number}", "Lake", "It is deep.") for number in range(2)]
        with scripted(script) as server, run_on(server, concurrency=2) as run:
            threading.Timer(0.05, asked.set).start()
            found = run.extract_all(alike)
        assert [one.kind for one in found] == ["refused request"] * 2
        assert len({one.failure for one in found}) == 1

    def test_another_model_or_temperature_is_asked_anew(self, cache: ReplyCache) -> None:
        with scripted(proper_reply) as server:
            for extractor in (
                extractor_on(server),
                extractor_on(server, model="other"),
                extractor_on(server, temperature=0.5),
            ):
                with ExtractionRun(extractor, cache=cache) as run:
                    run.extract(PASSAGES[0])
            assert len(server.requests) == 3

    def test_what_a_kept_reply_took_is_kept_with_it(self, cache: ReplyCache) -> None:
        with (
            scripted(["prose", Reply(reply_about("Lake 0"), usage=TOKENS)]) as server,
            run_on(server, cache=cache) as run,
        ):
            done = run.extract(PASSAGES[0])
            kept = cache.get(extractor_on(server).key(PASSAGES[0]))
        assert kept is not None
        assert kept.usage == done.usage
        assert kept.usage.requests == 2
