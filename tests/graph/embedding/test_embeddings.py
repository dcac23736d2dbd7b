from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph.embedding.bert import MiniLMEmbedder
from graph.embedding.e5 import E5Embedder
from graph.embedding.embeddings import QUESTION_TO_FACT, OpenAIEmbedder, TextCache, configured_embedder
from graph.errors import EmbeddingMismatch, ModelUnavailable, TransportFault
from graph.storage.record import Record
from graph.storage.writer import Writer
from tests.builders import HashEmbedder, extraction_of, passage_of
from tests.scripted_server import Fault, Reply, Script, ScriptedServer, hashed_vector, scripted

ENDLESS_DATE = "Fri, 31 Dec 100000000000000 23:59:59 GMT"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted({}) as server:
        yield server


@pytest.fixture
def prompt_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client tries three times; without its waits between."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)


def embedder_of(server: ScriptedServer, model: str = "some-model") -> OpenAIEmbedder:
    return OpenAIEmbedder(model, server.base_url, "a-key")


def inputs(server: ScriptedServer) -> list[str]:
    return [text for request in server.requests_of("embeddings") for text in request.body["input"]]


def reply_with(*vectors: list[Any]) -> Script:
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    return [Reply(body=json.dumps({"object": "list", "data": data, "model": "m", "usage": {}}))]


class TestEndpoint:
    def test_vectors_are_the_endpoints_at_unit_length(self, server: ScriptedServer) -> None:
        vectors = embedder_of(server).embed(["Nissan", "日産", ""])
        assert vectors.shape == (3, server.dimension)
        assert vectors.dtype == np.float32
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)
        assert vectors[1] == pytest.approx(hashed_vector("日産", server.dimension), abs=1e-6)
        (request,) = server.requests_of("embeddings")
        assert inputs(server) == ["Nissan", "日産", " "]
        assert len(embedder_of(server).embed([])) == 0
        assert len(server.requests_of("embeddings")) == 1
        assert request.headers["authorization"] == "Bearer a-key"
        assert request.body["model"] == "some-model"

    def test_texts_go_as_texts_and_nothing_is_asked_of_anybody_else(
        self, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A tokenizer would have to be downloaded, and would send lists of numbers."""
        looked_up: list[str] = []
        resolve = socket.getaddrinfo

        def watched(host: Any, *args: Any, **options: Any) -> Any:
            looked_up.append(str(host))
            return resolve(host, *args, **options)

        monkeypatch.setattr(socket, "getaddrinfo", watched)
        embedder_of(server).embed(["word " * 9000])
        assert inputs(server) == ["word " * 9000]
        assert set(looked_up) <= {"127.0.0.1"}

    def test_many_texts_go_in_batches_and_come_back_in_order(self, server: ScriptedServer) -> None:
        texts = [f"text number {i}" for i in range(600)]
        vectors = embedder_of(server).embed(texts)
        assert [len(request.body["input"]) for request in server.requests_of("embeddings")] == [256, 256, 88]
        for row in (0, 255, 256, 599):
            assert vectors[row] == pytest.approx(hashed_vector(texts[row], server.dimension), abs=1e-6)

    def test_questions_and_passages_are_marked_as_the_model_was_trained(self, server: ScriptedServer) -> None:
        for model, passage, question in [
            ("text-embedding-3-small", "Nissan", "When?"),
            ("intfloat/e5-large-v2", "passage: Nissan", "query: When?"),
            ("intfloat/multilingual-e5-large-instruct", "Nissan", f"Instruct: {QUESTION_TO_FACT}\nQuery: When?"),
            ("Qwen/Qwen3-Embedding-0.6B", "Nissan", f"Instruct: {QUESTION_TO_FACT}\nQuery: When?"),
        ]:
            embedder = embedder_of(server, model)
            embedder.embed(["Nissan"])
            vector = embedder.embed_question("When?", QUESTION_TO_FACT)
            assert inputs(server)[-2:] == [passage, question], model
            assert vector.shape == (server.dimension,), model

    def test_marks_that_are_given_take_the_place_of_the_familys(
        self, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MARA_EMBEDDING_MODEL", "served-e5")
        monkeypatch.setenv("MARA_EMBEDDING_BASE_URL", server.base_url)
        monkeypatch.setenv("MARA_EMBEDDING_PREFIXES", "{instruction} {of}: |")
        embedder = configured_embedder()
        embedder.embed(["Nissan"])
        embedder.embed_question("When?", QUESTION_TO_FACT)
        assert inputs(server) == ["Nissan", f"{QUESTION_TO_FACT} {{of}}: When?"]
        monkeypatch.setenv("MARA_EMBEDDING_PREFIXES", "{instruction} {of}: |text: ")
        configured_embedder().embed(["Nissan"])
        assert inputs(server)[-1] == "text: Nissan"


@pytest.mark.usefixtures("prompt_retries")
class TestEndpointFaults:
    def test_each_is_an_error_that_says_what_to_do(self, server: ScriptedServer) -> None:
        for reply, error, message in [
            (Reply("bad key", status=401), ModelUnavailable, "refused the key.*OPENAI_API_KEY"),
            (Reply("oops", status=500, headers={"retry-after-ms": "1"}), TransportFault, "answered 500.*later"),
            (Reply("busy", status=429, headers={"Retry-After": ENDLESS_DATE}), TransportFault, "answered 429"),
            (Reply(fault=Fault.RESET), TransportFault, "cannot be reached"),
            (Reply(body="<html>"), TransportFault, "/v1"),
        ]:
            server.script({"embeddings": [reply]})
            with pytest.raises(error, match=f"(?s){message}") as caught:
                embedder_of(server).embed(["Nissan"])
            assert type(caught.value) is error, reply

    def test_a_server_that_is_slower_than_the_limit(
        self, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MARA_TIMEOUT_S", "0.05")
        server.script({"embeddings": [Reply(fault=Fault.HANG)]})
        with pytest.raises(TransportFault, match=r"within 0.05 s.*MARA_TIMEOUT_S"):
            embedder_of(server).embed(["x"])

    @pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
    def test_a_reply_without_one_vector_of_numbers_a_text_is_refused(self, server: ScriptedServer) -> None:
        for script in [
            reply_with([1.0, 0.0]),
            reply_with([1.0, 0.0], [1.0, 0.0], [1.0, 0.0]),
            reply_with([1.0, 0.0], [1.0]),
            reply_with([1.0, 0.0], [float("nan"), 0.0]),
            reply_with([1.0, 0.0], [1e30, 1e30]),
            reply_with([], []),
            [Reply(body='{"data": [{"embedding": ["one"]}, {"embedding": null}]}')],
            [Reply(body="null")],
            [Reply(body='{"data": ' + "[" * 100_000)],
        ]:
            server.script({"embeddings": script})
            with pytest.raises(TransportFault):
                embedder_of(server).embed(["x", "y"])


class TestConfigured:
    def test_the_embedded_model_is_the_default_and_a_chat_key_changes_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert isinstance(configured_embedder(), MiniLMEmbedder)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        assert isinstance(configured_embedder(), MiniLMEmbedder)

    def test_the_multilingual_embedded_model_is_chosen_by_its_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MARA_EMBEDDING_MODEL", "multilingual-e5-small-q4")
        assert isinstance(configured_embedder(), E5Embedder)
        monkeypatch.setenv("MARA_EMBEDDING_MODEL", "intfloat/multilingual-e5-small")
        assert isinstance(configured_embedder(), OpenAIEmbedder)
        assert configured_embedder() is configured_embedder()

    def test_a_named_model_is_asked_at_its_own_endpoint_else_at_the_chat_models(
        self, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MARA_EMBEDDING_MODEL", "named")
        monkeypatch.setenv("OPENAI_API_KEY", "the-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert configured_embedder().embed(["x"]).shape == (1, server.dimension)
        with ScriptedServer(dimension=5) as own:
            monkeypatch.setenv("MARA_EMBEDDING_BASE_URL", own.base_url)
            assert configured_embedder().embed(["x"]).shape == (1, 5)
            assert own.requests[0].headers["authorization"] == "Bearer the-key"
        assert len(server.requests_of("embeddings")) == 1
        assert configured_embedder().model_id == "openai:named"


class TestMismatch:
    def test_an_endpoint_that_changed_under_its_name_is_noticed_before_anything_is_written(
        self, server: ScriptedServer, tmp_path: Path
    ) -> None:
        with Record(tmp_path / "record.sqlite", create=True) as record:
            Writer(record, embedder_of(server)).write([(passage_of("a", "A", "x"), extraction_of())])
            with ScriptedServer(dimension=5) as other:
                writer = Writer(record, embedder_of(other))
                with pytest.raises(EmbeddingMismatch, match=r"length 16.*gives 5"):
                    writer.write([(passage_of("b", "B", "y"), extraction_of())])
            assert record.count_passages() == 1


class TestTextCache:
    def test_a_text_is_embedded_once_while_it_is_kept(self, hash_embedder: HashEmbedder) -> None:
        cache = TextCache(hash_embedder.embed)
        first = cache.embed(["a river", "a lake", "a river"])
        again = cache.embed(["a lake", "a town"])
        assert hash_embedder.asked == ["a river", "a lake", "a town"]
        assert first.tolist() == hash_embedder.embed(["a river", "a lake", "a river"]).tolist()
        assert again[0].tolist() == first[1].tolist()
