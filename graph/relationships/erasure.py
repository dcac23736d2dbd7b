"""Erasing history: turns, conversations, and all that is known of a user.

What is removed leaves no byte in the file once `RelationshipRecord.erase_free_pages` has run.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

from graph.relationships.conversations import (
    USER,
    WITH_ASKER,
    Conversation,
    Message,
    conversation,
    conversations,
    last_viewing_note,
    messages,
    messages_beside,
    title_of,
    views,
)
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType

_QUESTIONS = f"SELECT m.content, m.understood, u.id FROM message m {WITH_ASKER} WHERE m.role = ?"


@dataclass(frozen=True, slots=True)
class Erased:
    """How much was erased: whole conversations, messages in these and in others, and documents that were viewed."""

    conversations: int = 0
    messages: int = 0
    views: int = 0


def questions_of(record: RelationshipRecord, user: str) -> tuple[set[str], set[str]]:
    """Return what a user asked, and what anybody else asked, each as it was typed and as it was completed."""
    own: set[str] = set()
    others: set[str] = set()
    for content, understood, asker in record.execute(_QUESTIONS, (USER,)):
        (own if asker == user else others).update(text for text in (content, understood) if text)
    return own, others


def erase_user(record: RelationshipRecord, user: str) -> Erased:
    """Erase a user in one transaction: their questions with the answers to them, their conversations, and their views.

    A conversation that others asked in, too, keeps their questions and answers.
    """
    with record.transaction():
        own, others = questions_of(record, user)
        asked_in, seen = conversations(record, user), views(record, user)
        beside = [message.id for message in messages_beside(record, user)]
        gone = record.remove_nodes(NodeType.MESSAGE, beside)
        gone += sum(_erase_from(record, each, user) for each in asked_in)
        searches = [node.id for node in record.nodes(NodeType.QUERY) if node.properties["text"] in own - others]
        record.remove_nodes(NodeType.QUERY, searches)
        record.remove_nodes(NodeType.USER, [user])
        record.execute("DELETE FROM meta WHERE key = ?", (last_viewing_note(user),))
        left = sum(conversation(record, each.id) is not None for each in asked_in)
    return Erased(len(asked_in) - left, gone, len(seen))


def erase_conversation(record: RelationshipRecord, key: str) -> Erased:
    """Erase a conversation with all its messages, in one transaction; the views that it led to stay."""
    with record.transaction():
        gone = record.remove_nodes(NodeType.MESSAGE, [message.id for message in messages(record, key)])
        return Erased(record.remove_nodes(NodeType.CONVERSATION, [key]), gone)


def erase_messages(record: RelationshipRecord, key: str, gone: Collection[str]) -> int:
    """Erase messages of a conversation, and the conversation where none is left; return how many there were.

    Of those that stay, each follows the one that is before it now, and the first question gives the title.
    """
    with record.transaction():
        found = messages(record, key)
        kept = [message for message in found if message.id not in gone]
        record.remove_nodes(NodeType.MESSAGE, [message.id for message in found if message.id in gone])
        if not kept:
            record.remove_nodes(NodeType.CONVERSATION, [key])
        elif kept[0] != found[0]:
            _rename(record, key, title_of(kept[0].content))
        for before, after in pairwise(kept):
            record.link(Edge(EdgeType.FOLLOWS, (NodeType.MESSAGE, after.id), (NodeType.MESSAGE, before.id)))
    return len(found) - len(kept)


def _erase_from(record: RelationshipRecord, within: Conversation, user: str) -> int:
    """Erase a user's questions from a conversation, and the answers to them; in their own, also what nobody asked."""
    theirs = {user, ""} if within.owner == user else {user}
    found = messages(record, within.id)
    return erase_messages(record, within.id, {each.id for each, asker in _with_askers(found) if asker in theirs})


def _with_askers(found: list[Message]) -> list[tuple[Message, str]]:
    """Return messages of a conversation with who asked: of an answer, who asked the question before it."""
    asker, pairs = "", []
    for message in found:
        asker = message.user if message.role == USER else asker
        pairs.append((message, asker))
    return pairs


def _rename(record: RelationshipRecord, key: str, title: str) -> None:
    node = record.node(NodeType.CONVERSATION, key)
    if node is not None:
        record.put_node(Node(NodeType.CONVERSATION, key, {**node.properties, "title": title}))
