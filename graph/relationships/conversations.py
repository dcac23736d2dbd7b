"""Conversations, messages and views as the record holds them, and who may go on with a conversation."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise

from graph.errors import NoAccess
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType
from graph.relationships.tables import along
from graph.schema import stable_id
from graph.text import one_line

USER, ASSISTANT = "user", "assistant"
"""The roles of a message."""

TITLE_LENGTH = 80
"""Characters of a conversation's title, which is the beginning of its first question."""

WITH_ASKER = 'LEFT JOIN created ON created.target = m.key LEFT JOIN "user" u ON u.key = created.source'
"""Joins the user who sent it to a message ``m``, as the user ``u``."""

_COLUMNS = "m.key, m.id, m.role, m.content, m.created_at, m.understood, m.kind, m.cited, p.position, c.id, u.id"
_MESSAGES = f"""
    SELECT {_COLUMNS} FROM message m
    LEFT JOIN part_of p ON p.source = m.key LEFT JOIN conversation c ON c.key = p.target {WITH_ASKER}"""
_WITHIN = f"""
    SELECT {_COLUMNS} FROM part_of p
    CROSS JOIN message m ON m.key = p.source CROSS JOIN conversation c ON c.key = p.target {WITH_ASKER}
    WHERE p.target = (SELECT key FROM conversation WHERE id = ?) ORDER BY p.position"""
"""The messages of a conversation; the cross joins keep the order, in which an index leads to the last ones."""
_FIRST_ASKER = f"""
    SELECT u.id FROM part_of p JOIN message m ON m.key = p.source {WITH_ASKER}
    WHERE p.target = c.key ORDER BY p.position LIMIT 1"""
_CONVERSATIONS = f"""
    SELECT c.id, c.title, c.created_at, c.updated_at, ({_FIRST_ASKER}),
        (SELECT count(*) FROM part_of p WHERE p.target = c.key)
    FROM conversation c"""
_VIEWS = f"""
    SELECT document.id, path, title, view_count, first_viewed_at, last_viewed_at, duration, relevance_score
    FROM {along('"user" -viewed-> document')} WHERE "user".id = ?"""
_ASKED_IN = f"""EXISTS (
    SELECT 1 FROM {along('"user" -created-> message -part_of->')}
    WHERE part_of.target = c.key AND "user".id = ?
)"""
_LAST = """
    SELECT message.id, last.position FROM (
        SELECT source, position FROM part_of
        WHERE target = (SELECT key FROM conversation WHERE id = ?) ORDER BY position DESC LIMIT 1
    ) AS last JOIN message ON message.key = last.source"""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation.

    Attributes:
        owner: the user who began it; empty where none is known.
        messages: their number.
    """

    id: str
    title: str
    created_at: str
    updated_at: str
    owner: str
    messages: int


@dataclass(frozen=True, slots=True)
class Cited:
    """A passage that an answer cites.

    Attributes:
        number: what the answer cites it by, from 1.
        passage: its id.
    """

    number: int
    passage: str


@dataclass(frozen=True, slots=True)
class Message:
    """A question or an answer.

    Attributes:
        role: ``user`` or ``assistant``.
        content: as it was typed, or answered.
        understood: the question as it was completed; empty where it stood alone, and for an answer.
        kind: what an answer is; empty for a question.
        position: its place in the conversation, from 0; -1 outside of one.
        conversation: its id; empty where it belongs to none.
        user: the user; empty for an answer, and where none is known.
        cited: the passages that an answer cites, by number; some may have been removed since.
    """

    id: str
    role: str
    content: str
    created_at: str
    understood: str
    kind: str
    position: int
    conversation: str
    user: str
    cited: tuple[Cited, ...]


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A question of a conversation, with its answer where there is one."""

    question: Message
    answer: Message | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A user's views of a document; times as `graph.relationships.schema.time_text` writes them.

    Attributes:
        duration: seconds spent on it in all; None where they were not measured.
        relevance_score: the mean of the user's marks on its passages, in [-1, 1]; None without a mark.
    """

    document: str
    path: str
    title: str
    view_count: int
    first_viewed_at: str
    last_viewed_at: str
    duration: int | None
    relevance_score: float | None


def conversations(record: RelationshipRecord, user: str = "") -> list[Conversation]:
    """Return all conversations, or those in which a user asked, the last changed first."""
    where, values = (f"WHERE {_ASKED_IN}", (user,)) if user else ("", ())
    rows = record.execute(f"{_CONVERSATIONS} {where} ORDER BY c.updated_at DESC, c.id", values)
    return [_conversation(row) for row in rows]


def users(record: RelationshipRecord) -> list[str]:
    """Return the users of whom anything is kept, by name."""
    return [str(row[0]) for row in record.execute('SELECT id FROM "user" ORDER BY id')]


def conversation(record: RelationshipRecord, key: str) -> Conversation | None:
    """Return a conversation; None where there is none of that id."""
    row = record.execute(f"{_CONVERSATIONS} WHERE c.id = ?", (key,)).fetchone()
    return _conversation(row) if row else None


def messages(record: RelationshipRecord, conversation: str) -> list[Message]:
    """Return the messages of a conversation in their order."""
    rows = record.execute(_WITHIN, (conversation,))
    return [_message(row) for row in rows]


def messages_beside(record: RelationshipRecord, user: str) -> list[Message]:
    """Return a user's questions that belong to no conversation, each followed by its answer, the oldest first."""
    own = f"{_MESSAGES} WHERE u.id = ? AND c.key IS NULL ORDER BY m.created_at, m.key"
    questions = record.execute(own, (user,))
    return [_message(row) for question in questions for row in (question, *_answers_to(record, question[0]))]


def last_turns(record: RelationshipRecord, conversation: str, most: int) -> list[PastTurn]:
    """Return the last turns of a conversation, the last one last."""
    rows = record.execute(f"{_WITHIN} DESC LIMIT ?", (conversation, 2 * most))
    turns: list[PastTurn] = []
    for message in map(_message, reversed(rows)):
        if message.role == USER:
            turns.append(PastTurn(message))
        elif turns:
            turns[-1] = PastTurn(turns[-1].question, message)
    return turns[-most:]


def views(record: RelationshipRecord, user: str) -> list[View]:
    """Return what a user viewed, the last first."""
    rows = record.execute(f"{_VIEWS} ORDER BY last_viewed_at DESC, document.id", (user,))
    return [View(*row) for row in rows]


def view_of(record: RelationshipRecord, user: str, document: str) -> View | None:
    """Return a user's views of one document; None where they never viewed it."""
    row = record.execute(f"{_VIEWS} AND document.id = ?", (user, document)).fetchone()
    return View(*row) if row else None


def last_message(record: RelationshipRecord, conversation: str) -> tuple[str, int] | None:
    """Return id and position of a conversation's last message; None where it has none."""
    row = record.execute(_LAST, (conversation,)).fetchone()
    return (str(row[0]), int(row[1])) if row else None


def title_of(question: str) -> str:
    """Return the title of the conversation that begins with a question."""
    return one_line(question)[:TITLE_LENGTH]


def last_viewing_note(user: str) -> str:
    """Return the key of the record's note that tells the last turn of which a user's views alone were written."""
    return stable_id("last-viewing", user)


def check_open_to(record: RelationshipRecord, key: str, user: str, *, own_only: bool = False) -> None:
    """Raise NoAccess where a conversation is not open to somebody.

    It is open to the user who began it. One without a known user is open to all, but where ``own_only``
    says that each may continue only what they began. One that does not exist yet is open.
    """
    row = record.execute(f"SELECT ({_FIRST_ASKER}) FROM conversation c WHERE c.id = ?", (key,)).fetchone()
    if row is None or (row[0] or "") == user or (not row[0] and not own_only):
        return
    raise NoAccess("That conversation is not open to this user", "Name another conversation, or the user who began it")


def _conversation(row: tuple[str, str | None, str, str, str | None, int]) -> Conversation:
    key, title, created_at, updated_at, owner, count = row
    return Conversation(key, title or "", created_at, updated_at, owner or "", count)


def cited_text(cited: Iterable[Cited]) -> str:
    """Return passages that an answer cites as a message holds them: JSON, by number."""
    return json.dumps(sorted((each.number, each.passage) for each in cited), ensure_ascii=False)


def _message(row: tuple[object, ...]) -> Message:
    _, key, role, content, created_at, understood, kind, cited, position, within, user = row
    return Message(
        id=str(key),
        role=str(role),
        content=str(content),
        created_at=str(created_at),
        understood=str(understood or ""),
        kind=str(kind or ""),
        position=-1 if position is None else int(str(position)),
        conversation=str(within or ""),
        user=str(user or ""),
        cited=tuple(Cited(number, passage) for number, passage in json.loads(str(cited or "[]"))),
    )


def _answers_to(record: RelationshipRecord, question: object) -> list[tuple[object, ...]]:
    answers = f"{_MESSAGES} WHERE m.key IN (SELECT source FROM follows WHERE target = ?) AND c.key IS NULL"
    return record.execute(answers, (question,))


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
        stored = messages(record, key)
        kept = [message for message in stored if message.id not in gone]
        record.remove_nodes(NodeType.MESSAGE, [message.id for message in stored if message.id in gone])
        if not kept:
            record.remove_nodes(NodeType.CONVERSATION, [key])
        elif kept[0] != stored[0]:
            _rename(record, key, title_of(kept[0].content))
        for before, after in pairwise(kept):
            record.link(Edge(EdgeType.FOLLOWS, (NodeType.MESSAGE, after.id), (NodeType.MESSAGE, before.id)))
    return len(stored) - len(kept)


def _erase_from(record: RelationshipRecord, within: Conversation, user: str) -> int:
    """Erase a user's questions from a conversation, with their answers; in their own, also those without a user."""
    theirs = {user, ""} if within.owner == user else {user}
    stored = messages(record, within.id)
    return erase_messages(record, within.id, {each.id for each, asker in _with_askers(stored) if asker in theirs})


def _with_askers(stored: list[Message]) -> list[tuple[Message, str]]:
    """Return messages of a conversation with their users: of an answer, the user of the question before it."""
    asker, pairs = "", []
    for message in stored:
        asker = message.user if message.role == USER else asker
        pairs.append((message, asker))
    return pairs


def _rename(record: RelationshipRecord, key: str, title: str) -> None:
    node = record.node(NodeType.CONVERSATION, key)
    if node is not None:
        record.put_node(Node(NodeType.CONVERSATION, key, {**node.properties, "title": title}))
