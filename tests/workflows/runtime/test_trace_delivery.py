"""The traces of a command are sent before it ends, or one line says that they were not; its result is the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.trace_server import TraceServer
from tests.workflows.small_world import QUESTION
from tests.workflows.traced import RETRIEVAL, shape, without_timings
from workflows.answering import ask
from workflows.context import Context
from workflows.runtime.trace_delivery import traces_delivered

MakeContext = Callable[..., Context]
TracingTo = Callable[[str], None]


@pytest.fixture
def tracing_to(trace_variables: Callable[..., None]) -> TracingTo:
    return lambda address: trace_variables(LANGSMITH_ENDPOINT=address, LANGSMITH_API_KEY="none")


def test_a_server_that_cannot_be_reached_changes_no_result_and_costs_one_line(
    settings: MakeContext, tracing_to: TracingTo, closed_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = ask(QUESTION, settings())
    for address in (closed_address, "http://localhost:99999", "http://localhost:abc", "http://bad..host/"):
        tracing_to(address)
        with traces_delivered(wait_s=0.1):
            assert without_timings(ask(QUESTION, settings())) == without_timings(plain)
        said = capsys.readouterr()
        assert (len(said.err.splitlines()), said.out) == (1, "")
        if address == closed_address:
            assert said.err.startswith(f"Traces were not sent to {address}")
            assert "LANGSMITH_TRACING=false" in said.err


def test_a_command_ends_once_its_trace_is_sent(
    settings: MakeContext, tracing_to: TracingTo, traces: TraceServer, capsys: pytest.CaptureFixture[str]
) -> None:
    tracing_to(traces.url)
    with traces_delivered():
        ask(QUESTION, settings())
    assert shape(traces.tree()) == RETRIEVAL
    assert capsys.readouterr().err == ""


def test_a_server_that_never_replies_is_waited_for_as_long_as_is_said(
    settings: MakeContext, tracing_to: TracingTo, silent_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tracing_to(silent_address)
    with traces_delivered(wait_s=0.1):
        ask(QUESTION, settings())
    assert "within 0.1 s" in capsys.readouterr().err
