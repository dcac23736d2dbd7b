"""A run ends on the generation it began with, however often its workspace is written and asked meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from agents.fact_filter import FactChoice
from agents.roles import Feedback
from graph.schema import ScoredFact
from tests.builders import HashEmbedder
from tests.workflows.workspaces import Indexer
from workflows.answering import ask
from workflows.context import Context
from workflows.runtime.resources import close_indexes

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


def test_a_run_ends_on_the_generation_it_began_with(index: Indexer, root: Path, embedder: HashEmbedder) -> None:
    index(rows_of(YEARS[0]))

    def rewrite() -> None:
        for year in YEARS[1:]:
            index(rows_of(year))
            assert str(year) in ask(QUESTION, Context(workspace=str(root)))["passages"][0]["text"]

    context = Context(workspace=str(root), mode="mara")
    result = ask(QUESTION, context.with_agents(fact_filter=WhileFactsAreFiltered(rewrite)))
    assert result["generation"] == 1
    assert {hit["text"] for hit in result["passages"]} == {row["text"] for row in rows_of(YEARS[0])}
    assert result["errors"] == []

    ask(QUESTION, Context(workspace=str(root)))
    index(rows_of(1607))
    left = {int(folder.name) for folder in (root / "index").iterdir()}
    close_indexes()
    assert left == {3, 4, 5}, "what the run read goes once it has ended"
