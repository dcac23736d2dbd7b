"""Indexing with a chat model that extracts: faults, failed passages, what is asked again, and what it costs."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.chat.throttle import Throttle
from agents.extraction import Retries
from graph.errors import ModelUnavailable
from graph.storage.workspace import Workspace
from tests.extracting import InstantClock, material_of, proper_reply, titles_asked
from tests.scripted_server import Fault, Reply, ScriptedServer
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import Indexer, ask, facts_in, texts_in
from workflows import indexing
from workflows.indexing_run.preview import preview_changes
from workflows.runtime import extraction
from workflows.settings.indexing import IndexingContext

pytestmark = pytest.mark.usefixtures("embedder", "instant")

N = 16
LAKES = [{"id": f"p{n}", "title": f"Lake {n}", "text": f"Lake {n} lies in Karv."} for n in range(N)]


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts pass at once."""
    clock = InstantClock()
    monkeypatch.setattr(extraction, "Throttle", lambda **limits: Throttle(clock=clock, **limits))


def replies_once_faulty(faults: list[Reply | str]) -> Any:
    """A script whose first replies about some lakes are faulty, one fault each."""
    left = dict(zip((row["title"] for row in LAKES), faults, strict=False))
    lock = threading.Lock()

    def reply(body: Mapping[str, Any]) -> Reply | str:
        with lock:
            return left.pop(material_of(body)["title"], None) or proper_reply(body)

    return reply


def refusing(*titles: str) -> Any:
    """A script that never says anything usable about some lakes."""

    def reply(body: Mapping[str, Any]) -> str:
        return "I would rather not." if material_of(body)["title"] in titles else proper_reply(body)

    return reply


def test_the_configured_model_extracts_and_what_it_took_is_told(index: Indexer, chat_server: ScriptedServer) -> None:
    offline = index(LAKES[:1], settings=IndexingContext(model="offline"))
    assert offline.models["extractor"].startswith("offline")
    assert (offline.requests, offline.cost) == (0, None)
    assert chat_server.requests == []
    chat_server.script({"extractor": proper_reply})
    report = index(
        LAKES,
        settings=IndexingContext(
            model="scripted",
            extraction={"price_in": 1.0, "price_out": 2.0},
        ),
    )
    assert (report.extracted, report.requests, report.cached, report.failed_count) == (N, N, 0, 0)
    assert report.models["extractor"].startswith("scripted#")
    assert report.tokens_in == N
    assert report.tokens_out > N
    assert report.cost == pytest.approx((N + 2 * report.tokens_out) / 1e6)
    assert report.facts == N


def test_faults_of_every_kind_are_got_over_and_counted(index: Indexer, chat_server: ScriptedServer) -> None:
    proper = json.dumps({"entities": ["Karv"], "triples": []})
    faults: list[Reply | str] = [
        "{",
        proper[:-3],
        Reply("slow down", status=429, headers={"Retry-After": "1"}),
        Reply("broken", status=500),
        Reply(proper, fault=Fault.TRUNCATED),
        Reply(fault=Fault.RESET),
    ]
    chat_server.script({"extractor": replies_once_faulty(faults)})
    report = index(LAKES, settings=IndexingContext(model="scripted", extraction={"concurrency": 8}))
    assert (report.added, report.facts, report.failed_count) == (N, N, 0)
    assert report.requests == N + len(faults)


def test_a_passage_that_keeps_failing_is_found_by_its_text_and_alone_is_tried_again(
    index: Indexer, root: Path, chat_server: ScriptedServer
) -> None:
    settings = IndexingContext(model="scripted", extraction={"max_json_retries": 1})
    chat_server.script({"extractor": refusing("Lake 3", "Lake 7")})
    report = index(LAKES, settings=settings)
    assert (report.added, report.failed_count, report.extracted) == (N, 2, N)
    assert report.failed.keys() == {"p3", "p7"}
    assert "malformed reply" in report.failed["p3"]
    assert report.requests == N + 2
    assert len(texts_in(root)) == N
    with Workspace(root).open_record() as record:
        assert record.failures() == dict(report.failed)
    result = ask(root, "Where does Lake 7 lie?", mode="sparse", model="offline")
    assert result["passages"][0]["id"] == "p7"

    chat_server.script({"extractor": proper_reply})
    again = index(LAKES, settings=settings)
    assert sorted(titles_asked(chat_server)) == ["Lake 3", "Lake 7"]
    assert (again.added, again.replaced, again.unchanged, again.failed_count) == (0, 2, N - 2, 0)
    assert ("Lake 7", "lies in", "Karv") in facts_in(root)
    chat_server.script({"extractor": proper_reply})
    assert index(LAKES, settings=settings).unchanged == N
    assert chat_server.requests == []


def test_replies_are_kept_so_that_a_workspace_that_lost_its_record_asks_nothing(
    index: Indexer, root: Path, chat_server: ScriptedServer
) -> None:
    chat_server.script({"extractor": proper_reply})
    index(LAKES, settings=IndexingContext(model="scripted"))
    for name in root.glob("record.sqlite*"):
        name.unlink()
    chat_server.script({"extractor": proper_reply})
    report = index(LAKES, settings=IndexingContext(model="scripted"))
    assert (report.cached, report.requests, report.facts) == (N, 0, N)


def test_a_run_that_the_endpoint_breaks_off_keeps_its_batches_and_goes_on(
    index: Indexer, root: Path, chat_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "COMMIT_PASSAGES", 8)
    monkeypatch.setattr(extraction, "Retries", lambda malformed: Retries(malformed, 0, 0, give_up_after=1))
    asked = threading.Semaphore(12)

    def runs_dry(body: Mapping[str, Any]) -> Reply | str:
        return proper_reply(body) if asked.acquire(blocking=False) else Reply("gone", status=403)

    chat_server.script({"extractor": runs_dry})
    with pytest.raises(ModelUnavailable):
        index(LAKES, settings=IndexingContext(model="scripted"))
    chat_server.script({"extractor": proper_reply})
    report = index(LAKES, settings=IndexingContext(model="scripted"))
    assert (report.unchanged, report.added, report.cached, report.requests) == (8, N - 8, 4, N - 12)


def test_a_dry_run_tells_from_a_sample_whose_replies_the_run_itself_uses(
    index: Indexer, root: Path, tmp_path: Path, chat_server: ScriptedServer
) -> None:
    chat_server.script({"extractor": proper_reply})
    corpus = tmp_path / "corpus.jsonl"
    write_lines(corpus, list(LAKES))
    settings = IndexingContext(
        model="scripted",
        extraction={"price_in": 1.0, "price_out": 1.0},
    )
    untold = preview_changes([corpus], root, settings=settings, sample=0)["extraction"]
    assert (untold["completion_tokens"], untold["cost"]) == (None, None)
    assert untold["seconds"] is None
    assert not root.exists()
    preview = preview_changes([corpus], root, settings=settings, sample=3)
    took = preview["extraction"]
    assert len(titles_asked(chat_server)) == 3
    assert took["sample"]["done"] == 3
    assert took["requests"] >= N - 3
    assert took["cost"] > 0
    assert {path.name.partition("-")[0] for path in root.iterdir()} == {"replies.sqlite"}
    report = index(LAKES, settings=settings)
    assert (report.requests, report.cached, len(titles_asked(chat_server))) == (N - 3, 3, N)
