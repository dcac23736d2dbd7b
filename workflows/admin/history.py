"""The history for whoever keeps a workspace: conversations, all that is kept of a user, and erasing it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
    views,
)
from graph.relationships.cypher.bolt import ServerSettings
from graph.relationships.cypher.copies import remove_copies
from graph.relationships.cypher.mirror import was_mirrored
from graph.relationships.history import now
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.relationships.tables import along
from graph.storage.marks import Mark, erase_marks, read_marks
from graph.storage.workspace import Workspace, write_atomically
from workflows.conversation.kept import Conversation as PageConversation
from workflows.conversation.kept import Conversations, KeptTurn, take_over
from workflows.runtime.graph_server import erase_on_graph_server

_DOCUMENT_OF = f"""
    SELECT title, document.path FROM {along("document_chunk -chunk_of-> document")}
    WHERE document_chunk.id = ?"""

NO_SERVER, SERVER_NOT_NAMED, ERASED_ON_SERVER = "none", "not named", "erased"
"""What forgetting tells of a graph server: none has a copy; one has, but none is named; it is erased there, too."""


def list_history(root: Path, user: str = "", page_file: Path | None = None) -> dict[str, Any]:
    """Return the conversations of a workspace; of a user also what they asked outside of any, and what they viewed.

    Args:
        root: the workspace.
        user: whose; empty: everybody's conversations.
        page_file: a file that keeps the page's conversations in place of the history; None for none.

    Raises:
        WorkspaceMissing: there is no workspace.
        WorkspaceDamaged: a file cannot be read.
    """
    with _opened(root) as record:
        found = _conversations(record, Conversations(root, page_file), user)
        listed: dict[str, Any] = {"workspace": str(root), "conversations": [asdict(each) for each in found]}
        if user:
            listed["user"] = user
            listed["questions"] = [asdict(each) for each in messages_beside(record, user)] if record else []
            listed["views"] = [asdict(each) for each in views(record, user)] if record else []
    return listed


def read_conversation(root: Path, key: str, page_file: Path | None = None) -> dict[str, Any]:
    """Return a conversation with its messages. Raises BadInput where there is none, else as `list_history`."""
    store = Conversations(root, page_file)
    with _opened(root) as record:
        found = next((each for each in _conversations(record, store) if each.id == key), None)
        if found is None:
            raise BadInput("There is no such conversation", "`mara history` lists those that there are")
        return _with_messages(record, store, found)


def export_history(root: Path, user: str = "", page_file: Path | None = None) -> dict[str, Any]:
    """Return the whole history, or all that a workspace keeps of a user, as JSON can hold it.

    Args:
        root: the workspace.
        user: whose; empty: everybody's conversations, with their messages.
        page_file: as for `list_history`.

    Raises:
        WorkspaceMissing: there is no workspace.
        WorkspaceDamaged: a file cannot be read.
    """
    exported = {**list_history(root, user, page_file), "exported_at": now()}
    store = Conversations(root, page_file)
    with _opened(root) as record:
        found = _conversations(record, store, user)
        exported["conversations"] = [_with_messages(record, store, each) for each in found]
        if user:
            kept = _Kept.of(root, record, user, store)
            exported["page"] = [
                {**asdict(each), "turns": [asdict(turn) for turn in turns]} for each, turns in kept.page
            ]
            exported["marks"] = [asdict(mark) for mark in kept.marks]
    return exported


def write_export(exported: dict[str, Any], path: Path) -> None:
    """Write an export as JSON that a person can read. Raises BadInput where the file cannot be written."""
    try:
        write_atomically(path.absolute(), json.dumps(exported, ensure_ascii=False, indent=2) + "\n")
    except OSError as fault:
        raise BadInput(f"{path} cannot be written ({fault.strerror})", "Name another file") from fault


def forget_user(root: Path, user: str, page_file: Path | None = None) -> dict[str, Any]:
    """Erase all that a workspace keeps of a user, and leave no byte of it; called again, it finishes what it began.

    Args:
        root: the workspace.
        user: whose name stands in the history, and in the page's conversations.
        page_file: as for `list_history`.

    Raises:
        WorkspaceMissing: there is no workspace.
        WorkspaceLocked: another process keeps a file open. What could be erased is; the same call erases the rest.
        GraphUnavailable: it is erased here, and the configured graph server still holds it.
    """
    with _opened(root) as record:
        store = Conversations(root, page_file)
        kept = _Kept.of(root, record, user, store)
        n_marks = erase_marks(root, kept.questions)
        n_page = store.remove_user(user)
        erased = erase_user(record, user) if record else Erased()
        remove_copies(root)
        if record:
            record.erase_free_pages()
        if page_file:
            store.erase_free_pages()
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


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a workspace keeps of a user beside the relationship graph.

    Attributes:
        page: the conversations that the user held on the page.
        questions: what they alone asked, in the history and on the page.
        marks: what was said of passages for these questions.
    """

    page: Sequence[tuple[PageConversation, Sequence[KeptTurn]]]
    questions: frozenset[str]
    marks: Sequence[Mark]

    @classmethod
    def of(cls, root: Path, record: RelationshipRecord | None, user: str, store: Conversations) -> _Kept:
        """Return what is kept of somebody now."""
        page = store.of_user(user)
        own, others = questions_of(record, user) if record else (set(), set())
        own |= {question for _, turns in page for turn in turns for question in _asked(turn)}
        questions = frozenset(own - others)
        return cls(page, questions, [mark for mark in read_marks(root) if mark.question in questions])


def _asked(turn: KeptTurn) -> Iterator[str]:
    """Yield a question of the page as it was typed, and as it was understood."""
    yield turn.question
    if turn.result is not None:
        yield str(turn.result["question"])


@contextmanager
def _opened(root: Path) -> Iterator[RelationshipRecord | None]:
    """Open the relationship graph of a workspace; None where nothing was written to it yet."""
    if not Workspace(root).record_path.exists():
        raise WorkspaceMissing(f"There is no workspace at {root}", "Name the folder of a workspace")
    take_over(root)
    if not has_relationships(root):
        yield None
        return
    with RelationshipRecord.of(root) as record:
        yield record


def _messages_of(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield question and answer of a result as messages."""
    hits = {hit["number"]: hit for hit in result["passages"]}
    yield {"role": USER, "content": understood["asked"] if (understood := result["understood"]) else result["question"]}
    numbers = sorted({mark["number"] for mark in result["citations"]})
    yield {
        "role": ASSISTANT,
        "content": result["answer"] or "",
        "kind": result["answer_kind"],
        "cited": [
            {"number": number, "passage": hit["id"], "title": hit["title"], "path": hit["source"]}
            for number in numbers
            if (hit := hits.get(number))
        ],
    }


def _conversations(record: RelationshipRecord | None, store: Conversations, user: str = "") -> list[Conversation]:
    """Return the conversations of all, or of a user, the last changed first: the history's, and those of the page."""
    held = {each.id: each for each in store.listed(user)}
    held |= {each.id: each for each in (conversations(record, user) if record else ())}
    return sorted(held.values(), key=lambda each: each.updated_at, reverse=True)


def _with_messages(record: RelationshipRecord | None, store: Conversations, found: Conversation) -> dict[str, Any]:
    said = [_message(record, each) for each in messages(record, found.id)] if record else []
    on_page = (each for result in store.answers(found.id) for each in _messages_of(result))
    return {**asdict(found), "messages": said or [*on_page]}


def _message(record: RelationshipRecord, message: Message) -> dict[str, Any]:
    """Return a message within its conversation, less what is empty for its role; what it cites has its document."""
    told = {name: value for name, value in asdict(message).items() if name != "conversation" and value not in ("", ())}
    return {**told, "cited": [_cited(record, each) for each in message.cited]} if message.cited else told


def _cited(record: RelationshipRecord, cited: Cited) -> dict[str, Any]:
    """Return a cited passage with the title and path of its document; these are empty where it is no more."""
    row = record.execute(_DOCUMENT_OF, (cited.passage,)).fetchone()
    title, path = row or ("", "")
    return {**asdict(cited), "title": title, "path": path}
