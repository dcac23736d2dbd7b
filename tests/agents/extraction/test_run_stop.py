"""Extraction stops for an endpoint that fails for good, after an error and when cancelled."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from agents.chat.reply_cache import KeptReply, ReplyCache
from agents.chat.throttle import Cancelled, Throttle
from agents.chat.usage import Usage
from agents.extraction import ExtractionRun, ExtractionTotals, Retries
from graph.errors import ModelUnavailable, TransportFault
from graph.schema import Passage
from tests.extracting import PASSAGES, FakeExtractor, InstantClock, extractor_on, passages, raising, run_on
from tests.scripted_server import Reply, scripted


def test_an_endpoint_that_refuses_or_loses_the_first_ten_passages_stops_the_run() -> None:
    with scripted([Reply("no such model here", status=400)]) as server, run_on(server) as run:
        with pytest.raises(ModelUnavailable, match=r"10 passages in a row failed: .*no such model here"):
            run.extract_all(passages(60))
        assert len(server.requests) == 10
    fault = TransportFault("The chat endpoint cannot be reached", cause="connection")
    extractor = FakeExtractor(raising(*[fault] * 1_000))
    lost = ExtractionRun(extractor, throttle=Throttle(clock=InstantClock()))
    with pytest.raises(ModelUnavailable, match="10 passages in a row failed") as caught:
        lost.extract_all(passages(60))
    assert not isinstance(caught.value, TransportFault)
    assert len(extractor.asked) == 50


def test_once_it_worked_refused_passages_never_stop_it_and_an_outage_does() -> None:
    refused = ModelUnavailable("too long", status=413)
    lost = TransportFault("gone", cause="connection")
    cases: list[tuple[list[Exception | None], int | None]] = [
        ([refused] * 30, None),
        ([lost, None, lost], None),
        ([lost, refused, lost], None),
        ([lost] * 10, 3),
    ]
    for errors, n_asked in cases:
        extractor = FakeExtractor(raising(None, *errors))
        run = ExtractionRun(extractor, retries=Retries(transport=0, give_up_after=2))
        if n_asked is None:
            assert run.extract_all(passages(40))[-1].extraction is not None
        else:
            with pytest.raises(ModelUnavailable, match="2 passages in a row"):
                run.extract_all(passages(40))
            assert len(extractor.asked) == n_asked


def test_what_another_run_left_over_may_all_be_refused_and_a_malformed_reply_is_a_sign_of_life(tmp_path: Path) -> None:
    with scripted([Reply("too long", status=413)]) as server, ReplyCache(tmp_path / "replies.sqlite") as cache:
        cache.put(b"some key", extractor_on(server).name, KeptReply("{}", Usage()))
        with run_on(server, cache=cache) as run:
            assert ExtractionTotals.of(run.extract_all(passages(20))).failed == {"refused request": 20}
    with scripted(["prose"]) as server, run_on(server) as run:
        assert ExtractionTotals.of(run.extract_all(passages(12))).failed == {"malformed reply": 12}


def asked_after(error: BaseException, concurrency: int) -> list[str]:
    """Extract 500 passages of which the sixth raises an error; return those that were asked for."""
    raised = threading.Event()

    def act(passage: Passage) -> None:
        if passage.id == "p5":
            raised.set()
            raise error
        if int(passage.id[1:]) > 5:
            raised.wait(5)

    extractor = FakeExtractor(act)
    with ExtractionRun(extractor, concurrency=concurrency) as run, pytest.raises(type(error)):
        run.extract_all(passages(500))
    return extractor.asked


def test_after_an_error_nothing_more_is_asked() -> None:
    for error in (KeyboardInterrupt(), ModelUnavailable("no", status=401), RuntimeError("bug")):
        for concurrency in (1, 4):
            asked = asked_after(error, concurrency)
            assert "p5" in asked
            assert len(asked) <= 6 + 2 * concurrency


def test_a_cancelled_run_wakes_the_passages_that_wait_and_asks_nothing() -> None:
    def act(passage: Passage) -> None:
        threading.Timer(0.02, run.cancel).start()
        raise TransportFault("x", retry_after_s=100, cause="rate limit")

    extractor = FakeExtractor(act)
    run = ExtractionRun(extractor)
    for passage in PASSAGES[:2]:
        with pytest.raises(Cancelled):
            run.extract(passage)
    assert extractor.asked == ["p0"]
