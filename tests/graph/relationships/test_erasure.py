"""Erasing turns and users from the history: the others' stay, in order, and no byte of what went is left."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.relationships import conversations as past
from graph.relationships.conversations import Erased, erase_conversation, erase_messages, erase_user, questions_of
from graph.relationships.history import NewTurn, record_turn
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, HistoryPart, Node, NodeType
from tests.relationship_graphs import NOON, sample_node

USERS = ("ada-41c8", "ben-9f02", "")


@pytest.fixture
def record(tmp_path: Path) -> Iterator[RelationshipRecord]:
    with RelationshipRecord.of(tmp_path, create=True) as opened:
        put_a_document(opened)
        yield opened


def put_a_document(record: RelationshipRecord) -> None:
    record.put_nodes([sample_node(NodeType.DOCUMENT, "d"), sample_node(NodeType.CHUNK, "c")])
    record.link(Edge(EdgeType.CHUNK_OF, (NodeType.CHUNK, "c"), (NodeType.DOCUMENT, "d")))


def write(record: RelationshipRecord, key: str, user: str = "", conversation: str = "shared") -> NewTurn:
    """Write a turn whose texts name its key and its user."""
    said = f"{key} of {user or 'no user'}"
    turn = NewTurn(
        key, f"Question {said}?", f"Answer {said}.", NOON, NOON, conversation, user, cited=[past.Cited(1, "c")]
    )
    record_turn(record, turn)
    return turn


def follows(record: RelationshipRecord) -> set[tuple[str, str]]:
    return {
        (edge.source[1], edge.target[1]) for edge in record.edges(EdgeType.FOLLOWS, NodeType.MESSAGE, NodeType.MESSAGE)
    }


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from(USERS), st.sampled_from(["shared", ""])), max_size=8), st.sampled_from(USERS[:2])
)
def test_all_of_a_user_goes_alone(
    tmp_path_factory: pytest.TempPathFactory, turns: list[tuple[str, str]], gone: str
) -> None:
    """A conversation without an owner is shared by all."""
    root = tmp_path_factory.mktemp("erasing")
    with RelationshipRecord.of(root, create=True) as record:
        put_a_document(record)
        first = write(record, "first")
        written = [(user, write(record, f"n{n}", user, name)) for n, (user, name) in enumerate(turns)]
        erase_user(record, gone)
        record.erase_free_pages()
        remaining = [turn for user, turn in [("", first), *written] if user != gone and turn.conversation]
        messages = past.messages(record, "shared")
        texts = [text for turn in remaining for text in (turn.question, turn.answer)]
        assert [message.content for message in messages] == texts
        chain = {(after.id, before.id) for before, after in pairwise(messages)}
        assert chain <= follows(record)
        other = next(user for user in USERS if user not in (gone, ""))
        assert sum(view.view_count for view in past.views(record, other)) == sum(user == other for user, _ in written)
        assert questions_of(record, gone)[0] == set()
    content = b"".join(path.read_bytes() for path in root.iterdir())
    assert gone.encode() not in content


def test_of_messages_that_stay_each_follows_the_one_before_it_now(record: RelationshipRecord) -> None:
    first, second, third = (write(record, key) for key in ("first", "second", "third"))
    assert erase_messages(record, "shared", [second.message_id("user"), second.message_id("assistant")]) == 2
    assert (third.message_id("user"), first.message_id("assistant")) in follows(record)
    erase_messages(record, "shared", [first.message_id("user"), first.message_id("assistant")])
    (left,) = past.conversations(record)
    assert left.title == third.question, "the title was that of a question that is gone"
    assert len(follows(record)) == 1
    assert erase_conversation(record, "shared") == Erased(1, 2)
    assert erase_conversation(record, "shared") == Erased()
    assert (past.conversations(record), record.counts()["Message"]) == ([], 0)


def test_a_turn_that_replaces_another_leaves_nothing_of_it(record: RelationshipRecord) -> None:
    write(record, "before")
    replaced = write(record, "old")
    turn = NewTurn("new", "Question?", "Answer.", NOON, NOON, "shared", replaces="old")
    record_turn(record, turn)
    record_turn(record, turn)
    assert [message.content for message in past.messages(record, "shared")][2:] == ["Question?", "Answer."]
    assert record.node(NodeType.MESSAGE, replaced.message_id("user")) is None
    write(record, "theirs", USERS[0])
    record_turn(record, NewTurn("another", "Q?", "A.", NOON, NOON, "shared", USERS[1], replaces="theirs"))
    assert len(past.messages(record, "shared")) == 8


def test_searches_that_were_kept_for_a_question_and_the_note_of_views_go_too(record: RelationshipRecord) -> None:
    turn, other = write(record, "first", USERS[0], ""), write(record, "second", USERS[1], "")
    for each in (turn, other):
        record.put_node(Node(NodeType.QUERY, each.key, {"text": each.question, "created_at": NOON}))
    erase_user(record, USERS[0])
    assert [node.id for node in record.nodes(NodeType.QUERY)] == ["second"]
    turn = NewTurn("run", "Q?", "A.", NOON, NOON, "", USERS[0], cited=[past.Cited(1, "c")])
    before = record.execute("SELECT key FROM meta ORDER BY key")
    record_turn(record, turn, parts=[HistoryPart.VIEWS])
    assert record.execute("SELECT key FROM meta ORDER BY key") != before
    assert erase_user(record, USERS[0]) == Erased(views=1)
    assert record.execute("SELECT key FROM meta ORDER BY key") == before
