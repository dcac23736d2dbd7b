"""A run is opened once for all its nodes; a fork, a thread and a resumed interrupt open it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph.errors import BadInput
from tests.scripted_server import ScriptedServer
from tests.workflows.ragenta_world import TWO_THINGS, quick_ragenta, well_behaved
from tests.workflows.small_world import QUESTION, QUICK_RETRIES, on_a_thread, run
from workflows import mara
from workflows.context import Context
from workflows.runtime import resources
from workflows.runtime.resources import OpenRun
from workflows.settings.ragenta import RagentaContext

MakeContext = Callable[..., Context]


class Openings:
    """What was looked up for runs: identities, indexes with the generation asked for, and selections."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.identities = 0
        self.generations: list[int | None] = []
        self.selections = 0
        names = ("within_reach", "open_workspace_index", "selection_of")
        within, opened, selected = (vars(resources)[name] for name in names)

        def within_reach(*args: Any) -> Any:
            self.identities += 1
            return within(*args)

        def open_workspace_index(context: Context, generation: int | None = None) -> Any:
            self.generations.append(generation)
            return opened(context, generation)

        def selection_of(*args: Any) -> Any:
            self.selections += 1
            return selected(*args)

        for counted in (within_reach, open_workspace_index, selection_of):
            monkeypatch.setattr(resources, counted.__name__, counted)

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.identities, len(self.generations), self.selections


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> Openings:
    return Openings(monkeypatch)


def test_a_question_is_opened_once(settings: MakeContext, openings: Openings) -> None:
    for number, mode in enumerate(("mara", "hipporag2", "dense"), start=1):
        asked = run(settings(mode=mode, check_claims=True, where={"source": "corpus.jsonl"}))
        assert asked.result["answer"]
        assert openings.counts == (number,) * 3
    assert openings.generations == [None] * 3


def test_each_follow_up_question_is_a_run_of_its_own_within_one_budget(
    chat_server: ScriptedServer,
    ragenta_settings: Callable[..., RagentaContext],
    openings: Openings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    budgets: list[Any] = []
    at = OpenRun.at

    def noted(self: OpenRun, *args: Any) -> OpenRun:
        budgets.append(self.budget)
        return at(self, *args)

    monkeypatch.setattr(OpenRun, "at", noted)
    chat_server.script(well_behaved())
    result = quick_ragenta.invoke({"question": TWO_THINGS}, context=ragenta_settings())
    searched = [each for each in result["follow_ups"] if each["outcome"] != "not asked"]
    assert searched
    assert openings.counts == (1 + len(searched),) * 3
    assert len(set(map(id, budgets))) == 1


def test_a_fork_opens_the_generation_that_its_state_began_with(settings: MakeContext, openings: Openings) -> None:
    graph, thread = on_a_thread()
    for asked in (1, 2):
        generation = graph.invoke({"question": QUESTION}, thread, context=settings())["generation"]
        assert openings.counts == (asked,) * 3
    assert openings.generations == [None, None], "the next question of a thread opens the newest"
    before = {node: state for state in graph.get_state_history(thread) for node in state.next}
    for node in ("seed_graph", "write_answer"):
        counted = openings.counts
        result = graph.invoke(None, before[node].config, context=settings(top_k=3))
        assert len(result["passages"]) == (3 if node == "seed_graph" else 10)
        assert openings.counts == tuple(each + 1 for each in counted)
        assert openings.generations[-1] == generation


def test_a_resumed_interrupt_opens_it_again_and_goes_on_with_what_was_spent(
    settings: MakeContext, openings: Openings
) -> None:
    graph = mara.build(QUICK_RETRIES).compile(checkpointer=InMemorySaver(), interrupt_before=["write_answer"])
    thread: Any = {"configurable": {"thread_id": "one"}}
    paused = graph.invoke({"question": QUESTION}, thread, context=settings())
    assert "answer" not in paused or not paused["answer"]
    spent = graph.get_state(thread).values["spent"]["seconds"]
    assert openings.counts == (1, 1, 1)
    result = graph.invoke(None, thread, context=settings())
    assert result["answer"]
    assert openings.counts == (2, 2, 2)
    assert openings.generations == [None, result["generation"]]
    assert graph.get_state(thread).values["spent"]["seconds"] >= spent > 0


def test_a_workspace_that_cannot_be_opened_fails_the_run_before_any_node(settings: MakeContext) -> None:
    with pytest.raises(BadInput, match="There is no workspace"):
        run(settings(workspace="nowhere-at-all"))
