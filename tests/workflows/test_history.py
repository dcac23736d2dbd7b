"""Asking in a conversation of the history: what is read, what is written, and that no answer is lost over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agents.rewriter import Rewriting
from graph.errors import BadInput, NoAccess
from graph.relationships.history import record_turn
from graph.relationships.record import RELATIONSHIPS_FILE
from graph.relationships.schema import HistoryPart
from tests.builders import HashEmbedder
from tests.workflows.conversing import (
    BIRTH,
    FOUNDER,
    FOUNDER_OF_MARN,
    ScriptedRewriter,
    scripted_rewriter,
)
from tests.workflows.ragenta_world import ONE_THING
from tests.workflows.remembering import copy_of, counts, messages, related_world, views
from tests.workflows.small_world import QUICK_RETRIES
from workflows import mara
from workflows.access.identity import LOCAL, Identity
from workflows.answering import ask
from workflows.context import Context, make_context
from workflows.conversation.session import Conversation, turns_of_history
from workflows.runtime import history
from workflows.runtime.resources import OpenRun, close_indexes

FOUNDED = "When was Marn founded?"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return related_world(tmp_path_factory.mktemp("history"))


@pytest.fixture
def root(world: Path, tmp_path: Path, embedder: HashEmbedder) -> Iterator[Path]:
    yield copy_of(world, tmp_path)
    close_indexes()


def context_of(root: Path, **settings: Any) -> Context:
    """Return settings for a question of Ada's about Marn."""
    return make_context(**{"workspace": str(root), "conversation_id": "marn", "user_id": "ada", **settings})


def kinds(result: Mapping[str, Any]) -> list[str]:
    return [error["kind"] for error in result["errors"]]


class TestOffByDefault:
    def test_without_ids_no_file_and_no_row_is_written(self, world: Path, root: Path) -> None:
        (root / RELATIONSHIPS_FILE).unlink()
        for settings in ({}, {"check_claims": True}, {"mode": "dense"}):
            result = ask(FOUNDED, make_context(workspace=str(root), **settings))
            assert result["recorded"] is None
        assert not (root / RELATIONSHIPS_FILE).exists()
        with_file = copy_of(world, root / "copy")
        before = (with_file / RELATIONSHIPS_FILE).read_bytes()
        ask(FOUNDED, make_context(workspace=str(with_file)))
        assert (with_file / RELATIONSHIPS_FILE).read_bytes() == before

    def test_with_ids_only_what_is_to_be_remembered_is_written(self, root: Path) -> None:
        ask(FOUNDED, context_of(root))
        before = counts(root)
        result = ask(FOUNDER, context_of(root, remember=[]).with_agents(rewriter=scripted_rewriter()))
        assert result["question"] == FOUNDER_OF_MARN
        assert (result["recorded"], counts(root)) == (None, before)
        ask(FOUNDED, context_of(root, remember=[HistoryPart.VIEWS]))
        after = counts(root)
        assert (after["Message"], after["Conversation"]) == (before["Message"], before["Conversation"])
        assert {view.view_count for view in views(root, "ada")} == {2}


class TestATurn:
    def test_question_and_answer_are_written_and_the_documents_that_it_cites_were_viewed(self, root: Path) -> None:
        turns: list[tuple[str, dict[str, Any]]] = [
            (FOUNDED, {}),
            (FOUNDED, {"check_claims": True}),
            (FOUNDED, {"mode": "dense"}),
            (FOUNDED, {"where": {"none": "such"}}),
            (ONE_THING, {"workflow": "ragenta"}),
        ]
        seen: Counter[str] = Counter()
        for asked, settings in turns:
            result = ask(asked, context_of(root, **settings))
            question, answer = messages(root, "marn")[-2:]
            assert (question.content, question.user, answer.content) == (asked, "ada", result["answer"])
            assert answer.kind == result["answer_kind"]
            cited = {mark["passage_id"] for mark in result["citations"]}
            assert {each.passage for each in answer.cited} == cited
            recorded = result["recorded"]
            assert recorded
            assert (recorded["conversation"], recorded["user"]) == ("marn", "ada")
            assert (recorded["question"], recorded["answer"]) == (question.id, answer.id)
            assert set(recorded["viewed"]) == cited
            seen.update(cited)
            assert {view.document: view.view_count for view in views(root, "ada")} == seen
        assert len(messages(root, "marn")) == 2 * len(turns)

    def test_no_answer_is_lost_where_it_cannot_be_written(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        plain = ask(FOUNDED, context_of(root, remember=[]))

        def broken(*args: object, **how: object) -> None:
            raise RuntimeError(f"{FOUNDED} of ada cannot be written")

        def check_the_answer_alone_is_there() -> None:
            result = ask(FOUNDED, context_of(root))
            assert (result["answer"], result["recorded"]) == (plain["answer"], None)
            assert history.HISTORY_UNWRITTEN in kinds(result)
            errors = " ".join(error["message"] for error in result["errors"])
            assert not [private for private in (FOUNDED, "ada", str(root.parent)) if private in errors]

        (root / RELATIONSHIPS_FILE).write_bytes(b"no database at all")
        check_the_answer_alone_is_there()
        monkeypatch.setattr(history, "record_turn", broken)
        (root / RELATIONSHIPS_FILE).unlink()
        check_the_answer_alone_is_there()


class TestAnotherRun:
    def graph(self) -> Any:
        return mara.build(QUICK_RETRIES).compile(checkpointer=InMemorySaver())

    def test_a_turn_whose_node_runs_again_is_written_once(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The process ends between the commit and the checkpoint: the thread is resumed."""
        graph, thread = self.graph(), {"configurable": {"thread_id": "one"}}
        record, fails = record_turn, [True]

        class Killed(BaseException):
            pass

        def written_then_killed(*args: Any, **how: Any) -> Any:
            done = record(*args, **how)
            if fails.pop() if fails else False:
                raise Killed
            return done

        monkeypatch.setattr(history, "record_turn", written_then_killed)
        with pytest.raises(Killed):
            graph.invoke({"question": FOUNDED}, thread, context=context_of(root))
        before = counts(root)
        result = graph.invoke(None, thread, context=context_of(root))
        assert counts(root) == before
        assert result["recorded"]["question"] == messages(root, "marn")[0].id
        assert {view.view_count for view in views(root, "ada")} == {1}

    def test_a_fork_is_another_turn_and_one_that_remembers_nothing_writes_nothing(self, root: Path) -> None:
        graph, thread = self.graph(), {"configurable": {"thread_id": "one"}}
        graph.invoke({"question": FOUNDED}, thread, context=context_of(root))
        (before,) = [state for state in graph.get_state_history(thread) if state.next == ("seed_graph",)]
        forked = graph.invoke(None, before.config, context=context_of(root, conversation_id="", user_id=""))
        assert forked["recorded"] is None
        assert len(messages(root, "marn")) == 2
        graph.invoke(None, before.config, context=context_of(root, top_k=2))
        assert [message.content for message in messages(root, "marn")][::2] == [FOUNDED, FOUNDED]


class TestAThread:
    def test_an_answer_that_cites_what_a_filter_hides_does_not_count_nor_what_was_completed_from_it(
        self, root: Path
    ) -> None:
        ask(FOUNDED, context_of(root))
        ask(FOUNDER, context_of(root).with_agents(rewriter=scripted_rewriter()))
        rewriter = ScriptedRewriter({BIRTH: Rewriting(BIRTH)})
        narrow = context_of(root, where={"source": "elsewhere.txt"}).with_agents(rewriter=rewriter)
        result = ask(BIRTH, narrow)
        assert "OutsideFilter" in kinds(result)
        turns = history.seen_turns(history.past_turns(narrow), OpenRun(narrow))
        assert [turn.question for turn in turns[:2]] == [FOUNDED, FOUNDER], "as they were typed"


class TestSomebodyElse:
    def test_a_conversation_of_another_user_is_refused_before_anything_is_read(self, root: Path) -> None:
        ask(FOUNDED, context_of(root, user_id="ada"))
        for user in ("bob", ""):
            for turns in ((), Conversation(context_of(root)).thread.turns):
                with pytest.raises(NoAccess) as refused:
                    ask(FOUNDER, context_of(root, user_id=user), turns)
                assert "ada" not in str(refused.value)
            with pytest.raises(NoAccess):
                turns_of_history(context_of(root, user_id=user))
        assert len(messages(root, "marn")) == 2


class TestAServer:
    @pytest.fixture(autouse=True)
    def server(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        monkeypatch.setenv("LANGSERVE_GRAPHS", "{}")
        monkeypatch.setenv("MARA_WORKSPACE", str(root))
        monkeypatch.delenv("MARA_AUTH", raising=False)

    def test_it_keeps_a_history_only_where_its_operator_says_so(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = make_context(conversation_id="marn", user_id="ada")
        for off in ("", "off"):
            monkeypatch.setenv("MARA_HISTORY", off)
            with pytest.raises(NoAccess, match="MARA_HISTORY"):
                ask(FOUNDED, settings)
        assert ask(FOUNDED, make_context())["recorded"] is None
        monkeypatch.setenv("MARA_HISTORY", "perhaps")
        with pytest.raises(BadInput, match="MARA_HISTORY"):
            ask(FOUNDED, settings)
        assert messages(root, "marn") == []
        monkeypatch.setenv("MARA_HISTORY", "on")
        assert ask(FOUNDED, settings)["recorded"]

    def test_who_holds_a_key_asks_under_their_own_name(self) -> None:
        anna = Identity("anna", {})
        assert anna.context(user_id="bob").user_id == "anna"
        assert anna.context(conversation_id="marn").user_id == "anna"
        assert anna.context().user_id == "", "who wants no history has none"
        assert LOCAL.context(user_id="bob").user_id == "bob"

    def test_who_holds_a_key_goes_on_with_no_conversation_but_their_own(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MARA_HISTORY", "on")
        ask(FOUNDED, context_of(root, user_id="", workspace=""))
        theirs = Identity("anna", {}, None).confine(context_of(root, user_id="ada", workspace=""))
        with pytest.raises(NoAccess):
            ask(FOUNDER, theirs)
