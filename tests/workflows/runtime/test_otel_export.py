"""Traces to an OpenTelemetry collector: spans over OTLP/HTTP, without texts unless they are asked for."""

from __future__ import annotations

import gzip
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from graph.errors import BadInput, DependencyMissing
from tests.workflows.small_world import QUESTION
from workflows.answering import ask
from workflows.context import Context
from workflows.runtime.trace_delivery import traces_delivered

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

MakeContext = Callable[..., Context]
TracingTo = Callable[..., None]


class Collector:
    """A collector that keeps what it is sent.

    Attributes:
        requests: path, headers and spans of each request.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                raw = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
                headers = {name.lower(): value for name, value in self.headers.items()}
                requests.append((self.path, headers, ExportTraceServiceRequest.FromString(raw)))
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
def tracing_to(trace_variables: Callable[..., None]) -> TracingTo:
    def trace_to(address: str, **more: str) -> None:
        named = {"LANGSMITH_TRACING_MODE": "otel", "OTEL_EXPORTER_OTLP_ENDPOINT": address}
        trace_variables(**named, OTEL_EXPORTER_OTLP_TIMEOUT="3", **more)

    return trace_to


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def test_a_question_is_a_tree_of_spans_without_texts(
    settings: MakeContext, tracing_to: TracingTo, collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    headers = {"LANGSMITH_API_KEY": "a-secret", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=of-the-collector"}
    tracing_to(collector.url, OTEL_SERVICE_NAME="mara-eu", **headers)
    with traces_delivered(wait_s=20):
        result = ask(QUESTION, settings())
    assert capsys.readouterr().err == ""
    by_id = {span.span_id: span for span in collector.spans}
    assert len(by_id) > 10
    parents = {span.name: by_id.get(span.parent_span_id, span).name for span in by_id.values()}
    assert (parents["mara"], parents["retrieve_passages"], parents["rank_passages"]) == (
        *("mara", "mara", "retrieve_passages"),
    )
    assert len({span.trace_id for span in by_id.values()}) == 1
    of_span = {span.name: attributes(span) for span in by_id.values()}
    assert of_span["embed_question"]["gen_ai.operation.name"] == "embeddings"
    assert of_span["personalized_pagerank"]["gen_ai.operation.name"] == "execute_tool"
    assert of_span["walk_graph"]["langsmith.metadata.mara_mode"] == "mara"
    assert [name for name, values in of_span.items() if values.get("gen_ai.prompt", "{}") != "{}"] == []
    texts = [QUESTION, *(hit["text"] for hit in result["passages"])]
    for path, sent_headers, sent in collector.requests:
        assert path == "/v1/traces"
        assert sent_headers["authorization"] == "of-the-collector"
        assert "a-secret" not in str(sent_headers), "the key of LangSmith does not go to the collector"
        assert attributes(sent.resource_spans[0].resource)["service.name"] == "mara-eu"
        assert [text for text in texts if text.encode() in sent.SerializeToString()] == []


def test_texts_are_sent_where_both_variables_say_false(
    settings: MakeContext, tracing_to: TracingTo, collector: Collector
) -> None:
    tracing_to(collector.url, LANGSMITH_HIDE_INPUTS="false", LANGSMITH_HIDE_OUTPUTS="false")
    with traces_delivered(wait_s=20):
        ask(QUESTION, settings())
    of_span = {span.name: attributes(span) for span in collector.spans}
    assert QUESTION in of_span["mara"]["gen_ai.prompt"]
    assert "gen_ai.completion" in of_span["rank_passages"]


def test_settings_that_would_send_traces_elsewhere_are_refused(
    tracing_to: TracingTo, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracing_to("")
    with pytest.raises(BadInput, match="no collector is named"), traces_delivered():
        pytest.fail("it began")
    tracing_to("http://localhost:4318")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(DependencyMissing, match="OpenTelemetry"), traces_delivered():
        pytest.fail("it began")
