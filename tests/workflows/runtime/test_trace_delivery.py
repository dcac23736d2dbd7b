"""A command's traces: sent before it ends, or told of in one line; its result is the same whatever becomes of them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import langsmith
import pytest
from langsmith.utils import get_env_var

from tests.trace_server import TraceServer
from tests.workflows.small_world import QUESTION
from tests.workflows.traced import RETRIEVAL, shape, without_timings
from workflows.answering import ask
from workflows.context import Context
from workflows.runtime.trace_delivery import traces_delivered

MakeContext = Callable[..., Context]


@pytest.fixture
def tracing_to(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Let the environment ask for tracing to an address; langsmith reads it once and remembers."""

    def ask_for(address: str) -> None:
        monkeypatch.setenv("LANGSMITH_TRACING", "true")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", address)
        monkeypatch.setenv("LANGSMITH_API_KEY", "none")
        forget_environment()

    yield ask_for
    monkeypatch.undo()
    forget_environment()


def forget_environment() -> None:
    """Let langsmith read the environment again."""
    cast(Any, get_env_var).cache_clear()


@pytest.fixture
def nobody_there() -> str:
    """An address that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"http://127.0.0.1:{closed.getsockname()[1]}"


def test_a_server_that_cannot_be_reached_changes_no_result_and_is_told_of_in_one_line(
    settings: MakeContext,
    tracing_to: Callable[[str], None],
    nobody_there: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain = ask(QUESTION, settings())
    tracing_to(nobody_there)
    with traces_delivered(wait_s=0.1):
        assert without_timings(ask(QUESTION, settings())) == without_timings(plain)
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert line.startswith(f"Traces were not sent to {nobody_there}")
    assert "LANGSMITH_TRACING=false" in line
    assert said.out == ""


def test_a_command_ends_once_its_trace_is_sent(
    settings: MakeContext,
    tracing_to: Callable[[str], None],
    traces: TraceServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tracing_to(traces.url)
    with traces_delivered():
        ask(QUESTION, settings())
    assert shape(traces.tree()) == RETRIEVAL
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("address", ["http://localhost:99999", "http://localhost:abc", "http://bad..host/"])
def test_an_address_that_is_none_is_told_in_one_line(
    settings: MakeContext, tracing_to: Callable[[str], None], capsys: pytest.CaptureFixture[str], address: str
) -> None:
    tracing_to(address)
    with traces_delivered(wait_s=0.1):
        assert ask(QUESTION, settings())["answer"]
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_server_that_never_answers_is_waited_for_no_longer_than_is_said(
    tracing_to: Callable[[str], None], settings: MakeContext, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:
        tracing_to(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with traces_delivered(wait_s=0.1):
            ask(QUESTION, settings())
    assert "within 0.1 s" in capsys.readouterr().err


def test_where_a_proxy_stands_between_it_is_asked(
    tracing_to: Callable[[str], None],
    settings: MakeContext,
    traces: TraceServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("http_proxy", traces.url)
    monkeypatch.setenv("no_proxy", "")
    tracing_to("http://langsmith.invalid")
    with traces_delivered():
        ask("Who built the Tarn Dam?", settings())
    own = [root for root in traces.trees() if root.inputs.get("question") == "Who built the Tarn Dam?"]
    assert [shape(root) for root in own] == [RETRIEVAL]
    assert capsys.readouterr().err == ""


def test_without_tracing_no_client_is_made(settings: MakeContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langsmith, "Client", lambda **how: pytest.fail("makes a client"))
    with traces_delivered():
        ask(QUESTION, settings())


@pytest.mark.slow
def test_a_real_command_hands_its_trace_over_before_it_ends(
    small_workspace: Path, traces: TraceServer, nobody_there: str
) -> None:
    done = command(small_workspace, traces.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert shape(traces.tree()) == RETRIEVAL
    refused = command(small_workspace, nobody_there)
    assert refused.returncode == 0
    assert without_timings(json.loads(refused.stdout)) == without_timings(json.loads(done.stdout))
    assert len(refused.stderr.splitlines()) == 1


def command(workspace: Path, address: str) -> subprocess.CompletedProcess[str]:
    """Ask from a command line that traces to an address."""
    environment = {
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_ENDPOINT": address,
        "LANGSMITH_API_KEY": "none",
        "PATH": "",
    }
    asked = [str(Path(sys.executable).with_name("mara")), "ask", "--workspace", str(workspace), "--json", QUESTION]
    return subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
