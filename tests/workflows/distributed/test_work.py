"""The work of one worker, and what is sent to it; no Ray is needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graph.environment import NAMES, refresh_environment
from graph.errors import BadInput, ClusterUnavailable, EmbeddingMismatch, MaraError, ModelUnavailable
from graph.own_types import NO_TYPES
from tests.builders import passage_of
from tests.scripted_server import Reply, scripted
from workflows.distributed.coordinator import (
    Work,
    Worker,
    environment_of_workers,
    error_from_json,
    error_to_json,
)
from workflows.distributed.shards import plan_shards
from workflows.runtime.extraction import extractor_for
from workflows.settings.enums import IndexingEngine
from workflows.settings.indexing import IndexingContext

CONTEXT = IndexingContext(chunk_tokens=40, chunk_overlap=8, metadata={"tenant": "a"}, engine=IndexingEngine.RAY)


def work(extractor: str = "offline-5", model: str = "all-MiniLM-L6-v2") -> Work:
    return Work(CONTEXT, NO_TYPES, extractor, model, 0, {})


def test_an_error_is_sent_with_all_that_it_says_and_one_of_a_library_in_a_line() -> None:
    errors: list[MaraError] = [BadInput("No", "Do"), ModelUnavailable("Key", "Set it", status=401)]
    for error in errors:
        sent = error_from_json(error_to_json(error))
        assert (type(sent), sent.message, sent.hint) == (type(error), error.message, error.hint)
    foreign = error_from_json(error_to_json(TypeError("x" * 1000)))
    assert isinstance(foreign, ClusterUnavailable)
    assert "TypeError" in foreign.message
    assert len(foreign.message) < 400


def test_a_worker_with_another_extractor_or_model_than_the_run_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    (task,) = plan_shards([passage_of("p", "Lake Orla", "It lies in Karv.")], {}, "rules", "hash")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # a worker sets it for its process: here it is set back
    with pytest.raises(BadInput, match="A worker has the extractor"):
        Worker(work(extractor="offline-1")).extract(task)
    assert Worker(work()).extract(task)[0]["id"] == "p"
    with pytest.raises(EmbeddingMismatch):
        Worker(work(model="another")).make(task)


def test_a_worker_whose_model_refuses_says_why_also_of_the_next_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (task,) = plan_shards([passage_of("p", "Lake Orla", "It lies in Karv.")], {}, "rules", "hash")
    with scripted([Reply("no", status=401)]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        refresh_environment()
        context = CONTEXT.model_copy(update={"model": "scripted"})
        worker = Worker(replace(work(extractor_for(context, NO_TYPES).name), context=context, extractors=1))
        for _ in range(2):
            with pytest.raises(ModelUnavailable, match="refused the key"):
                worker.extract(task)


def test_workers_get_the_variables_of_models_and_none_of_a_store_or_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("HOME_OF_MINE", "h")
    passed_on = environment_of_workers()
    assert {
        "OPENAI_API_KEY",
        "MARA_CHAT_MODEL",
        "MARA_EXTRACTION_URLS",
        "MARA_PRICES",
        "MARA_TIMEOUT_S",
    } <= passed_on.keys()
    assert passed_on.keys().isdisjoint({"MARA_RECORD_URL", "MARA_VECTORS", "MARA_WORKSPACE", "HOME_OF_MINE"})
