"""Traces to an OpenTelemetry collector: spans over OTLP/HTTP, without texts unless they are asked for."""

from __future__ import annotations

import gzip
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import pytest
from langsmith.utils import get_env_var

from graph.errors import BadInput, DependencyMissing
from tests.workflows.small_world import QUESTION
from tests.workflows.traced import without_timings
from workflows.answering import ask
from workflows.context import Context
from workflows.runtime.trace_delivery import traces_delivered

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

MakeContext = Callable[..., Context]
VARIABLES = (
    "LANGSMITH_API_KEY",
    "LANGSMITH_HIDE_INPUTS",
    "LANGSMITH_HIDE_OUTPUTS",
    "LANGSMITH_OTEL_ENABLED",
    "LANGSMITH_OTEL_ONLY",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_SERVICE_NAME",
)


class Collector:
    """A collector that keeps what it is sent.

    Attributes:
        requests: path, headers and spans of each request.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                sent = ExportTraceServiceRequest.FromString(body)
                collector.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, sent))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for _, _, sent in self.requests
            for resource in sent.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


@pytest.fixture
def tracing_to(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Let the environment ask for traces to a collector; langsmith reads it once and remembers."""

    def ask_for(address: str, **more: str) -> None:
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        given = {"LANGSMITH_TRACING": "true", "LANGSMITH_TRACING_MODE": "otel", "OTEL_EXPORTER_OTLP_ENDPOINT": address}
        for name, value in {**given, **more}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3")
        cast(Any, get_env_var).cache_clear()

    yield ask_for
    monkeypatch.undo()
    cast(Any, get_env_var).cache_clear()
    logging.getLogger("opentelemetry").setLevel(logging.NOTSET)


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def test_a_question_is_a_tree_of_spans(
    settings: MakeContext, tracing_to: Callable[..., None], collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    tracing_to(collector.url, OTEL_SERVICE_NAME="mara-eu")
    with traces_delivered(wait_s=20):
        ask(QUESTION, settings())
    by_id = {span.span_id: span for span in collector.spans}
    parents = {
        span.name: by_id[span.parent_span_id].name if span.parent_span_id in by_id else "" for span in by_id.values()
    }
    assert parents["retrieve_passages"] == "mara"
    assert parents["rank_passages"] == "retrieve_passages"
    assert parents["personalized_pagerank"] == "walk_graph"
    assert [name for name, parent in parents.items() if not parent] == ["mara"]
    assert len({span.trace_id for span in by_id.values()}) == 1
    told = {span.name: attributes(span) for span in by_id.values()}
    assert told["embed_question"]["gen_ai.operation.name"] == "embeddings"
    assert told["personalized_pagerank"]["gen_ai.operation.name"] == "execute_tool"
    assert told["walk_graph"]["langsmith.metadata.mara_mode"] == "mara"
    assert capsys.readouterr().err == ""
    (path, *_), *_ = collector.requests
    assert path == "/v1/traces"
    resource = collector.requests[0][2].resource_spans[0].resource
    assert attributes(resource)["service.name"] == "mara-eu"


def test_no_text_is_sent_unless_it_is_asked_for(
    settings: MakeContext, tracing_to: Callable[..., None], collector: Collector
) -> None:
    tracing_to(collector.url)
    with traces_delivered(wait_s=20):
        result = ask(QUESTION, settings())
    texts = [QUESTION, *(hit["text"] for hit in result["passages"])]
    sent = b"".join(sent.SerializeToString() for _, _, sent in collector.requests)
    assert len(collector.spans) > 10
    assert [text for text in texts if text.encode() in sent] == []
    assert not [span.name for span in collector.spans if attributes(span).get("gen_ai.prompt", "{}") != "{}"]


def test_texts_are_sent_where_both_variables_say_false(
    settings: MakeContext, tracing_to: Callable[..., None], collector: Collector
) -> None:
    tracing_to(collector.url, LANGSMITH_HIDE_INPUTS="false", LANGSMITH_HIDE_OUTPUTS="false")
    with traces_delivered(wait_s=20):
        ask(QUESTION, settings())
    told = {span.name: attributes(span) for span in collector.spans}
    assert QUESTION in told["mara"]["gen_ai.prompt"]
    assert "gen_ai.completion" in told["rank_passages"]


def test_langsmith_s_key_does_not_go_to_the_collector(
    settings: MakeContext, tracing_to: Callable[..., None], collector: Collector
) -> None:
    tracing_to(collector.url, LANGSMITH_API_KEY="a-secret", OTEL_EXPORTER_OTLP_HEADERS="authorization=of-the-collector")
    with traces_delivered(wait_s=20):
        ask(QUESTION, settings())
    headers = [headers for _, headers, _ in collector.requests]
    assert headers
    assert all(each["authorization"] == "of-the-collector" for each in headers)
    assert not any("a-secret" in str(each) for each in headers)


def test_a_collector_that_is_not_there_changes_no_result_and_is_told_of_in_one_line(
    settings: MakeContext, tracing_to: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    plain = ask(QUESTION, settings())
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    tracing_to(address)
    with traces_delivered(wait_s=0.1):
        assert without_timings(ask(QUESTION, settings())) == without_timings(plain)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"Traces were not sent to {address}")
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in line


def test_a_collector_that_never_answers_is_waited_for_no_longer_than_said(
    settings: MakeContext, tracing_to: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        tracing_to(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with traces_delivered(wait_s=0.1):
            assert ask(QUESTION, settings())["passages"]
        assert "Traces were not sent" in capsys.readouterr().err


def test_without_an_address_nothing_is_sent_anywhere(tracing_to: Callable[..., None]) -> None:
    tracing_to("")
    with pytest.raises(BadInput, match="no collector is named"), traces_delivered():
        pytest.fail("it began")


def test_a_mode_that_there_is_none_of_is_refused(tracing_to: Callable[..., None]) -> None:
    tracing_to("http://localhost:4318", LANGSMITH_TRACING_MODE="carrier-pigeon")
    with pytest.raises(BadInput, match="carrier-pigeon"), traces_delivered():
        pytest.fail("it began")


def test_without_its_packages_it_is_refused_rather_than_sent_to_langsmith(
    tracing_to: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tracing_to("http://localhost:4318")
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(DependencyMissing, match="OpenTelemetry"), traces_delivered():
        pytest.fail("it began")
