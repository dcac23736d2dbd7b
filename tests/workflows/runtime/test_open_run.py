"""A run is opened once for all its nodes; a fork and the next question of a thread open it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.workflows.small_world import QUESTION, on_a_thread, run
from workflows.context import Context
from workflows.runtime import resources

MakeContext = Callable[..., Context]


class Openings(Counter[str]):
    """How often a run's identity, index and selection were looked up, and the generations asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.generations: list[int | None] = []

    def counting(self, look_up: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            self[look_up.__name__] += 1
            if look_up.__name__ == "open_workspace_index":
                self.generations.append(args[1] if len(args) > 1 else None)
            return look_up(*args)

        return counted

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(self.values())


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> Openings:
    openings = Openings()
    for name in ("within_reach", "open_workspace_index", "selection_of"):
        monkeypatch.setattr(resources, name, openings.counting(vars(resources)[name]))
    return openings


def test_a_question_is_opened_once(settings: MakeContext, openings: Openings) -> None:
    for number, mode in enumerate(("mara", "hipporag2", "dense"), start=1):
        asked = run(settings(mode=mode, check_claims=True, where={"source": "corpus.jsonl"}))
        assert asked.result["answer"]
        assert openings.counts == (number,) * 3
    assert openings.generations == [None] * 3


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
