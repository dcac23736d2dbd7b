"""A run, whatever begins it, has the variables of the environment as they are then."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph.environment import environment
from graph.errors import BadInput, MaraError, WorkspaceMissing
from tests.workflows.command_line import Mara
from tests.workflows.small_world import QUESTION
from workflows import discovery, document_search, for_agents, mara, streaming
from workflows.answering import ask
from workflows.context import Context, asking
from workflows.explaining import explain
from workflows.indexing import index_sources, reembed_workspace
from workflows.serving.page import endpoints

WAYS: dict[str, Callable[[], Any]] = {
    "ask": lambda: ask(QUESTION, Context()),
    "stream": lambda: list(streaming.ask_stream(QUESTION, Context())),
    "graph": lambda: mara.graph.invoke(asking(QUESTION), context=Context()),
    "coroutine": lambda: asyncio.run(mara.graph.ainvoke(asking(QUESTION), context=Context())),
    "retriever": lambda: for_agents.MaraRetriever().invoke(QUESTION),
    "walk tool": lambda: for_agents.walk_tool().invoke({"question": QUESTION}),
    "documents": lambda: document_search.search_documents(Context(), QUESTION),
    "discovery": lambda: discovery.what_to_read(Context(), QUESTION),
    "provenance": lambda: discovery.passage_provenance(Context(), "p"),
    "reading": lambda: endpoints.read_beside(Context(user_id="u"), "p"),
}


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small_workspace: Path) -> Path:
    """Another workspace, which is none: the user names it after a first question."""
    monkeypatch.setenv("MARA_WORKSPACE", str(small_workspace))
    assert environment().mara_workspace == str(small_workspace)
    monkeypatch.setitem(os.environ, "MARA_WORKSPACE", str(tmp_path / "elsewhere"))
    return tmp_path / "elsewhere"


def test_what_was_set_after_the_last_question_counts_in_the_next(elsewhere: Path) -> None:
    for way in WAYS:
        with pytest.raises(WorkspaceMissing, match="elsewhere"):
            WAYS[way]()


def test_a_command_has_the_variables_as_they_are(elsewhere: Path, mara: Mara) -> None:
    assert "elsewhere" in mara("show").err.replace("\n", "")


def test_so_has_an_explanation(settings: Callable[..., Context], elsewhere: Path) -> None:
    result = ask(QUESTION, settings())
    with pytest.raises(MaraError, match="elsewhere"):
        explain(result, Context())


def test_so_has_indexing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert environment().mara_prices == ""
    monkeypatch.setitem(os.environ, "MARA_PRICES", "dear")
    (tmp_path / "a.txt").write_text("Marn lies on Lake Sund.")
    with pytest.raises(BadInput, match="MARA_PRICES"):
        index_sources([tmp_path / "a.txt"], tmp_path / "workspace")


def test_so_has_embedding_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small_workspace: Path, settings: Callable[..., Context]
) -> None:
    ask(QUESTION, settings())
    monkeypatch.setitem(os.environ, "MARA_RECORD_URL", "postgresql://nowhere.invalid/mara")
    with pytest.raises(BadInput, match="MARA_RECORD_URL"):
        reembed_workspace(small_workspace)
