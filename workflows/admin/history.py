"""The history for the operator of a workspace: conversations, all that is kept of a user, and erasing it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graph.errors import BadInput, WorkspaceMissing
from graph.relationships.conversations import (
    ASSISTANT,
    USER,
    Cited,
    Conversation,
    Erased,
    Message,
    conversations,
    erase_user,
    messages,
    messages_beside,
    questions_of,
    users,
    views,
)
from graph.relationships.cypher.bolt import ServerSettings
from graph.relationships.cypher.copies import remove_copies
from graph.relationships.cypher.mirror import was_mirrored
from graph.relationships.history import now
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.relationships.tables import along
from graph.storage.marks import erase_marks, read_marks
from graph.storage.workspace import Workspace
from workflows.conversation.kept import Conversations
from workflows.results import cited_passages
from workflows.runtime.graph_server import erase_on_graph_server

_DOCUMENT_OF = f"""
    SELECT title, document.path FROM {along("document_chunk -chunk_of-> document")}
    WHERE document_chunk.id = ?"""

NO_SERVER, SERVER_NOT_NAMED, ERASED_ON_SERVER = "none", "not named", "erased"
"""Graph servers when a user is forgotten: none has a copy; one has, but none is named; it is erased there, too."""


def list_history(root: Path, user: str = "") -> dict[str, Any]:
    """Return the conversations and users of a workspace; of one user also questions outside of any, and views.

    Args:
        root: the workspace, or the folder that keeps the conversations of its page.
        user: whose; empty: everybody's conversations.

    Raises:
        WorkspaceMissing: there is no workspace.
        WorkspaceDamaged: a file cannot be read.
    """
    with _opened(root) as history:
        return history.listed(user)


def read_conversation(root: Path, key: str) -> dict[str, Any]:
    """Return a conversation with its messages. Raises BadInput where there is none, else as `list_history`."""
    with _opened(root) as history:
        conversation = next((each for each in history.conversations() if each.id == key), None)
        if conversation is None:
            raise BadInput("There is no such conversation", "`mara history` lists those that there are")
        return history.with_messages(conversation)


def export_history(root: Path, user: str = "") -> dict[str, Any]:
    """Return the whole history, or all that a workspace keeps of a user, as JSON can hold it.

    Args:
        root: as for `list_history`.
        user: whose; empty: everybody's conversations, with their messages.

    Raises:
        WorkspaceMissing: there is no workspace.
        WorkspaceDamaged: a file cannot be read.
    """
    with _opened(root) as history:
        exported = {**history.listed(user), "exported_at": now()}
        exported["conversations"] = [history.with_messages(each) for each in history.conversations(user)]
        if user:
            questions = history.questions_of(user)
            page = history.on_page
            exported["page"] = [
                {**asdict(each), "turns": [asdict(turn) for turn in page.turns(each.id)]} for each in page.of_user(user)
            ]
            exported["marks"] = [asdict(mark) for mark in read_marks(root) if mark.question in questions]
    return exported


def forget_user(root: Path, user: str) -> dict[str, Any]:
    """Erase all that a workspace keeps of a user, and leave no byte of it; called again, it finishes what it began.

    Args:
        root: as for `list_history`.
        user: whose name stands in the history, and in the page's conversations.

    Raises:
        WorkspaceMissing: there is no workspace.
        WorkspaceLocked: another process keeps a file open. All else is erased; the same call erases the rest.
        GraphUnavailable: it is erased here, and the configured graph server still holds it.
    """
    with _opened(root) as history:
        record = history.record
        n_marks = erase_marks(root, history.questions_of(user))
        n_page = history.on_page.remove_user(user)
        erased = erase_user(record, user) if record else Erased()
        remove_copies(root)
        if record:
            record.erase_free_pages()
        on_server = _erased_on_server(root, record)
    return {
        "workspace": str(root),
        "user": user,
        **asdict(erased),
        "page_conversations": n_page,
        "marks": n_marks,
        "graph_server": on_server,
    }


def _erased_on_server(root: Path, record: RelationshipRecord | None) -> str:
    """Bring the graph server, where one has a copy, up to date; return ``erased``, ``none``, or ``not named``."""
    if record is None or not was_mirrored(record):
        return NO_SERVER
    if ServerSettings.from_environment() is None:
        return SERVER_NOT_NAMED
    erase_on_graph_server(root)
    return ERASED_ON_SERVER


@contextmanager
def _opened(root: Path) -> Iterator[_History]:
    is_there = has_relationships(root)
    if not is_there and not Workspace(root).record_path.exists():
        raise WorkspaceMissing(f"There is no workspace at {root}", "Name the folder of a workspace")
    if not is_there:
        yield _History(root, None, Conversations(root))
        return
    with RelationshipRecord.of(root) as record:
        yield _History(root, record, Conversations(root))


@dataclass(frozen=True, slots=True)
class _History:
    """The history of a workspace.

    Attributes:
        root: the workspace.
        record: its relationship graph; None where nothing was written to it yet.
        on_page: the conversations of its page.
    """

    root: Path
    record: RelationshipRecord | None
    on_page: Conversations

    def listed(self, user: str) -> dict[str, Any]:
        """Return what `list_history` does."""
        rows = [asdict(each) for each in self.conversations(user)]
        listed: dict[str, Any] = {"workspace": str(self.root), "conversations": rows}
        record = self.record
        if not user:
            listed["users"] = users(record) if record else []
        else:
            listed["user"] = user
            listed["questions"] = [_message(record, each) for each in messages_beside(record, user)] if record else []
            listed["views"] = [asdict(each) for each in views(record, user)] if record else []
        return listed

    def conversations(self, user: str = "") -> list[Conversation]:
        """Return the conversations of all, or of a user, those of the page among them, the last changed first."""
        by_id = {each.id: each for each in self.on_page.of_user(user)}
        by_id |= {each.id: each for each in (conversations(self.record, user) if self.record else ())}
        return sorted(by_id.values(), key=lambda each: each.updated_at, reverse=True)

    def with_messages(self, conversation: Conversation) -> dict[str, Any]:
        """Return a conversation with its messages; one of the page alone with those that its turns come to."""
        said = [_message(self.record, each) for each in messages(self.record, conversation.id)] if self.record else []
        on_page = (
            message
            for turn in (() if said else self.on_page.turns(conversation.id))
            if turn.result is not None
            for message in _messages_of(turn.result)
        )
        return {**asdict(conversation), "messages": [*said, *on_page]}

    def questions_of(self, user: str) -> set[str]:
        """Return what a user alone asked, in the history and on the page, as typed and as understood."""
        own, others = questions_of(self.record, user) if self.record else (set(), set())
        for each in self.on_page.of_user(user):
            for turn in self.on_page.turns(each.id):
                own |= {turn.question, str(turn.result["question"]) if turn.result else turn.question}
        return own - others


def _messages_of(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield question and answer of a result as messages."""
    understood = result["understood"]
    yield {"role": USER, "content": understood["asked"] if understood else result["question"]}
    hits = {mark["number"]: hit for mark, hit in cited_passages(result)}
    yield {
        "role": ASSISTANT,
        "content": result["answer"] or "",
        "kind": result["answer_kind"],
        "cited": [
            {"number": number, "passage": hit["id"], "title": hit["title"], "path": hit["source"]}
            for number, hit in sorted(hits.items())
        ],
    }


def _message(record: RelationshipRecord, message: Message) -> dict[str, Any]:
    """Return a message within its conversation, less what is empty for its role; what it cites has its document."""
    row = {name: value for name, value in asdict(message).items() if name != "conversation" and value not in ("", ())}
    return {**row, "cited": [_cited(record, each) for each in message.cited]} if message.cited else row


def _cited(record: RelationshipRecord, cited: Cited) -> dict[str, Any]:
    """Return a cited passage with the title and path of its document; these are empty where it is no more."""
    row = record.execute(_DOCUMENT_OF, (cited.passage,)).fetchone()
    title, path = row or ("", "")
    return {**asdict(cited), "title": title, "path": path}
