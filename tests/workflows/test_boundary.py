"""The boundary of a LangGraph server: what leaves it names no folder, and a run tells that its clients ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from graph import server_clients
from graph.errors import BadInput, MaraError, NoAccess, WorkspaceMissing
from workflows import chat, discovery, for_agents, indexing, mara, ragenta
from workflows.context import Context, asking

SERVED: Any = {"configurable": {"graph_id": "one", "thread_id": "t"}}
"""The config of a run as LangGraph's server makes it, whatever else its own configuration names."""

QUESTION = "Who founded Marn?"

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
        kept = [task.error for task in graph.get_state(SERVED).tasks if task.error]
        assert kept, door
        assert str(spaces.parent) not in f"{left.value!r} {left.value.hint} {kept} {streamed}", door


def test_outside_of_a_server_it_names_the_folder(spaces: Path) -> None:
    for door in DOORS:
        build, given = DOORS[door]
        given = {**given, "sources": [str(spaces / "none")]} if door == "indexing" else given
        with pytest.raises(MaraError, match=str(spaces)):
            build().compile().invoke(given)


def test_a_first_run_of_a_server_that_names_our_graphs_alone_takes_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for door, (build, given) in DOORS.items():
        monkeypatch.setattr(server_clients, "_SERVES", False)
        with pytest.raises(BadInput, match="is not the name of a workspace"):
            build().compile().invoke(given, SERVED, context={"workspace": "/etc"})
        assert server_clients.serves_clients(), door


def test_nor_does_it_let_anybody_in_who_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for door in DOORS:
        (tmp_path / "keys.toml").write_text(f"[keys.anna]\nsha256 = ['{'0' * 64}']\nwhere = {{ tenant = 'a' }}\n")
        monkeypatch.setenv("MARA_AUTH", str(tmp_path / "keys.toml"))
        build, given = DOORS[door]
        with pytest.raises(NoAccess, match="Nobody is known"):
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
