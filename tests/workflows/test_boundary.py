"""The boundary of a server and of a run: nothing that leaves names a folder, and each run reads its variables anew."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from graph import server_clients
from graph.environment import environment
from graph.errors import BadInput, MaraError, NoAccess, WorkspaceMissing
from tests.workflows.command_line import Mara
from tests.workflows.small_world import QUESTION
from workflows import chat, discovery, for_agents, indexing, mara, ragenta, streaming
from workflows.answering import ask
from workflows.context import Context, asking
from workflows.indexing import reembed_workspace
from workflows.serving.page import endpoints

SERVED: Any = {"configurable": {"graph_id": "one", "thread_id": "t"}}
"""The config of a run as LangGraph's server makes it, whatever else its own configuration names."""


DOORS: dict[str, tuple[Callable[[], Any], Any]] = {
    "mara": (mara.build, asking(QUESTION)),
    "ragenta": (ragenta.build, asking(QUESTION)),
    "chat": (chat.build, {"messages": [HumanMessage(QUESTION)]}),
    "indexing": (indexing.build, {"sources": ["missing"]}),
}


@pytest.fixture(autouse=True)
def spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a server's workspaces, of which there is none, and of its clients' documents."""
    monkeypatch.setenv("MARA_WORKSPACE", str(tmp_path / "spaces" / "default"))
    monkeypatch.setenv("MARA_SOURCES", str(tmp_path / "documents"))
    (tmp_path / "documents").mkdir()
    return tmp_path / "spaces"


def test_an_error_names_no_folder_where_it_is_raised_streamed_and_kept(spaces: Path) -> None:
    for door in DOORS:
        build, given = DOORS[door]
        graph = build().compile(checkpointer=InMemorySaver())
        streamed: list[str] = []
        chunks = graph.stream(given, SERVED, stream_mode=["tasks", "debug", "custom"], subgraphs=True)
        with pytest.raises(MaraError) as left:
            streamed.extend(map(str, chunks))
        errors = [task.error for task in graph.get_state(SERVED).tasks if task.error]
        assert errors, door
        assert str(spaces.parent) not in f"{left.value!r} {left.value.hint} {errors} {streamed}", door


def test_a_first_run_of_a_server_that_names_our_graphs_alone_takes_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for door, (build, given) in DOORS.items():
        monkeypatch.setattr(server_clients, "_SERVES", False)
        with pytest.raises(BadInput, match="is not the name of a workspace"):
            build().compile().invoke(given, SERVED, context={"workspace": "/etc"})
        assert server_clients.serves_clients(), door


def test_nor_does_it_let_a_caller_in_that_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for door in DOORS:
        (tmp_path / "keys.toml").write_text(f"[keys.anna]\nsha256 = ['{'0' * 64}']\nwhere = {{ tenant = 'a' }}\n")
        monkeypatch.setenv("MARA_AUTH", str(tmp_path / "keys.toml"))
        build, given = DOORS[door]
        with pytest.raises(NoAccess, match="The user is not known"):
            build().compile().invoke(given, SERVED)


def test_code_of_an_application_beside_our_graphs_is_in_a_server_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSERVE_GRAPHS", "{}")
    for context in (Context(workspace="/etc"), Context(workspace="../up")):
        with pytest.raises(BadInput, match="is not the name of a workspace"):
            mara.graph.invoke(asking(QUESTION), context=context)
        with pytest.raises(BadInput, match="is not the name of a workspace"):
            discovery.what_to_read(context, QUESTION)


def test_keys_that_cannot_be_read_are_told_without_their_place(spaces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARA_AUTH", str(spaces / "keys.toml"))
    for door in ("mara", "indexing"):
        build, given = DOORS[door]
        with pytest.raises(BadInput, match=r"MARA_AUTH names keys\.toml") as left:
            build().compile().invoke(given, SERVED)
        assert str(spaces) not in str(left.value)


def test_tools_of_agents_name_no_folder(spaces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSERVE_GRAPHS", "{}")
    for tool, asked in (
        (for_agents.walk_tool(), {"question": QUESTION}),
        (for_agents.discovery_tool(), {"topic": "Marn"}),
    ):
        with pytest.raises(WorkspaceMissing) as left:
            tool.invoke(asked)
        assert str(spaces) not in str(left.value)


WAYS: dict[str, Callable[[], Any]] = {
    "ask": lambda: ask(QUESTION, Context()),
    "stream": lambda: list(streaming.ask_stream(QUESTION, Context())),
    "graph": lambda: mara.graph.invoke(asking(QUESTION), context=Context()),
    "coroutine": lambda: asyncio.run(mara.graph.ainvoke(asking(QUESTION), context=Context())),
    "retriever": lambda: for_agents.MaraRetriever().invoke(QUESTION),
    "walk tool": lambda: for_agents.walk_tool().invoke({"question": QUESTION}),
    "documents": lambda: discovery.search_documents(Context(), QUESTION),
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


def test_so_has_embedding_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small_workspace: Path, settings: Callable[..., Context]
) -> None:
    ask(QUESTION, settings())
    monkeypatch.setitem(os.environ, "MARA_RECORD_URL", "postgresql://nowhere.invalid/mara")
    with pytest.raises(BadInput, match="MARA_RECORD_URL"):
        reembed_workspace(small_workspace)
