"""The history: what was asked and answered in conversations, and which documents a person viewed.

A turn is written whole or not at all, and nothing derives it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean
from uuid import uuid4

from graph.errors import MissingEndpoint, NotInSchema
from graph.relationships.concepts import ConceptExtractor
from graph.relationships.conversations import (
    ASSISTANT,
    USER,
    Cited,
    check_open_to,
    cited_text,
    erase_messages,
    last_message,
    last_viewing_note,
    title_of,
)
from graph.relationships.provenance import DOCUMENT_OF
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EVERY_PART, Edge, EdgeType, HistoryPart, Node, NodeType, time_text
from graph.relationships.tables import along
from graph.schema import stable_id
from graph.storage.marks import Mark, MarkKind

_VIEW = """
    INSERT INTO viewed
        (source, target, view_count, first_viewed_at, last_viewed_at, duration, relevance_score, revision)
    VALUES (
        (SELECT key FROM "user" WHERE id = :user), (SELECT key FROM document WHERE id = :document),
        1, :at, :at, :duration, NULL, :revision
    )
    ON CONFLICT (source, target) DO UPDATE SET
        view_count = viewed.view_count + 1,
        first_viewed_at = CASE WHEN excluded.first_viewed_at < viewed.first_viewed_at
            THEN excluded.first_viewed_at ELSE viewed.first_viewed_at END,
        last_viewed_at = CASE WHEN excluded.last_viewed_at > viewed.last_viewed_at
            THEN excluded.last_viewed_at ELSE viewed.last_viewed_at END,
        duration = coalesce(viewed.duration + excluded.duration, viewed.duration, excluded.duration),
        revision = excluded.revision"""


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A question with its answer, as it is to be written.

    Attributes:
        key: names the run that answered: what the same run writes again is the same turn.
        question: as it was typed.
        answer: with its citations.
        asked_at: as `time_text` writes it.
        answered_at: as `time_text` writes it.
        conversation: its id; empty: the turn belongs to none.
        user: the user; empty where none is known.
        understood: the question as it was completed from earlier turns; empty where it stood alone.
        kind: what the answer is: an answer, evidence, a refusal, or a question back.
        cited: what the answer cites.
        replaces: the key of a turn of the same conversation and user in whose place it comes; empty for none.
    """

    key: str
    question: str
    answer: str
    asked_at: str
    answered_at: str
    conversation: str = ""
    user: str = ""
    understood: str = ""
    kind: str = ""
    cited: Sequence[Cited] = ()
    replaces: str = ""

    def message_id(self, role: str) -> str:
        """Return the id of its question (role ``user``) or its answer (``assistant``)."""
        return self._id(self.key, role)

    @property
    def replaced_ids(self) -> tuple[str, ...]:
        """The ids of the messages in whose place it comes."""
        return tuple(self._id(self.replaces, role) for role in (USER, ASSISTANT)) if self.replaces else ()

    def _id(self, key: str, role: str) -> str:
        return stable_id("message", self.conversation, self.user, key, role)


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """The part of a turn that the record holds.

    Attributes:
        question: the id of the question's message; empty where messages are not written.
        answer: the id of the answer's message, likewise.
        viewed: ids of the documents that count as viewed.
        unlinked: ids of the passages that the answer cites and the relationship graph does not hold.
    """

    question: str = ""
    answer: str = ""
    viewed: tuple[str, ...] = ()
    unlinked: tuple[str, ...] = ()


def now() -> str:
    """Return the present time as the record holds it."""
    return time_text(datetime.now(UTC))


def record_turn(
    record: RelationshipRecord,
    turn: NewTurn,
    extractor: ConceptExtractor | None = None,
    parts: Collection[HistoryPart] = EVERY_PART,
    *,
    own_only: bool = False,
) -> RecordedTurn:
    """Write a turn in one transaction; one that was written before changes nothing.

    Args:
        record: the relationship graph.
        turn: the question and its answer.
        extractor: finds the concepts that messages mention; None: none are written.
        parts: what is written. References and concepts hang on the messages; views do not.
        own_only: whether somebody may continue only conversations that they began.

    Raises:
        NoAccess: the conversation is not open to the user: see `check_open_to`.
        NotInSchema: an id or a value is none that the schema allows.
        WorkspaceLocked: other processes write for longer than one waits.
    """
    mentions = _mentions(turn, extractor) if HistoryPart.CONCEPTS in parts else {}
    with record.transaction():
        if turn.conversation:
            check_open_to(record, turn.conversation, turn.user, own_only=own_only)
        documents = _documents_of(record, turn.cited)
        done = _planned(turn, documents, parts)
        if _is_written(record, turn, done):
            return done
        if turn.user and (done.question or done.viewed):
            _create(record, Node(NodeType.USER, turn.user, {"created_at": turn.asked_at}))
        if done.question:
            if turn.conversation and turn.replaces:
                erase_messages(record, turn.conversation, turn.replaced_ids)
            _write_messages(record, turn)
            record.link_all(
                Edge(EdgeType.MENTIONS, (NodeType.MESSAGE, message), (NodeType.CONCEPT, concept), {"confidence": sure})
                for message, concepts in mentions.items()
                for concept, sure in concepts.items()
            )
        if done.question and HistoryPart.REFERENCES in parts:
            _write_references(record, done.answer, turn.cited, documents)
        for document in done.viewed:
            track_user_viewed_document(record, turn.user, document, turn.answered_at)
        if done.viewed and not done.question:
            record.set_note(*_last_viewing(turn))
    return done


def add_message_with_references(
    record: RelationshipRecord,
    conversation: str,
    content: str,
    role: str,
    documents: Sequence[str] = (),
    extractor: ConceptExtractor | None = None,
    *,
    message_id: str = "",
) -> str:
    """Add a message to the end of a conversation, which it begins where there is none; return the message's id.

    It references the documents, numbered from 1, and mentions the concepts that the extractor finds in it. A message
    that is there is left as it is. Raises MissingEndpoint where a document is not there; then nothing is written.
    """
    key = message_id or f"message-{uuid4().hex}"
    message = (NodeType.MESSAGE, key)
    with record.transaction():
        if record.node(*message) is not None:
            return key
        _append(record, conversation, key, {"role": role, "content": content, "created_at": now()})
        for number, document in enumerate(dict.fromkeys(documents), start=1):
            record.link(Edge(EdgeType.REFERENCES, message, (NodeType.DOCUMENT, document), {"number": number}))
        for concept, sure in (extractor.concepts_in(content) if extractor else {}).items():
            record.link(Edge(EdgeType.MENTIONS, message, (NodeType.CONCEPT, concept), {"confidence": sure}))
    return key


def track_user_viewed_document(
    record: RelationshipRecord, user_id: str, document_id: str, timestamp: str = "", duration: int | None = None
) -> None:
    """Count one more view of a document by a user, in one statement: with other writers beside it, no view is lost.

    Args:
        record: the relationship graph.
        user_id: an existing user.
        document_id: an existing document.
        timestamp: when it was viewed, as `time_text` writes it; empty for now.
        duration: seconds spent on it, 0 or more, which add up; None where they are not known.

    Raises:
        MissingEndpoint: there is no such user or document.
    """
    about = {"user": user_id, "document": document_id, "at": timestamp or now(), "duration": duration}
    with record.transaction() as revision:
        try:
            record.execute(_VIEW, {**about, "revision": revision})
        except NotInSchema as fault:
            raise MissingEndpoint(
                "The user or the document of a view is not in the relationship graph", "Create both nodes first"
            ) from fault


def record_view(record: RelationshipRecord, user_id: str, document_id: str, duration: int) -> None:
    """Count a view that just ended, of that many seconds; the user is created where there is none.

    Raises:
        MissingEndpoint: there is no such document.
        NotInSchema: the user's id is none that the schema allows.
        WorkspaceLocked: other processes write for longer than one waits.
    """
    at = now()
    with record.transaction():
        _create(record, Node(NodeType.USER, user_id, {"created_at": at}))
        track_user_viewed_document(record, user_id, document_id, at, duration)


def _documents_of(record: RelationshipRecord, cited: Iterable[Cited]) -> dict[str, str]:
    """Return {passage: its document} of cited passages that the relationship graph holds."""
    rows = {each.passage: record.execute(DOCUMENT_OF, (each.passage,)).fetchone() for each in cited}
    return {passage: str(row[0]) for passage, row in rows.items() if row}


def _planned(turn: NewTurn, documents: Mapping[str, str], parts: Collection[HistoryPart]) -> RecordedTurn:
    """Return what is to be written of a turn that cites passages of these documents."""
    unlinked = {each.passage: None for each in turn.cited if each.passage not in documents}
    asked, answered = (turn.message_id(USER), turn.message_id(ASSISTANT)) if HistoryPart.MESSAGES in parts else ("", "")
    viewed = dict.fromkeys(documents.values()) if turn.user and HistoryPart.VIEWS in parts else {}
    return RecordedTurn(asked, answered, tuple(viewed), tuple(unlinked))


def _is_written(record: RelationshipRecord, turn: NewTurn, planned: RecordedTurn) -> bool:
    if planned.question:
        return record.node(NodeType.MESSAGE, planned.question) is not None
    key, value = _last_viewing(turn)
    return record.note(key) == value


def _last_viewing(turn: NewTurn) -> tuple[str, str]:
    """Return key and value of the note that tells the last turn of which a user's views alone were written."""
    return last_viewing_note(turn.user), stable_id("turn", turn.key)


def _write_messages(record: RelationshipRecord, turn: NewTurn) -> None:
    asked, answered = turn.message_id(USER), turn.message_id(ASSISTANT)
    question = {"role": USER, "content": turn.question, "created_at": turn.asked_at}
    answer = {"role": ASSISTANT, "content": turn.answer, "created_at": turn.answered_at}
    _append(record, turn.conversation, asked, {**question, "understood": turn.understood or None})
    _append(record, turn.conversation, answered, {**answer, "kind": turn.kind or None, "cited": cited_text(turn.cited)})
    if not turn.conversation:
        record.link(Edge(EdgeType.FOLLOWS, (NodeType.MESSAGE, answered), (NodeType.MESSAGE, asked)))
    if turn.user:
        record.link(Edge(EdgeType.CREATED, (NodeType.USER, turn.user), (NodeType.MESSAGE, asked)))


def _append(
    record: RelationshipRecord, conversation: str, key: str, properties: Mapping[str, str | int | None]
) -> None:
    """Create a message, at the end of its conversation where it has one; in a transaction, so none gets between."""
    record.put_node(Node(NodeType.MESSAGE, key, properties))
    if not conversation:
        return
    message, when = (NodeType.MESSAGE, key), properties["created_at"]
    begun = record.node(NodeType.CONVERSATION, conversation)
    about = dict(begun.properties) if begun else {"title": title_of(str(properties["content"])), "created_at": when}
    record.put_node(Node(NodeType.CONVERSATION, conversation, {**about, "updated_at": when}))
    last = last_message(record, conversation)
    position = last[1] + 1 if last else 0
    record.link(Edge(EdgeType.PART_OF, message, (NodeType.CONVERSATION, conversation), {"position": position}))
    if last:
        record.link(Edge(EdgeType.FOLLOWS, message, (NodeType.MESSAGE, last[0])))


def _write_references(
    record: RelationshipRecord, answer: str, cited: Iterable[Cited], documents: Mapping[str, str]
) -> None:
    """Link an answer with what it cites; of several passages of a document, the document takes the first number."""
    targets: dict[tuple[NodeType, str], int] = {}
    for each in sorted(cited, key=lambda each: each.number):
        if each.passage in documents:
            targets.setdefault((NodeType.DOCUMENT, documents[each.passage]), each.number)
            targets.setdefault((NodeType.CHUNK, each.passage), each.number)
    record.link_all(
        Edge(EdgeType.REFERENCES, (NodeType.MESSAGE, answer), target, {"number": number})
        for target, number in targets.items()
    )


def _mentions(turn: NewTurn, extractor: ConceptExtractor | None) -> dict[str, Mapping[str, float]]:
    if extractor is None:
        return {}
    said = {USER: turn.understood or turn.question, ASSISTANT: turn.answer}
    return {turn.message_id(role): extractor.concepts_in(text) for role, text in said.items()}


def _create(record: RelationshipRecord, node: Node) -> None:
    """Create a node where there is none of its id; one that is there keeps its properties."""
    if record.node(node.type, node.id) is None:
        record.put_node(node)


def keep_search(record: RelationshipRecord, name: str, text: str, similarities: Mapping[str, float], at: str) -> None:
    """Keep a text under a name, in one transaction, in place of what was kept under it before.

    Args:
        record: the relationship graph.
        name: id of the Query.
        text: what was searched for.
        similarities: score of the SIMILARITY edge by id of document.
        at: when, see `graph.relationships.schema.time_text`.

    Raises:
        NotInSchema: the name or a score is none.
        MissingEndpoint: a document is not in the graph; then nothing is kept.
    """
    query = Node(NodeType.QUERY, name, {"text": text, "created_at": at})
    with record.transaction():
        record.remove_nodes(NodeType.QUERY, [name])
        record.put_node(query)
        record.link_all(
            Edge(EdgeType.SIMILARITY, (NodeType.QUERY, name), (NodeType.DOCUMENT, document), {"score": score})
            for document, score in similarities.items()
        )


_ASKERS = f"""
    SELECT DISTINCT created.source FROM {along("message <-created-")}
    WHERE role = :role AND (content = :question OR understood = :question)"""
_DOCUMENT_OF = f"SELECT chunk_of.target FROM {along('document_chunk -chunk_of->')} WHERE id = ?"
_RATE = "UPDATE viewed SET relevance_score = ?, revision = ? WHERE source = ? AND target = ?"


def rate_views(record: RelationshipRecord, marks: Iterable[Mark]) -> int:
    """Set the relevance of every view to the mean of its user's marks, and of one without a mark to null.

    A mark counts for the users who asked its question, and for the document of its passage: 1 where the passage
    served, -1 where it did not. Marks of gold standards and of citations say nothing of a user.

    Args:
        record: the relationship graph.
        marks: all marks of the workspace.

    Returns:
        The number of views whose relevance changed.
    """
    with record.transaction() as revision:
        votes: dict[tuple[int, int], list[int]] = defaultdict(list)
        for mark in marks:
            if mark.kind is MarkKind.PERSON:
                document = record.execute(_DOCUMENT_OF, (mark.passage_id,)).fetchone()
                askers = record.execute(_ASKERS, {"role": USER, "question": mark.question})
                for (asker,) in askers if document else ():
                    votes[asker, document[0]].append(1 if mark.served else -1)
        views = record.execute("SELECT source, target, relevance_score FROM viewed")
        changed = [
            (score, revision, user, document)
            for user, document, before in views
            if (score := fmean(votes[user, document]) if (user, document) in votes else None) != before
        ]
        for row in changed:
            record.execute(_RATE, row)
    return len(changed)
