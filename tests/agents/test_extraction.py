from __future__ import annotations

import contextvars
import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from agents.extraction import Extracted, ExtractionRun, ExtractionTotals, Retries
from agents.offline.extractor import OfflineExtractor
from agents.reply_cache import KeptReply, ReplyCache
from agents.roles import Feedback
from agents.throttle import Cancelled, Throttle
from agents.usage import Usage
from graph.errors import MalformedReply, ModelUnavailable, TransportCause, TransportFault
from graph.schema import Extraction, Passage
from tests.extracting import InstantClock, extractor_on, material_of, passages, proper_reply, reply_about, titles_asked
from tests.scripted_server import Fault, Reply, ReplyLike, Script, ScriptedServer, scripted

PASSAGES = passages(4)
QUICK = Retries(first_wait_s=0.0)
TOKENS = {"prompt_tokens": 100, "completion_tokens": 10}

MALFORMED: dict[str, ReplyLike] = {
    "prose": "The lake lies in Karv.",
    "cut": reply_about("Lake 0")[:-9],
    "cut at the token limit": Reply(reply_about("Lake 0"), finish_reason="length"),
    "endless thinking": "<think>The lake lies in Karv",
    "two objects": '{"entities": []}\n{"entities": []}',
    "nothing": "",
    "another schema": '{"facts": []}',
    "blocked": Reply("", finish_reason="content_filter"),
}
PROPER: dict[str, Callable[[str], str]] = {
    "in a fence": lambda reply: f"```json\n{reply}\n```",
    "after thinking": lambda reply: f"<think>{{Hm}}</think>\n{reply}",
    "in prose": lambda reply: f"Here it is:\n{reply}\nDone.",
}
PASSING: dict[TransportCause, list[Reply]] = {
    "rate limit": [Reply("slow down", status=429, headers={"Retry-After": "7"}), Reply("slow", status=429)],
    "server error": [Reply("oops", status=500), Reply("starting", status=503, headers={"Retry-After": "7"})],
    "connection": [Reply(fault=Fault.RESET), Reply(fault=Fault.GARBAGE), Reply("yes", fault=Fault.TRUNCATED)],
    "broken reply": [Reply(body="<html>It works!</html>"), Reply(body='{"choices": []}')],
}


class FakeExtractor:
    """An extractor that does what a function says."""

    name = "fake"

    def __init__(self, act: Callable[[Passage], None] = lambda passage: None) -> None:
        self.act = act
        self.asked: list[str] = []
        self.feedback: list[Feedback | None] = []

    def extract(self, passage: Passage, feedback: Feedback | None = None) -> Extraction:
        self.asked.append(passage.id)
        self.feedback.append(feedback)
        self.act(passage)
        return Extraction((passage.title,), (), self.name)


@contextmanager
def run_on(server: ScriptedServer, **how: Any) -> Iterator[ExtractionRun]:
    """A run with quick retries, in time that passes at once."""
    extractor = extractor_on(server, timeout_s=how.pop("timeout_s", 5.0))
    throttle = how.pop("throttle", None) or Throttle(clock=InstantClock())
    with ExtractionRun(extractor, throttle=throttle, retries=how.pop("retries", QUICK), **how) as run:
        yield run


def extract_one(script: Script, **how: Any) -> Extracted:
    with scripted(script) as server, run_on(server, **how) as run:
        return run.extract(PASSAGES[0])


def raising(*errors: Exception | None) -> Callable[[Passage], None]:
    """Raise one error after another, and then none."""
    left = iter(errors)

    def act(passage: Passage) -> None:
        if error := next(left, None):
            raise error

    return act


class TestOnePassage:
    def test_a_proper_reply_is_done_at_the_first_attempt(self) -> None:
        done = extract_one([Reply(reply_about("Lake 0"), usage=TOKENS)])
        assert done.extraction is not None
        assert done.extraction.entities == ("Lake 0", "Karv")
        assert (done.passage_id, done.attempts, done.cached, done.kind, done.failure) == ("p0", 1, False, None, "")
        assert done.usage == Usage(1, 100, 10)

    @pytest.mark.parametrize("wrap", PROPER.values(), ids=PROPER)
    def test_thinking_fences_and_prose_do_no_harm(self, wrap: Callable[[str], str]) -> None:
        assert extract_one([wrap(reply_about("Lake 0"))]).attempts == 1

    @pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
    def test_a_reply_that_cannot_be_used_is_asked_for_again_and_then_the_passage_fails(self, reply: ReplyLike) -> None:
        failed = extract_one([reply])
        assert (failed.extraction, failed.kind, failed.attempts) == (None, "malformed reply", 3)
        assert failed.failure
        assert failed.retries == {"malformed reply": 2}
        assert failed.usage.requests == 3

    def test_the_reason_and_the_reply_are_fed_back_and_all_tokens_count(self) -> None:
        prose = Reply("The lake lies in Karv.", usage=TOKENS)
        cut = Reply("{", usage=TOKENS, finish_reason="length")
        with scripted([prose, cut, Reply(reply_about("Lake 0"), usage=TOKENS)]) as server, run_on(server) as run:
            done = run.extract(PASSAGES[0])
        assert done.extraction is not None
        assert (done.attempts, done.usage) == (3, Usage(3, 300, 30))
        assert "The lake lies in Karv." in server.requests[1].text_of(2)
        assert "no JSON object" in server.requests[1].text_of(2)
        assert "cut at the token limit" in server.requests[2].text_of(2)
        assert [len(request.body["messages"]) for request in server.requests] == [2, 3, 3]

    @pytest.mark.parametrize(
        ("cause", "reply"), [(cause, reply) for cause, replies in PASSING.items() for reply in replies]
    )
    def test_a_fault_that_passes_is_tried_again(self, cause: TransportCause, reply: Reply) -> None:
        done = extract_one([reply, reply, reply_about("Lake 0")])
        assert done.extraction is not None
        assert (done.attempts, done.retries, done.usage.requests) == (3, {cause: 2}, 3)

    @pytest.mark.parametrize(("cause", "attempts"), [("rate limit", 13), ("server error", 5), ("broken reply", 5)])
    def test_a_fault_that_stays_fails_the_passage(self, cause: TransportCause, attempts: int) -> None:
        failed = extract_one([PASSING[cause][0]])
        assert (failed.extraction, failed.kind, failed.attempts) == (None, cause, attempts)
        assert "chat endpoint" in failed.failure
        assert failed.retries == {cause: attempts - 1}

    def test_a_server_that_never_answers_fails_the_passage(self) -> None:
        failed = extract_one([Reply(fault=Fault.HANG)], timeout_s=0.05, retries=Retries(transport=1, first_wait_s=0))
        assert (failed.kind, failed.attempts) == ("timeout", 2)

    def test_faults_of_different_kinds_share_their_attempts_and_a_retry_keeps_its_feedback(self) -> None:
        server_error, connection = PASSING["server error"][0], PASSING["connection"][0]
        script: list[ReplyLike] = ["prose", server_error, connection, server_error, connection, server_error]
        with scripted(script) as server, run_on(server) as run:
            failed = run.extract(PASSAGES[0])
        assert failed.retries == {"malformed reply": 1, "server error": 2, "connection": 2}
        assert failed.kind == "server error"
        assert [len(request.body["messages"]) for request in server.requests] == [2, 3, 3, 3, 3, 3]

    @pytest.mark.parametrize("status", [400, 413, 422])
    def test_a_refused_request_fails_its_passage_at_once_with_the_servers_words(self, status: int) -> None:
        failed = extract_one([Reply("the prompt is 9000 tokens too long", status=status)])
        assert (failed.kind, failed.attempts) == ("refused request", 1)
        assert f"({status}): the prompt is 9000 tokens too long" in failed.failure

    @pytest.mark.parametrize("status", [401, 402, 403, 404])
    def test_a_refused_key_or_model_stops_the_run(self, status: int) -> None:
        with pytest.raises(ModelUnavailable, match=str(status)):
            extract_one([Reply("no", status=status)])


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
        assert cache.counts == {"kept": 2, "damaged rows": 1}

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


class TestStopping:
    def test_an_endpoint_that_refuses_the_first_ten_passages_stops_the_run(self) -> None:
        with scripted([Reply("no such model here", status=400)]) as server, run_on(server) as run:
            with pytest.raises(ModelUnavailable, match=r"10 passages in a row failed: .*no such model here"):
                run.extract_all(passages(60))
            assert len(server.requests) == 10

    def test_an_endpoint_that_cannot_be_reached_stops_the_run(self) -> None:
        fault = TransportFault("The chat endpoint cannot be reached", cause="connection")
        extractor = FakeExtractor(raising(*[fault] * 1_000))
        run = ExtractionRun(extractor, throttle=Throttle(clock=InstantClock()))
        with pytest.raises(ModelUnavailable, match="10 passages in a row failed") as caught:
            run.extract_all(passages(60))
        assert not isinstance(caught.value, TransportFault)
        assert len(extractor.asked) == 50

    def test_once_it_worked_refused_passages_never_stop_it_and_a_long_outage_does(self) -> None:
        refused = ModelUnavailable("too long", status=413)
        lost = TransportFault("gone", cause="connection")
        retries = Retries(transport=0, give_up_after=2)
        cases: list[tuple[list[Exception | None], int | None]] = [
            ([refused] * 30, None),
            ([*[lost] * 9, None, *[lost] * 9], None),
            ([*[lost] * 9, refused, *[lost] * 9], None),
            ([lost] * 10, 11),
        ]
        for errors, left in cases:
            extractor = FakeExtractor(raising(None, *errors))
            run = ExtractionRun(extractor, retries=retries)
            if left is None:
                assert run.extract_all(passages(40))[-1].extraction is not None
            else:
                with pytest.raises(ModelUnavailable, match="10 passages in a row"):
                    run.extract_all(passages(40))
                assert len(extractor.asked) == left

    def test_passages_that_another_run_left_over_may_all_be_refused(self, tmp_path: Path) -> None:
        with scripted([Reply("too long", status=413)]) as server, ReplyCache(tmp_path / "replies.sqlite") as cache:
            cache.put(b"some key", extractor_on(server).name, KeptReply("{}", Usage()))
            with run_on(server, cache=cache) as run:
                assert ExtractionTotals.of(run.extract_all(passages(20))).failed == {"refused request": 20}

    def test_a_malformed_reply_is_a_sign_of_life(self) -> None:
        with scripted(["prose"]) as server, run_on(server) as run:
            assert ExtractionTotals.of(run.extract_all(passages(12))).failed == {"malformed reply": 12}

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), ModelUnavailable("no", status=401), RuntimeError("bug")])
    @pytest.mark.parametrize("concurrency", [1, 4])
    def test_after_an_error_nothing_more_is_asked(self, error: BaseException, concurrency: int) -> None:
        raised = threading.Event()

        def act(passage: Passage) -> None:
            if passage.id == "p5":
                raised.set()
                raise error
            if int(passage.id[1:]) > 5:
                raised.wait(5)

        extractor = FakeExtractor(act)
        with (
            ExtractionRun(extractor, concurrency=concurrency) as run,
            pytest.raises(type(error)),
        ):
            run.extract_all(passages(500))
        assert "p5" in extractor.asked
        assert len(extractor.asked) <= 6 + 2 * concurrency

    def test_calls_side_by_side_are_told_the_one_reason_why_the_run_stopped(self) -> None:
        together = threading.Barrier(2)
        stopped = threading.Event()

        def act(passage: Passage) -> None:
            together.wait(timeout=5)
            if passage.id == "p0":
                raise ModelUnavailable("no key", status=401)
            stopped.wait(5)
            raise TransportFault("x", cause="timeout")

        run = ExtractionRun(FakeExtractor(act))
        told: list[Exception] = []

        def extract(passage: Passage) -> None:
            try:
                run.extract_all([passage])
            except Exception as error:
                told.append(error)
            stopped.set()

        threads = [threading.Thread(target=extract, args=(passage,)) for passage in PASSAGES[:2]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=10)
        assert [str(error) for error in told] == ["no key", "no key"]

    def test_a_cancelled_run_wakes_those_who_wait_and_asks_nothing(self) -> None:
        run = ExtractionRun(FakeExtractor(raising(TransportFault("x", retry_after_s=100, cause="rate limit"))))
        thread = threading.Timer(0.02, run.cancel)
        thread.start()
        with pytest.raises(Cancelled):
            run.extract(PASSAGES[0])
        with pytest.raises(Cancelled):
            run.extract(PASSAGES[1])
        assert isinstance(run.extractor, FakeExtractor)
        assert run.extractor.asked == ["p0"]


class TestTogether:
    def test_results_come_in_the_order_of_the_passages_and_each_is_told_once(self) -> None:
        told: list[str] = []
        with ExtractionRun(FakeExtractor(), concurrency=4) as run:
            found = run.extract_all(passages(50), lambda one: told.append(one.passage_id))
            again = run.extract_all(passages(3))
        assert [one.passage_id for one in found] == [passage.id for passage in passages(50)]
        assert sorted(told) == sorted(one.passage_id for one in found)
        assert len(again) == 3
        assert ExtractionRun(FakeExtractor()).extract_all([]) == []

    def test_as_many_are_asked_at_once_as_wanted_and_no_more(self) -> None:
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

    def test_workers_run_in_the_callers_context(self) -> None:
        traced = contextvars.ContextVar("traced", default="nobody")
        seen = set()
        with ExtractionRun(FakeExtractor(lambda passage: seen.add(traced.get())), concurrency=3) as run:
            traced.set("caller")
            run.extract_all(passages(9))
        assert seen == {"caller"}

    def test_the_offline_extractor_goes_the_same_way_and_keeps_nothing(self, tmp_path: Path) -> None:
        with ReplyCache(tmp_path / "replies.sqlite") as cache:
            found = ExtractionRun(OfflineExtractor(), cache=cache).extract_all(PASSAGES)
            assert cache.counts == {}
        assert [one.extraction for one in found] == [OfflineExtractor().extract(passage) for passage in PASSAGES]
        assert ExtractionTotals.of(found) == ExtractionTotals(4, 4)


class UnreliableServer:
    """A script of proper replies, one in five of which goes wrong: by title and attempt, the same in every run.

    Attributes:
        faults: how many replies went wrong so far, those that never came left out.
    """

    FAULTS: tuple[ReplyLike, ...] = (
        *MALFORMED.values(),
        *(reply for replies in PASSING.values() for reply in replies),
        Reply(fault=Fault.HANG),
    )
    ALWAYS: Mapping[str, ReplyLike] = {
        "Lake 7": "prose",
        "Lake 13": Reply("too long", status=413),
        "Lake 21": Reply("oops", status=500),
        "Lake 34": Reply(fault=Fault.RESET),
    }

    def __init__(self) -> None:
        self.faults = 0
        self._attempts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, body: Mapping[str, Any]) -> ReplyLike:
        title = material_of(body)["title"]
        with self._lock:
            self._attempts[title] += 1
            attempt = self._attempts[title]
        number = int.from_bytes(hashlib.blake2b(f"{title}/{attempt}".encode(), digest_size=4).digest(), "big")
        if title in self.ALWAYS or number % 5 == 0:
            reply = self.ALWAYS.get(title) or self.FAULTS[number // 5 % len(self.FAULTS)]
            with self._lock:
                self.faults += not (isinstance(reply, Reply) and reply.fault is Fault.HANG)
            return reply
        wrap = list(PROPER.values())[number // 5 % len(PROPER)]
        return Reply(wrap(reply_about(title)), usage=TOKENS)


def test_with_faults_of_every_kind_each_passage_is_done_or_failed_for_a_reason(tmp_path: Path) -> None:
    corpus = passages(60)
    script = UnreliableServer()
    with scripted(script) as server, ReplyCache(tmp_path / "replies.sqlite") as cache:
        with run_on(server, cache=cache, concurrency=6, timeout_s=0.5) as run:
            found = run.extract_all(corpus)
        asked = titles_asked(server)
        total = ExtractionTotals.of(found)

        assert [one.passage_id for one in found] == [passage.id for passage in corpus]
        assert all((one.extraction is None) == bool(one.kind and one.failure) for one in found)
        for one, passage in zip(found, corpus, strict=True):
            assert one.extraction is None or one.extraction.entities == (passage.title, "Karv")
            assert one.attempts == one.usage.requests == asked.count(passage.title) == 1 + sum(one.retries.values())
        failed = [passage for passage, one in zip(corpus, found, strict=True) if one.extraction is None]
        assert {passage.title for passage in failed} >= set(UnreliableServer.ALWAYS)
        assert total.done + sum(total.failed.values()) == total.passages == 60
        assert total.usage.requests == len(asked) == 60 + sum(total.retries.values())
        wrong = Counter(total.retries) + Counter(total.failed)
        assert wrong.total() - wrong["timeout"] <= script.faults <= wrong.total()
        assert script.faults > 15
        assert total.retries.keys() >= {"malformed reply", "rate limit", "server error", "connection", "timeout"}
        assert cache.counts == {"kept": total.done}

        server.script(script)
        with run_on(server, cache=cache, concurrency=6, timeout_s=0.5) as run:
            second = ExtractionTotals.of(run.extract_all(corpus))
        assert set(titles_asked(server)) == {passage.title for passage in failed}
        assert second.cached == total.done

        server.script(proper_reply)
        with run_on(server, cache=cache, concurrency=6) as run:
            third = ExtractionTotals.of(run.extract_all(corpus))
        assert (third.done, third.failed, third.cached) == (60, {}, second.done)


def test_totals_of_batches_add_up() -> None:
    retries: dict[Any, int] = {"timeout": 2, "malformed reply": 1}
    batch = [
        Extracted("a", Extraction((), (), "x"), attempts=4, retries=retries, usage=Usage(4, 30, 3, 1, 2.0)),
        Extracted("b", Extraction((), (), "x"), cached=True),
        Extracted("c", None, "timeout", "no answer", attempts=3, retries={"timeout": 2}, usage=Usage(3)),
    ]
    total = ExtractionTotals.of(batch)
    assert total == ExtractionTotals(
        3, 2, 1, {"timeout": 1}, {"timeout": 4, "malformed reply": 1}, Usage(7, 30, 3, 1, 2.0)
    )
    assert total + ExtractionTotals.of([]) == total
    assert (total + total).failed == {"timeout": 2}


class _Refused:
    """An extractor whose endpoint refuses the key."""

    name = "refused"

    def extract(self, passage: Passage, feedback: Feedback | None = None) -> Extraction:
        raise ModelUnavailable("The chat endpoint refused the key")


@pytest.mark.parametrize("attempt", range(10))
def test_leaving_a_run_lets_nobody_wait_who_shares_it(attempt: int) -> None:
    """Calls beside the one that left still have passages that no worker took up."""
    run = ExtractionRun(_Refused(), concurrency=2)
    outcomes: list[BaseException] = []

    def ask(first: int) -> None:
        try:
            run.extract_all([Passage(f"p{n}", "", f"text {n}") for n in range(first, first + 9)])
        except BaseException as error:
            run.__exit__(None, None, None)
            outcomes.append(error)

    threads = [threading.Thread(target=ask, args=(first,), daemon=True) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(outcomes) == 3
    assert ModelUnavailable in {type(error) for error in outcomes}
