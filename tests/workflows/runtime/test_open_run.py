"""A run is opened once for all its nodes; a fork, a thread and a resumed interrupt open it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.workflows.small_world import QUESTION, on_a_thread, run
from workflows.context import Context
from workflows.runtime import resources

MakeContext = Callable[..., Context]


class Openings:
    """How often a run's identity, index and selection were looked up, and the generations asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._calls: Counter[str] = Counter()
        self.generations: list[int | None] = []
        for name in ("within_reach", "open_workspace_index", "selection_of"):
            self._count(monkeypatch, name)

    def _count(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        looked_up = vars(resources)[name]

        def counted(*args: Any) -> Any:
            self._calls[name] += 1
            if name == "open_workspace_index":
                self.generations.append(args[1] if len(args) > 1 else None)
            return looked_up(*args)

        monkeypatch.setattr(resources, name, counted)

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(self._calls.values())


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> Openings:
    return Openings(monkeypatch)


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
