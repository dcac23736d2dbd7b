"""The indexing workflow as a state machine: its steps, its small state, and how it goes on from any checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agents.chat.throttle import Cancelled
from graph.errors import ModelUnavailable, TransportFault, WorkspaceLocked
from graph.relations import PassageClasses
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.small_world import QUICK_RETRIES, write_lines
from tests.workflows.workspaces import ROWS, VELM, content_of, served_embeddings, texts_in
from workflows import indexing
from workflows.admin.inspection import workspace_stats
from workflows.indexing import build, graph, index_sources
from workflows.indexing_run.run import IndexingRun
from workflows.settings.indexing import IndexingContext

pytestmark = pytest.mark.usefixtures("embedder")

Config = dict[str, Any]
MANY = 130
"""Two batches and a part of a third."""
CHECKPOINT_LIMIT = 200_000


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    write_lines(path, list(ROWS))
    return path


@pytest.fixture
def settings(root: Path) -> IndexingContext:
    return IndexingContext(workspace=str(root))


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "COMMIT_PASSAGES", 2)


def on_a_thread() -> tuple[Any, Config]:
    """The workflow on a checkpointer of its own, and the config of a thread of it."""
    return build().compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "one"}}


def asked_for(path: Path, **more: Any) -> Any:
    return {"sources": [str(path)], **more}


def steps_of(corpus: Path, settings: IndexingContext) -> list[str]:
    """Index, and return the nodes that ran."""
    updates = graph.stream(asked_for(corpus), context=settings, stream_mode="updates")
    return [name for update in updates for name in update]


@pytest.mark.usefixtures("small_batches")
def test_batches_go_round_extract_embed_and_commit_until_all_is_published_and_nothing_is_done_twice(
    corpus: Path, settings: IndexingContext, root: Path
) -> None:
    batch = ["extract", "embed", "commit"]
    assert steps_of(corpus, settings) == [
        *("load_documents", "plan_changes"),
        *(*batch, *batch, *batch),
        *("publish", "relate"),
    ]
    with Workspace(root).open_record() as record:
        before = record.commit_id
    assert steps_of(corpus, settings) == ["load_documents", "plan_changes", "commit", "publish", "relate"]
    with Workspace(root).open_record() as record:
        assert record.commit_id == before


def test_nothing_in_the_state_is_large(tmp_path: Path, settings: IndexingContext) -> None:
    sentences = [f"was dammed in {year} by Ida Brandt of Karv." for year in range(1500, 1508)]
    rows = [{"id": f"p{n}", "text": " ".join(f"Lake {n} {each}" for each in sentences)} for n in range(MANY)]
    path = tmp_path / "many.jsonl"
    write_lines(path, rows)
    compiled, config = on_a_thread()
    assert compiled.invoke(asked_for(path), config, context=settings)["report"]["added"] == MANY
    sizes = [len(json.dumps(past.values)) for past in compiled.get_state_history(config)]
    assert len(sizes) > 3 * MANY // 64
    assert max(sizes) < CHECKPOINT_LIMIT
    assert sizes[0] < 5_000, "at the end, no extraction is left in it"


def test_events_tell_stage_counts_and_rate(corpus: Path, settings: IndexingContext) -> None:
    events = list(graph.stream(asked_for(corpus), context=settings, stream_mode="custom"))
    nodes = {event["stage"]: event["node"] for event in events}
    assert nodes == {**{name: name for name in ("extract", "embed", "commit", "relate")}, "graph": "publish"}
    for event in events:
        assert event.keys() == {"node", "stage", "done", "total", "failed", "tokens", "rate"}
        assert 0 <= event["done"] <= event["total"]
    assert [event["done"] for event in events if event["stage"] == "extract"] == [0, 1, 2, 3, 4, 5]
    assert events[-1]["rate"] > 0


@pytest.mark.usefixtures("small_batches")
def test_a_run_that_stops_before_a_step_goes_on_in_a_process_that_knows_nothing_of_it(
    corpus: Path, settings: IndexingContext, root: Path, tmp_path: Path
) -> None:
    compiled, config = on_a_thread()
    compiled.invoke(asked_for(corpus), config, context=settings, interrupt_before=["commit"])
    assert is_free(root)
    report = compiled.invoke(None, config, context=settings)["report"]
    assert (report["added"], report["passages"], report["unchanged"]) == (5, 5, 0)
    index_sources([corpus], tmp_path / "at once")
    assert content_of(root) == content_of(tmp_path / "at once")


@pytest.mark.usefixtures("small_batches")
def test_a_document_that_changed_while_the_run_was_stopped_is_extracted_again(
    corpus: Path, settings: IndexingContext, root: Path, tmp_path: Path
) -> None:
    compiled, config = on_a_thread()
    compiled.invoke(asked_for(corpus), config, context=settings, interrupt_before=["embed"])
    assert is_free(root)
    write_lines(corpus, [{**VELM, "text": "The Velm is dry. It was diverted in 1920 by Ida Brandt."}, *ROWS[2:]])
    report = compiled.invoke(None, config, context=settings)["report"]
    assert report["passages"] == 4
    index_sources([corpus], tmp_path / "at once")
    assert content_of(root) == content_of(tmp_path / "at once")


class TestEmbeddingEndpoint:
    @pytest.fixture
    def endpoint(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
        monkeypatch.setattr("openai._base_client.BaseClient._calculate_retry_timeout", lambda *_: 0.0)
        with ScriptedServer() as server, served_embeddings(monkeypatch, server):
            yield server

    def test_one_that_refuses_or_stays_away_fails_the_run_with_its_own_error_and_frees_the_workspace(
        self, endpoint: ScriptedServer, corpus: Path, settings: IndexingContext, root: Path
    ) -> None:
        refused, gone = Reply("no", status=401), Reply("gone", status=408)
        for reply, kind, asked in ((refused, ModelUnavailable, 1), (gone, TransportFault, 9)):
            endpoint.script({"embeddings": [reply]})
            with pytest.raises(kind, match="embedding endpoint"):
                build(QUICK_RETRIES).compile().invoke(asked_for(corpus), context=settings)
            assert len(endpoint.requests) == asked
            with Workspace(root).open_record() as record:
                assert list(record.sources()) == []
            assert is_free(root)


class TestRun:
    def test_one_that_ended_or_failed_frees_the_workspace(
        self, corpus: Path, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        index_sources([corpus], root)
        assert is_free(root)
        write_lines(corpus, [{**VELM, "text": "The Velm is dry."}])
        monkeypatch.setattr(HashEmbedder, "count_windows", fail)
        with pytest.raises(ZeroDivisionError):
            index_sources([corpus], root)
        assert is_free(root)

    @pytest.mark.usefixtures("small_batches")
    def test_one_that_is_cancelled_ends_before_its_next_step_and_keeps_what_was_committed(
        self, corpus: Path, settings: IndexingContext, root: Path
    ) -> None:
        run = IndexingRun()

        def cancel_in_second_batch() -> None:
            for event in graph.stream(asked_for(corpus), context=settings.with_run(run), stream_mode="custom"):
                if (event["stage"], event["done"]) == ("embed", 4):
                    run.cancel()

        with pytest.raises(Cancelled, match="stopped"):
            cancel_in_second_batch()
        assert is_free(root)
        assert index_sources([corpus], root).unchanged in (2, 4)

    def test_one_whose_stream_is_left_frees_the_workspace(
        self, corpus: Path, settings: IndexingContext, root: Path
    ) -> None:
        steps: Any = graph.stream(asked_for(corpus), context=settings, stream_mode="updates")
        assert [*next(steps)] == ["load_documents"]
        assert [*next(steps)] == ["plan_changes"]
        assert not is_free(root)
        steps.close()
        assert is_free(root)

    def test_one_that_waits_on_its_thread_leaves_the_workspace_to_others_and_then_goes_on(
        self, corpus: Path, settings: IndexingContext, root: Path
    ) -> None:
        compiled, config = on_a_thread()
        compiled.invoke(asked_for(corpus), config, context=settings, interrupt_before=["commit"])
        assert index_sources([corpus], root).added == 5
        report = compiled.invoke(None, config, context=settings)["report"]
        assert (report["added"], report["passages"]) == (0, 5)
        assert len(texts_in(root)) == 5


def is_free(root: Path) -> bool:
    try:
        with Workspace(root).writing():
            return True
    except WorkspaceLocked:
        return False


def fail(*_: object) -> None:
    raise ZeroDivisionError


def test_the_published_cuts_of_the_classes_stay_with_the_workspace(
    corpus: Path, root: Path, settings: IndexingContext
) -> None:
    thirds = index_sources([corpus], root)
    cut = IndexingContext(passage_classes=PassageClasses.PUBLISHED)
    published = index_sources([corpus], root, settings=cut)
    assert (published.unchanged, published.generation > thirds.generation) == (len(ROWS), True)
    assert index_sources([corpus], root).generation == published.generation
    assert workspace_stats(root)["class_cuts"] == "published"
