"""A sync asks a person before it removes passages: it shows what would go, and waits without holding the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graph.errors import BadInput
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import KARV, ROWS, SUND, VELM, texts_in
from workflows.indexing import build, graph, index_sources
from workflows.settings.indexing import IndexingContext

pytestmark = pytest.mark.usefixtures("embedder")

APPROVE, REJECT = ({"decisions": [{"type": kind}]} for kind in ("approve", "reject"))


class Sync:
    """A sync of a folder into a workspace, on a thread of its own."""

    def __init__(self, folder: Path, root: Path, **settings: Any) -> None:
        self.given: Any = {"sources": [str(folder)], "sync": True}
        self.context = IndexingContext(workspace=str(root), **settings)
        self.graph = build().compile(checkpointer=InMemorySaver())
        self.thread: Any = {"configurable": {"thread_id": "one"}}

    def start(self) -> dict[str, Any]:
        return self.graph.invoke(self.given, self.thread, context=self.context)

    def decide(self, reply: Any) -> dict[str, Any]:
        return self.graph.invoke(Command(resume=reply), self.thread, context=self.context)


def request_in(result: dict[str, Any]) -> dict[str, Any]:
    (waiting,) = result["__interrupt__"]
    value: dict[str, Any] = waiting.value
    return value


@pytest.fixture
def folder(tmp_path: Path, root: Path) -> Path:
    """A folder whose rows are all indexed, and of which only two are left."""
    place = tmp_path / "documents"
    place.mkdir()
    write_lines(place / "corpus.jsonl", list(ROWS))
    index_sources([place], root)
    write_lines(place / "corpus.jsonl", [VELM, KARV])
    return place


def test_rejected_nothing_is_changed(folder: Path, root: Path) -> None:
    before = texts_in(root)
    write_lines(folder / "corpus.jsonl", [VELM, {**KARV, "text": "Karv is gone."}])
    sync = Sync(folder, root)
    sync.start()
    report = sync.decide(REJECT)["report"]
    assert report == {"rejected": "The removal of 3 passages of corpus.jsonl was rejected: nothing was changed"}
    assert texts_in(root) == before


def test_a_reply_that_decides_nothing_is_asked_for_again(folder: Path, root: Path) -> None:
    sync = Sync(folder, root)
    sync.start()
    replies: list[Any] = ["yes", {"decisions": "?"}, {"decisions": []}, {"decisions": [{"type": "edit"}]}]
    for reply in (*replies, {"approve": True}):
        assert request_in(sync.decide(reply))["action_requests"], reply
    assert sync.decide(APPROVE)["report"]["removed"] == 3


def test_while_it_waits_others_may_write_and_what_has_changed_is_asked_again(folder: Path, root: Path) -> None:
    sync = Sync(folder, root)
    sync.start()
    write_lines(folder / "corpus.jsonl", [VELM, SUND])
    index_sources([folder], root)
    again = request_in(sync.decide(APPROVE))
    assert again["action_requests"][0]["args"]["passages"] == 3
    assert len(texts_in(root)) == 5
    assert sync.decide(APPROVE)["report"]["passages"] == 2
    assert texts_in(root).keys() == {"velm", "sund"}


def test_an_approval_is_for_what_was_shown_alone(folder: Path, root: Path) -> None:
    sync = Sync(folder, root)
    sync.start()
    stopped = sync.graph.stream(Command(resume=APPROVE), sync.thread, context=sync.context, interrupt_before=["commit"])
    assert [step for update in stopped for step in update][-1] == "__interrupt__"
    write_lines(folder / "corpus.jsonl", [VELM])
    with pytest.raises(BadInput, match=r"The 4 passages to remove are not those that were approved"):
        sync.graph.invoke(None, sync.thread, context=sync.context)
    assert len(texts_in(root)) == 5


def test_without_a_thread_it_says_what_to_do(folder: Path, root: Path) -> None:
    context = IndexingContext(workspace=str(root))
    given: Any = {"sources": [str(folder)], "sync": True}
    with pytest.raises(
        BadInput, match=r"would remove 3 passages.*Run it on a thread, or set confirm_removals to false"
    ):
        graph.invoke(given, context=context)
    done = graph.invoke(given, context=context.model_copy(update={"confirm_removals": False}))
    assert done["report"]["removed"] == 3
