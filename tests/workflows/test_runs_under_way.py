"""A run ends on the generation it began with, however often its workspace is written and asked meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agents.fact_filter import FactChoice
from agents.roles import Feedback
from graph.schema import ScoredFact
from tests.builders import HashEmbedder
from tests.cases import mostly_slow
from tests.workflows.workspaces import Indexer
from workflows import mara, ragenta, retrieval
from workflows.answering import ask
from workflows.context import Context
from workflows.runtime.resources import close_indexes
from workflows.settings.ragenta import RagentaContext
from workflows.streaming import Answered, ask_stream

QUESTION = "When was Marn founded?"
YEARS = (1203, 1304, 1405, 1506)


def rows_of(year: int) -> list[dict[str, str]]:
    return [
        {"id": "marn", "title": "Marn", "text": f"Marn is a town in Ostra. Marn was founded in {year}."},
        {"id": "kesh", "title": "Kesh", "text": "Kesh is a town in Belavia. Its people smoke eel."},
    ]


class WhileFactsAreFiltered:
    """A fact filter that keeps everything; something happens first."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self._happens = happens

    def choose(
        self, question: str, candidates: Sequence[ScoredFact], max_facts: int, feedback: Feedback | None = None
    ) -> FactChoice:
        self._happens()
        return FactChoice(tuple(candidates))


Run = Callable[[Context], Mapping[str, Any]]
ASKED: Any = {"question": QUESTION}


def streamed(context: Context) -> Mapping[str, Any]:
    *_, last = ask_stream(QUESTION, context)
    assert isinstance(last, Answered)
    return last.result


def with_own_checkpointer(context: Context) -> Mapping[str, Any]:
    graph = mara.build().compile(checkpointer=InMemorySaver())
    return graph.invoke(ASKED, {"configurable": {"thread_id": "1"}}, context=context)


WAYS: Mapping[str, tuple[Run, type[Context]]] = {
    "ask": (lambda context: ask(QUESTION, context), Context),
    "ask_stream": (streamed, Context),
    "ainvoke": (lambda context: asyncio.run(mara.graph.ainvoke(ASKED, context=context)), Context),
    "retrieval": (lambda context: retrieval.graph.invoke(ASKED, context=context), Context),
    "batch": (lambda context: mara.graph.batch([ASKED], context=context)[0], Context),
    "ragenta": (lambda context: ragenta.graph.invoke(ASKED, context=context), RagentaContext),
    "a compiled builder": (with_own_checkpointer, Context),
}


@pytest.mark.parametrize("way", mostly_slow({name: name for name in WAYS}, 1))
def test_a_run_ends_on_the_generation_it_began_with(
    index: Indexer, root: Path, embedder: HashEmbedder, way: str
) -> None:
    index(rows_of(YEARS[0]))
    run, form = WAYS[way]
    context = form(workspace=str(root), mode="mara")

    def rewrite() -> None:
        for year in YEARS[1:]:
            index(rows_of(year))
            assert str(year) in ask(QUESTION, Context(workspace=str(root)))["passages"][0]["text"]

    result = run(context.with_agents(fact_filter=WhileFactsAreFiltered(rewrite)))
    assert result["generation"] == 1
    assert {hit["text"] for hit in result["passages"]} == {row["text"] for row in rows_of(YEARS[0])}
    assert result["errors"] == []

    ask(QUESTION, Context(workspace=str(root)))
    index(rows_of(1607))
    left = {int(folder.name) for folder in (root / "index").iterdir()}
    close_indexes()
    assert left == {3, 4, 5}, "what the run read goes once it has ended"
