"""Conversations are kept: each its owner's, no turn lost or doubled, however many write at the same time."""

from __future__ import annotations

import json
import multiprocessing
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from workflows.conversation.kept import (
    ANSWERED,
    CUT,
    CUT_AFTER_S,
    FAILED,
    RUNNING,
    STOPPED,
    UNDER_WAY_EACH,
    Conversations,
    KeptTurn,
    NoConversation,
    Report,
    UnderWay,
)

ME, OTHER = "me", "other"
TALK = "conversation-1"
RESULT = {"question": "Who?", "answer": "Ada [1].", "citations": [], "passages": []}


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["in the history", pytest.param("in Postgres", marks=pytest.mark.slow)])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, unconfigured: None
) -> Conversations:
    if request.param == "in Postgres":
        monkeypatch.setenv("MARA_RECORD_URL", request.getfixturevalue("postgres_url"))
    return Conversations(tmp_path / "workspace", clock)


def begin(store: Conversations, turn: str, question: str = "Who?", owner: str = ME, **how: Any) -> KeptTurn:
    return store.begin(owner, TALK, turn, question, {"mode": "mara"}, **how)[0]


def finish(store: Conversations, turn: str, state: str, **what: Any) -> None:
    store.tell(Report(turn, state=state, **what))


def answered(store: Conversations, turn: str, question: str = "Who?", **how: Any) -> None:
    begin(store, turn, question, **how)
    finish(store, turn, ANSWERED, result={**RESULT, "question": question})


def turns(store: Conversations) -> list[tuple[int, str, str]]:
    return [(turn.number, turn.question, turn.state) for turn in store.read(ME, TALK)[1]]


def test_a_conversation_begins_with_its_first_question_which_makes_a_short_title(store: Conversations) -> None:
    assert store.of(ME) == []
    turn = begin(store, "turn-0001", "Who built\n the Tarn Dam?")
    assert (turn.number, turn.state, turn.settings, turn.result) == (1, RUNNING, {"mode": "mara"}, None)
    (listed,) = store.of(ME)
    assert (listed.id, listed.title) == (TALK, "Who built the Tarn Dam?")
    with pytest.raises(BadInput, match="needs a title"):
        store.rename(ME, TALK, "  \n")
    store.begin(ME, "conversation-2", "turn-0002", "why " * 100, {})
    (title,) = (each.title for each in store.of(ME) if each.id == "conversation-2")
    assert len(title) <= 80
    assert title.endswith("…")


def test_what_became_of_a_turn_is_kept(store: Conversations) -> None:
    answered(store, "turn-0001")
    begin(store, "turn-0002", "When?")
    finish(store, "turn-0002", STOPPED, answer="It was")
    begin(store, "turn-0003", "Where?")
    finish(store, "turn-0003", FAILED, error="The question is empty")
    assert turns(store) == [(1, "Who?", ANSWERED), (2, "When?", STOPPED), (3, "Where?", FAILED)]
    assert store.turn(ME, "turn-0001").result == RESULT
    assert store.turn(ME, "turn-0002").answer == "It was"
    assert store.turn(ME, "turn-0003").error == "The question is empty"


def test_a_turn_that_is_asked_twice_is_refused(store: Conversations) -> None:
    begin(store, "turn-0001")
    with pytest.raises(BadInput, match="asked already"):
        begin(store, "turn-0001")
    assert len(turns(store)) == 1


def test_no_owner_sees_or_changes_the_conversation_of_another(store: Conversations) -> None:
    answered(store, "turn-0001")
    assert store.of(OTHER) == []
    refused: list[Callable[[], object]] = [
        lambda: store.read(OTHER, TALK),
        lambda: store.version(OTHER, TALK),
        lambda: store.turn(OTHER, "turn-0001"),
        lambda: store.rename(OTHER, TALK, "Mine"),
        lambda: store.delete(OTHER, TALK),
        lambda: begin(store, "turn-0002", owner=OTHER),
        lambda: begin(store, "turn-0003", owner=OTHER, replaces="turn-0001"),
    ]
    for attempt in refused:
        with pytest.raises(NoConversation):
            attempt()
    assert turns(store) == [(1, "Who?", ANSWERED)]


def test_a_deleted_conversation_takes_its_turns_along(store: Conversations) -> None:
    answered(store, "turn-0001")
    begin(store, "turn-0002")
    store.delete(ME, TALK)
    store.tell(Report("turn-0002", 0, [{"kind": "void"}], "It was so"))
    finish(store, "turn-0002", ANSWERED, result=RESULT)
    assert store.of(ME) == []
    assert store.follow([("turn-0002", 0)]) == [("", [])]
    with pytest.raises(NoConversation):
        store.turn(ME, "turn-0001")


def test_a_turn_that_no_process_works_at_any_more_is_cut(store: Conversations, clock: Clock) -> None:
    begin(store, "turn-0001")
    clock.now += CUT_AFTER_S - 1
    assert turns(store) == [(1, "Who?", RUNNING)]
    store.tell(Report("turn-0001"))
    clock.now += CUT_AFTER_S - 1
    assert turns(store) == [(1, "Who?", RUNNING)]
    clock.now += 1
    assert turns(store) == [(1, "Who?", CUT)]


class TestVersions:
    """Turns that were asked again, with the same words or others."""

    @pytest.fixture(autouse=True)
    def two_turns(self, store: Conversations) -> None:
        answered(store, "turn-0001", "Who?")
        answered(store, "turn-0002", "When?")

    def shown(self, store: Conversations, at: str = "") -> list[tuple[str, tuple[str, ...]]]:
        return [(turn.id, turn.versions) for turn in store.read(ME, TALK, at)[1]]

    def test_an_edited_turn_is_shown_without_what_followed_the_version_before_it(self, store: Conversations) -> None:
        _, results = store.begin(ME, TALK, "turn-0003", "Who built it?", {}, replaces="turn-0001")
        assert results == []
        assert turns(store) == [(1, "Who built it?", RUNNING)]
        finish(store, "turn-0003", ANSWERED, result=RESULT)
        versions = ("turn-0001", "turn-0003")
        assert self.shown(store) == [("turn-0003", versions)]
        assert self.shown(store, "turn-0001") == [("turn-0001", versions), ("turn-0002", ("turn-0002",))]

    def test_a_question_follows_the_version_that_was_shown(self, store: Conversations) -> None:
        answered(store, "turn-0003", "Who built it?", replaces="turn-0001")
        _, results = store.begin(ME, TALK, "turn-0004", "Where?", {}, follows="turn-0002")
        assert [result["question"] for result in results] == ["Who?", "When?"]
        finish(store, "turn-0004", ANSWERED, result=RESULT)
        assert [key for key, _ in self.shown(store)] == ["turn-0001", "turn-0002", "turn-0004"]
        _, results = store.begin(ME, TALK, "turn-0005", "Where?", {}, follows="turn-0003")
        assert [result["question"] for result in results] == ["Who built it?"]
        assert [key for key, _ in self.shown(store)] == ["turn-0003", "turn-0005"]
        assert [key for key, _ in self.shown(store, "turn-0002")] == ["turn-0001", "turn-0002", "turn-0004"]

    def test_an_answer_stays_beside_a_version_that_came_to_nothing_until_that_is_asked_again(
        self, store: Conversations, clock: Clock
    ) -> None:
        begin(store, "turn-0003", "When, by the way?", replaces="turn-0002")
        finish(store, "turn-0003", STOPPED)
        assert self.shown(store)[1:] == [("turn-0003", ("turn-0002", "turn-0003"))]
        begin(store, "turn-0004", "When, then?", replaces="turn-0003")
        clock.now += CUT_AFTER_S
        assert turns(store)[1:] == [(2, "When, then?", CUT)]
        assert self.shown(store, "turn-0002")[1:] == [("turn-0002", ("turn-0002", "turn-0004"))]
        answered(store, "turn-0005", "When?", replaces="turn-0004")
        assert self.shown(store)[1:] == [("turn-0005", ("turn-0002", "turn-0005"))]

    def test_all_go_with_their_conversation_and_with_their_user(self, store: Conversations) -> None:
        answered(store, "turn-0003", "Who built it?", replaces="turn-0001")
        assert len(store.turns(TALK)) == 3
        store.delete(ME, TALK)
        assert store.turns(TALK) == []
        owner = f"ada:{'0' * 16}"
        asked: dict[str, Any] = {"turn-a": {}, "turn-b": {"replaces": "turn-a"}, "turn-c": {"follows": "turn-a"}}
        for turn, more in asked.items():
            store.begin(owner, "conversation-2", turn, "Who?", {}, **more)
            finish(store, turn, ANSWERED, result=RESULT)
        assert store.remove_user("ada") == 1
        assert store.turns("conversation-2") == []


def test_only_a_turn_of_the_same_conversation_is_replaced_or_followed(store: Conversations) -> None:
    answered(store, "turn-0001")
    store.begin(ME, "conversation-2", "turn-0002", "Where?", {})
    for how in ({"replaces": "turn-0002"}, {"replaces": "nothing-there"}, {"follows": "turn-0002"}):
        with pytest.raises(NoConversation):
            begin(store, "turn-0003", **how)


class TestATurnUnderWay:
    """A turn that is answered by one process, and followed and stopped by others."""

    TOLD = ({"kind": "step", "text": "Reading"}, {"kind": "token", "text": "It"}, {"kind": "token", "text": " was"})

    @pytest.fixture(autouse=True)
    def under_way(self, store: Conversations) -> None:
        begin(store, "turn-0001")
        store.tell(Report("turn-0001", 0, self.TOLD[:2], "It"))
        store.tell(Report("turn-0001", 2, self.TOLD[2:], "It was"))

    def followed(self, store: Conversations, position: int = 0) -> tuple[str, list[Any]]:
        ((state, events),) = store.follow([("turn-0001", position)])
        return state, [json.loads(event) for event in events]

    def test_is_followed_from_any_event_on_and_read_with_the_words_so_far(self, store: Conversations) -> None:
        store.tell(Report("turn-0001", 2, self.TOLD[2:], "It was"))
        events = [{**event, "at": at} for at, event in enumerate(self.TOLD)]
        assert self.followed(store) == (RUNNING, events), "an event that is told twice stands once"
        assert self.followed(store, 2) == (RUNNING, events[2:])
        assert self.followed(store, 3) == (RUNNING, [])
        (turn,) = store.read(ME, TALK)[1]
        assert (turn.state, turn.answer) == (RUNNING, "It was")
        assert store.of(ME)[0].running

    def test_its_events_go_a_while_after_it_ended(self, store: Conversations, clock: Clock) -> None:
        finish(store, "turn-0001", ANSWERED, result=RESULT)
        assert not store.of(ME)[0].running
        assert (len(self.followed(store)[1]), self.followed(store)[0]) == (3, ANSWERED)
        clock.now += CUT_AFTER_S
        answered(store, "turn-0002")
        assert self.followed(store) == (ANSWERED, [])

    def test_keeps_the_words_that_it_had_when_it_was_stopped(self, store: Conversations) -> None:
        version = store.version(ME, TALK)
        store.stop(ME, "turn-0001")
        store.tell(Report("turn-0001", 3, [{"kind": "token", "text": " so"}], "It was so"))
        finish(store, "turn-0001", ANSWERED, result=RESULT)
        turn = store.turn(ME, "turn-0001")
        assert (turn.state, turn.answer, turn.result) == (STOPPED, "It was", None)
        assert (len(self.followed(store)[1]), store.version(ME, TALK)) == (3, version + 1)

    def test_is_stopped_by_its_owner_alone_and_once_it_has_ended_not_at_all(self, store: Conversations) -> None:
        with pytest.raises(NoConversation):
            store.stop(OTHER, "turn-0001")
        finish(store, "turn-0001", ANSWERED, result=RESULT)
        store.stop(ME, "turn-0001")
        assert turns(store) == [(1, "Who?", ANSWERED)]

    def test_is_cut_with_the_words_that_it_had_where_no_process_is_heard_of(
        self, store: Conversations, clock: Clock
    ) -> None:
        clock.now += CUT_AFTER_S
        assert self.followed(store)[0] == CUT
        turn = store.turn(ME, "turn-0001")
        assert (turn.state, turn.answer, store.of(ME)[0].running) == (CUT, "It was", False)

    def test_is_the_only_one_of_its_conversation(self, store: Conversations, clock: Clock) -> None:
        for how in ({}, {"replaces": "turn-0001"}):
            with pytest.raises(UnderWay, match="this conversation is being answered"):
                begin(store, "turn-0002", **how)
        store.begin(ME, "conversation-2", "turn-0003", "When?", {})
        clock.now += CUT_AFTER_S
        begin(store, "turn-0002", replaces="turn-0001")
        assert turns(store) == [(1, "Who?", RUNNING)]

    def test_is_one_of_so_many_of_its_owner(self, store: Conversations) -> None:
        for number in range(1, UNDER_WAY_EACH):
            store.begin(ME, f"conversation-{number + 1}", f"turn-{number}", "Who?", {})
        with pytest.raises(UnderWay, match=f"^{UNDER_WAY_EACH} of your questions are being answered"):
            store.begin(ME, "conversation-x", "turn-x", "Who?", {})
        assert "conversation-x" not in {each.id for each in store.of(ME)}
        store.begin(OTHER, "conversation-y", "turn-y", "Who?", {})
        finish(store, "turn-1", FAILED)
        store.begin(ME, "conversation-x", "turn-x", "Who?", {})


def ask_many(root: Path, writer: int, n_turns: int) -> None:
    store, pause = Conversations(root), threading.Event()
    for number in range(n_turns):
        key = f"turn-{writer}-{number}"
        while True:
            try:
                store.begin(ME, TALK, key, f"{writer} {number}", {})
                break
            except UnderWay:
                pause.wait(0.01)
        finish(store, key, ANSWERED, result={"question": key})


def test_threads_and_processes_that_write_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    n_turns = 5
    spawning = multiprocessing.get_context("spawn")
    writers: list[Any] = [threading.Thread(target=ask_many, args=(tmp_path, writer, n_turns)) for writer in range(3)]
    writers += [spawning.Process(target=ask_many, args=(tmp_path, writer, n_turns)) for writer in range(3, 4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    turns_read = Conversations(tmp_path).read(ME, TALK)[1]
    assert sorted(turn.question for turn in turns_read) == sorted(f"{w} {n}" for w in range(4) for n in range(n_turns))
    assert [turn.number for turn in turns_read] == list(range(1, len(turns_read) + 1))


def test_reading_makes_nothing_and_only_its_user_may_read_the_file(tmp_path: Path) -> None:
    store = Conversations(tmp_path)
    assert (store.of(ME), store.of_user(ME), store.turns(TALK), store.remove_user(ME)) == ([], [], [], 0)
    with pytest.raises(NoConversation):
        store.read(ME, TALK)
    assert [*tmp_path.iterdir()] == []
    begin(store, "turn-0001")
    (file,) = tmp_path.rglob("*.sqlite")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
